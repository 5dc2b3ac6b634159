"""The brokers of a cluster, and one connection to each: opened at first use, shared by all who use it, opened again after it has
ended or the broker has moved. `KnownBrokers` keeps the brokers as the cluster's metadata reports them, and lets nobody use a connection
that has not proved its broker, if that is required.
"""

import asyncio
import ipaddress
import re
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Final

from rackspan.client.config.keys import SECURITY_PROTOCOLS
from rackspan.client.connection import CONNECT_SECONDS, BrokerConnection
from rackspan.client.identity import IdentityMode, prove_cluster, prove_server, unnamed_cluster, unproved_by_all
from rackspan.client.login import Login
from rackspan.errors import (
    ClusterUnreachable,
    MalformedRequest,
    OtherBroker,
    RackspanError,
    UnprovableBroker,
    UsageError,
    cause,
)
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.metadata import MetadataRequestData, MetadataResponseData

Address = tuple[str, int]

_ADDRESS: Final = re.compile(
    r"(?:(?P<protocol>[\w.%-]*)://)?(?:\[(?P<bracketed>[\w.%:-]+)\]|(?P<host>[\w.%-]+|[\w.%:-]+(?=:[0-9]+$)))"
    r"(?::(?P<port>[0-9]+))?",
    re.A,
)
"""Source: Utils.getHost and getPort of Kafka, except that a port may be left out."""
_PORT: Final = 9092
_LARGEST_PORT: Final = 65535


Prove = Callable[[BrokerConnection, int], Awaitable[None]]
"""Returns if a connection ends at the broker of this id, else closes it. Errors: RackspanError, OSError."""

PROOF_SECONDS: Final = 2.0
"""A start does not wait longer for brokers that do not respond."""

LEFT_SECONDS: Final = 60.0
"""Logins may expire every minute, and a broker closes what nobody uses after ten only."""


class BrokerConnections:
    """One connection to each broker. `addresses` may change at any time. `prove` is called for each connection before its first use."""

    def __init__(self, login: Login, connect_seconds: float = CONNECT_SECONDS, prove: Prove | None = None) -> None:
        self._login = login
        self._connect_seconds = connect_seconds
        self._prove = prove
        self.addresses: dict[int, Address] = {}
        self._connections: dict[int, BrokerConnection] = {}
        self._connected_to: dict[int, Address] = {}
        self._opening: dict[int, asyncio.Task[BrokerConnection]] = {}
        self._replaced: list[BrokerConnection] = []

    async def connection(self, broker_id: int) -> BrokerConnection:
        """A connection to one broker. Errors: OSError, LoginRefused, ClusterUnreachable for a broker without an address."""
        known = self._connections.get(broker_id)
        if known is not None and known.is_usable:
            return known
        opening = self._opening.get(broker_id)
        if opening is None:
            address = self.addresses.get(broker_id)
            if address is None:
                raise ClusterUnreachable(f"broker {broker_id} is not in the cluster's metadata")
            self._connected_to[broker_id] = address
            opening = asyncio.get_running_loop().create_task(self._open(broker_id, address))
            self._opening[broker_id] = opening
            opening.add_done_callback(partial(self._opened, broker_id))
        return await asyncio.shield(opening)

    async def _open(self, broker_id: int, address: Address) -> BrokerConnection:
        connection = await BrokerConnection.open(*address, self._login, self._connect_seconds)
        if self._prove is not None:
            await self._prove(connection, broker_id)
        return connection

    def _opened(self, broker_id: int, opening: "asyncio.Task[BrokerConnection]") -> None:
        """Keep the connection, and retrieve the error, if nobody waits for it any more."""
        del self._opening[broker_id]
        if not opening.cancelled() and opening.exception() is None:
            self.keep(broker_id, opening.result())

    def keep(self, broker_id: int, connection: BrokerConnection) -> None:
        """Keep a connection that was opened elsewhere, as to a bootstrap server under a negative id."""
        before = self._connections.get(broker_id)
        if before is not None:
            self.leave(before)
        self._connections[broker_id] = connection

    def leave(self, connection: BrokerConnection) -> None:
        """Send nothing more over a connection. It stays open for requests that wait on it, and for a minute, since a caller may have it already."""
        for replaced in self._replaced:
            if replaced.was_left_for(LEFT_SECONDS):
                replaced.close()
        self._replaced = [replaced for replaced in (*self._replaced, connection) if not replaced.closed]

    def usable(self) -> list[int]:
        """The ids of brokers whose connection is open."""
        return [broker_id for broker_id, connection in self._connections.items() if connection.is_usable]

    def close_moved(self) -> None:
        """Close connections to bootstrap servers, if brokers are known, and to brokers that have another address now."""
        for broker_id, connection in tuple(self._connections.items()):
            address = self.addresses.get(broker_id)
            moved = address is not None and self._connected_to.get(broker_id, address) != address
            if connection.closed or moved or (broker_id < 0 and self.addresses):
                connection.close()
                del self._connections[broker_id]

    def close(self) -> None:
        for opening in self._opening.values():
            opening.cancel()
        for connection in (*self._connections.values(), *self._replaced):
            connection.close()


