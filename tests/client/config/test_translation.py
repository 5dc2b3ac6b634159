"""A Java client's properties become settings of our clients, or are refused by name. The judges are the clients themselves."""

import ssl
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from kafka.net.manager import KafkaConnectionManager

from rackspan.client.config.keys import _WITH_EFFECT, KEYS, WITHOUT_EFFECT
from rackspan.client.config.properties_file import property_lines
from rackspan.client.config.translation import (
    judged_lines,
    kafka_python_settings,
    librdkafka_settings,
    presents_certificate,
    read_properties,
    warnings_about,
)
from rackspan.errors import MissingRequirement, UsageError

JAAS = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="alice" password="secret";'

LOGIN = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-512", "sasl.jaas.config": JAAS}

EVERYTHING = LOGIN | {
    "client.id": "auditor",
    "request.timeout.ms": "5000",
    "socket.connection.setup.timeout.ms": "2000",
    "connections.max.idle.ms": "60000",
    "bootstrap.servers": "elsewhere:9092",
    "retries": "5",
}


def test_a_login_reaches_both_clients() -> None:
    assert kafka_python_settings(LOGIN) == {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": "alice",
        "sasl_plain_password": "secret",
    }
    assert librdkafka_settings(LOGIN) == {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "alice",
        "sasl.password": "secret",
    }


def test_kafka_python_has_every_setting_it_is_given() -> None:
    assert kafka_python_settings(EVERYTHING).keys() <= KafkaConnectionManager.DEFAULT_CONFIG.keys()


def test_librdkafka_takes_every_setting_it_is_given() -> None:
    # It refuses a setting it does not know, or a value of the wrong kind, when the client is made.
    AdminClient({"bootstrap.servers": "127.0.0.1:1", **librdkafka_settings(EVERYTHING)})
    unchecked = {"security.protocol": "SSL", "ssl.endpoint.identification.algorithm": ""}
    AdminClient({"bootstrap.servers": "127.0.0.1:1", **librdkafka_settings(unchecked)})


def test_tls_without_a_truststore_trusts_the_system_and_checks_names() -> None:
    context = kafka_python_settings({"security.protocol": "SSL"})["ssl_context"]
    assert isinstance(context, ssl.SSLContext)
    assert context.verify_mode == ssl.CERT_REQUIRED
    assert context.check_hostname


def test_an_empty_identification_algorithm_leaves_names_unchecked_but_not_certificates() -> None:
    context = kafka_python_settings({"security.protocol": "SSL", "ssl.endpoint.identification.algorithm": ""})
    assert not context["ssl_context"].check_hostname
    assert context["ssl_context"].verify_mode == ssl.CERT_REQUIRED


OAUTH = {"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"}
CLIENT = {
    "sasl.oauthbearer.token.endpoint.url": "https://id/token",
    "sasl.jaas.config": 'x.OAuthBearerLoginModule required clientId="me" clientSecret="s" scope="kafka";',
    "sasl.login.callback.handler.class": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler",
}


def test_client_credentials_are_librdkafkas_oidc_settings() -> None:
    assert librdkafka_settings({**OAUTH, **CLIENT}) == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.token.endpoint.url": "https://id/token",
        "sasl.oauthbearer.client.id": "me",
        "sasl.oauthbearer.client.secret": "s",
        "sasl.oauthbearer.scope": "kafka",
    }


