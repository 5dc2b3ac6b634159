"""Client files in the shapes that vendors document, with invented secrets: names, and texts with the names of PEM files and folders in braces.

A file that Kafka's own classes and rackspan read in different ways has the name of that difference (DIFFERENCES).
"""

from collections.abc import Iterator
from dataclasses import dataclass

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
BEARER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
KERBEROS = "com.sun.security.auth.module.Krb5LoginModule"
HANDLER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
PROVIDER = "org.apache.kafka.common.config.provider"
ENGINE = "org.apache.kafka.common.security.ssl.DefaultSslEngineFactory"

DIFFERENCES = {
    "unknown": "A setting under `ssl.`, `sasl.` or `security.` that no client of Kafka has is refused; Kafka ignores it.",
    "java": "Stores of Java and settings of its security providers are refused; Java loads them.",
    "token": "A login by a delegation token is refused.",
    "keytab": "`Krb5LoginModule` without `useTicketCache=true`, or with `ticketCache`, is refused.",
    "kinit": "GSSAPI needs no `sasl.jaas.config`: the credential cache of `kinit` is used.",
    "unchecked": "The values of settings that rackspan has no use for are not checked.",
    "variable": "A variable that its provider does not find, and a provider without a class, are refused, and blanks in `config.providers` left out; Kafka keeps the text.",
    "mechanism": "SASL without `sasl.mechanism` is refused; Kafka takes GSSAPI.",
    "other module": "A login module of another mechanism is refused; Kafka fails when it connects.",
    "unused": "Logins and stores are checked although `security.protocol` has no use for them.",
    "incomplete": "A login without user or password, or without a token endpoint, is refused; Kafka fails when it connects.",
    "pem": "PEM may have PKCS#1 keys, keys encrypted by PBES2, a password that its key does not need, or no type in place; Kafka on Java 17 refuses these.",
    "one line": "Of several certificates on one line all are used; Kafka uses the last.",
    "suites": "A part of TLS 1.3's cipher suites is refused.",
    "port": "An address may lack its port, which is 9092 then, and needs its host.",
}  # fmt: skip
"""Where rackspan reads a file in another way than Kafka's classes, in the words of docs/security.md."""


@dataclass(frozen=True, slots=True)
class ClientFile:
    name: str
    text: str
    difference: str | None = None


def _tls(*lines: str) -> str:
    return "\n".join(("security.protocol=SSL", *lines))


def _trusting(*lines: str) -> str:
    return _tls("ssl.truststore.type=PEM", "ssl.truststore.location={ca}", *lines)


def _scram(jaas: str, mechanism: str = "SCRAM-SHA-512") -> str:
    return f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism={mechanism}\nsasl.jaas.config={jaas}"


def _bearer(options: str, *lines: str) -> str:
    login = (
        "security.protocol=SASL_PLAINTEXT",
        "sasl.mechanism=OAUTHBEARER",
        f"sasl.jaas.config={BEARER} required {options};",
    )
    return "\n".join((*login, *lines))


def _kerberos(options: str, *lines: str) -> str:
    login = (
        "security.protocol=SASL_PLAINTEXT",
        "sasl.mechanism=GSSAPI",
        f"sasl.jaas.config={KERBEROS} required {options};",
    )
    return "\n".join((*login, *lines))


def _providers(names: str, *lines: str) -> str:
    classes = {"file": "FileConfigProvider", "dir": "DirectoryConfigProvider", "env": "EnvVarConfigProvider"}
    declared = [f"config.providers.{name}.class={PROVIDER}.{kind}" for name, kind in classes.items() if name in names]
    return "\n".join((f"config.providers={names}", *declared, *lines))


USER = 'username="alice" password="s3cret"'
URL = "sasl.oauthbearer.token.endpoint.url=https://id.example/token"
SUITES_1_3 = "TLS_AES_256_GCM_SHA384,TLS_CHACHA20_POLY1305_SHA256,TLS_AES_128_GCM_SHA256"


