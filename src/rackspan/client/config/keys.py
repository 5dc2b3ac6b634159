"""The table of a Java client's settings, with each setting's equivalent in kafka-python and in librdkafka.

A key of security that is not here is refused, and one of other clients and tools ignored (`verdict_on`); adding one is a line.
docs/security.md says what the values of each may be.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final

from rackspan.client.config.jaas import KERBEROS_MODULE, OAUTHBEARER_MODULE, entry, instead_of, login
from rackspan.client.config.providers import is_of_providers
from rackspan.client.config.tls import (
    TLS_1_2,
    TLS_1_3,
    TLS_1_3_SUITES,
    TLS_VERSIONS,
    is_plain,
    openssl_cipher,
    pem_file,
    pem_lines,
)
from rackspan.errors import UsageError
from rackspan.model import INT32_MAX, INT64_MAX
from rackspan.text import closest

ClientSettings = Mapping[str, Any]
Translate = Callable[[str], ClientSettings]
"""From a value to settings of the other client. Errors: UsageError, whose message is about the value alone.

A name that begins with "tls." is an argument of tls.tls_context, one with "limits." of tls.tls_limits.
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


def _milliseconds(
    new: str, least: int = -INT64_MAX, most: int = INT64_MAX, bounds: tuple[int, int] | None = None
) -> Translate:
    """Java takes `least` to `most`. A client with narrower `bounds` gets the nearest that it takes."""

    def translate(value: str) -> ClientSettings:
        if not re.fullmatch(r"[+-]?[0-9]{1,19}", value) or not least <= int(value) <= most:
            raise UsageError(f"{value!r} is not a number of milliseconds")
        low, high = bounds or (least, most)
        return {new: min(max(int(value), low), high)}

    return translate


def _idle(value: str) -> ClientSettings:
    """A negative number lets connections be idle for ever, as in Java."""
    found = _milliseconds("connections_max_idle_ms")(value)
    return found if found["connections_max_idle_ms"] >= 0 else {}


def _one_of(allowed: tuple[str, ...], new: str) -> Translate:
    def translate(value: str) -> ClientSettings:
        if value.upper() not in allowed:
            raise UsageError(
                f"{value!r} is none of {', '.join(allowed)}, which are what rackspan can do{instead_of(value)}"
            )
        return {new: value.upper()}

    return translate


def _only(*allowed: str) -> Translate:
    """A key whose other values cannot be carried out, and that has no effect with these."""

    def translate(value: str) -> ClientSettings:
        if value.lower() not in map(str.lower, allowed):
            raise UsageError(
                f"{value!r} is none of {', '.join(allowed)}, which are what rackspan can do; leave out the line"
            )
        return {}

    return translate


def _kafkas_class(package: str, *names: str) -> Translate:
    """A key whose value is a Java class: Kafka's own, which need no setting here, under any prefix of a shaded jar."""

    def translate(value: str) -> ClientSettings:
        if not re.fullmatch(
            rf"(?:\w+\.)*org\.apache\.kafka\.common\.security\.{package}\.(?:{'|'.join(names)})", value
        ):
            raise UsageError(
                f"{value!r} is a class that only Java can load{instead_of(value) or '; leave out the line'}"
            )
        return {}

    return translate


def _items(value: str) -> list[str]:
    return [item for item in re.split(r"\s*,\s*", value) if item]


_OLD_TLS: Final = ("SSLv2Hello", "SSLv3", "TLSv1", "TLSv1.1")
"""Versions that Java 17 has and disables: listed beside a later one they have no effect."""


def _protocol(value: str) -> ClientSettings:
    if value not in (*TLS_VERSIONS, "TLS", "SSL"):
        raise UsageError(
            f"{value!r} is neither {TLS_1_3} nor {TLS_1_2}, which are what rackspan can do; leave out the line"
        )
    return {"limits.protocol": value if value in TLS_VERSIONS else TLS_1_3}


def _enabled_protocols(value: str) -> ClientSettings:
    for item in _items(value):
        if item not in (*TLS_VERSIONS, *_OLD_TLS):
            raise UsageError(f"{item!r} is no version of TLS; write {TLS_1_2}, {TLS_1_3} or both")
    return {"limits.enabled_protocols": _items(value)}


def _cipher_suites(value: str) -> ClientSettings:
    for suite in _items(value):
        if suite not in TLS_1_3_SUITES:
            openssl_cipher(suite)
    return {"limits.cipher_suites": _items(value)}