def test_kerberos_without_its_package_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rackspan.client.config.translation.find_spec", lambda _: None)
    with pytest.raises(MissingRequirement, match="pip install gssapi"):
        kafka_python_settings({"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "GSSAPI"})


def test_kerberos_takes_the_credential_cache_of_kinit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rackspan.client.config.translation.find_spec", lambda _: object())
    module = "com.sun.security.auth.module.Krb5LoginModule required useTicketCache=true;"
    login = {"sasl.mechanism": "GSSAPI", "sasl.jaas.config": module, "sasl.kerberos.service.name": "brokers"}
    assert kafka_python_settings({"security.protocol": "SASL_PLAINTEXT", **login}) == {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "GSSAPI",
        "sasl_kerberos_service_name": "brokers",
    }


@pytest.mark.parametrize(
    ("properties", "why"),
    [
        ({"sasl.kerberos.servicename": "x"}, "did you mean sasl.kerberos.service.name? Write that, or leave it out"),
        ({"ssl.truststore.password": "x"}, "ssl.truststore.password in --command-config: a PEM store has no password"),
        ({"ssl.provider": "BCFIPS"}, "ssl.provider in --command-config: 'BCFIPS' is none of SunJSSE"),
        (
            {"sasl.mechanism": "AWS_MSK_IAM"},
            "which are what rackspan can do; use SCRAM or TLS, or OAUTHBEARER with a token",
        ),
        ({"ssl.protocol": "TLSv1.1"}, "'TLSv1.1' is neither TLSv1.3 nor TLSv1.2"),
        ({"ssl.enabled.protocols": "TLSv1.2,TLS"}, "'TLS' is no version of TLS; write TLSv1.2, TLSv1.3 or both"),
        ({"ssl.enabled.protocols": "TLSv1.1"}, "leave no version of TLS to use"),
        ({"ssl.cipher.suites": "AES128-SHA"}, "'AES128-SHA' is a cipher suite that rackspan does not use"),
        (
            {"ssl.cipher.suites": "TLS_AES_128_GCM_SHA256"},
            "TLSv1.3 is used with all of its suites or not at all; add TLS_AES_256",
        ),
        ({"ssl.truststore.certificates": "x", "ssl.truststore.type": "JKS"}, "is PEM; set ssl.truststore.type=PEM"),
        ({"ssl.keystore.key": "x"}, "ssl.keystore.certificate.chain is missing; add it"),
        ({"ssl.keystore.certificate.chain": "x"}, "ssl.keystore.key is missing; add it"),
        (
            {"ssl.truststore.certificates": "x", "ssl.truststore.location": "f", "ssl.truststore.type": "PEM"},
            "leave one of them out",
        ),
        (
            {"sasl.jaas.config": 'a.OAuthBearerLoginModule required extension_a1="x";'},
            "extension_a1: the name of an extension",
        ),
        (
            {"sasl.jaas.config": 'a.OAuthBearerLoginModule required ssl.truststore.location="x";'},
            "authorities of this system",
        ),
        (
            {
                "sasl.jaas.config": 'com.sun.security.auth.module.Krb5LoginModule required useTicketCache=true ticketCache="c";'
            },
            "set KRB5CCNAME instead of the option",
        ),
        (
            {**LOGIN, "sasl.mechanism": "OAUTHBEARER", "sasl.oauthbearer.token.endpoint.url": "https://id"},
            "ScramLoginModule is of another mechanism",
        ),
        ({"sasl.oauthbearer.assertion.algorithm": "RS256"}, "rackspan signs no JWT"),
        ({"sasl.oauthbearer.header.urlencode": "yes"}, "'yes' is neither true nor false"),
        (
            {"sasl.jaas.config": 'com.sun.security.auth.module.Krb5LoginModule required keyTab="k";'},
            "sasl.jaas.config in --command-config: Krb5LoginModule without useTicketCache=true",
        ),
        (
            {"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"},
            "sasl.oauthbearer.token.endpoint.url is missing",
        ),
        ({**OAUTH, "sasl.oauthbearer.token.endpoint.url": "https://id/token"}, "sasl.jaas.config is missing"),
        ({"sasl.oauthbearer.token.endpoint.url": "ftp://id"}, "'ftp://id' is not a URL of http, https"),
        (
            {"sasl.login.callback.handler.class": "com.example.Own"},
            "'com.example.Own' is a class that only Java can load",
        ),
        ({"security.protocol": "TLS"}, "security.protocol in --command-config: 'TLS' is none of PLAINTEXT, SSL"),
        ({"sasl.mechanism": "DIGEST"}, "sasl.mechanism in --command-config: 'DIGEST' is none of PLAIN, SCRAM-SHA-256"),
        ({"request.timeout.ms": "soon"}, "request.timeout.ms in --command-config: 'soon' is not a number"),
        (
            {"sasl.jaas.config": "nonsense"},
            "sasl.jaas.config in --command-config: it is not of the form that Kafka reads",
        ),
        ({"security.protocol": "SASL_SSL"}, "sasl.mechanism is missing"),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}, "sasl.jaas.config is missing"),
        ({"ssl.endpoint.identification.algorithm": "ldaps"}, "'ldaps' is neither https nor empty"),
        ({"ssl.truststore.location": "/etc/trust.jks"}, "ssl.truststore.type in --command-config is JKS"),
        (
            {"ssl.keystore.type": "PKCS12", "ssl.keystore.location": "k"},
            "ssl.keystore.type in --command-config is PKCS12, which only Java reads",
        ),
    ],
)
def test_what_cannot_be_followed_is_refused_by_name(properties: dict[str, str], why: str) -> None:
    for settings in (kafka_python_settings, librdkafka_settings):
        with pytest.raises(UsageError) as failure:
            settings(properties)
        assert why in str(failure.value)
        assert "\n" not in str(failure.value)


