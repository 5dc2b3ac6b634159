"""The clients of a gateway: each is accepted, gets a connection to its broker, and is closed if it is slow, gone, or at the end."""

import asyncio
import ipaddress
import logging
import socket
import ssl
from collections import Counter, defaultdict
from collections.abc import Coroutine
from typing import Any, Final

from rackspan.gateway.clients.tls import ClientTls
from rackspan.gateway.config import GatewayConfig
from rackspan.gateway.net.byte_flow import Shared
from rackspan.gateway.net.channel import FirstRequest, connected, sends
from rackspan.gateway.net.open_files import clients_within, raise_limit, too_few
from rackspan.gateway.net.session import ClientSession, address_of
from rackspan.gateway.upstream.cluster import UpstreamCluster
from rackspan.text import count_noun

log = logging.getLogger(__name__)

CONNECT_SECONDS: Final = 10.0
"""Time limit of the TLS handshake of a client, and of the connection and the TLS handshake of its broker."""

IDLE_SECONDS: Final = 600.0
"""Time limit of a client's first request, before which there is no connection to a broker. Kafka's connections.max.idle.ms."""

OVERDUE_CHECK_SECONDS: Final = 1.0
GONE_CHECK_SECONDS: Final = 30.0
"""Between two checks of connections: for requests that arrive too slowly, and for clients that are gone."""

HALF_REQUEST_SECONDS: Final = 2.0
"""At the end: how long clients may continue to send a request that they have begun, and may take nothing of their responses."""

_CLOSED_AT_ONCE: Final = 10
"""Connections that are closed in one turn of the event loop: others' requests are served between them."""

_MOST_LOGGED: Final = 5
"""Log lines of one check, before one that counts the rest."""