def _vendors() -> Iterator[ClientFile]:
    yield ClientFile("nothing", "")
    yield ClientFile(
        "confluent-cloud",
        f"""# Required by producers, consumers and the admin client
bootstrap.servers=pkc-1.eu.example:9092
security.protocol=SASL_SSL
sasl.jaas.config={PLAIN} required username='ABCDEFGH' password='Ab/cd+EF==';
sasl.mechanism=PLAIN
ssl.truststore.type=PEM
ssl.truststore.location={{ca}}
client.dns.lookup=use_all_dns_ips
session.timeout.ms=45000
acks=all
client.id=ccloud-java-client-1
schema.registry.url=https://psrc-1.example
basic.auth.credentials.source=USER_INFO
basic.auth.user.info=KEY:SECRET
""",
    )
    yield ClientFile(
        "confluent-cloud-oauth",
        _bearer(
            "clientId='me' clientSecret='s' scope='api' extension_logicalCluster='lkc-1' extension_identityPoolId='pool-1'",
            URL,
            f"sasl.login.callback.handler.class={HANDLER}",
            "bootstrap.servers=SASL_SSL://pkc-1.example:9092",
        ),
    )
    yield ClientFile(
        "event-hubs",
        f"""bootstrap.servers=space.servicebus.example:9093
security.protocol=SASL_SSL
sasl.mechanism=PLAIN
sasl.jaas.config={PLAIN} required username="$ConnectionString" password="Endpoint=sb://space.example/;SharedAccessKeyName=all;SharedAccessKey=abc+/=";
ssl.truststore.type=PEM
ssl.truststore.location={{ca}}
request.timeout.ms=60000
session.timeout.ms=30000
group.id=$Default
""",
    )
    yield ClientFile(
        "aiven-mutual-tls",
        _trusting("ssl.keystore.type=PEM", "ssl.keystore.location={store}", "bootstrap.servers=kafka-1.example:12345"),
    )
    yield ClientFile("aiven-scram", _scram(f"{SCRAM} required {USER};", "SCRAM-SHA-256"))
    yield ClientFile("aiven-jks", _tls("ssl.truststore.location={jks}", "ssl.truststore.password=changeit"), "java")
    yield ClientFile(
        "msk-scram",
        f"""security.protocol=SASL_SSL
sasl.mechanism=SCRAM-SHA-512
ssl.truststore.type=PEM
ssl.truststore.location={{ca}}
sasl.jaas.config={SCRAM} required \\
  username="alice" \\
  password="s3cret";
bootstrap.servers=b-1.msk.example:9096,b-2.msk.example:9096
""",
    )
    yield ClientFile(
        "msk-iam",
        """security.protocol=SASL_SSL
sasl.mechanism=AWS_MSK_IAM
sasl.jaas.config=software.amazon.msk.auth.iam.IAMLoginModule required;
sasl.client.callback.handler.class=software.amazon.msk.auth.iam.IAMClientCallbackHandler
""",
    )
    yield ClientFile(
        "msk-iam-oauth",
        _bearer(
            "", "sasl.login.callback.handler.class=software.amazon.msk.auth.iam.IAMOAuthBearerLoginCallbackHandler"
        ),
    )
    yield ClientFile(
        "redpanda-cloud",
        f"""bootstrap.servers=seed-1.example:9092
security.protocol = SASL_SSL
sasl.mechanism = SCRAM-SHA-256
sasl.jaas.config = {SCRAM} required username="alice" password="s3cret" ;
ssl.truststore.type : PEM
ssl.truststore.location {{ca}}
default.api.timeout.ms = 30000
""",
    )
    yield ClientFile(
        "strimzi-user",
        _trusting(
            "ssl.truststore.certificates={ca_line}",
            "bootstrap.servers=my-cluster-kafka-bootstrap:9093",
        ).replace("ssl.truststore.location={ca}\n", ""),
    )
    yield ClientFile(
        "strimzi-pkcs12",
        _tls("ssl.truststore.type=PKCS12", "ssl.truststore.location={p12}", "ssl.truststore.password=changeit"),
        "java",
    )
    yield ClientFile(
        "strimzi-oauth",
        _bearer(
            'oauth.client.id="me"',
            "sasl.login.callback.handler.class=io.strimzi.kafka.oauth.client.JaasClientOauthLoginCallbackHandler",
        ),
    )
    yield ClientFile(
        "instaclustr",
        f"""ssl.enabled.protocols=TLSv1.2,TLSv1.1,TLSv1
ssl.truststore.type=PEM
ssl.truststore.location={{ca}}
ssl.protocol=TLS
security.protocol=SASL_SSL
sasl.mechanism=SCRAM-SHA-256
sasl.jaas.config={SCRAM} required {USER};
ssl.endpoint.identification.algorithm=
""",
    )
    yield ClientFile(
        "upstash",
        _scram(f'{SCRAM} required username="YWxp-Y2U$" password="cGFz=";', "SCRAM-SHA-256")
        + "\nkey.serializer=org.apache.kafka.common.serialization.StringSerializer\nbootstrap.servers=tops-1.example:9092",
    )
    yield ClientFile(
        "schema-registry-tls",
        _trusting(
            "schema.registry.url=https://registry.example",
            "schema.registry.ssl.truststore.location=/other.jks",
            "schema.registry.ssl.truststore.password=x",
        ),
    )
    yield ClientFile(
        "connect-worker",
        f"""bootstrap.servers=a.example:9092
security.protocol=SASL_PLAINTEXT
sasl.mechanism=PLAIN
sasl.jaas.config={PLAIN} required {USER};
producer.security.protocol=SASL_PLAINTEXT
producer.sasl.jaas.config={PLAIN} required username="b" password="c";
consumer.sasl.mechanism=PLAIN
group.id=connect-cluster
offset.storage.topic=offsets
key.converter=org.apache.kafka.connect.json.JsonConverter
plugin.path=/plugins
""",
    )
    yield ClientFile(
        "streams-application",
        _scram(f"{SCRAM} required {USER};")
        + "\napplication.id=orders\nnum.standby.replicas=1\nmain.consumer.client.rack=a\nrestore.consumer.ssl.key.password=x",
    )
    yield ClientFile(
        "replicator-and-interceptors",
        _scram(f"{SCRAM} required {USER};")
        + "\nconfluent.monitoring.interceptor.sasl.jaas.config=x\ninterceptor.classes=io.example.Interceptor",
    )
    yield ClientFile(
        "broker-keys", "security.inter.broker.protocol=SSL\nssl.client.auth=required\nsasl.enabled.mechanisms=PLAIN"
    )
    yield ClientFile("librdkafka-names", "security.protocol=PLAINTEXT\nsasl.username=a\nsasl.password=b", "unknown")