def test_a_truststore_that_is_no_pem_is_named(tmp_path: Path) -> None:
    store = tmp_path / "trust.pem"
    store.write_text("not a certificate")
    tls = {"security.protocol": "SSL", "ssl.truststore.type": "PEM", "ssl.truststore.location": str(store)}
    with pytest.raises(UsageError, match=r"trust\.pem cannot be used"):
        kafka_python_settings(tls)


BEARER_PACKAGE = "org.apache.kafka.common.security.oauthbearer"
PLAIN = 'a.PlainLoginModule required username="u" password="p";'
BEARER = 'a.OAuthBearerLoginModule required clientId="i" clientSecret="s" scope="k";'
TRANSLATED: dict[str, tuple[str, dict[str, object], dict[str, object]]] = {
    "security.protocol": ("ssl", {"security_protocol": "SSL"}, {"security.protocol": "SSL"}),
    "sasl.mechanism": ("plain", {"sasl_mechanism": "PLAIN"}, {"sasl.mechanism": "PLAIN"}),
    "sasl.jaas.config": (
        PLAIN,
        {"sasl_plain_username": "u", "sasl_plain_password": "p"},
        {"sasl.username": "u", "sasl.password": "p"},
    ),
    "sasl.oauthbearer.token.endpoint.url": (
        "https://id",
        {"oauth.token_url": "https://id"},
        {"sasl.oauthbearer.token.endpoint.url": "https://id"},
    ),
    "sasl.oauthbearer.client.credentials.client.id": (
        "i",
        {"oauth.client_id": "i"},
        {"sasl.oauthbearer.client.id": "i"},
    ),
    "sasl.oauthbearer.client.credentials.client.secret": (
        "s",
        {"oauth.client_secret": "s"},
        {"sasl.oauthbearer.client.secret": "s"},
    ),
    "sasl.oauthbearer.scope": ("k", {"oauth.scope": "k"}, {"sasl.oauthbearer.scope": "k"}),
    "sasl.kerberos.service.name": ("n", {"sasl_kerberos_service_name": "n"}, {"sasl.kerberos.service.name": "n"}),
    "sasl.login.callback.handler.class": (f"{BEARER_PACKAGE}.OAuthBearerLoginCallbackHandler", {}, {}),
    "sasl.oauthbearer.jwt.retriever.class": (f"{BEARER_PACKAGE}.FileJwtRetriever", {}, {}),
    "sasl.oauthbearer.jwt.validator.class": (f"{BEARER_PACKAGE}.ClientJwtValidator", {}, {}),
    "sasl.login.class": ("org.apache.kafka.common.security.authenticator.DefaultLogin", {}, {}),
    "sasl.client.callback.handler.class": (
        *("org.apache.kafka.common.security.authenticator.SaslClientCallbackHandler", {}, {}),
    ),
    "sasl.oauthbearer.header.urlencode": ("False", {"oauth.urlencode": False}, {}),
    "ssl.protocol": ("TLSv1.2", {"limits.protocol": "TLSv1.2"}, {"limits.protocol": "TLSv1.2"}),
    "ssl.enabled.protocols": (
        "TLSv1.2 , TLSv1.1",
        {"limits.enabled_protocols": ["TLSv1.2", "TLSv1.1"]},
        {"limits.enabled_protocols": ["TLSv1.2", "TLSv1.1"]},
    ),
    "ssl.cipher.suites": (
        "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
        {"limits.cipher_suites": ["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"]},
        {"limits.cipher_suites": ["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"]},
    ),
    "ssl.engine.factory.class": ("org.apache.kafka.common.security.ssl.DefaultSslEngineFactory", {}, {}),
    "ssl.provider": ("SunJSSE", {}, {}),
    "ssl.keymanager.algorithm": ("SunX509", {}, {}),
    "ssl.trustmanager.algorithm": ("PKIX", {}, {}),
    "ssl.secure.random.implementation": ("SHA1PRNG", {}, {}),
    "ssl.truststore.type": ("PEM", {}, {}),
    "ssl.truststore.location": ("f", {"tls.ca_file": "f"}, {"ssl.ca.location": "f"}),
    "ssl.truststore.certificates": ("c", {"tls.ca_pem": "c"}, {"ssl.ca.pem": "c"}),
    "ssl.keystore.type": ("PEM", {}, {}),
    "ssl.keystore.location": ("f", {"tls.key_file": "f"}, {"ssl.certificate.location": "f", "ssl.key.location": "f"}),
    "ssl.keystore.certificate.chain": ("c", {"tls.chain_pem": "c"}, {"ssl.certificate.pem": "c"}),
    "ssl.keystore.key": ("k", {"tls.key_pem": "k"}, {"ssl.key.pem": "k"}),
    "ssl.key.password": ("p", {"tls.key_password": "p"}, {"ssl.key.password": "p"}),
    "ssl.endpoint.identification.algorithm": (
        "HTTPS",
        {"tls.check_hostname": True},
        {"ssl.endpoint.identification.algorithm": "https"},
    ),
    "client.id": ("me", {"client_id": "me"}, {"client.id": "me"}),
    # librdkafka takes 10 ms to 5 minutes, at least a second, and 0 for no limit.
    "request.timeout.ms": ("600000", {"request_timeout_ms": 600_000}, {"socket.timeout.ms": 300_000}),
    "socket.connection.setup.timeout.ms": (
        "2",
        {"socket_connection_setup_timeout_ms": 2},
        {"socket.connection.setup.timeout.ms": 1000},
    ),
    "connections.max.idle.ms": ("-1", {}, {"connections.max.idle.ms": 0}),
}
"""A value of each key, and the settings of kafka-python and of librdkafka that it becomes."""


