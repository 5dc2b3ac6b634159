"""Translates a Java client's properties (`--command-config`) for kafka-python and librdkafka, by the table of keys.py."""

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from rackspan.client.config.jaas import MODULES_OF, PASSWORD_MODULES, entry
from rackspan.client.config.keys import KEYS, SECURITY_PREFIXES, ClientKey, KeyUse, Translate, verdict_on
from rackspan.client.config.properties_file import Property, load_properties
from rackspan.client.config.providers import is_of_providers, resolved
from rackspan.client.config.tls import TlsLimits, tls_context, tls_limits
from rackspan.errors import MissingRequirement, UsageError

_EXPORTS: Final = {
    "ssl.truststore": {"JKS": "keytool -list -rfc -keystore {store} > {store}.pem"},
    "ssl.keystore": {
        "PKCS12": "openssl pkcs12 -nodes -in {store} -out {store}.pem",
        "JKS": "keytool -importkeystore -srckeystore {store} -destkeystore {store}.p12 -deststoretype PKCS12 && "
        "openssl pkcs12 -nodes -in {store}.p12 -out {store}.pem",
    },
}
"""Commands that convert a store that only Java reads to PEM, by store and type."""

_IN_PLACE: Final = {
    "ssl.truststore": ("ssl.truststore.certificates",),
    "ssl.keystore": ("ssl.keystore.key", "ssl.keystore.certificate.chain"),
}
"""Settings whose values are PEM text, by store."""

_BLANKS: Final = "".join(map(chr, range(33)))
"""Kafka leaves out what Java's String.trim() leaves out around a value."""

_PROTOCOL: Final = "security.protocol"
_MECHANISM: Final = "sasl.mechanism"
_JAAS: Final = "sasl.jaas.config"


def read_properties(path: Path) -> dict[str, str]:
    """The properties in the file of --command-config, the variables of config providers resolved. Errors: UsageError when they cannot be read."""
    return resolved({found.key: found.value for found in load_properties(path)})


def kafka_python_settings(properties: Mapping[str, str]) -> dict[str, Any]:
    """Keyword arguments for kafka-python. Errors: UsageError naming the key, MissingRequirement for GSSAPI."""
    settings, limits = _translated(properties, lambda key: key.kafka_python)
    tls, oauth = _taken_out(settings, "tls."), _taken_out(settings, "oauth.")
    if settings.get("sasl_mechanism") == "OAUTHBEARER" and _logs_in(properties):
        # Its import waits for the Kafka client, which reading a snapshot file does not need.
        from rackspan.client.config.oauthbearer import BearerTokens

        settings["sasl_oauth_token_provider"] = BearerTokens(**oauth)
    if settings.get("sasl_mechanism") == "GSSAPI" and _logs_in(properties) and find_spec("gssapi") is None:
        raise MissingRequirement("gssapi is not installed, and SASL GSSAPI needs it; pip install gssapi")
    if settings.get("security_protocol") in ("SSL", "SASL_SSL"):
        settings["ssl_context"] = tls_context(**tls, limits=limits)
    return settings


def presents_certificate(properties: Mapping[str, str]) -> bool:
    """Whether these settings have a client certificate."""
    return "ssl.keystore.location" in properties or "ssl.keystore.key" in properties


def librdkafka_settings(properties: Mapping[str, str]) -> dict[str, Any]:
    """Settings for librdkafka, such as confluent-kafka's. Errors: UsageError naming the key."""
    settings, limits = _translated(properties, lambda key: key.librdkafka)
    if limits.versions != TlsLimits().versions:
        raise UsageError(
            "ssl.protocol, ssl.enabled.protocols or ssl.cipher.suites in --command-config allow one version of TLS only, and "
            "librdkafka has no setting for that; leave them out for it"
        )
    if limits.ciphers is not None:
        settings["ssl.cipher.suites"] = ":".join(limits.ciphers)
    if settings.get("sasl.mechanism") == "OAUTHBEARER" and _logs_in(properties):
        settings["sasl.oauthbearer.method"] = "oidc"
    return settings


def warnings_about(properties: Mapping[str, str]) -> Iterator[str]:
    """A sentence about the settings of other clients and tools, which are ignored, and one about a login that is not used."""
    foreign = [name for name in properties if verdict_on(name).is_foreign]
    if foreign:
        yield f"settings of other clients and tools are ignored: {', '.join(foreign)}"
    unused = [name for name in properties if name in KEYS and name.startswith(SECURITY_PREFIXES)]
    if unused and _PROTOCOL not in properties:
        yield (
            f"{_PROTOCOL} is missing, so that connections are PLAINTEXT and have no use for {', '.join(unused)}; add "
            f"{_PROTOCOL}, or leave them out"
        )


@dataclass(frozen=True, slots=True)
class JudgedLine:
    """A line of a properties file: its number, its key, and what becomes of it. Values are left out, since they hold secrets."""

    line: int
    key: str
    use: KeyUse
    reason: str


