"""The cluster behind the gateway as its own connections show it: brokers, their addresses and racks."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from typing import Final

from rackspan.client.brokers import BrokerConnections, addresses
from rackspan.client.connection import BrokerConnection
from rackspan.client.login import Login
from rackspan.errors import ClusterUnreachable, MalformedRequest, RackspanError
from rackspan.model import Broker, BrokerId, RackId
from rackspan.sources.rack_locator import ClusterView, RackLocator, rack_info
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.metadata import MetadataRequestData, MetadataResponseData

log = logging.getLogger(__name__)

REFRESH_SECONDS: Final = 5.0
_LEAST_SECONDS: Final = 0.5
"""Between two refreshes, where responses to clients name an address that is not known yet."""

_MOST_UNCONFIRMED: Final = 100


@dataclass(frozen=True, slots=True)
class Node:
    """One broker: its own address, and its rack as registered."""

    node_id: int
    host: str
    port: int
    rack: str | None = None


class UpstreamCluster:
    """Brokers by id, and connections of the gateway's own to them. `on_nodes` is called when a refresh has finished."""

    def __init__(self, bootstrap_servers: str, login: Login, rng: Random, locator: RackLocator | None = None) -> None:
        self._bootstrap = addresses("bootstrap.servers", bootstrap_servers)
        self._login = login
        self._brokers = BrokerConnections(login)
        self._rng = rng
        self._locator = locator
        self._located: dict[BrokerId, RackId | None] = {}
        """What the locator found, of each broker that it was called about."""
        self.nodes: dict[int, Node] = {}
        """The brokers that are up, as of the last refresh, and those that responses have named since."""
        self._registered_racks: dict[int, str | None] = {}
        """The rack of each broker that was ever up: metadata leaves brokers out that are down, and their racks with them."""
        self._unconfirmed: set[int] = set()
        """Brokers of `nodes` that only responses to clients have named since the last refresh."""
        self._outdated = asyncio.Event()
        """Set by what says that the next refresh should not wait."""
        self.cluster_id: str | None = None
        self.on_nodes: Callable[[], None] = lambda: None
        self.refreshed_at: float | None = None

    def learn(self, node_id: int, host: str, port: int) -> None:
        """A broker's address from a response to the gateway itself."""
        known = self.nodes.get(node_id)
        if known is None or (known.host, known.port) != (host, port):
            self.nodes[node_id] = Node(node_id, host, port, self._registered_racks.get(node_id))

    def learn_from_passing(self, node_id: int, host: str, port: int) -> None:
        """A broker's address from a response to a client: that of a new broker, and the reason to look for those of others.

        Errors: MalformedRequest where responses name more new brokers than one refresh is likely to confirm.
        """
        known = self.nodes.get(node_id)
        if known is not None and (known.host, known.port) == (host, port):
            return
        self._outdated.set()
        if known is None:
            if node_id < 0 or len(self._unconfirmed) >= _MOST_UNCONFIRMED:
                raise MalformedRequest(f"a response names broker {node_id}, which the cluster's metadata does not")
            self._unconfirmed.add(node_id)
            self.nodes[node_id] = Node(node_id, host, port, self._registered_racks.get(node_id))

    def was_registered(self, node_id: int) -> bool:
        """Whether the broker was up at any refresh of this process."""
        return node_id in self._registered_racks

    def rack(self, node_id: int, registered: str | None) -> str | None:
        if self._locator is None:
            return registered
        return self._located.get(BrokerId(node_id))

    def is_located(self, node_id: int) -> bool:
        """Whether the rack that counts is known, None being a rack too. A rack locator is consulted for a new broker later."""
        return self._locator is None or BrokerId(node_id) in self._located

    def brokers(self) -> tuple[Broker, ...]:
        """The brokers that are up and whose racks are known, with the racks that count."""
        return tuple(self._broker(node_id) for node_id in sorted(self.nodes) if self._is_known(node_id))

    def all_brokers(self) -> tuple[Broker, ...]:
        """Those that are down as well, if they were up while this process ran."""
        return tuple(self._broker(node_id) for node_id in sorted(self._registered_racks) if self._is_known(node_id))

    def _is_known(self, node_id: int) -> bool:
        return node_id in self._registered_racks and self.is_located(node_id)

    def _broker(self, node_id: int) -> Broker:
        node = self.nodes.get(node_id)
        rack = _rack(self.rack(node_id, self._registered_racks[node_id]))
        return Broker(BrokerId(node_id), rack, host=node.host if node else None, port=node.port if node else None)

    async def connection(self, node_id: int) -> BrokerConnection:
        """A connection to one broker, shared by all who use it. Errors: OSError, TimeoutError, RackspanError."""
        node = self.nodes.get(node_id)
        if node is not None:
            self._brokers.addresses[node_id] = node.host, node.port
        return await self._brokers.connection(node_id)

    async def any_connection(self) -> BrokerConnection:
        """A connection to a broker that responds: known ones first, then the bootstrap servers. Errors: ClusterUnreachable."""
        _, connection = await self.any_broker()
        return connection

    def some_nodes(self, count: int) -> list[int]:
        """Ids of different brokers, at most so many, others each time."""
        nodes = sorted(self.nodes.keys() - self._unconfirmed)
        return self._rng.sample(nodes, min(count, len(nodes)))

    async def any_broker(self) -> tuple[int, BrokerConnection]:
        """The same with the broker's id, which is negative for a bootstrap server. Errors: ClusterUnreachable."""
        failed: Exception | None = None
        open_ones = [node for node in self._brokers.usable() if node in self.nodes]
        others = [node for node in self.nodes if node not in open_ones and node not in self._unconfirmed]
        self._rng.shuffle(others)
        for node_id in (*open_ones, *others):
            try:
                return node_id, await self.connection(node_id)
            except (OSError, TimeoutError, RackspanError) as error:
                failed = error
        for index, (host, port) in enumerate(self._bootstrap):
            try:
                connection = await BrokerConnection.open(host, port, self._login)
            except (OSError, TimeoutError, RackspanError) as error:
                failed = error
                continue
            self._brokers.keep(-1 - index, connection)
            return -1 - index, connection
        raise ClusterUnreachable(
            f"no broker of the cluster responds ({_one_line(failed)}); see bootstrap.servers and command.config"
        )

    async def refresh(self) -> None:
        """Read brokers, addresses and racks. Errors: ClusterUnreachable, RackspanError."""
        connection = await self.any_connection()
        request = MetadataRequestData(topics=(), allow_auto_topic_creation=False)
        try:
            metadata: MetadataResponseData = await connection.call(ApiKey.METADATA, request)
        except (OSError, TimeoutError, MalformedRequest) as error:
            connection.close()
            raise ClusterUnreachable(f"the cluster's metadata could not be read: {_one_line(error)}") from error
        self.cluster_id = metadata.cluster_id
        self.nodes = {one.node_id: Node(one.node_id, one.host, one.port, one.rack) for one in metadata.brokers}
        self._unconfirmed.clear()
        self._registered_racks.update((node.node_id, node.rack) for node in self.nodes.values())
        self.refreshed_at = asyncio.get_running_loop().time()
        self._brokers.addresses = {node.node_id: (node.host, node.port) for node in self.nodes.values()}
        self._brokers.close_moved()
        if self._locator is not None:
            await self._locate(self._locator)
        self.on_nodes()

    async def _locate(self, locator: RackLocator) -> None:
        view = ClusterView(
            tuple(
                Broker(BrokerId(node.node_id), _rack(node.rack), host=node.host, port=node.port)
                for node in self.nodes.values()
            ),
            self.cluster_id,
        )
        # A locator may start a command or read a file.
        found = await asyncio.to_thread(rack_info, locator, view)
        self._located.update((broker.id, found.get(broker.id)) for broker in view.brokers)

    async def follow(self) -> None:
        """Refresh for ever, so that brokers may come, go and move."""
        while True:
            await asyncio.sleep(_LEAST_SECONDS)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._outdated.wait(), REFRESH_SECONDS - _LEAST_SECONDS)
            self._outdated.clear()
            try:
                await self.refresh()
            except (RackspanError, OSError) as error:
                log.warning("the brokers' addresses are %s: %s", "kept", error)

    def close(self) -> None:
        self._brokers.close()

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes.values())


def _rack(rack: str | None) -> RackId | None:
    return None if rack is None else RackId(rack)


def _one_line(error: Exception | None) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())
