"""The brokers of a running cluster by id, as its own metadata reports them, and a connection to each; for asyncio."""

from dataclasses import dataclass
from random import Random

from rackspan.client.brokers import BrokerConnections, addresses
from rackspan.client.connection import BrokerConnection
from rackspan.client.login import Login
from rackspan.errors import ClusterUnreachable, MalformedRequest, RackspanError
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.metadata import MetadataRequestData, MetadataResponseData


@dataclass(frozen=True, slots=True)
class KnownBroker:
    """One broker: its own address, and its rack as registered."""

    broker_id: int
    host: str
    port: int
    rack: str | None = None


class KnownBrokers:
    """The brokers that are up, as of the last refresh, and those that responses have named since."""

    def __init__(self, bootstrap_servers: str, login: Login, rng: Random) -> None:
        """Errors: UsageError for addresses that cannot be used."""
        self._bootstrap = addresses("bootstrap.servers", bootstrap_servers)
        self._login = login
        self._brokers = BrokerConnections(login)
        self._rng = rng
        self.by_id: dict[int, KnownBroker] = {}
        self.cluster_id: str | None = None

    def record(self, broker_id: int, host: str, port: int) -> None:
        """Take over a broker's address from a response."""
        known = self.by_id.get(broker_id)
        if known is None or (known.host, known.port) != (host, port):
            self.by_id[broker_id] = KnownBroker(broker_id, host, port, None if known is None else known.rack)

    async def connection(self, broker_id: int) -> BrokerConnection:
        """A connection to one broker, shared by all who use it. Errors: OSError, TimeoutError, RackspanError."""
        known = self.by_id.get(broker_id)
        if known is not None:
            self._brokers.addresses[broker_id] = known.host, known.port
        return await self._brokers.connection(broker_id)

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
        """The same with the broker's id, which is negative for a bootstrap server. Errors: ClusterUnreachable."""
        failed: Exception | None = None
        usable = [broker_id for broker_id in self._brokers.usable() if broker_id in self.by_id]
        others = sorted(self._confirmed() - set(usable))
        self._rng.shuffle(others)
        for broker_id in (*usable, *others):
            try:
                return broker_id, await self.connection(broker_id)
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
        self.by_id = {
            broker.node_id: KnownBroker(broker.node_id, broker.host, broker.port, broker.rack)
            for broker in metadata.brokers
        }
        self._brokers.addresses = {broker.broker_id: (broker.host, broker.port) for broker in self.by_id.values()}
        self._brokers.close_moved()

    def close(self) -> None:
        self._brokers.close()


def _one_line(error: Exception | None) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())
