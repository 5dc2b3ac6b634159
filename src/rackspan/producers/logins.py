"""Logins of the guard's own connections, from the settings of each client library."""

import ssl
from collections.abc import Mapping
from typing import Any, Final

from rackspan.client.login import Login, login_of
from rackspan.errors import UsageError

_OF_LIBRDKAFKA: Final = {
    "security.protocol": "security_protocol",
    "sasl.mechanism": "sasl_mechanism",
    "sasl.mechanisms": "sasl_mechanism",
    "sasl.username": "sasl_plain_username",
    "sasl.password": "sasl_plain_password",
    "ssl.ca.location": "ssl_cafile",
    "ssl.certificate.location": "ssl_certfile",
    "ssl.key.location": "ssl_keyfile",
    "ssl.key.password": "ssl_password",
    "ssl.endpoint.identification.algorithm": "ssl_check_hostname",
}
_PASSWORD_MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


def kafka_python_login(config: Mapping[str, Any]) -> Login:
    """From the settings of kafka-python, or of aiokafka. Errors: UsageError."""
    protocol = str(config.get("security_protocol", "PLAINTEXT")).upper()
    settings = {key: value for key, value in config.items() if key.startswith("sasl_")} if "SASL" in protocol else {}
    if "SSL" in protocol:
        settings["ssl_context"] = config.get("ssl_context") or _tls(config)
    return login_of({**settings, "security_protocol": protocol})


def librdkafka_login(config: Mapping[str, Any]) -> Login:
    """From the settings of librdkafka. Errors: UsageError for TLS or a login that a guard cannot use."""
    settings: dict[str, Any] = {}
    for key, value in config.items():
        if key in _OF_LIBRDKAFKA:
            settings[_OF_LIBRDKAFKA[key]] = value
        elif key.startswith(("ssl.", "sasl.", "enable.ssl.")):
            raise UsageError(f"{key}: the guard has connections of its own and no such setting; use {_names()}")
    if settings.get("ssl_check_hostname") is not None:
        settings["ssl_check_hostname"] = str(settings["ssl_check_hostname"]).lower() != "none"
    mechanism = settings.get("sasl_mechanism", _PASSWORD_MECHANISMS[0])
    if "SASL" in str(settings.get("security_protocol", "")).upper() and mechanism not in _PASSWORD_MECHANISMS:
        raise UsageError(f"sasl.mechanism {mechanism}: the guard logs in by {', '.join(_PASSWORD_MECHANISMS)}")
    return kafka_python_login(settings)


def _names() -> str:
    return ", ".join(_OF_LIBRDKAFKA)


def _tls(config: Mapping[str, Any]) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=config.get("ssl_cafile"))
        if config.get("ssl_certfile"):
            context.load_cert_chain(config["ssl_certfile"], config.get("ssl_keyfile"), config.get("ssl_password"))
    except OSError as error:
        raise UsageError(f"the TLS files cannot be used: {error}; see their paths") from error
    context.check_hostname = config.get("ssl_check_hostname", True)
    return context


def server_list(servers: Any) -> str:
    """The servers, of which some clients take a list, as one text."""
    return servers if isinstance(servers, str) else ",".join(servers)