def _jaas() -> Iterator[ClientFile]:
    for name, line in {
        "single-quotes": f"{PLAIN} required username='al ice' password='it\"s';",
        "bare-values": f"{PLAIN} required username=alice password=s-e_c$r.t;",
        "flag-in-any-case": f"{PLAIN} ReQuIrEd {USER};",
        "other-flags": f"{PLAIN} sufficient {USER};",
        "comments": f"{PLAIN} required /* who */ {USER} // why\\n;",
        "slash-is-a-comment": f'{PLAIN} required username="alice" password="p" / rest of the line\\n;',
        "escapes": f'{PLAIN} required username="al\\\\"ice" password="a\\\\\\\\b\\\\tc\\\\101d";',
        "unicode": f'{PLAIN} required username="z\\u00f6e" password="\\u20ac";',
        "over-lines": f'{PLAIN} required \\\n   username="alice" \\\n   password="s;=,:#!" ;',
        "without-blanks": f'{PLAIN} required username="a"password="b";',
        "more-options": f'{PLAIN} required {USER} user_bob="x" serviceName="kafka";',
        "option-twice": f'{PLAIN} required username="a" username="b" password="c";',
        "quoted-module": f'"{PLAIN}" required {USER};',
        "blanks-around-equals": f'{PLAIN} required username = "alice" password= "b";',
        "after-the-semicolon": f"{PLAIN} required {USER}; // end",
        "empty-password": f'{PLAIN} required username="a" password="";',
        "no-semicolon": f"{PLAIN} required {USER}",
        "two-modules": f"{PLAIN} required {USER}; {SCRAM} required {USER};",
        "no-flag": f"{PLAIN} {USER};",
        "unknown-flag": f"{PLAIN} needed {USER};",
        "number": f"{PLAIN} required username=alice password=12345;",
        "bare-sign": f"{PLAIN} required username=alice password=a+b;",
        "no-value": f"{PLAIN} required username= password=;",
        "nothing": " ",
        "open-quote": f'{PLAIN} required username="alice" password="b;',
        "quote-over-lines": f'{PLAIN} required username="alice" password="b\\nc";',
    }.items():
        yield ClientFile(f"jaas-{name}", _scram(line, "PLAIN"))
    yield ClientFile("jaas-no-password", _scram(f'{PLAIN} required username="alice";', "PLAIN"), "incomplete")
    yield ClientFile("jaas-delegation-token", _scram(f'{SCRAM} required {USER} tokenauth="true";'), "token")
    yield ClientFile("jaas-no-delegation-token", _scram(f'{SCRAM} required {USER} tokenauth="false";'))
    yield ClientFile("jaas-other-mechanism", _scram(f"{BEARER} required;"), "other module")
    yield ClientFile("jaas-missing", "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN")
    yield ClientFile(
        "mechanism-missing", f"security.protocol=SASL_PLAINTEXT\nsasl.jaas.config={PLAIN} required {USER};", "mechanism"
    )


