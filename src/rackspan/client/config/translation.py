"""Translates a Java client's properties (`--command-config`) for kafka-python and librdkafka, by the table of keys.py."""

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any, Final

from rackspan.client.config.keys import KEYS, ClientKey, Translate
from rackspan.client.config.tls import tls_context
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


def kafka_python_settings(properties: Mapping[str, str]) -> dict[str, Any]:
    """Keyword arguments for kafka-python. Errors: UsageError naming the key, MissingRequirement for GSSAPI."""
    settings = _translated(properties, lambda key: key.kafka_python)
    tls, oauth = _taken_out(settings, "tls."), _taken_out(settings, "oauth.")
    if settings.get("sasl_mechanism") == "OAUTHBEARER" and _logs_in(properties):
        # Its import waits for the Kafka client, which reading a snapshot file does not need.
        from rackspan.client.config.oauthbearer import BearerTokens

        settings["sasl_oauth_token_provider"] = BearerTokens(**oauth)
    if settings.get("sasl_mechanism") == "GSSAPI" and _logs_in(properties) and find_spec("gssapi") is None:
        raise MissingRequirement("gssapi is not installed, and SASL GSSAPI needs it; pip install gssapi")
    if settings.get("security_protocol") in ("SSL", "SASL_SSL"):
        settings["ssl_context"] = tls_context(**tls)
    return settings


def presents_certificate(properties: Mapping[str, str]) -> bool:
    """Whether these settings have a client certificate."""
    return "ssl.keystore.location" in properties or "ssl.keystore.key" in properties


def librdkafka_settings(properties: Mapping[str, str]) -> dict[str, Any]:
    """Settings for librdkafka, such as confluent-kafka's. Errors: UsageError naming the key."""
    settings = _translated(properties, lambda key: key.librdkafka)
    if settings.get("sasl.mechanism") == "OAUTHBEARER" and _logs_in(properties):
        settings["sasl.oauthbearer.method"] = "oidc"
    return settings


def _taken_out(settings: dict[str, Any], prefix: str) -> dict[str, Any]:
    return {name.removeprefix(prefix): settings.pop(name) for name in list(settings) if name.startswith(prefix)}


def _logs_in(properties: Mapping[str, str]) -> bool:
    return properties.get("security.protocol", "").upper().startswith("SASL")


def _translated(properties: Mapping[str, str], side: Callable[[ClientKey], Translate]) -> dict[str, Any]:
    _refuse_what_only_java_reads(properties)
    settings: dict[str, Any] = {}
    for name, value in properties.items():
        if name not in KEYS:
            raise UsageError(
                f"{name} in --command-config is not a setting that rackspan supports; leave it out of a copy"
            )
        try:
            settings.update(side(KEYS[name])(value))
        except UsageError as error:
            raise UsageError(f"{name} in --command-config: {error}; fix that line") from None
    _refuse_half_a_login(properties)
    return settings


def _refuse_what_only_java_reads(properties: Mapping[str, str]) -> None:
    for store, export in _EXPORTS.items():
        # Without a type, Java takes a store file for JKS.
        kind = properties.get(f"{store}.type", "JKS" if f"{store}.location" in properties else "PEM").upper()
        if kind != "PEM":
            copied = export.get(kind, export["JKS"]).format(store=properties.get(f"{store}.location", "FILE"))
            raise UsageError(
                f"{store}.type in --command-config is {kind}, which only Java reads; make a PEM copy with: {copied}; "
                f"then set {store}.type=PEM and {store}.location to the copy, and leave {store}.password out"
            )


def _refuse_half_a_login(properties: Mapping[str, str]) -> None:
    if not _logs_in(properties):
        return
    for needed in _needed(properties):
        if needed not in properties:
            raise UsageError(f"{needed} is missing in --command-config, but security.protocol requires a login; add it")


def _needed(properties: Mapping[str, str]) -> tuple[str, ...]:
    """The keys without which no login is complete."""
    match properties.get("sasl.mechanism", "").upper():
        case "GSSAPI":
            return ("sasl.mechanism",)
        case "OAUTHBEARER":
            url = "sasl.oauthbearer.token.endpoint.url"
            by_file = properties.get(url, "").lower().startswith("file:")
            own = "sasl.oauthbearer.client.credentials.client.id" in properties
            return ("sasl.mechanism", url, *(() if by_file or own else ("sasl.jaas.config",)))
        case _:
            return ("sasl.mechanism", "sasl.jaas.config")