def test_every_key_becomes_the_setting_of_each_client() -> None:
    made = {key.name: key for group in _WITH_EFFECT for key in group()}
    assert {
        name: (value, made.get(name, KEYS[name]).kafka_python(value), made.get(name, KEYS[name]).librdkafka(value))
        for name, (value, _, _) in TRANSLATED.items()
    } == TRANSLATED
    assert TRANSLATED.keys() == made.keys() == KEYS.keys() - WITHOUT_EFFECT.keys()
    assert all((KEYS[name].kafka_python("x"), KEYS[name].librdkafka("x")) == ({}, {}) for name in WITHOUT_EFFECT)
    assert all(name == key.name for name, key in KEYS.items())
    unchecked = KEYS["ssl.endpoint.identification.algorithm"]
    assert unchecked.kafka_python("") == {"tls.check_hostname": False}
    assert unchecked.librdkafka("") == {"ssl.endpoint.identification.algorithm": "none"}


@pytest.mark.parametrize(
    ("line", "options"),
    [
        (BEARER, {"client_id": "i", "client_secret": "s", "scope": "k"}),
        ('a.OAuthBearerLoginModule required clientId="i";', {"client_id": "i"}),
    ],
)
def test_a_bearer_login_has_the_options_that_it_is_given(line: str, options: dict[str, str]) -> None:
    key = KEYS["sasl.jaas.config"]
    assert key.kafka_python(line) == {f"oauth.{name}": value for name, value in options.items()}
    names = {"client_id": "client.id", "client_secret": "client.secret", "scope": "scope"}
    assert key.librdkafka(line) == {f"sasl.oauthbearer.{names[name]}": value for name, value in options.items()}