def _tokens() -> Iterator[ClientFile]:
    yield ClientFile("bearer-client-credentials", _bearer('clientId="i" clientSecret="s" scope="k"', URL))
    yield ClientFile(
        "bearer-keys-of-4.1",
        _bearer(
            "",
            URL,
            "sasl.oauthbearer.client.credentials.client.id=i",
            "sasl.oauthbearer.client.credentials.client.secret=s",
            "sasl.oauthbearer.scope=k",
            "sasl.oauthbearer.header.urlencode=true",
        ),
    )
    yield ClientFile("bearer-without-endpoint", _bearer('clientId="i"'), "incomplete")
    yield ClientFile(
        "bearer-refresh",
        _bearer(
            'clientId="i" clientSecret="s"',
            URL,
            "sasl.login.refresh.window.factor=0.6",
            "sasl.login.read.timeout.ms=1000",
        ),
    )
    yield ClientFile("kerberos-ticket-cache", _kerberos('useTicketCache=true renewTicket=true serviceName="kafka"'))
    yield ClientFile(
        "kerberos-service-name",
        _kerberos("useTicketCache=true", "sasl.kerberos.service.name=brokers", "sasl.kerberos.kinit.cmd=/bin/kinit"),
    )
    yield ClientFile(
        "kerberos-keytab", _kerberos('useKeyTab=true storeKey=true keyTab="/etc/a.keytab" principal="a@B"'), "keytab"
    )
    yield ClientFile(
        "kerberos-no-jaas",
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=GSSAPI\nsasl.kerberos.service.name=kafka",
        "kinit",
    )