def judged_lines(lines: Sequence[Property]) -> Iterator[JudgedLine]:
    """What becomes of each line of a properties file."""
    last = {found.key: found for found in lines}
    declared = {found.key: found.value for found in lines if is_of_providers(found.key)}
    properties: dict[str, str] = {}
    refused: dict[str, str] = {}
    for name, found in last.items():
        try:
            properties |= resolved({**declared, name: found.value})
        except UsageError as error:
            refused[name] = str(error)
    for name, reason in _refusals(properties, lambda key: key.kafka_python):
        refused.setdefault(name, reason)
    for found in lines:
        verdict = verdict_on(found.key)
        use, reason = verdict.use, verdict.reason
        if last[found.key] is not found:
            use, reason = KeyUse.IGNORED, f"line {last[found.key].line} sets it again"
        elif found.key in refused:
            use, reason = KeyUse.REFUSED, refused[found.key].removeprefix(f"{found.key} in --command-config: ")
        elif use is KeyUse.USED and not _has_use(found.key, properties):
            use, reason = KeyUse.IGNORED, f"{_PROTOCOL} is {protocol_of(properties)}"
        yield JudgedLine(found.line, found.key, use, reason)


def _taken_out(settings: dict[str, Any], prefix: str) -> dict[str, Any]:
    return {name.removeprefix(prefix): settings.pop(name) for name in list(settings) if name.startswith(prefix)}


def protocol_of(properties: Mapping[str, str]) -> str:
    """The security protocol of connections: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL."""
    return properties.get(_PROTOCOL, "PLAINTEXT").strip(_BLANKS).upper()


def _logs_in(properties: Mapping[str, str]) -> bool:
    return protocol_of(properties).startswith("SASL")


def _has_use(name: str, properties: Mapping[str, str]) -> bool:
    """Whether the protocol has a use for a key."""
    protocol = protocol_of(properties)
    return {"ssl": "SSL" in protocol, "sasl": "SASL" in protocol}.get(name.partition(".")[0], True)


def _translated(
    properties: Mapping[str, str], side: Callable[[ClientKey], Translate]
) -> tuple[dict[str, Any], TlsLimits]:
    values = resolved(properties)
    for _, refusal in _refusals(values, side):
        raise UsageError(refusal)
    settings: dict[str, Any] = {}
    for name, value in values.items():
        if name in KEYS:
            settings.update(side(KEYS[name])(value.strip(_BLANKS)))
    return settings, tls_limits(**_taken_out(settings, "limits."))


def _refusals(properties: Mapping[str, str], side: Callable[[ClientKey], Translate]) -> Iterator[tuple[str, str]]:
    """A key and a message for each that cannot be carried out. Variables are resolved."""
    values = {name: value.strip(_BLANKS) for name, value in properties.items()}
    yield from _stores_of_java(values)
    for name, value in values.items():
        verdict = verdict_on(name)
        if verdict.use is KeyUse.REFUSED:
            yield name, f"{name} in --command-config: {verdict.reason}"
        elif name in KEYS:
            try:
                side(KEYS[name])(value)
            except UsageError as error:
                advice = "" if ";" in str(error) else "; fix that line"
                yield name, f"{name} in --command-config: {error}{advice}"
    yield from _stores_that_contradict(values)
    yield from _half_a_login(values)


def _stores_of_java(properties: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for store, export in _EXPORTS.items():
        # Without a type, Java takes a store file for JKS.
        kind = properties.get(f"{store}.type", "JKS" if f"{store}.location" in properties else "PEM").upper()
        if kind == "PEM":
            continue
        named = f"{store}.type" if f"{store}.type" in properties else f"{store}.location"
        if f"{store}.location" in properties:
            file = shlex.quote(properties[f"{store}.location"])
            yield (
                named,
                f"{store}.type in --command-config is {kind}, which only Java reads; make a PEM copy with: "
                f"{export.get(kind, export['JKS']).format(store=file)}; "
                f"then set {store}.type=PEM and {store}.location to the copy, and leave {store}.password out",
            )
        elif in_place := [name for name in _IN_PLACE[store] if name in properties]:
            yield named, f"{named} in --command-config is {kind}, and {in_place[0]} is PEM; set {store}.type=PEM"


def _stores_that_contradict(properties: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Kafka refuses PEM in place beside a file, and a key without its certificates or the reverse."""
    for store, in_place in _IN_PLACE.items():
        given = [name for name in in_place if name in properties]
        if given and f"{store}.location" in properties:
            yield given[0], f"{given[0]} in --command-config: {store}.location is there too; leave one of them out"
        for missing in (name for name in in_place if given and name not in properties):
            yield given[0], f"{given[0]} in --command-config: {missing} is missing; add it"


def _half_a_login(properties: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    if not _logs_in(properties):
        return
    for needed in _needed(properties):
        if needed not in properties:
            hint = ", such as the KafkaClient entry of a JAAS file" if needed == _JAAS else ""
            yield (
                needed,
                f"{needed} is missing in --command-config, but {_PROTOCOL} requires a login; add it{hint}",
            )
    mechanism = properties.get(_MECHANISM, "").upper()
    modules = MODULES_OF.get(mechanism, PASSWORD_MODULES)
    try:
        module, _ = entry(properties[_JAAS])
    except (KeyError, UsageError):
        # Reported for its key.
        return
    if module not in modules:
        yield (
            _JAAS,
            f"{_JAAS} in --command-config: {module} is of another mechanism than {mechanism}; use {' or '.join(modules)}",
        )


def _needed(properties: Mapping[str, str]) -> tuple[str, ...]:
    """The keys without which no login is complete."""
    match properties.get(_MECHANISM, "").upper():
        case "GSSAPI":
            return (_MECHANISM,)
        case "OAUTHBEARER":
            url = "sasl.oauthbearer.token.endpoint.url"
            by_file = properties.get(url, "").lower().startswith("file:")
            own = "sasl.oauthbearer.client.credentials.client.id" in properties
            return (_MECHANISM, url, *(() if by_file or own else (_JAAS,)))
        case _:
            return (_MECHANISM, _JAAS)
