"""Readers of what the guard requires: samples of the ISR and log ends of replicas, at most two requests in flight at each broker."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol

from rackspan.acks.isr_samples import LogEnds, LogRead, Sample, SampledPartition
from rackspan.client.observations import read_log_ends, read_metadata, sample_of
from rackspan.errors import RackspanError
from rackspan.gateway.core.acknowledgement.guard import ALWAYS, NEVER, AcknowledgementGuard, Hold
from rackspan.gateway.core.metadata_log import CommittedImage
from rackspan.gateway.core.policies import Policies
from rackspan.gateway.upstream.cluster import UpstreamCluster
from rackspan.gateway.upstream.quorum import MetadataQuorum
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model import BrokerId

log = logging.getLogger(__name__)

_EXPIRY_SECONDS: Final = 0.05
_EXPIRY_SHARE: Final = 0.1
"""Of the time: looking at thousands of timeouts takes longer."""

_LATE_AGAIN_SECONDS: Final = 10.0
"""Between two log lines of records that logs do not show."""

_LOGGED_AGAIN_SECONDS: Final = 60.0
"""Between two log lines of a topic whose log a broker refuses to show."""

_INTERVAL_SECONDS: Final = 0.0005
"""Between two looks for what is due at one broker: what becomes due meanwhile shares the next request."""

_LOOK_SHARE: Final = 0.1
"""Of the time: thousands may be held."""

_AT_ONCE: Final = 2
"""Requests to one broker: what is acknowledged while one is on its way need not wait for its response."""

_BACKOFF_SECONDS: Final = 0.05


@dataclass(eq=False, slots=True)
class BrokerRead:
    """One read of a broker. It covers what was due when its request was sent; until then that is whatever becomes due."""

    sent_at: float = ALWAYS


class BrokerReads:
    """`read` is started for a broker when `due_at` says so, a second one before the first has ended if it covers more.

    `due_at` gets a broker and the time that reads in flight cover, and gives the time of the earliest that they do not; None for nothing.
    """

    def __init__(
        self,
        due_at: Callable[[int, float], float | None],
        read: Callable[[int, BrokerRead], Awaitable[None]],
        failed: Callable[[int, Exception], None],
    ) -> None:
        self._due_at = due_at
        self._read = read
        self._failed = failed
        self._loop = asyncio.get_running_loop()
        self._in_flight: dict[int, dict[asyncio.Task[None], BrokerRead]] = {}
        self._next_at: dict[int, float] = {}
        """Before which nothing is looked for."""
        self._timers: dict[int, asyncio.TimerHandle] = {}
        self._failing: dict[int, set[type]] = {}
        """The kinds of errors that were logged since a broker last responded."""

    def wake(self, broker: int) -> None:
        """Start a read if something is due at the broker, or when it is."""
        in_flight = self._in_flight.setdefault(broker, {})
        if len(in_flight) == _AT_ONCE or any(read.sent_at == ALWAYS for read in in_flight.values()):
            return
        now, next_at = self._loop.time(), self._next_at.get(broker, NEVER)
        if now < next_at:
            self._set_timer(broker, next_at)
            return
        due_at = self._due_at(broker, max((read.sent_at for read in in_flight.values()), default=NEVER))
        self._next_at[broker] = now + max(_INTERVAL_SECONDS, (self._loop.time() - now) / _LOOK_SHARE)
        if due_at is None:
            return
        if due_at > now:
            self._set_timer(broker, due_at)
            return
        read = BrokerRead()
        task = self._loop.create_task(self._run(broker, read))
        in_flight[task] = read
        task.add_done_callback(partial(self._ended, broker))

    def sent(self, broker: int, read: BrokerRead) -> float:
        """The request of a read is sent now. Returns the time; what becomes due later is for the next read."""
        read.sent_at = self._loop.time()
        self._loop.call_soon(self.wake, broker)
        return read.sent_at

    def _set_timer(self, broker: int, at: float) -> None:
        timer = self._timers.get(broker)
        if timer is None or timer.when() > at:
            if timer is not None:
                timer.cancel()
            self._timers[broker] = self._loop.call_at(at, self._timed, broker)

    def _timed(self, broker: int) -> None:
        del self._timers[broker]
        self.wake(broker)

    async def _run(self, broker: int, read: BrokerRead) -> None:
        try:
            await self._read(broker, read)
        except (OSError, RackspanError) as error:
            logged = self._failing.setdefault(broker, set())
            if type(error) not in logged:
                logged.add(type(error))
                log.warning("broker %d could not be sampled: %s: %s", broker, type(error).__name__, error)
            self._next_at[broker] = self._loop.time() + _BACKOFF_SECONDS
            self._failed(broker, error)
        else:
            self._failing.pop(broker, None)

    def _ended(self, broker: int, task: "asyncio.Task[None]") -> None:
        del self._in_flight[broker][task]
        if task.cancelled():
            return
        if (error := task.exception()) is not None:
            log.error("a read of broker %d ended", broker, exc_info=error)
            self._next_at[broker] = self._loop.time() + _BACKOFF_SECONDS
        self.wake(broker)

    def close(self) -> None:
        self._due_at = lambda _broker, _covered: None
        for timer in self._timers.values():
            timer.cancel()
        for in_flight in self._in_flight.values():
            for task in in_flight:
                task.cancel()


class IsrSource(Protocol):
    """The source of samples: metadata of brokers, or the controllers' log."""

    async def prepare(self, broker: int) -> None:
        """Do what may take long before a sample is requested. Errors: OSError, RackspanError."""
        ...

    async def sample(self, broker: int, requested_at: float, topics: frozenset[str]) -> Sample:
        """The ISRs of the topics, as of `requested_at` or later. Errors: those of `prepare`."""
        ...

    def close(self) -> None: ...