def test_tokens_are_fetched_for_a_login_alone() -> None:
    own = {
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.token.endpoint.url": "https://id/token",
        "sasl.oauthbearer.client.credentials.client.id": "me",
        "sasl.oauthbearer.client.credentials.client.secret": "s",
        "sasl.oauthbearer.scope": "kafka",
    }
    settings = kafka_python_settings({"security.protocol": "SASL_PLAINTEXT", **own})
    tokens = settings.pop("sasl_oauth_token_provider")
    assert (tokens._url, tokens._client_id, tokens._client_secret, tokens._scope) == (
        *("https://id/token", "me", "s", "kafka"),
    )
    assert settings == {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "OAUTHBEARER"}
    assert kafka_python_settings(own) == {"sasl_mechanism": "OAUTHBEARER"}
    assert "sasl.oauthbearer.method" not in librdkafka_settings(own)
    by_file = {"sasl.mechanism": "OAUTHBEARER", "sasl.oauthbearer.token.endpoint.url": "file:///run/token"}
    file = kafka_python_settings({"security.protocol": "SASL_PLAINTEXT", **by_file})["sasl_oauth_token_provider"]
    assert (file._url, file._client_id) == ("file:///run/token", None)


@pytest.mark.parametrize(
    ("properties", "command"),
    [
        ({"ssl.truststore.location": "/t.jks"}, "keytool -list -rfc -keystore /t.jks > /t.jks.pem;"),
        (
            {"ssl.keystore.location": "/k.p12", "ssl.keystore.type": "PKCS12"},
            "openssl pkcs12 -nodes -in /k.p12 -out /k.p12.pem;",
        ),
        (
            {"ssl.keystore.type": "jks", "ssl.keystore.location": "my store"},
            "keytool -importkeystore -srckeystore 'my store' -destkeystore 'my store'.p12",
        ),
        (
            {"ssl.truststore.type": "PKCS12", "ssl.truststore.location": "f"},
            "keytool -list -rfc -keystore f > f.pem; then set ssl.truststore.type=PEM",
        ),
    ],
)
def test_a_store_that_only_java_reads_comes_with_the_command_that_copies_it(
    properties: dict[str, str], command: str
) -> None:
    with pytest.raises(UsageError) as refused:
        kafka_python_settings(properties)
    assert f"make a PEM copy with: {command}" in str(refused.value)


def test_a_certificate_is_presented_from_a_file_or_in_place() -> None:
    assert presents_certificate({"ssl.keystore.location": "f"})
    assert presents_certificate({"ssl.keystore.key": "k"})
    assert not presents_certificate({"ssl.truststore.location": "f", "ssl.keystore.type": "PEM"})


def test_blanks_around_a_value_have_no_meaning() -> None:
    padded = {name: f" \t{value} \n" for name, value in LOGIN.items()}
    assert kafka_python_settings(padded) == kafka_python_settings(LOGIN)
    assert librdkafka_settings(padded) == librdkafka_settings(LOGIN)


def test_extensions_and_a_service_reach_both_clients() -> None:
    bearer = f'{BEARER_PACKAGE}.OAuthBearerLoginModule required extension_logicalCluster="lkc-1" extension_identityPoolId="p";'
    key = KEYS["sasl.jaas.config"]
    assert key.kafka_python(bearer) == {"oauth.extensions": {"logicalCluster": "lkc-1", "identityPoolId": "p"}}
    assert key.librdkafka(bearer) == {"sasl.oauthbearer.extensions": "logicalCluster=lkc-1,identityPoolId=p"}
    service = 'com.sun.security.auth.module.Krb5LoginModule required useTicketCache=true serviceName="brokers";'
    assert key.kafka_python(service) == {"sasl_kerberos_service_name": "brokers"}
    assert key.librdkafka(service) == {"sasl.kerberos.service.name": "brokers"}


@pytest.mark.parametrize("lines", [{"ssl.protocol": "TLSv1.2"}, {"ssl.enabled.protocols": "TLSv1.3"}])
def test_one_version_of_tls_is_a_limit_of_ours_and_refused_for_librdkafka(lines: dict[str, str]) -> None:
    context = kafka_python_settings({"security.protocol": "SSL", **lines})["ssl_context"]
    version = ssl.TLSVersion.TLSv1_2 if "TLSv1.2" in lines.values() else ssl.TLSVersion.TLSv1_3
    assert (context.minimum_version, context.maximum_version) == (
        version,
        ssl.TLSVersion.TLSv1_3 if version > ssl.TLSVersion.TLSv1_2 else version,
    )
    with pytest.raises(UsageError, match="librdkafka has no setting for that"):
        librdkafka_settings({"security.protocol": "SSL", **lines})