def _stores() -> Iterator[ClientFile]:
    for name, lines in {
        "truststore-file": (),
        "truststore-file-on-one-line": ("ssl.truststore.location={ca_one_line_file}",),
        "keystore-file-on-one-line": ("ssl.keystore.type=PEM", "ssl.keystore.location={store_one_line_file}"),
        "locked-key": ("ssl.keystore.type=PEM", "ssl.keystore.location={locked}", "ssl.key.password=key-secret"),
        "chain-escaped": (
            "ssl.keystore.type=PEM",
            "ssl.keystore.key={issued_escaped}",
            "ssl.keystore.certificate.chain={between_escaped}",
        ),
        "locked-key-without-password": ("ssl.keystore.type=PEM", "ssl.keystore.location={locked}"),
        "keystore-in-place": (
            "ssl.keystore.type=PEM",
            "ssl.keystore.key={key_line}",
            "ssl.keystore.certificate.chain={chain_line}",
        ),
        "keystore-continued": (
            "ssl.keystore.type=PEM",
            "ssl.keystore.key={key_continued}",
            "ssl.keystore.certificate.chain={chain_continued}",
        ),
        "keystore-escaped-lines": (
            "ssl.keystore.type=PEM",
            "ssl.keystore.key={key_escaped}",
            "ssl.keystore.certificate.chain={chain_escaped}",
        ),
        "keystore-password": ("ssl.keystore.type=PEM", "ssl.keystore.location={store}", "ssl.keystore.password=x"),
        "truststore-password": ("ssl.truststore.password=x",),
        "key-without-chain": ("ssl.keystore.type=PEM", "ssl.keystore.key={key_line}"),
        "chain-without-key": ("ssl.keystore.type=PEM", "ssl.keystore.certificate.chain={chain_line}"),
        "key-beside-file": (
            "ssl.keystore.type=PEM",
            "ssl.keystore.location={store}",
            "ssl.keystore.key={key_line}",
            "ssl.keystore.certificate.chain={chain_line}",
        ),
        "truststore-beside-file": ("ssl.truststore.certificates={ca_line}",),
        "no-certificate": ("ssl.truststore.location={empty}",),
        "absent-file": ("ssl.truststore.location=/nowhere/ca.pem",),
        "types-alone": ("ssl.keystore.type=JKS",),
        "tls-1.2-protocol": ("ssl.protocol=TLSv1.2",),
        "tls-1.2-enabled": ("ssl.enabled.protocols=TLSv1.2",),
        "tls-1.3-enabled": ("ssl.enabled.protocols = TLSv1.3",),
        "tls-both-and-old": ("ssl.enabled.protocols=TLSv1.3, TLSv1.2 ,TLSv1.1",),
        "tls-1.2-protocol-1.3-enabled": ("ssl.protocol=TLSv1.2", "ssl.enabled.protocols=TLSv1.3"),
        "tls-unknown-version": ("ssl.enabled.protocols=TLSv1.4",),
        "cipher-of-1.2": ("ssl.cipher.suites=TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",),
        "cipher-cbc": ("ssl.cipher.suites=TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256", "ssl.enabled.protocols=TLSv1.2"),
        "cipher-chacha": ("ssl.cipher.suites=TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",),
        "ciphers-of-1.3": (f"ssl.cipher.suites={SUITES_1_3}",),
        "ciphers-of-both": (f"ssl.cipher.suites=TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,{SUITES_1_3}",),
        "cipher-unknown": ("ssl.cipher.suites=ECDHE-RSA-AES256-GCM-SHA384",),
        "host-unchecked": ("ssl.endpoint.identification.algorithm= ",),
        "java-defaults": (
            f"ssl.engine.factory.class={ENGINE}",
            "ssl.trustmanager.algorithm=PKIX",
            "ssl.keymanager.algorithm=SunX509",
            "ssl.secure.random.implementation=SHA1PRNG",
        ),
        "unknown-algorithm": ("ssl.trustmanager.algorithm=Own",),
        "pinned-certificate": ("ssl.truststore.location={server}",),
    }.items():
        yield ClientFile(f"tls-{name.removeprefix('tls-')}", _trusting(*lines))
    yield ClientFile("tls-ca-continued", _tls("ssl.truststore.type=PEM", "ssl.truststore.certificates={ca_continued}"))
    yield ClientFile("tls-ca-indented", _tls("ssl.truststore.type=PEM", "ssl.truststore.location={ca_indented_file}"))
    yield ClientFile("tls-no-pem-in-place", _tls("ssl.truststore.type=PEM", "ssl.truststore.certificates=none"))
    yield ClientFile("tls-pem-without-type", _tls("ssl.truststore.certificates={ca_line}"), "pem")
    yield ClientFile(
        "tls-locked-by-pbes2",
        _trusting("ssl.keystore.type=PEM", "ssl.keystore.location={locked_pbes2}", "ssl.key.password=key-secret"),
        "pem",
    )
    yield ClientFile(
        "tls-chain-on-one-line",
        _trusting(
            "ssl.keystore.type=PEM", "ssl.keystore.key={issued_line}", "ssl.keystore.certificate.chain={between_line}"
        ),
        "one line",
    )
    yield ClientFile(
        "tls-needless-key-password",
        _trusting("ssl.keystore.type=PEM", "ssl.keystore.location={store}", "ssl.key.password=x"),
        "pem",
    )
    yield ClientFile("tls-pkcs1-key", _trusting("ssl.keystore.type=PEM", "ssl.keystore.location={pkcs1}"), "pem")
    yield ClientFile("tls-part-of-1.3", _trusting("ssl.cipher.suites=TLS_AES_256_GCM_SHA384"), "suites")
    yield ClientFile("tls-old-protocol", _trusting("ssl.protocol=TLSv1.1"))
    yield ClientFile("tls-provider", _trusting("ssl.provider=SunJSSE"))
    yield ClientFile(
        "tls-security-providers",
        _trusting("security.providers=org.apache.kafka.common.security.ssl.NoProvider"),
        "java",
    )
    yield ClientFile(
        "tls-store-without-use", "ssl.truststore.location={jks}\nssl.truststore.password=changeit", "unused"
    )


