"""The table of a Java client's settings, with each setting's equivalent in kafka-python and in librdkafka.

docs/security.md is generated from it. A key that is not here is refused; adding one is a line.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from rackspan.client.config.jaas import KERBEROS_MODULE, OAUTHBEARER_MODULE, entry, login
from rackspan.errors import UsageError

ClientSettings = Mapping[str, Any]
Translate = Callable[[str], ClientSettings]
"""From a value to settings of the other client. Errors: UsageError, whose message is about the value alone.

A name that begins with "tls." is an argument of tls.tls_context.
"""

SECURITY_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
SASL_MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI")


def _nothing(_: str) -> ClientSettings:
    return {}


@dataclass(frozen=True, slots=True)
class ClientKey:
    """One Java key. `about` is for the documents: its values, or why it has no effect."""

    name: str
    about: str
    kafka_python: Translate = _nothing
    librdkafka: Translate = _nothing


def _renamed(new: str) -> Translate:
    return lambda value: {new: value}


def _milliseconds(new: str) -> Translate:
    def translate(value: str) -> ClientSettings:
        if not re.fullmatch(r"[0-9]{1,9}", value.strip()):
            raise UsageError(f"{value!r} is not a number of milliseconds")
        return {new: int(value)}

    return translate


def _one_of(allowed: tuple[str, ...], new: str) -> Translate:
    def translate(value: str) -> ClientSettings:
        if value.upper() not in allowed:
            raise UsageError(f"{value!r} is none of {', '.join(allowed)}, which are what rackspan can do")
        return {new: value.upper()}

    return translate


def _login(username: str, password: str, oauth: Mapping[str, str]) -> Translate:
    """`oauth`: the settings of the options of OAuthBearerLoginModule."""

    def translate(value: str) -> ClientSettings:
        module, options = entry(value)
        if module == OAUTHBEARER_MODULE:
            return {setting: options[name] for name, setting in oauth.items() if name in options}
        if module == KERBEROS_MODULE:
            if options.get("useTicketCache", "").lower() != "true":
                raise UsageError(
                    f"{module} without useTicketCache=true: rackspan uses the credential cache of kinit; run kinit, with -k -t KEYTAB "
                    "for a keytab, and set useTicketCache=true"
                )
            return {}
        credentials = login(options)
        return {username: credentials.username, password: credentials.password}

    return translate


def _token_url(new: str, schemes: tuple[str, ...]) -> Translate:
    def translate(value: str) -> ClientSettings:
        if value.partition(":")[0].lower() not in schemes:
            raise UsageError(f"{value!r} is not a URL of {', '.join(schemes)}")
        return {new: value}

    return translate


def _handler(value: str) -> ClientSettings:
    if value.rpartition(".")[2] not in (
        "OAuthBearerLoginCallbackHandler",
        "ClientCredentialsJwtRetriever",
        "FileJwtRetriever",
    ):
        raise UsageError(f"{value!r} is a class that only Java can load")
    return {}


def _host_check(new: str, *, checked: object, unchecked: object) -> Translate:
    def translate(value: str) -> ClientSettings:
        if value.lower() not in ("https", ""):
            raise UsageError(f"{value!r} is neither https nor empty")
        return {new: checked if value else unchecked}

    return translate


def _key_file(value: str) -> ClientSettings:
    """A PEM keystore holds a key and its certificates in one file; librdkafka has two settings for it."""
    return {"ssl.certificate.location": value, "ssl.key.location": value}


def _security() -> Iterator[ClientKey]:
    yield ClientKey(
        "security.protocol",
        ", ".join(SECURITY_PROTOCOLS),
        _one_of(SECURITY_PROTOCOLS, "security_protocol"),
        _one_of(SECURITY_PROTOCOLS, "security.protocol"),
    )
    yield ClientKey(
        "sasl.mechanism",
        ", ".join(SASL_MECHANISMS),
        _one_of(SASL_MECHANISMS, "sasl_mechanism"),
        _one_of(SASL_MECHANISMS, "sasl.mechanism"),
    )
    yield ClientKey(
        "sasl.jaas.config",
        "username and password of PlainLoginModule or ScramLoginModule; clientId, clientSecret and scope of "
        "OAuthBearerLoginModule; Krb5LoginModule with useTicketCache=true",
        _login(
            "sasl_plain_username",
            "sasl_plain_password",
            {"clientId": "oauth.client_id", "clientSecret": "oauth.client_secret", "scope": "oauth.scope"},
        ),
        _login(
            "sasl.username",
            "sasl.password",
            {
                "clientId": "sasl.oauthbearer.client.id",
                "clientSecret": "sasl.oauthbearer.client.secret",
                "scope": "sasl.oauthbearer.scope",
            },
        ),
    )


def _tokens() -> Iterator[ClientKey]:
    """SASL OAUTHBEARER, in the keys of Kafka 3 and of Kafka 4.1 (KIP-1139), and GSSAPI."""
    yield ClientKey(
        "sasl.oauthbearer.token.endpoint.url",
        "of the token endpoint (http, https), or file: and the path of a file that holds a token",
        _token_url("oauth.token_url", ("http", "https", "file")),
        _token_url("sasl.oauthbearer.token.endpoint.url", ("http", "https")),
    )
    for name, about, kafka_python, librdkafka in (
        (
            "sasl.oauthbearer.client.credentials.client.id",
            "of the client",
            "oauth.client_id",
            "sasl.oauthbearer.client.id",
        ),
        (
            "sasl.oauthbearer.client.credentials.client.secret",
            "of the client",
            "oauth.client_secret",
            "sasl.oauthbearer.client.secret",
        ),
        ("sasl.oauthbearer.scope", "the scope of the token", "oauth.scope", "sasl.oauthbearer.scope"),
    ):
        yield ClientKey(name, about, _renamed(kafka_python), _renamed(librdkafka))
    for name in ("sasl.login.callback.handler.class", "sasl.oauthbearer.jwt.retriever.class"):
        yield ClientKey(name, "Kafka's own class, which needs no setting here", _handler, _handler)
    yield ClientKey(
        "sasl.kerberos.service.name",
        "the brokers' Kerberos service, kafka by default",
        _renamed("sasl_kerberos_service_name"),
        _renamed("sasl.kerberos.service.name"),
    )


def _tls() -> Iterator[ClientKey]:
    yield ClientKey("ssl.truststore.type", "PEM; JKS and PKCS12 are refused")
    yield ClientKey(
        "ssl.truststore.location", "a PEM file of certificates", _renamed("tls.ca_file"), _renamed("ssl.ca.location")
    )
    yield ClientKey(
        "ssl.truststore.certificates", "PEM certificates in place", _renamed("tls.ca_pem"), _renamed("ssl.ca.pem")
    )
    yield ClientKey("ssl.keystore.type", "PEM; JKS and PKCS12 are refused")
    yield ClientKey(
        "ssl.keystore.location", "a PEM file of a key and its certificates", _renamed("tls.key_file"), _key_file
    )
    yield ClientKey(
        "ssl.keystore.certificate.chain",
        "PEM certificates in place",
        _renamed("tls.chain_pem"),
        _renamed("ssl.certificate.pem"),
    )
    yield ClientKey("ssl.keystore.key", "a PEM private key in place", _renamed("tls.key_pem"), _renamed("ssl.key.pem"))
    yield ClientKey(
        "ssl.key.password", "of the private key", _renamed("tls.key_password"), _renamed("ssl.key.password")
    )
    yield ClientKey(
        "ssl.endpoint.identification.algorithm",
        "https, or empty to leave host names unchecked",
        _host_check("tls.check_hostname", checked=True, unchecked=False),
        _host_check("ssl.endpoint.identification.algorithm", checked="https", unchecked="none"),
    )


def _connections() -> Iterator[ClientKey]:
    yield ClientKey("client.id", "the name in brokers' logs and quotas", _renamed("client_id"), _renamed("client.id"))
    for name, about, kafka_python, librdkafka in (
        ("request.timeout.ms", "of one request", "request_timeout_ms", "socket.timeout.ms"),
        (
            "socket.connection.setup.timeout.ms",
            "of one connection",
            "socket_connection_setup_timeout_ms",
            "socket.connection.setup.timeout.ms",
        ),
        (
            "connections.max.idle.ms",
            "when an idle connection is closed",
            "connections_max_idle_ms",
            "connections.max.idle.ms",
        ),
    ):
        yield ClientKey(name, about, _milliseconds(kafka_python), _milliseconds(librdkafka))


def _without_effect() -> Iterator[ClientKey]:
    """Keys that are accepted and ignored, since files are shared between tools."""
    for name in ("bootstrap.servers", "client.dns.lookup"):
        yield ClientKey(name, "no effect: --bootstrap-server says where")
    for name in (
        "default.api.timeout.ms",
        "metadata.max.age.ms",
        "reconnect.backoff.max.ms",
        "reconnect.backoff.ms",
        "retries",
        "retry.backoff.max.ms",
        "retry.backoff.ms",
    ):
        yield ClientKey(name, "no effect: --timeout bounds the whole")


KEYS: Final[Mapping[str, ClientKey]] = MappingProxyType(
    {key.name: key for group in (_security, _tokens, _tls, _connections, _without_effect) for key in group()}
)