@dataclass(frozen=True, slots=True)
class KnownBroker:
    """One broker: its own address, and its rack as registered."""

    broker_id: int
    host: str
    port: int
    rack: str | None = None


class KnownBrokers:
    """The brokers that are up, as of the last refresh, and those that responses have named since."""

    def __init__(
        self, bootstrap_servers: str, login: Login, rng: Random, identity: IdentityMode = IdentityMode.ADDRESS
    ) -> None:
        """Errors: UsageError for addresses that cannot be used."""
        self._bootstrap = addresses("bootstrap.servers", bootstrap_servers)
        self._login = login
        self._is_proved = identity is IdentityMode.PROVED
        self._brokers = BrokerConnections(login, prove=self.prove)
        self._rng = rng
        self.by_id: dict[int, KnownBroker] = {}
        self.cluster_id: str | None = None
        """Of the first refresh, if brokers are proved: from then on a broker of another cluster is refused."""

    def record(self, broker_id: int, host: str, port: int) -> None:
        """Take over a broker's address from a response."""
        known = self.by_id.get(broker_id)
        if known is None or (known.host, known.port) != (host, port):
            self.by_id[broker_id] = KnownBroker(broker_id, host, port, None if known is None else known.rack)

    async def connection(self, broker_id: int) -> BrokerConnection:
        """A connection to one broker, shared by all who use it, and proved to be the broker's if that is required.

        Errors: OtherBroker, UnprovableBroker, OSError, RackspanError.
        """
        known = self.by_id.get(broker_id)
        if known is not None:
            self._brokers.addresses[broker_id] = known.host, known.port
        return await self._brokers.connection(broker_id)

    async def prove(self, connection: BrokerConnection, broker_id: int) -> None:
        """Returns if a connection is proved to be the broker's, or need not be; else it is closed. Errors: as of `connection`."""
        if not self._is_proved:
            return
        try:
            if self.cluster_id is None:
                raise ClusterUnreachable(f"broker {broker_id} cannot be proved before the cluster's id is known")
            await prove_cluster(connection, self.cluster_id, broker_id)
            # One that there is: what is behind a proxy would refuse any other id as well.
            others = self._confirmed() - {broker_id} or self._brokers.addresses.keys() - {broker_id}
            other = min(others, default=broker_id + 1)
            await prove_server(connection, self.cluster_id, "broker", broker_id, other)
        except BaseException:
            connection.close()
            raise

    async def require_proofs(self, most: int | None = None) -> None:
        """Connect to every broker that responds within PROOF_SECONDS, or to so many of them, if brokers have to be proved.

        Errors: UnprovableBroker, as soon as one is known; OtherBroker if no broker is proved, and another one responds at an address.
        """
        if not self._is_proved or not self.by_id:
            return
        some = self.some(len(self.by_id) if most is None else most)
        opening = [asyncio.ensure_future(self.connection(broker_id)) for broker_id in some]
        is_proved, misplaced = False, None
        try:
            for proof in asyncio.as_completed(opening, timeout=PROOF_SECONDS):
                try:
                    await proof
                    is_proved = True
                except UnprovableBroker:
                    # It never proves itself. One that is down or elsewhere does, when it is there.
                    raise
                except OtherBroker as error:
                    misplaced = error
                except (OSError, RackspanError):
                    continue
        finally:
            for task in opening:
                task.cancel()
            await asyncio.gather(*opening, return_exceptions=True)
        if misplaced is not None and not is_proved:
            raise unproved_by_all(misplaced)

    async def any_connection(self) -> BrokerConnection:
        """A connection to a broker that responds: open ones first, then the bootstrap servers. Errors: ClusterUnreachable."""
        _, connection = await self.any_broker()
        return connection

    def _confirmed(self) -> set[int]:
        """The brokers that requests may be sent to without a reason to choose them."""
        return set(self.by_id)

    def some(self, count: int) -> list[int]:
        """Ids of different brokers, at most so many, others each time."""
        confirmed = sorted(self._confirmed())
        return self._rng.sample(confirmed, min(count, len(confirmed)))

    async def any_broker(self) -> tuple[int, BrokerConnection]:
        """The same with the broker's id, which is negative for a bootstrap server. Errors: ClusterUnreachable.

        Where brokers are known and none can be used, as without a proof, the connection to a bootstrap server is kept for the next call.
        """
        failed: Exception = ClusterUnreachable("it has no address")
        usable = [broker_id for broker_id in self._brokers.usable() if broker_id in self.by_id]
        others = sorted(self._confirmed() - set(usable))
        self._rng.shuffle(others)
        for broker_id in (*usable, *others):
            try:
                return broker_id, await self.connection(broker_id)
            except (OSError, RackspanError) as error:
                failed = error
        for kept in self._brokers.usable() if self.by_id else ():
            if kept < 0:
                return kept, await self._brokers.connection(kept)
        for index, (host, port) in enumerate(self._bootstrap):
            try:
                connection = await BrokerConnection.open(host, port, self._login)
            except (OSError, RackspanError) as error:
                failed = error
                continue
            self._brokers.keep(-1 - index, connection)
            return -1 - index, connection
        raise ClusterUnreachable(
            f"no broker of the cluster responds ({cause(failed)}); see bootstrap.servers and command.config"
        )

    async def refresh(self) -> None:
        """Read brokers, addresses and racks. Errors: ClusterUnreachable, UnprovableBroker, RackspanError."""
        connection = await self.any_connection()
        request = MetadataRequestData(topics=(), allow_auto_topic_creation=False)
        try:
            metadata: MetadataResponseData = await connection.call(ApiKey.METADATA, request)
        except (OSError, MalformedRequest) as error:
            connection.close()
            raise ClusterUnreachable(f"the cluster's metadata could not be read: {cause(error)}") from error
        if self._is_proved and metadata.cluster_id is None and metadata.brokers:
            connection.close()
            raise unnamed_cluster("a broker")
        if self._is_proved and self.cluster_id not in (None, metadata.cluster_id):
            connection.close()
            raise OtherBroker(
                f"metadata is of cluster {metadata.cluster_id}, and the brokers before were of {self.cluster_id}: an address is another cluster's "
                "now; see bootstrap.servers, and restart if this is a new cluster"
            )
        self.cluster_id = metadata.cluster_id
        self.by_id = {
            broker.node_id: KnownBroker(broker.node_id, broker.host, broker.port, broker.rack)
            for broker in metadata.brokers
        }
        self._brokers.addresses = {broker.broker_id: (broker.host, broker.port) for broker in self.by_id.values()}
        self._brokers.close_moved()

    def close(self) -> None:
        self._brokers.close()


