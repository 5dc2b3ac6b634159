"""The table of a Java client's settings, with each setting's equivalent in kafka-python and in librdkafka.

A key that is not here is refused; adding one is a line. docs/security.md says what the values of each may be.
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
    """One Java key."""

    name: str
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
        _one_of(SECURITY_PROTOCOLS, "security_protocol"),
        _one_of(SECURITY_PROTOCOLS, "security.protocol"),
    )
    yield ClientKey(
        "sasl.mechanism", _one_of(SASL_MECHANISMS, "sasl_mechanism"), _one_of(SASL_MECHANISMS, "sasl.mechanism")
    )
    yield ClientKey(
        "sasl.jaas.config",
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
        _token_url("oauth.token_url", ("http", "https", "file")),
        _token_url("sasl.oauthbearer.token.endpoint.url", ("http", "https")),
    )
    for name, kafka_python, librdkafka in (
        ("sasl.oauthbearer.client.credentials.client.id", "oauth.client_id", "sasl.oauthbearer.client.id"),
        ("sasl.oauthbearer.client.credentials.client.secret", "oauth.client_secret", "sasl.oauthbearer.client.secret"),
        ("sasl.oauthbearer.scope", "oauth.scope", "sasl.oauthbearer.scope"),
        ("sasl.kerberos.service.name", "sasl_kerberos_service_name", "sasl.kerberos.service.name"),
    ):
        yield ClientKey(name, _renamed(kafka_python), _renamed(librdkafka))
    # Kafka's own classes need no setting here.
    for name in ("sasl.login.callback.handler.class", "sasl.oauthbearer.jwt.retriever.class"):
        yield ClientKey(name, _handler, _handler)


def _tls() -> Iterator[ClientKey]:
    # JKS and PKCS12 are refused by translation.py.
    for name in ("ssl.truststore.type", "ssl.keystore.type"):
        yield ClientKey(name)
    yield ClientKey("ssl.keystore.location", _renamed("tls.key_file"), _key_file)
    for name, kafka_python, librdkafka in (
        ("ssl.truststore.location", "tls.ca_file", "ssl.ca.location"),
        ("ssl.truststore.certificates", "tls.ca_pem", "ssl.ca.pem"),
        ("ssl.keystore.certificate.chain", "tls.chain_pem", "ssl.certificate.pem"),
        ("ssl.keystore.key", "tls.key_pem", "ssl.key.pem"),
        ("ssl.key.password", "tls.key_password", "ssl.key.password"),
    ):
        yield ClientKey(name, _renamed(kafka_python), _renamed(librdkafka))
    yield ClientKey(
        "ssl.endpoint.identification.algorithm",
        _host_check("tls.check_hostname", checked=True, unchecked=False),
        _host_check("ssl.endpoint.identification.algorithm", checked="https", unchecked="none"),
    )


def _connections() -> Iterator[ClientKey]:
    yield ClientKey("client.id", _renamed("client_id"), _renamed("client.id"))
    for name, kafka_python, librdkafka in (
        ("request.timeout.ms", "request_timeout_ms", "socket.timeout.ms"),
        (
            "socket.connection.setup.timeout.ms",
            "socket_connection_setup_timeout_ms",
            "socket.connection.setup.timeout.ms",
        ),
        ("connections.max.idle.ms", "connections_max_idle_ms", "connections.max.idle.ms"),
    ):
        yield ClientKey(name, _milliseconds(kafka_python), _milliseconds(librdkafka))


WITHOUT_EFFECT: Final = (
    # --bootstrap-server says where.
    "bootstrap.servers",
    "client.dns.lookup",
    # --timeout bounds the whole.
    "default.api.timeout.ms",
    "metadata.max.age.ms",
    "reconnect.backoff.max.ms",
    "reconnect.backoff.ms",
    "retries",
    "retry.backoff.max.ms",
    "retry.backoff.ms",
)
"""Keys that are accepted and ignored, since files are shared between tools."""

_WITH_EFFECT: Final = (_security, _tokens, _tls, _connections)

KEYS: Final[Mapping[str, ClientKey]] = MappingProxyType(
    {name: ClientKey(name) for name in WITHOUT_EFFECT} | {key.name: key for group in _WITH_EFFECT for key in group()}
)