def _login(
    username: str, password: str, oauth: Mapping[str, str], kerberos_service: str, extensions: Translate
) -> Translate:
    """`oauth`: the settings of the options of OAuthBearerLoginModule. `extensions` takes KEY=VALUE pairs with commas between."""

    def translate(value: str) -> ClientSettings:
        module, options = entry(value)
        if module == OAUTHBEARER_MODULE:
            own = [name for name in options if name.startswith("ssl.")]
            if own:
                raise UsageError(
                    f"{own[0]} is for the connection to the token endpoint, which is verified by the authorities of this "
                    "system; add the authority there and leave the option out"
                )
            found = {setting: options[name] for name, setting in oauth.items() if name in options}
            return {**found, **extensions(_extensions(options))}
        if module == KERBEROS_MODULE:
            if options.get("useTicketCache", "").lower() != "true":
                raise UsageError(
                    f"{module} without useTicketCache=true: rackspan uses the credential cache of kinit; run kinit, with -k -t KEYTAB "
                    "for a keytab, and set useTicketCache=true"
                )
            if "ticketCache" in options:
                raise UsageError(
                    "ticketCache: the credential cache is the one of kinit; set KRB5CCNAME instead of the option"
                )
            return {kerberos_service: options["serviceName"]} if "serviceName" in options else {}
        credentials = login(options)
        return {username: credentials.username, password: credentials.password}

    return translate


_EXTENSION: Final = "extension_"


def _extensions(options: Mapping[str, str]) -> str:
    """The extensions of an OAUTHBEARER login (KIP-342), as KEY=VALUE with commas between. Errors: UsageError."""
    found = {name.removeprefix(_EXTENSION): value for name, value in options.items() if name.startswith(_EXTENSION)}
    for name, value in found.items():
        if not re.fullmatch(r"[A-Za-z]+", name) or name == "auth" or not re.fullmatch(r"[\x21-\x2b\x2d-\x7e]+", value):
            raise UsageError(
                f"{_EXTENSION}{name}: the name of an extension is of letters, its value of printable signs without blanks and "
                "commas; write such ones"
            )
    return ",".join(f"{name}={value}" for name, value in found.items())


def _token_url(new: str, schemes: tuple[str, ...]) -> Translate:
    def translate(value: str) -> ClientSettings:
        if value.partition(":")[0].lower() not in schemes:
            raise UsageError(f"{value!r} is not a URL of {', '.join(schemes)}")
        return {new: value}

    return translate


def _boolean(value: str) -> bool:
    if value.lower() not in ("true", "false"):
        raise UsageError(f"{value!r} is neither true nor false")
    return value.lower() == "true"


def _never_encoded(value: str) -> ClientSettings:
    if _boolean(value):
        raise UsageError("librdkafka sends client id and secret as they are; leave out the line")
    return {}


def _host_check(new: str, *, checked: object, unchecked: object) -> Translate:
    def translate(value: str) -> ClientSettings:
        if value.lower() not in ("https", ""):
            raise UsageError(f"{value!r} is neither https nor empty")
        return {new: checked if value else unchecked}

    return translate


def _pem_text(new: str) -> Translate:
    return lambda value: {new: pem_lines(value)}


def _ca_file(value: str) -> ClientSettings:
    return {"ssl.ca.location": value} if is_plain(value) else {"ssl.ca.pem": pem_file(value)}


def _key_file(value: str) -> ClientSettings:
    """A PEM keystore holds a key and its certificates in one file; librdkafka has two settings for it."""
    if is_plain(value):
        return {"ssl.certificate.location": value, "ssl.key.location": value}
    return {"ssl.certificate.pem": pem_file(value), "ssl.key.pem": pem_file(value)}


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
            "sasl_kerberos_service_name",
            lambda pairs: {"oauth.extensions": dict(pair.split("=", 1) for pair in pairs.split(","))} if pairs else {},
        ),
        _login(
            "sasl.username",
            "sasl.password",
            {
                "clientId": "sasl.oauthbearer.client.id",
                "clientSecret": "sasl.oauthbearer.client.secret",
                "scope": "sasl.oauthbearer.scope",
            },
            "sasl.kerberos.service.name",
            lambda pairs: {"sasl.oauthbearer.extensions": pairs} if pairs else {},
        ),
    )
    for name, own in (
        ("sasl.login.class", "DefaultLogin"),
        ("sasl.client.callback.handler.class", "SaslClientCallbackHandler"),
    ):
        translate = _kafkas_class("authenticator", own)
        yield ClientKey(name, translate, translate)


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
    yield ClientKey(
        "sasl.oauthbearer.header.urlencode", lambda value: {"oauth.urlencode": _boolean(value)}, _never_encoded
    )
    for name, names in (
        ("sasl.login.callback.handler.class", (r"(?:secured\.)?OAuthBearerLoginCallbackHandler",)),
        (
            "sasl.oauthbearer.jwt.retriever.class",
            ("DefaultJwtRetriever", "ClientCredentialsJwtRetriever", "FileJwtRetriever"),
        ),
        ("sasl.oauthbearer.jwt.validator.class", ("DefaultJwtValidator", "ClientJwtValidator")),
    ):
        translate = _kafkas_class("oauthbearer", *names)
        yield ClientKey(name, translate, translate)


