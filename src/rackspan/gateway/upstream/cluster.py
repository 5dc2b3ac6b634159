"""The cluster behind the gateway: its brokers, those that were up before, and the racks that count."""

import asyncio
import logging
from collections.abc import Callable, Container, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from random import Random
from typing import Final
from uuid import UUID

from rackspan.acks.min_insync_racks import RackBits, rack_bits
from rackspan.client.brokers import KnownBroker, KnownBrokers
from rackspan.client.errors import raise_for
from rackspan.client.identity import IdentityMode
from rackspan.client.login import Login
from rackspan.errors import MalformedRequest, RackspanError
from rackspan.model import Broker, BrokerId, RackId
from rackspan.sources.rack_locator import ClusterView, RackLocator, rack_info
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.brokers import DescribeClusterRequestData, DescribeClusterResponseData
from rackspan.wire.messages.metadata import MetadataRequestData, MetadataRequestTopic, MetadataResponseData

log = logging.getLogger(__name__)

REFRESH_SECONDS: Final = 5.0
_LEAST_SECONDS: Final = 0.5
"""Between two refreshes, if responses to clients name an address that is not known yet."""

_MOST_UNCONFIRMED: Final = 100

FENCED_SINCE: Final = 2
"""The version of DescribeCluster from which it reports fenced brokers (KIP-1073, Kafka 4.0)."""


