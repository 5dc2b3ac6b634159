"""How a client connects and identifies itself: TLS, SASL and the client id, and the exchange of a SASL login."""

import ssl
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from rackspan.client.config import kafka_python_settings
from rackspan.client.config.translation import presents_certificate
from rackspan.errors import ClusterUnauthorized, RackspanError, UsageError
from rackspan.kafka_bytes import ByteReader, byte_string, string

SASL_HANDSHAKE: Final = 17
SASL_AUTHENTICATE: Final = 36

_MS: Final = 1000

Exchange = Callable[[int, int, bytes], Awaitable[ByteReader]]
"""Sends a request by API key and version, and returns the body of its response. Errors: OSError."""


class LoginRefused(ClusterUnauthorized):
    """A broker refused the mechanism or the credentials, or closed the connection during the login."""


class LoginFailedHere(LoginRefused):
    """The mechanism failed before the broker could refuse it: no Kerberos credentials, or a proof of the broker that is wrong."""


@dataclass(frozen=True, slots=True)
class Login:
    """How a client connects and identifies itself. `sasl` are kafka-python's settings of the mechanism, None without SASL."""

    tls: ssl.SSLContext | None = None
    sasl: Mapping[str, Any] | None = field(default=None, repr=False)
    client_id: str = "rackspan"
    presents_certificate: bool = False
    connect_seconds: float | None = None
    """At most so long for TCP and TLS of one connection, for one request, and between two uses of a connection."""
    request_seconds: float | None = None
    idle_seconds: float | None = None

    @property
    def mechanism(self) -> str | None:
        return None if self.sasl is None else str(self.sasl["sasl_mechanism"])

    def fetch_token(self) -> None:
        """Fetch an OAUTHBEARER token now, where its errors can be raised. Connections then use the same one."""
        tokens = (self.sasl or {}).get("sasl_oauth_token_provider")
        if tokens is not None:
            tokens.token()


def login_of(settings: Mapping[str, Any], *, presents_certificate: bool = False) -> Login:
    """From settings of kafka-python, as `kafka_python_settings` makes them. Errors: UsageError."""
    sasl = {key: value for key, value in settings.items() if key.startswith("sasl_")}
    if "SASL" not in settings.get("security_protocol", ""):
        sasl = {}
    elif "sasl_mechanism" not in sasl:
        raise UsageError("command.config: sasl.mechanism is missing; add it")
    return Login(
        settings.get("ssl_context"),
        sasl or None,
        settings.get("client_id", "rackspan"),
        presents_certificate,
        _seconds(settings.get("socket_connection_setup_timeout_ms")),
        _seconds(settings.get("request_timeout_ms")),
        _seconds(settings.get("connections_max_idle_ms")),
    )


def login_from(properties: Mapping[str, str]) -> Login:
    """From a Java client's properties. Errors: UsageError naming the key, MissingRequirement for GSSAPI."""
    return login_of(kafka_python_settings(properties), presents_certificate=presents_certificate(properties))


async def log_in(host: str, login: Login, exchange: Exchange, version: int = 0) -> float | None:
    """The SASL exchange of a connection, by kafka-python's mechanism. `version` is that of SaslAuthenticate, 0 or 1.

    Returns the seconds after which the broker closes the connection at the next request (KIP-368), None if it has no such limit. Version 0
    does not report one. Errors: LoginRefused, OSError.
    """
    if login.sasl is None:
        return None
    # Imported here: kafka-python takes a quarter of a second, and most connections do not log in.
    from kafka.net.sasl import get_sasl_mechanism

    name = login.sasl["sasl_mechanism"]
    with _failing_here(host, name):
        mechanism = get_sasl_mechanism(name)(**{"host": host, "sasl_kerberos_service_name": "kafka", **login.sasl})
    handshake = await exchange(SASL_HANDSHAKE, 1, string(name))
    if (error := handshake.int16()) != 0:
        raise LoginRefused(f"{host}: SASL mechanism {name} was refused with error {error}; see command.config")
    lifetime_ms = 0
    while not mechanism.is_done():
        with _failing_here(host, name):
            request = byte_string(mechanism.auth_bytes())
        reader = await exchange(SASL_AUTHENTICATE, version, request)
        error, message = reader.int16(), reader.nullable_string()
        if error != 0:
            raise LoginRefused(f"{host}: the login of command.config was refused: {message or error}")
        with _failing_here(host, name):
            mechanism.receive(reader.byte_string())
        lifetime_ms = reader.int64() if version else 0
    if not mechanism.is_authenticated():
        raise LoginRefused(f"{host}: the broker's proof of {name} is wrong; see command.config")
    return lifetime_ms / _MS if lifetime_ms > 0 else None


@contextmanager
def _failing_here(host: str, name: str) -> Iterator[None]:
    try:
        yield
    except RackspanError:
        raise
    except Exception as error:
        # Mechanisms and the Kerberos library below them have errors of all kinds.
        raise LoginFailedHere(
            f"cannot be logged in to as {host}: {name} fails on this side: {' '.join(str(error).split())}; "
            "check the credentials, of GSSAPI by klist"
        ) from error


def _seconds(milliseconds: int | None) -> float | None:
    return None if milliseconds is None else milliseconds / _MS
