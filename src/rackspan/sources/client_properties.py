"""`--command-config`: a Java client's properties for the clients we use, or refused by name. The table is client_keys."""

from collections.abc import Callable, Mapping
from typing import Any

from rackspan.errors import UsageError
from rackspan.sources.client_keys import KEYS, ClientKey, Translate
from rackspan.sources.tls import tls_context


def kafka_python_settings(properties: Mapping[str, str]) -> dict[str, Any]:
    """Keyword arguments for kafka-python. Errors: UsageError naming the key."""
    settings = _translated(properties, lambda key: key.kafka_python)
    tls = {name.removeprefix("tls."): settings.pop(name) for name in list(settings) if name.startswith("tls.")}
    if settings.get("security_protocol") in ("SSL", "SASL_SSL"):
        settings["ssl_context"] = tls_context(**tls)
    return settings


def librdkafka_settings(properties: Mapping[str, str]) -> dict[str, Any]:
    """Settings for confluent-kafka. Errors: UsageError naming the key."""
    return _translated(properties, lambda key: key.librdkafka)


def _translated(properties: Mapping[str, str], side: Callable[[ClientKey], Translate]) -> dict[str, Any]:
    _refuse_what_only_java_reads(properties)
    settings: dict[str, Any] = {}
    for name, value in properties.items():
        if name not in KEYS:
            raise UsageError(f"{name} in --command-config is no setting rackspan can follow; leave it out of a copy")
        try:
            settings.update(side(KEYS[name])(value))
        except UsageError as error:
            raise UsageError(f"{name} in --command-config: {error}; correct it and run again") from None
    _refuse_half_a_login(properties)
    return settings


def _refuse_what_only_java_reads(properties: Mapping[str, str]) -> None:
    for store in ("ssl.truststore", "ssl.keystore"):
        # Without a type, Java takes a store file for JKS.
        kind = properties.get(f"{store}.type", "JKS" if f"{store}.location" in properties else "PEM")
        if kind.upper() != "PEM":
            raise UsageError(
                f"{store}.type in --command-config is {kind}, which only Java reads; export the store to PEM "
                f"(keytool -exportcert -rfc, or openssl pkcs12) and set {store}.type=PEM"
            )


def _refuse_half_a_login(properties: Mapping[str, str]) -> None:
    if not properties.get("security.protocol", "").upper().startswith("SASL"):
        return
    for needed in ("sasl.mechanism", "sasl.jaas.config"):
        if needed not in properties:
            raise UsageError(f"{needed} is missing in --command-config, but security.protocol asks for a login; add it")