class UpstreamCluster(KnownBrokers):
    """Brokers that are or were up, with their racks. `on_refresh` is called when a refresh has finished."""

    def __init__(
        self,
        bootstrap_servers: str,
        login: Login,
        rng: Random,
        locator: RackLocator | None = None,
        identity: IdentityMode = IdentityMode.ADDRESS,
    ) -> None:
        super().__init__(bootstrap_servers, login, rng, identity)
        self._locator = locator
        self._located: dict[BrokerId, RackId | None] = {}
        """What the locator found, of each broker that it was called about."""
        self._registered_racks: dict[int, str | None] = {}
        """The rack of each broker that was ever up: metadata leaves brokers out that are down, and their racks with them."""
        self._unconfirmed: set[int] = set()
        """Brokers of `by_id` that only responses to clients have named since the last refresh."""
        self._outdated = asyncio.Event()
        """Set if the next refresh should not wait."""
        self._counted_racks: dict[int, str | None] = {}
        self._rack_bits = rack_bits(())
        """Of `_counted_racks`."""
        self.on_refresh: Callable[[], None] = lambda: None
        self.refreshed_at: float | None = None

    def record_from_response(self, broker_id: int, host: str, port: int) -> None:
        """A response to a client names a broker. A new one is taken over; another address of a known one causes a refresh.

        Errors: MalformedRequest if responses name more new brokers than one refresh is likely to confirm.
        """
        known = self.by_id.get(broker_id)
        if known is not None and (known.host, known.port) == (host, port):
            return
        self._outdated.set()
        if known is None:
            if broker_id < 0 or len(self._unconfirmed) >= _MOST_UNCONFIRMED:
                raise MalformedRequest(f"a response names broker {broker_id}, which the cluster's metadata does not")
            self._unconfirmed.add(broker_id)
            self.by_id[broker_id] = KnownBroker(broker_id, host, port, self._registered_racks.get(broker_id))

    def _confirmed(self) -> set[int]:
        return self.by_id.keys() - self._unconfirmed

    def was_registered(self, broker_id: int) -> bool:
        """Whether the broker was up at any refresh of this process."""
        return broker_id in self._registered_racks

    async def topic_names(self, broker_id: int, ids: Iterable[UUID]) -> Mapping[str, UUID | None]:
        """The ids by topic name, of those that one broker reports; none if it does not respond."""
        topics = [MetadataRequestTopic(topic_id=topic_id, name=None) for topic_id in ids]
        request = MetadataRequestData(topics=topics, allow_auto_topic_creation=False)
        try:
            connection = await self.connection(broker_id)
            metadata: MetadataResponseData = await connection.call(ApiKey.METADATA, request)
        except (OSError, RackspanError) as error:
            log.warning("topic ids could not be looked up at broker %d: %s", broker_id, error)
            return {}
        return {topic.name: topic.topic_id for topic in metadata.topics if topic.error_code == 0 and topic.name}

    # Racks.

    def rack(self, broker_id: int, registered: str | None) -> str | None:
        """The rack that counts: the registered one, unless a rack locator is configured."""
        if self._locator is None:
            return registered
        return self._located.get(BrokerId(broker_id))

    def is_located(self, broker_id: int) -> bool:
        """Whether the rack that counts is known, None being a rack too. A rack locator is called for a new broker later."""
        return self._locator is None or BrokerId(broker_id) in self._located

    def rack_bits(self, registered: Iterable[tuple[int, str | None]]) -> RackBits:
        """The racks that count of brokers, given with their registered racks. One whose rack is not known yet adds none.

        Metadata is sampled hundreds of times a second, and racks change once in months: the last result is kept.
        """
        racks = {id_: self.rack(id_, rack) for id_, rack in registered if self.is_located(id_)}
        if racks != self._counted_racks:
            self._rack_bits = rack_bits(Broker(BrokerId(broker_id), _rack(rack)) for broker_id, rack in racks.items())
            self._counted_racks = racks
        return self._rack_bits

    def brokers(self) -> tuple[Broker, ...]:
        """The brokers that are up and whose racks are known, with the racks that count."""
        return tuple(self._broker(broker_id) for broker_id in sorted(self.by_id) if self._is_known(broker_id))

    def all_brokers(self) -> tuple[Broker, ...]:
        """Those that are down as well, if they were up while this process ran."""
        return tuple(
            self._broker(broker_id) for broker_id in sorted(self._registered_racks) if self._is_known(broker_id)
        )

    async def registered(self, holders: Container[int]) -> tuple[Broker, ...]:
        """Every registered broker with the rack that counts, fenced ones as fenced. Errors: OSError, RackspanError.

        A Kafka before 4.0 does not report those that are fenced: there they are the brokers that were up while this process
        ran, are not now, and are among `holders`, which hold replicas.
        """
        connection = await self.any_connection()
        offered = connection.offered(ApiKey.DESCRIBE_CLUSTER)
        if offered is None or offered[1] < FENCED_SINCE:
            every = (broker for broker in self.all_brokers() if broker.id in self.by_id or broker.id in holders)
            return tuple(replace(broker, fenced=broker.id not in self.by_id) for broker in every)
        response: DescribeClusterResponseData = await connection.call(
            ApiKey.DESCRIBE_CLUSTER, DescribeClusterRequestData(include_fenced_brokers=True)
        )
        raise_for(response)
        if self._locator is not None:
            described = ((broker.broker_id, broker.rack, broker.host, broker.port) for broker in response.brokers)
            await self._locate(self._locator, described)
        return tuple(
            Broker(BrokerId(broker.broker_id), _rack(self.rack(broker.broker_id, broker.rack)), fenced=broker.is_fenced)
            for broker in sorted(response.brokers, key=lambda broker: broker.broker_id)
        )

    def _is_known(self, broker_id: int) -> bool:
        return broker_id in self._registered_racks and self.is_located(broker_id)

    def _broker(self, broker_id: int) -> Broker:
        known = self.by_id.get(broker_id)
        rack = _rack(self.rack(broker_id, self._registered_racks[broker_id]))
        return Broker(BrokerId(broker_id), rack, host=known.host if known else None, port=known.port if known else None)

    # Refreshes.

    async def refresh(self) -> None:
        await super().refresh()
        self._unconfirmed.clear()
        self._registered_racks.update((known.broker_id, known.rack) for known in self.by_id.values())
        self.refreshed_at = asyncio.get_running_loop().time()
        if self._locator is not None:
            known = ((known.broker_id, known.rack, known.host, known.port) for known in self.by_id.values())
            try:
                await self._locate(self._locator, known)
            except Exception:
                # A new broker needs its listener all the same.
                self.on_refresh()
                raise
        self.on_refresh()

    async def _locate(self, locator: RackLocator, known: Iterable[tuple[int, str | None, str, int]]) -> None:
        """Find the racks of brokers, given with id, registered rack, host and port."""
        brokers = tuple(
            # A fenced broker may have registered no listener of this name: Kafka then sends host "" and port -1.
            Broker(BrokerId(broker_id), _rack(rack), host=host or None, port=port if port >= 0 else None)
            for broker_id, rack, host, port in known
        )
        # A locator may start a command or read a file.
        found = await asyncio.to_thread(rack_info, locator, ClusterView(brokers, self.cluster_id))
        self._located.update((broker.id, found.get(broker.id)) for broker in brokers)

    async def follow(self) -> None:
        """Refresh until cancelled, so that brokers may be added, removed and moved."""
        while True:
            await asyncio.sleep(_LEAST_SECONDS)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._outdated.wait(), REFRESH_SECONDS - _LEAST_SECONDS)
            self._outdated.clear()
            try:
                await self.refresh()
            except (OSError, RackspanError) as error:
                log.warning("the brokers' addresses are kept: %s", error)


def _rack(rack: str | None) -> RackId | None:
    return None if rack is None else RackId(rack)
