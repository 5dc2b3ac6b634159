"""TLS of clients: of the listeners, and of each client's connection to its broker."""

import asyncio
import socket
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rackspan.client.config import kafka_python_settings
from rackspan.errors import UsageError
from rackspan.gateway.config import GatewayConfig, TlsConfig
from rackspan.gateway.net.channel import handshake


class ClientTls:
    """The TLS contexts for clients. `upstream` is that of connections to brokers, None without TLS there."""

    def __init__(self, config: GatewayConfig, properties: Mapping[str, str]) -> None:
        """`properties` are those of command.config. Errors: UsageError."""
        self.upstream = _upstream(properties)
        self._listeners: ssl.SSLContext | None = None
        self._principals: Mapping[str, ssl.SSLContext] = {}
        self.load(config.tls, properties)

    def load(self, tls: TlsConfig | None, properties: Mapping[str, str]) -> None:
        """Read the certificates again. Nothing changes if one of them cannot be used. Errors: UsageError."""
        if tls is None:
            return
        listeners = server_context(tls)
        principals = {}
        for name, (certificate, key) in tls.principals.items():
            context = _upstream(properties)
            if context is None:
                raise UsageError(
                    f"[principals.{name!r}]: brokers get a certificate over TLS only; command.config has no TLS"
                )
            _load_certificate(context, name, certificate, key)
            principals[name] = context
        self._listeners, self._principals = listeners, principals

    def is_removed(self, principal: str | None) -> bool:
        """Whether clients of this principal were accepted and would not be now."""
        return principal is not None and principal not in self._principals

    async def secured(self, client: socket.socket) -> tuple[socket.socket, ssl.SSLContext | None, str | None]:
        """The client's socket with TLS, if the listeners have it, the TLS of its connection to the broker, and its principal.

        The principal is None without [principals]. Errors: OSError.
        """
        if self._listeners is None:
            return client, self.upstream, None
        secured = self._listeners.wrap_socket(client, server_side=True, do_handshake_on_connect=False)
        await handshake(asyncio.get_running_loop(), secured)
        if not self._principals:
            return secured, self.upstream, None
        name = _common_name(secured.getpeercert() or {})
        principal = None if name is None else self._principals.get(name)
        if principal is None:
            secured.close()
            raise ssl.SSLError(f"no [principals] entry for the certificate of {name!r}")
        return secured, principal, name


def server_context(tls: TlsConfig) -> ssl.SSLContext:
    """TLS of the listeners; with client authorities every client has to show a certificate of theirs. Errors: UsageError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(tls.certificate, tls.key)
        if tls.client_authorities is not None:
            context.load_verify_locations(cafile=tls.client_authorities)
            context.verify_mode = ssl.CERT_REQUIRED
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(
            f"listen.tls: {tls.certificate}, {tls.key} or the client authorities cannot be used: {reason}"
        ) from error
    return context


def _upstream(properties: Mapping[str, str]) -> ssl.SSLContext | None:
    """The TLS of command.config without its certificate: brokers would take every client for the gateway, with the gateway's rights."""
    without = {key: value for key, value in properties.items() if not key.startswith(("ssl.keystore", "ssl.key"))}
    return kafka_python_settings(without).get("ssl_context") if without else None


def _load_certificate(context: ssl.SSLContext, name: str, certificate: Path, key: Path) -> None:
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ValueError) as error:
        raise UsageError(f"[principals.{name!r}]: {certificate} and {key} cannot be used: {error}") from error


def _common_name(certificate: Mapping[str, Any]) -> str | None:
    for part in certificate.get("subject", ()):
        for key, value in part:
            if key == "commonName":
                return str(value)
    return None