def addresses(key: str, text: str) -> tuple[Address, ...]:
    """The addresses of a comma-separated value, with Kafka's port if none is given. PROTOCOL:// before one is left out, as by Java.

    Errors: UsageError, naming the key.
    """
    return tuple((host, port) for _, host, port in _addresses(key, text))


def protocol_warnings(key: str, text: str, protocol: str) -> list[str]:
    """A sentence if addresses name another security protocol than the one of the connections."""
    others = dict.fromkeys(named.upper() for named, _, _ in _addresses(key, text))
    return [
        f"{key} {text}: the address says {other}, and connections use {protocol}; set security.protocol={other}, or leave {other}:// out"
        for other in others
        if other in SECURITY_PROTOCOLS and other != protocol
    ]


def _addresses(key: str, text: str) -> Iterator[tuple[str, str, int]]:
    """The protocol or name of a listener before each address, "" if there is none, then host and port."""
    for part in text.split(","):
        match = _ADDRESS.fullmatch(part.strip())
        host = match and (match["bracketed"] or match["host"])
        port = int(match["port"] or _PORT) if match else 0
        # In a host that has colons and no brackets the last number is the port, as in Java.
        if not match or not host or port > _LARGEST_PORT or (":" in host and not _is_ipv6(host)):
            raise UsageError(
                f"{key} {text!r}: {part!r} is not of the form HOST:PORT or PROTOCOL://HOST:PORT; write it as broker-1:9092"
            )
        yield match["protocol"] or "", host, port


def _is_ipv6(host: str) -> bool:
    try:
        ipaddress.IPv6Address(host)
    except ValueError:
        return False
    return True
