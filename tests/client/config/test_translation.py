"""A Java client's properties become settings of our clients, or are refused by name. The judges are the clients themselves."""

import ssl
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from kafka.net.manager import KafkaConnectionManager

from rackspan.client.config.keys import _WITH_EFFECT, KEYS, WITHOUT_EFFECT
from rackspan.client.config.translation import kafka_python_settings, librdkafka_settings, presents_certificate
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
        ({"sasl.kerberos.kinit.cmd": "kinit"}, "sasl.kerberos.kinit.cmd in --command-config is not a setting"),
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
        ({"sasl.jaas.config": "nonsense"}, "sasl.jaas.config in --command-config: it is not of the form"),
        ({"security.protocol": "SASL_SSL"}, "sasl.mechanism is missing"),
        ({"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}, "sasl.jaas.config is missing"),
        ({"ssl.endpoint.identification.algorithm": "ldaps"}, "'ldaps' is neither https nor empty"),
        ({"ssl.truststore.location": "/etc/trust.jks"}, "ssl.truststore.type in --command-config is JKS"),
        ({"ssl.keystore.type": "PKCS12"}, "ssl.keystore.type in --command-config is PKCS12, which only Java reads"),
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
    "sasl.login.callback.handler.class": ("a.OAuthBearerLoginCallbackHandler", {}, {}),
    "sasl.oauthbearer.jwt.retriever.class": ("a.FileJwtRetriever", {}, {}),
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
    "request.timeout.ms": ("1", {"request_timeout_ms": 1}, {"socket.timeout.ms": 1}),
    "socket.connection.setup.timeout.ms": (
        "2",
        {"socket_connection_setup_timeout_ms": 2},
        {"socket.connection.setup.timeout.ms": 2},
    ),
    "connections.max.idle.ms": ("3", {"connections_max_idle_ms": 3}, {"connections.max.idle.ms": 3}),
    **{
        name: ("anything", {}, {})
        for name in (
            *("bootstrap.servers", "client.dns.lookup", "default.api.timeout.ms", "metadata.max.age.ms", "retries"),
            *("reconnect.backoff.max.ms", "reconnect.backoff.ms", "retry.backoff.max.ms", "retry.backoff.ms"),
        )
    },
}
"""A value of each key, and the settings of kafka-python and of librdkafka that it becomes."""


def test_every_key_becomes_the_setting_of_each_client() -> None:
    made = {key.name: key for group in _WITH_EFFECT for key in group()}
    assert {
        name: (value, made.get(name, KEYS[name]).kafka_python(value), made.get(name, KEYS[name]).librdkafka(value))
        for name, (value, _, _) in TRANSLATED.items()
    } == TRANSLATED
    assert KEYS.keys() == TRANSLATED.keys() == made.keys() | {*WITHOUT_EFFECT}
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
        ({"ssl.keystore.type": "jks"}, "keytool -importkeystore -srckeystore FILE -destkeystore FILE.p12"),
        (
            {"ssl.truststore.type": "PKCS12"},
            "keytool -list -rfc -keystore FILE > FILE.pem; then set ssl.truststore.type=PEM",
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