def _values() -> Iterator[ClientFile]:
    yield ClientFile(
        "values-with-blanks",
        "security.protocol=SASL_PLAINTEXT \t\nsasl.mechanism= PLAIN \n"
        f"sasl.jaas.config={PLAIN} required {USER}; \nclient.id = me \nrequest.timeout.ms= 5000 ",
    )
    yield ClientFile("values-twice", "client.id=a\nclient.id=b")
    yield ClientFile("values-lower-case", "security.protocol=plaintext")
    yield ClientFile(
        "values-times",
        "request.timeout.ms=+7\nconnections.max.idle.ms=-1\nsocket.connection.setup.timeout.ms=9223372036854775807",
    )
    yield ClientFile("values-no-time", "request.timeout.ms=1 s")
    yield ClientFile("values-negative-time", "request.timeout.ms=-1")
    yield ClientFile("values-unknown-protocol", "security.protocol=TLS")
    yield ClientFile("values-without-effect", "retries=many", "unchecked")
    yield ClientFile("values-bad-escape", "client.id=\\u12x4")
    yield ClientFile(
        "provider-file",
        _providers(
            "file",
            _scram(
                f'{PLAIN} required username="${{file:{{secrets}}/login.properties:user}}" password="${{file:{{secrets}}/login.properties:password}}";',
                "PLAIN",
            ),
        ),
    )
    yield ClientFile(
        "provider-directory",
        _providers(
            "dir,env",
            _scram(
                f'{PLAIN} required username="${{dir:{{secrets}}:user}}" password="${{env:CLIENT_FILES_PASSWORD}}";',
                "PLAIN",
            ),
        ),
    )
    yield ClientFile(
        "provider-allowed",
        _providers(
            "file",
            "config.providers.file.param.allowed.paths={secrets}",
            "client.id=${file:{secrets}/login.properties:user}",
        ),
    )
    yield ClientFile(
        "provider-not-allowed",
        _providers(
            "file",
            "config.providers.file.param.allowed.paths={secrets}/sub",
            "client.id=${file:{secrets}/login.properties:user}",
        ),
        "variable",
    )
    yield ClientFile(
        "provider-env-not-allowed",
        _providers(
            "env", "config.providers.env.param.allowlist.pattern=OTHER_.*", "client.id=${env:CLIENT_FILES_PASSWORD}"
        ),
        "variable",
    )
    yield ClientFile("provider-without-class", "config.providers=file\nclient.id=${file:/x:y}", "variable")
    yield ClientFile("provider-absent-file", _providers("file", "client.id=${file:/nowhere/x:y}"))
    yield ClientFile("provider-env-with-path", _providers("env", "client.id=${env:path:NAME}"))
    yield ClientFile(
        "provider-other-class",
        "config.providers=k\nconfig.providers.k.class=io.strimzi.kafka.KubernetesSecretConfigProvider\nclient.id=a",
    )
    yield ClientFile(
        "provider-blank-in-list", _providers("dir, env", "client.id=${env:CLIENT_FILES_PASSWORD}"), "variable"
    )
    yield ClientFile("no-provider", "client.id=${file:/x:y}")
    for name, address in {
        "protocol": "SASL_SSL://a.example:9092,PLAINTEXT://b.example:9093",
        "listener-name": "INTERNAL://a.example:9092",
        "ipv6": "[::1]:9092,[2001:db8::1]:9093",
        "ipv6-with-protocol": "SSL://[::1]:9092",
        "ipv6-bare": "2001:db8::1:9092",
        "blanks": " a.example:9092 , b.example:9093 ",
        "underscore": "my_broker.example:9092",
        "slash": "a.example:9092/",
        "port-too-large": "a.example:99999",
        "user": "me@a.example:9092",
    }.items():
        yield ClientFile(f"address-{name}", f"bootstrap.servers={address}")
    yield ClientFile("address-without-port", "bootstrap.servers=a.example", "port")
    yield ClientFile("address-without-host", "bootstrap.servers=:9092", "port")


def _misspelt() -> Iterator[ClientFile]:
    for name in MISSPELT[:3]:
        yield ClientFile(f"misspelt-{name.strip()}", f"{name}=x", "unknown")


MISSPELT = (
    *("ssl.truststore.locatoin", "sasl.mechanisms", "security.protocl", "securty.protocol", "SECURITY.PROTOCOL"),
    *("sasl.jaas.conf", "sasl.jass.config", "sals.mechanism", "ssl.keystore.locations", "ssl.truststore.file"),
    *("ssl.endpoint.identification.algorithem", "ssl_truststore_location", "ssl.ca", "sasl.oauthbearer.token.url"),
    *("sasl.login.callback.handler", "security.protokoll", "ssl.enabled.protocol", "ssl.ciphers", "sasl_mechanism"),
    "\u00ef\u00bb\u00bfsecurity.protocol",
)
"""Twenty keys of security as people misspell them, one behind a byte order mark."""

FILES = tuple(file for group in (_vendors, _jaas, _tokens, _stores, _values, _misspelt) for file in group())
