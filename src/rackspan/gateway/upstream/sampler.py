"""Samples the ISRs of guarded topics, one request in flight a broker: from the brokers that lead them, or from the metadata log."""

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Final, Protocol
from uuid import UUID

from rackspan.acks.min_insync_racks import rack_bits
from rackspan.gateway.core.acknowledgement.guard import AcknowledgementGuard
from rackspan.gateway.core.acknowledgement.holds import Hold
from rackspan.gateway.core.acknowledgement.rules import NEVER
from rackspan.gateway.core.acknowledgement.samples import PartitionIsr, Sample
from rackspan.gateway.core.metadata_log import MetadataImage
from rackspan.gateway.upstream.broker_loops import BrokerLoops
from rackspan.gateway.upstream.cluster import UpstreamCluster
from rackspan.gateway.upstream.quorum import MetadataQuorum
from rackspan.model import Broker, BrokerId, RackId
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.metadata import MetadataRequestData, MetadataRequestTopic, MetadataResponseData

log = logging.getLogger(__name__)

_EXPIRY_SECONDS: Final = 0.05
_LATE_AGAIN_SECONDS: Final = 10.0
"""Between two log lines of records that logs do not show."""


class Racks(Protocol):
    """The racks that count: those registered, or those of a rack locator."""

    def rack(self, node_id: int, registered: str | None) -> str | None: ...

    def is_located(self, node_id: int) -> bool: ...


Learn = Callable[[str, UUID | None], None]
"""Called with name and id of each topic in a sample."""


class IsrSource(Protocol):
    """Where samples are from."""

    async def prepare(self, broker: int) -> None:
        """Whatever may take long before a sample is requested. Errors: OSError, TimeoutError, RackspanError."""
        ...

    async def sample(self, broker: int, requested_at: float, topics: frozenset[str]) -> Sample:
        """The ISRs of the topics, as of `requested_at` or later. Errors: as of `prepare`."""
        ...


class BrokerMetadata:
    """Metadata of the broker itself: no more than it shows at that time, which may be behind what it acts on."""

    def __init__(self, cluster: UpstreamCluster, learn: Learn) -> None:
        self._cluster = cluster
        self._learn = learn

    async def prepare(self, broker: int) -> None:
        await self._cluster.connection(broker)

    async def sample(self, broker: int, requested_at: float, topics: frozenset[str]) -> Sample:
        connection = await self._cluster.connection(broker)
        request = MetadataRequestData(
            topics=[MetadataRequestTopic(name=topic) for topic in sorted(topics)], allow_auto_topic_creation=False
        )
        try:
            metadata: MetadataResponseData = await connection.send(ApiKey.METADATA, request)
        except BaseException:
            connection.close()
            raise
        for topic in metadata.topics:
            if topic.error_code == 0 and topic.name:
                self._learn(topic.name, topic.topic_id)
        return sample_of(broker, requested_at, topics, metadata, self._cluster)


class CommittedMetadata:
    """The metadata log of the controllers: everything that was committed when the sample was requested."""

    def __init__(self, quorum: MetadataQuorum, racks: Racks, learn: Learn) -> None:
        self._quorum = quorum
        self._racks = racks
        self._learn = learn

    async def prepare(self, broker: int) -> None:
        """Nothing: the read itself begins when the sample is requested."""

    async def sample(self, broker: int, requested_at: float, topics: frozenset[str]) -> Sample:
        image = await self._quorum.current()
        for topic in topics:
            self._learn(topic, image.topic_ids.get(topic))
        return sample_of_image(broker, requested_at, topics, image, self._racks)


