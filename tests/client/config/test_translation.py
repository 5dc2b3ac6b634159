"""A Java client's properties become settings of our clients, or are refused by name. The judges are the clients themselves."""

import ssl
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from kafka.net.manager import KafkaConnectionManager

from rackspan.client.config.keys import KEYS
from rackspan.client.config.translation import kafka_python_settings, librdkafka_settings
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


def test_every_key_says_what_it_is_for() -> None:
    assert all(key.about and name == key.name for name, key in KEYS.items())