class BrokerMetadata:
    """Metadata of the broker itself, which may be behind the ISR by which it acknowledges."""

    def __init__(self, cluster: UpstreamCluster, policies: Policies) -> None:
        self._cluster = cluster
        self._policies = policies

    async def prepare(self, broker: int) -> None:
        await self._cluster.connection(broker)

    async def sample(self, broker: int, requested_at: float, topics: frozenset[str]) -> Sample:
        connection = await self._cluster.connection(broker)
        try:
            metadata = await read_metadata(connection, topics)
        except BaseException:
            connection.close()
            raise
        for topic in metadata.topics:
            if topic.error_code == ErrorCode.NONE and topic.name:
                self._policies.record_topic(topic.name, topic.topic_id, requested_at)
        racks = self._cluster.rack_bits((known.node_id, known.rack) for known in metadata.brokers)
        return sample_of(broker, requested_at, topics, metadata, racks)

    def close(self) -> None:
        """The cluster's connections are closed by their owner."""


class CommittedMetadata:
    """The metadata log of the controllers: everything that was committed when the sample was requested."""

    def __init__(self, quorum: MetadataQuorum, cluster: UpstreamCluster, policies: Policies) -> None:
        self._quorum = quorum
        self._cluster = cluster
        self._policies = policies

    async def prepare(self, broker: int) -> None:
        """Nothing: the read itself begins when the sample is requested."""

    async def sample(self, broker: int, requested_at: float, topics: frozenset[str]) -> Sample:
        image = await self._quorum.current()
        for topic in topics:
            self._policies.record_topic(topic, image.topic_ids.get(topic), requested_at)
        return sample_of_image(broker, requested_at, topics, image, self._cluster)

    def close(self) -> None:
        self._quorum.close()


def sample_of_image(
    source: int, requested_at: float, topics: frozenset[str], image: CommittedImage, cluster: UpstreamCluster
) -> Sample:
    """The state of the metadata log as a sample. Brokers that are down keep their racks."""
    partitions = {
        (topic, partition): SampledPartition(
            state.leader, state.leader_epoch, tuple(map(BrokerId, state.isr)), state.replication_factor
        )
        for topic in topics
        for partition, state in image.topic(topic).items()
    }
    topic_ids = {topic: image.topic_ids[topic] for topic in topics if topic in image.topic_ids}
    return Sample(source, requested_at, cluster.rack_bits(image.racks.items()), topics, partitions, topic_ids)