class IsrSampler:
    """Runs while something is wanted of a broker, and costs nothing while not."""

    def __init__(
        self,
        guard: AcknowledgementGuard,
        source: IsrSource,
        completed: Callable[[Iterable[Hold]], None],
    ) -> None:
        self._guard = guard
        self._source = source
        self._completed = completed
        self._loop = asyncio.get_running_loop()
        self._loops = BrokerLoops(self._wanted_at, self._sample, self._failed)
        self._requested: dict[int, set[str]] = {}
        self._waiters: dict[int, list[asyncio.Future[None]]] = {}
        self._expiry: asyncio.Task[None] | None = None
        self._logged_late_at = NEVER
        self.samples = 0
        self.failures = 0
        self.failing = False
        """Whether the last sample failed."""

    def sampled(self, broker: int, topics: Iterable[str]) -> "asyncio.Future[None]":
        """Done when these topics have been sampled, or that has failed for as long as a request waits."""
        done: asyncio.Future[None] = self._loop.create_future()
        self._requested.setdefault(broker, set()).update(topics)
        self._waiters.setdefault(broker, []).append(done)
        self._loop.call_later(self._guard.settings.sample_timeout, _finish, done)
        self.wake(broker)
        return done

    def wake(self, broker: int) -> None:
        """Something is held, or has to be sampled before it is forwarded."""
        self._loops.wake(broker)
        if self._expiry is None and self._guard.held:
            self._expiry = self._loop.create_task(self._expire())

    def _wanted_at(self, broker: int) -> float | None:
        return NEVER if self._requested.get(broker) else self._guard.wanted_at(broker)

    def _failed(self, broker: int, _: Exception) -> None:
        self.failures += 1
        self.failing = True
        self._requested.pop(broker, None)
        for waiter in self._waiters.pop(broker, []):
            _finish(waiter)

    async def _sample(self, broker: int) -> None:
        await self._source.prepare(broker)
        # Read after the connection is open: what is acknowledged later is not verified by this sample.
        requested_at = self._loop.time()
        topics = self._guard.wanted(broker, requested_at) | self._requested.pop(broker, set())
        waiters = self._waiters.pop(broker, [])
        try:
            async with asyncio.timeout(self._guard.settings.sample_timeout):
                sample = await self._source.sample(broker, requested_at, topics)
        except BaseException:
            for waiter in waiters:
                _finish(waiter)
            raise
        self.samples += 1
        self.failing = False
        complete = self._guard.observe(sample)
        for waiter in waiters:
            _finish(waiter)
        self._completed(complete)

    async def _expire(self) -> None:
        while self._guard.held:
            await asyncio.sleep(_EXPIRY_SECONDS)
            now = self._loop.time()
            self._completed(self._guard.expire(now))
            late = self._guard.disagreement(now)
            if late is not None and now - self._logged_late_at > _LATE_AGAIN_SECONDS:
                self._logged_late_at = now
                log.warning("%s", late)
        self._expiry = None

    def close(self) -> None:
        self._loops.close()
        if self._expiry is not None:
            self._expiry.cancel()


def _finish(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)


def sample_of(
    source: int,
    requested_at: float,
    topics: frozenset[str],
    metadata: MetadataResponseData,
    racks: Racks,
) -> Sample:
    """A broker's response as a sample. A broker whose rack is not known yet adds none."""
    brokers = [
        Broker(BrokerId(one.node_id), None if (rack := racks.rack(one.node_id, one.rack)) is None else RackId(rack))
        for one in metadata.brokers
        if racks.is_located(one.node_id)
    ]
    partitions = {
        (topic.name or "", partition.partition_index): PartitionIsr(
            partition.leader_id, partition.leader_epoch, tuple(BrokerId(one) for one in partition.isr_nodes)
        )
        for topic in metadata.topics
        if topic.error_code == 0
        for partition in topic.partitions
    }
    topic_ids = {topic.name: topic.topic_id for topic in metadata.topics if topic.name and topic.topic_id is not None}
    return Sample(source, requested_at, rack_bits(brokers), topics, partitions, topic_ids)


def sample_of_image(
    source: int, requested_at: float, topics: frozenset[str], image: MetadataImage, racks: Racks
) -> Sample:
    """The state of the metadata log as a sample. Brokers that are down keep their racks."""
    brokers = [
        Broker(BrokerId(one), None if (rack := racks.rack(one, registered)) is None else RackId(rack))
        for one, registered in image.racks.items()
        if racks.is_located(one)
    ]
    partitions = {
        (topic, partition): PartitionIsr(state.leader, state.leader_epoch, tuple(map(BrokerId, state.isr)))
        for topic in topics
        for partition, state in image.topic(topic).items()
    }
    topic_ids = {topic: image.topic_ids[topic] for topic in topics if topic in image.topic_ids}
    return Sample(source, requested_at, rack_bits(brokers), topics, partitions, topic_ids)