def _tls() -> Iterator[ClientKey]:
    # JKS and PKCS12 are refused by translation.py.
    for name in ("ssl.truststore.type", "ssl.keystore.type"):
        yield ClientKey(name)
    yield ClientKey("ssl.truststore.location", _renamed("tls.ca_file"), _ca_file)
    yield ClientKey("ssl.keystore.location", _renamed("tls.key_file"), _key_file)
    for name, kafka_python, librdkafka in (
        ("ssl.truststore.certificates", "tls.ca_pem", "ssl.ca.pem"),
        ("ssl.keystore.certificate.chain", "tls.chain_pem", "ssl.certificate.pem"),
        ("ssl.keystore.key", "tls.key_pem", "ssl.key.pem"),
    ):
        yield ClientKey(name, _pem_text(kafka_python), _pem_text(librdkafka))
    yield ClientKey("ssl.key.password", _renamed("tls.key_password"), _renamed("ssl.key.password"))
    yield ClientKey(
        "ssl.endpoint.identification.algorithm",
        _host_check("tls.check_hostname", checked=True, unchecked=False),
        _host_check("ssl.endpoint.identification.algorithm", checked="https", unchecked="none"),
    )
    for name, translate in (
        ("ssl.protocol", _protocol),
        ("ssl.enabled.protocols", _enabled_protocols),
        ("ssl.cipher.suites", _cipher_suites),
        ("ssl.engine.factory.class", _kafkas_class("ssl", "DefaultSslEngineFactory")),
        ("ssl.provider", _only("SunJSSE")),
        ("ssl.keymanager.algorithm", _only("SunX509", "NewSunX509", "PKIX")),
        ("ssl.trustmanager.algorithm", _only("SunX509", "PKIX", "X509", "X.509", "SunPKIX")),
        # OpenSSL has a generator of its own, and none is weaker than these.
        (
            "ssl.secure.random.implementation",
            _only("SHA1PRNG", "DRBG", "NativePRNG", "NativePRNGBlocking", "NativePRNGNonBlocking"),
        ),
    ):
        yield ClientKey(name, translate, translate)


def _connections() -> Iterator[ClientKey]:
    yield ClientKey("client.id", _renamed("client_id"), _renamed("client.id"))
    yield ClientKey(
        "request.timeout.ms",
        _milliseconds("request_timeout_ms", 0, INT32_MAX),
        _milliseconds("socket.timeout.ms", 0, INT32_MAX, (10, 300_000)),
    )
    yield ClientKey(
        "socket.connection.setup.timeout.ms",
        _milliseconds("socket_connection_setup_timeout_ms", 0),
        _milliseconds("socket.connection.setup.timeout.ms", 0, bounds=(1_000, INT32_MAX)),
    )
    # To librdkafka 0 is what a negative number is to Java.
    yield ClientKey("connections.max.idle.ms", _idle, _milliseconds("connections.max.idle.ms", bounds=(0, INT32_MAX)))


def _without_effect() -> Iterator[tuple[str, str]]:
    for name in ("bootstrap.servers", "bootstrap.controllers"):
        yield name, "--bootstrap-server or rackspan.toml names the servers"
    yield "client.dns.lookup", "every address of a name is tried"
    for name in (
        *("default.api.timeout.ms", "metadata.max.age.ms", "metadata.recovery.strategy"),
        *("metadata.recovery.rebootstrap.trigger.ms", "reconnect.backoff.max.ms", "reconnect.backoff.ms", "retries"),
        *("retry.backoff.max.ms", "retry.backoff.ms", "socket.connection.setup.timeout.max.ms"),
    ):
        yield name, "--timeout bounds all requests together"
    for name in ("receive.buffer.bytes", "send.buffer.bytes"):
        yield name, "the operating system sizes the buffers of sockets"
    for name in (
        *("enable.metrics.push", "metric.reporters", "metrics.num.samples", "metrics.recording.level"),
        "metrics.sample.window.ms",
    ):
        yield name, "no metrics of the client are reported"
    for name in ("kinit.cmd", "min.time.before.relogin", "ticket.renew.jitter", "ticket.renew.window.factor"):
        yield f"sasl.kerberos.{name}", "kinit renews the credential cache"
    for name in (
        *("connect.timeout.ms", "read.timeout.ms", "refresh.buffer.seconds", "refresh.min.period.seconds"),
        *("refresh.window.factor", "refresh.window.jitter", "retry.backoff.max.ms", "retry.backoff.ms"),
    ):
        yield f"sasl.login.{name}", "rackspan has its own times for tokens"
    for name in (
        *("clock.skew.seconds", "expected.audience", "expected.issuer", "jwks.endpoint.refresh.ms"),
        *("jwks.endpoint.retry.backoff.max.ms", "jwks.endpoint.retry.backoff.ms", "jwks.endpoint.url"),
        *("scope.claim.name", "sub.claim.name"),
    ):
        yield f"sasl.oauthbearer.{name}", "brokers verify the token"