class IsrSampler:
    """Samples a broker while the guard holds or admits something there, and sends nothing otherwise."""

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
        self._reads = BrokerReads(self._due_at, self._sample, self._failed)
        self._requested: dict[int, set[str]] = {}
        self._sampling: dict[int, list[frozenset[str]]] = {}
        """By broker, the topics of each sample that was requested and is not there yet."""
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
        self._loop.call_later(self._guard.settings.sample_timeout_seconds, finish, done)
        self.wake(broker)
        return done

    def renew(self, broker: int, topics: Iterable[str]) -> None:
        """Sample these topics, but for those of which a sample is on its way. Nothing waits for it."""
        missing = frozenset(topics).difference(*self._sampling.get(broker, ()))
        if missing:
            self._requested.setdefault(broker, set()).update(missing)
            self._reads.wake(broker)

    def wake(self, broker: int) -> None:
        """Something is held, or has to be sampled before it is forwarded."""
        self._reads.wake(broker)
        if self._expiry is None and self._guard.held:
            self._expiry = self._loop.create_task(self._expire())

    def _due_at(self, broker: int, covered: float) -> float | None:
        return NEVER if self._requested.get(broker) else self._guard.next_sample_at(broker, covered)

    def _failed(self, broker: int, _: Exception) -> None:
        self.failures += 1
        self.failing = True
        self._requested.pop(broker, None)
        for waiter in self._waiters.pop(broker, []):
            finish(waiter)

    async def _sample(self, broker: int, read: BrokerRead) -> None:
        await self._source.prepare(broker)
        # Read after the connection is open: what is acknowledged later is not verified by this sample.
        requested_at = self._reads.sent(broker, read)
        topics = self._guard.topics_to_sample(broker, requested_at) | self._requested.pop(broker, set())
        if not topics:
            return
        waiters = self._waiters.pop(broker, [])
        sampling = self._sampling.setdefault(broker, [])
        sampling.append(topics)
        try:
            async with asyncio.timeout(self._guard.settings.sample_timeout_seconds):
                sample = await self._source.sample(broker, requested_at, topics)
        except BaseException:
            for waiter in waiters:
                finish(waiter)
            raise
        finally:
            sampling.remove(topics)
        self.samples += 1
        self.failing = False
        complete = self._guard.observe(sample)
        for waiter in waiters:
            finish(waiter)
        self._completed(complete)

    async def _expire(self) -> None:
        took_seconds = 0.0
        try:
            while self._guard.held:
                await asyncio.sleep(max(_EXPIRY_SECONDS, took_seconds / _EXPIRY_SHARE))
                now = self._loop.time()
                self._completed(self._guard.expire(now))
                late = self._guard.disagreement(now)
                if late is not None and now - self._logged_late_at > _LATE_AGAIN_SECONDS:
                    self._logged_late_at = now
                    log.warning("%s", late)
                took_seconds = self._loop.time() - now
        finally:
            # Else an error would be the end of every timeout.
            self._expiry = None

    def close(self) -> None:
        self._reads.close()
        if self._expiry is not None:
            self._expiry.cancel()


def finish(future: "asyncio.Future[None]") -> None:
    """End the wait for a future that may have ended already."""
    if not future.done():
        future.set_result(None)


class LogEndReader:
    """Reads the log ends that the guard requires of replicas, and sends nothing otherwise."""

    def __init__(
        self, guard: AcknowledgementGuard, cluster: UpstreamCluster, completed: Callable[[Iterable[Hold]], None]
    ) -> None:
        self._guard = guard
        self._cluster = cluster
        self._completed = completed
        self._loop = asyncio.get_running_loop()
        self._reads = BrokerReads(self._due_at, self._read, self._failed)
        self._logged: dict[tuple[int, str], float] = {}
        self.reads = 0
        self.failures = 0

    def wake(self) -> None:
        """The guard may require other reads than before."""
        for replica in self._guard.replicas_to_read():
            self._reads.wake(replica)

    def _due_at(self, broker: int, covered: float) -> float | None:
        return self._guard.next_read_at(BrokerId(broker), covered)

    def _failed(self, _broker: int, _error: Exception) -> None:
        self.failures += 1

    async def _read(self, broker: int, read: BrokerRead) -> None:
        replica = BrokerId(broker)
        connection = await self._cluster.connection(broker)
        # Read after the connection is open: what is acknowledged later is not verified by this response.
        requested_at = self._reads.sent(broker, read)
        reads = self._guard.reads_due(replica, requested_at)
        if not reads:
            return
        ends, errors = await read_log_ends(connection, reads, self._guard.settings.sample_timeout_seconds)
        self.reads += 1
        self._log_refused(broker, errors)
        self._completed(self._guard.observe_log_ends(LogEnds(replica, requested_at, reads, ends)))

    def _log_refused(self, broker: int, errors: Mapping[LogRead, int]) -> None:
        now = self._loop.time()
        for topic, code in {(read.partition[0], code) for read, code in errors.items()}:
            if now - self._logged.get((broker, topic), NEVER) < _LOGGED_AGAIN_SECONDS:
                continue
            self._logged[broker, topic] = now
            if code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                log.error(
                    "broker %d refuses to let the gateway read topic %s, so that nothing is acknowledged on it: "
                    "grant READ on it to the principal of command.config",
                    broker,
                    topic,
                )
            else:
                log.warning("broker %d: the log of topic %s could not be read: error %d", broker, topic, code)

    def close(self) -> None:
        self._reads.close()