def test_cipher_suites_have_the_names_of_openssl() -> None:
    newest = "TLS_AES_256_GCM_SHA384,TLS_CHACHA20_POLY1305_SHA256,TLS_AES_128_GCM_SHA256"
    suites = f"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,TLS_RSA_WITH_AES_256_CBC_SHA,{newest}"
    settings = librdkafka_settings({"security.protocol": "SSL", "ssl.cipher.suites": suites})
    assert settings["ssl.cipher.suites"] == "ECDHE-RSA-AES128-GCM-SHA256:AES256-SHA"
    AdminClient({"bootstrap.servers": "127.0.0.1:1", **settings})


def test_settings_of_other_clients_are_ignored_and_named_in_one_warning() -> None:
    foreign = {"acks": "all", "session.timeout.ms": "45000", "schema.registry.url": "https://registry", "group.id": "g"}
    assert kafka_python_settings({**LOGIN, **foreign}) == kafka_python_settings(LOGIN)
    assert librdkafka_settings({**foreign, **LOGIN}) == librdkafka_settings(LOGIN)
    assert list(warnings_about({**LOGIN, **foreign, "retries": "5"})) == [
        "settings of other clients and tools are ignored: acks, session.timeout.ms, schema.registry.url, group.id"
    ]
    assert list(warnings_about(LOGIN)) == []


def test_a_login_without_a_protocol_is_warned_of() -> None:
    without = {name: value for name, value in LOGIN.items() if name != "security.protocol"}
    assert list(warnings_about(without)) == [
        "security.protocol is missing, so that connections are PLAINTEXT and have no use for sasl.mechanism, "
        "sasl.jaas.config; add security.protocol, or leave them out"
    ]


def test_variables_are_resolved_on_both_sides(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RACKSPAN_TEST_USER", "alice")
    provider = {
        "config.providers": "e",
        "config.providers.e.class": "org.apache.kafka.common.config.provider.EnvVarConfigProvider",
    }
    given = {**LOGIN, **provider, "sasl.jaas.config": JAAS.replace("alice", "${e:RACKSPAN_TEST_USER}")}
    assert kafka_python_settings(given) == kafka_python_settings(LOGIN)
    assert librdkafka_settings(given) == librdkafka_settings(LOGIN)
    file = tmp_path / "client.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in given.items()))
    assert read_properties(file) == LOGIN


def test_every_line_of_a_file_is_judged() -> None:
    text = (
        "security.protocol=SASL_PLAINTEXT\nacks=all\nretries=3\nsasl.mechanisms=PLAIN\nclient.id=a\nclient.id=b\n"
        "ssl.protocol=TLSv1.2\nsasl.mechanism=PLAIN\nsasl.jaas.config=none\nconfig.providers=e\n"
        "config.providers.e.class=org.apache.kafka.common.config.provider.EnvVarConfigProvider\nrequest.timeout.ms=${e:RACKSPAN_ABSENT}\n"
    )
    judged = [(line.line, line.key, line.use.value, line.reason) for line in judged_lines([*property_lines(text)])]
    assert [(line, use) for line, _, use, _ in judged] == [
        *((1, "used"), (2, "ignored"), (3, "ignored"), (4, "refused"), (5, "ignored"), (6, "used"), (7, "ignored")),
        *((8, "used"), (9, "refused"), (10, "used"), (11, "used"), (12, "refused")),
    ]
    reasons = {key: reason for _, key, _, reason in judged}
    assert (reasons["acks"], reasons["retries"]) == (
        "a setting of other clients and tools",
        "--timeout bounds all requests together",
    )
    assert (judged[4][3], reasons["ssl.protocol"]) == ("line 6 sets it again", "security.protocol is SASL_PLAINTEXT")
    assert "did you mean sasl.mechanism?" in reasons["sasl.mechanisms"]
    assert "has no value" in reasons["request.timeout.ms"]