class Clients:
    """Every client of this process. `close_slow` and `close_gone` run until they are cancelled."""

    def __init__(self, config: GatewayConfig, cluster: UpstreamCluster, tls: ClientTls, shared: Shared) -> None:
        self.config = config
        self.sessions: set[ClientSession] = set()
        self.accepted = 0
        self.refused: Counter[str] = Counter()
        """Clients turned away, by reason."""
        self.draining = False
        self.shared = shared
        self._cluster = cluster
        self._tls = tls
        self._opening = 0
        self._of_address: Counter[str] = Counter()
        """Clients, connected or being connected, by their address."""
        self._opening_of: defaultdict[str, set[socket.socket]] = defaultdict(set)
        """Those that are being connected and have sent no whole request yet."""
        self._new: dict[str, set[ClientSession]] = {}
        """Those that had sent no whole request when they were looked at last."""
        self._warned: set[str] = set()
        """Addresses in a line of the log since they had no client."""
        self._open_files = raise_limit()

    @property
    def most(self) -> int:
        """Clients at a time: the config's bound, or what open files suffice for if that is less."""
        return min(self.config.max_connections, clients_within(self._open_files, len(self._cluster.by_id)))

    def warn_of_open_files(self) -> None:
        reason = too_few(self._open_files, self.config.max_connections, len(self._cluster.by_id))
        if reason is not None:
            log.warning("open files: %s", reason)

    def accept(self, broker: int, client: socket.socket) -> Coroutine[Any, Any, None] | None:
        """Work that connects a client that a broker's listener accepted; None if it is turned away, which costs no task."""
        self.accepted += 1
        if self.draining or len(self.sessions) + self._opening >= self.most:
            self.refused["limit"] += 1
            client.close()
            return None
        address = _counted(address_of(client))
        if self._has_most(address):
            self.refused["address"] += 1
            client.close()
            return None
        # Counted now: of clients that come at once, none has begun to be connected.
        self._opening += 1
        self._of_address[address] += 1
        self._opening_of[address].add(client)
        return self._connect(broker, client, address)

    async def _connect(self, broker: int, client: socket.socket, address: str) -> None:
        session = None
        try:
            session = await self._session_of(broker, client, address)
        finally:
            self._opening -= 1
            is_new = client in self._opening_of[address]
            self._opening_of[address].discard(client)
            if session is None:
                self._ended(address, None)
        if session is not None:
            if is_new:
                self._new.setdefault(address, set()).add(session)
            session.on_closed = lambda: self._ended(address, session)
            session.start()

    def _has_most(self, address: str) -> bool:
        """Whether an address has as many connections as one may have: in all, and of those that have sent no whole request.

        Behind one address may be many clients, each of which sends a request at once (NAT).
        """
        config = self.config
        most, which = config.max_connections_per_address, "connections, as many as listen.address.max.connections"
        if most is None or self._of_address[address] < most:
            most = config.max_new_connections_per_address
            which = "connections without a whole request, as many as listen.address.max.new.connections"
            if len(self._opening_of[address]) + len(self._new.get(address, ())) < most:
                return False
            self._new[address] = {session for session in self._new.get(address, ()) if not session.has_sent_request}
            if len(self._opening_of[address]) + len(self._new[address]) < most:
                return False
        if address not in self._warned:
            self._warned.add(address)
            log.warning("address %s has %d %s: others are turned away", address, most, which)
        return True

    def _ended(self, address: str, session: ClientSession | None) -> None:
        self._of_address[address] -= 1
        if session is not None and address in self._new:
            self._new[address].discard(session)
        if not self._of_address[address]:
            del self._of_address[address]
            self._opening_of.pop(address, None)
            self._new.pop(address, None)
            self._warned.discard(address)

    async def _session_of(self, broker: int, client: socket.socket, address: str) -> ClientSession | None:
        """A session that is not started, when the client has sent its first request; None if it is turned away or has left."""
        secured = client
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                secured, context, principal = await self._tls.secured(client)
            async with asyncio.timeout(IDLE_SECONDS):
                first = await sends(asyncio.get_running_loop(), secured)
            if not first:
                secured.close()
                return None
            if first is FirstRequest.WHOLE:
                # However long its broker takes to accept the connection, it is no longer a new one.
                self._opening_of[address].discard(client)
            async with asyncio.timeout(CONNECT_SECONDS):
                upstream = await self._connected(broker, context)
        except OSError as error:
            self.refused["handshake" if isinstance(error, ssl.SSLError) else "connect"] += 1
            log.info("a client of broker %d is turned away: %s: %s", broker, type(error).__name__, error)
            secured.close()
            return None
        except BaseException:
            secured.close()
            raise
        session = self.session(secured, upstream, broker)
        session.principal = principal
        return session

    async def _connected(self, broker: int, context: ssl.SSLContext | None) -> socket.socket:
        known = self._cluster.by_id.get(broker)
        if known is None:
            raise ConnectionRefusedError(f"broker {broker} is not in the cluster")
        return await connected((known.host, known.port), context, known.host if context else None)

    def session(self, client: socket.socket, upstream: socket.socket, broker: int) -> ClientSession:
        """A session that is not started, over two connected sockets."""
        return ClientSession(self.shared, self.sessions, asyncio.get_running_loop(), client, upstream, broker)

    def close_removed(self) -> None:
        """Close connections of principals that the config has no more."""
        for session in [session for session in self.sessions if self._tls.is_removed(session.principal)]:
            log.warning("closing the connection of %s: principal %s was removed", session.peer, session.principal)
            session.close()

    async def close_slow(self) -> None:
        """Close connections whose request arrives too slowly or goes no further: its memory is bounded by others, its time here."""
        while True:
            await asyncio.sleep(OVERDUE_CHECK_SECONDS)
            closed = 0
            for number, session in enumerate(tuple(self.sessions), 1):
                reason = _reason_to_close(session) if session in self.sessions else None
                if reason is not None:
                    closed += 1
                    if closed <= _MOST_LOGGED:
                        log.warning("closing the connection of %s: %s", session.peer, reason)
                    session.close()
                if not number % _CLOSED_AT_ONCE:
                    await asyncio.sleep(0)
            if closed > _MOST_LOGGED:
                log.warning("closed %d more connections for the same reasons", closed - _MOST_LOGGED)

    async def close_gone(self) -> None:
        """Close connections of clients that are gone while their request waits for a broker that does not respond."""
        before: set[ClientSession] = set()
        while True:
            await asyncio.sleep(GONE_CHECK_SECONDS)
            gone = {session for session in self.sessions if session.client.has_ended_unseen}
            for session in gone & before:
                log.info("closing the connection of %s: it is gone, and its request has no response", session.peer)
                session.close()
            before = gone

    async def drain(self, seconds: float) -> None:
        """Let every request end that was received. `sessions` are those that did not end in this time.

        A client that takes nothing of its responses for HALF_REQUEST_SECONDS is not waited for any longer.
        """
        self.draining = True
        for session in tuple(self.sessions):
            session.drain()
        begun = asyncio.get_running_loop().time()
        unread = 0
        while self.sessions and (elapsed := asyncio.get_running_loop().time() - begun) < seconds:
            for session in tuple(self.sessions):
                unmoved = session.client.unmoved_seconds()
                if elapsed < HALF_REQUEST_SECONDS:
                    continue
                session.cut_off()
                if unmoved >= HALF_REQUEST_SECONDS:
                    unread += 1
                    session.close()
            await asyncio.sleep(0.02)
        if unread:
            log.warning("%s closed, as clients did not read their responses", count_noun(unread, "connection"))

    def close(self) -> None:
        for session in tuple(self.sessions):
            session.close()


def _counted(address: str) -> str:
    """The address that counts: of IPv6 the network of 64 bits, of which a host may have every address."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if parsed.version == 4 or parsed.ipv4_mapped is not None:
        return address
    return str(ipaddress.ip_network((int(parsed), 64), strict=False))


def _reason_to_close(session: ClientSession) -> str | None:
    if session.is_overdue:
        return "its request arrives too slowly"
    if session.is_stuck:
        return "others wait for the memory of its request, of which the broker takes nothing, or the client reads no responses"
    return None