WITHOUT_EFFECT: Final[Mapping[str, str]] = MappingProxyType(dict(_without_effect()))
"""Keys of an admin client that are accepted and ignored, since files are shared between tools, each with the reason."""

_WITH_EFFECT: Final = (_security, _tokens, _tls, _connections)

KEYS: Final[Mapping[str, ClientKey]] = MappingProxyType(
    {name: ClientKey(name) for name in WITHOUT_EFFECT} | {key.name: key for group in _WITH_EFFECT for key in group()}
)

SECURITY_PREFIXES: Final = ("ssl.", "sasl.", "security.")

_OF_BROKERS: Final = frozenset(
    (
        *("ssl.client.auth", "ssl.principal.mapping.rules", "ssl.allow.dn.changes", "ssl.allow.san.changes"),
        *("sasl.enabled.mechanisms", "sasl.mechanism.inter.broker.protocol", "sasl.mechanism.controller.protocol"),
        *(
            "sasl.kerberos.principal.to.local.rules",
            "sasl.server.callback.handler.class",
            "sasl.server.max.receive.size",
        ),
        "security.inter.broker.protocol",
    )
)
"""Keys of security that brokers have and clients do not."""

_NO_PASSWORD: Final = (
    "a PEM store has no password; leave it out, and give the one of an encrypted key as ssl.key.password"  # noqa: S105 - a sentence
)
_NO_JAAS: Final = "Kafka's clients take the login from sasl.jaas.config; write it there"
_NO_PEM: Final = "Kafka's clients take PEM from ssl.truststore.* and ssl.keystore.*; write it there"

_REFUSED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "ssl.keystore.password": _NO_PASSWORD,
        "ssl.truststore.password": _NO_PASSWORD,
        "security.providers": "providers are classes that only Java can load; leave it out",
        # Names of librdkafka, whose files look alike.
        **dict.fromkeys(("sasl.username", "sasl.password"), _NO_JAAS),
        **dict.fromkeys(
            (
                *("ssl.ca.location", "ssl.ca.pem", "ssl.certificate.location", "ssl.certificate.pem"),
                *("ssl.key.location", "ssl.key.pem"),
            ),
            _NO_PEM,
        ),
    }
)
"""Keys of security that cannot be carried out, each with what to do instead."""

_ASSERTIONS: Final = "sasl.oauthbearer.assertion."
_ALIKE, _ALIKE_WITHIN = 0.8, 0.5
"""How alike a key and one of security are where one is taken for the other misspelt; no key of Kafka's other clients is. Under a
prefix of security the nearest is named sooner."""


class KeyUse(StrEnum):
    """What becomes of a key."""

    USED = "used"
    IGNORED = "ignored"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class KeyVerdict:
    """What becomes of a key, by its name, and why. `is_foreign`: it is no setting of an admin client. `meant`: the key that it is taken for."""

    use: KeyUse
    reason: str = ""
    is_foreign: bool = False
    meant: str | None = None


def verdict_on(name: str) -> KeyVerdict:
    """What becomes of a key. One of security that cannot be carried out is refused: without it a login would be a weaker one."""
    if name in WITHOUT_EFFECT:
        return KeyVerdict(KeyUse.IGNORED, WITHOUT_EFFECT[name])
    if name in KEYS or is_of_providers(name):
        return KeyVerdict(KeyUse.USED)
    if name in _OF_BROKERS:
        return KeyVerdict(KeyUse.IGNORED, "a setting of brokers", is_foreign=True)
    if name in _REFUSED:
        return KeyVerdict(KeyUse.REFUSED, _REFUSED[name])
    if name.startswith(_ASSERTIONS):
        return KeyVerdict(KeyUse.REFUSED, "rackspan signs no JWT; use client credentials, or a token from a file")
    plain = re.sub(r"[_\-]", ".", name.strip().lower())
    is_security = plain.startswith(SECURITY_PREFIXES)
    known = [key for key in KEYS if key.startswith(SECURITY_PREFIXES)]
    alike = closest(plain, known, _ALIKE_WITHIN if is_security else _ALIKE)
    if is_security or (alike and not plain.endswith(f".{alike}")):
        advice = f"did you mean {alike}? Write that" if alike else "write one that docs/security.md lists"
        return KeyVerdict(
            KeyUse.REFUSED, f"no client of Kafka has such a setting; {advice}, or leave it out", meant=alike
        )
    return KeyVerdict(KeyUse.IGNORED, "a setting of other clients and tools", is_foreign=True)
