"""Verification of acknowledged records by a producer itself: requests to brokers around acks/verification.py.

Unlike the gateway it has no sample from before the record was sent: the leader and its epoch are the newest that any replica of the
partition reports after the acknowledgement. If a newer leader acknowledged the record, and no replica that responds reports it, the
record is verified by the wrong leader.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import replace
from random import Random
from typing import Any, Final, TypeAlias, TypeVar

from rackspan.acks.isr_samples import LogEnds, LogRead, Partition, Sample, newest_leader_sample
from rackspan.acks.min_insync_racks import Thresholds, rack_bits
from rackspan.acks.verification import RecordVerification, Requirement, is_known, topic_refusal_before
from rackspan.client.brokers import KnownBrokers
from rackspan.client.connection import BrokerConnection
from rackspan.client.identity import IdentityMode
from rackspan.client.login import Login
from rackspan.client.observations import read_log_ends, read_metadata, registered_brokers, sample_of
from rackspan.daemon_threads import DaemonExecutor
from rackspan.ends import END_SECONDS, end_within
from rackspan.errors import (
    ClusterUnreachable,
    NotEnoughRacksAfterAppend,
    OtherBroker,
    RackspanError,
    RetriableProduceError,
    UnprovableBroker,
    UsageError,
)
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model import BrokerId

VERIFY_SECONDS: Final = 30.0
"""A record that is not verified in this time is refused. For as long a broker lets a record wait that it has appended: the default of
request.timeout.ms in Java clients, librdkafka and kafka-python."""

_SHARED_SECONDS: Final = 1.0
"""Records that are acknowledged later than this after the beginning of a verification do not wait for its end."""

KEPT_SECONDS: Final = 1.0
"""How long metadata counts for the check before a record is sent."""

_RESPONSE_SECONDS: Final = 0.5
"""Time limit of the brokers of one round. If one does not respond, the others may be enough."""

START_SECONDS: Final = 5.0
"""A producer that is made does not wait longer for a cluster that does not respond. Its first record tries again."""

_PROVED_AT_START: Final = 3
"""Brokers of one cluster have one configuration, and each task of a large job starts a verifier."""

_PAUSE_SECONDS: Final = 0.005
_LONGEST_PAUSE_SECONDS: Final = 0.2

T = TypeVar("T")

Send: TypeAlias = Callable[[Exception | None], bool]


def refuse_weak_acks(config: Mapping[str, object], *keys: str) -> None:
    """Errors: UsageError if acks are set to less than all."""
    for key in keys:
        if str(config.get(key, "all")) not in ("all", "-1"):
            raise UsageError(f"{key} is {config[key]!r}, and min.insync.racks applies to acks=all only; leave it out")


NOT_RUNNING: Final = "the producer is closed, or was made before a fork of its process; make one in this process"


class RecordVerifier:
    """Connections of its own to the brokers, each proved to be the broker's unless `identity` is its address.

    Everything is awaited on one event loop.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        login: Login,
        min_insync_racks: Mapping[str, int],
        *,
        others: int = 1,
        seconds: float = VERIFY_SECONDS,
        identity: IdentityMode = IdentityMode.PROVED,
    ) -> None:
        """`min_insync_racks` by topic, `others` for topics without an entry. Errors: UsageError for a value below 1, or an address."""
        # Where one rack is enough, no log is read.
        reads_logs = max(others, *min_insync_racks.values(), 1) > 1
        self._cluster = KnownBrokers(
            bootstrap_servers, login, Random(), identity if reads_logs else IdentityMode.ADDRESS
        )
        self._is_started = not reads_logs or identity is IdentityMode.ADDRESS
        self._unproved: dict[int, str] = {}
        """Why a broker's log does not count now, by broker."""
        self._requirements = {topic: Requirement(Thresholds(1, racks)) for topic, racks in min_insync_racks.items()}
        self._others = Requirement(Thresholds(1, others))
        self.seconds = seconds
        self._replicas: dict[Partition, frozenset[int]] = {}
        self._samples: dict[str, Sample] = {}
        """The last sample of each topic for the check before a record is sent."""
        self._waiting: list[tuple[Partition, int | None, asyncio.Future[RetriableProduceError | None]]] = []
        self._running: asyncio.Task[None] | None = None
        self._verifying: set[asyncio.Task[None]] = set()
        """Verifications of records that wait for a rack, perhaps. The loop itself keeps weak references only."""

    def close(self) -> None:
        self._cluster.close()

    async def start(self) -> None:
        """Have some brokers prove which one they are, once. Errors: UnprovableBroker; ClusterUnreachable and OSError, after which it is tried again."""
        if not self._is_started:
            await self._cluster.refresh()
            await self._cluster.require_proofs(_PROVED_AT_START)
            self._is_started = True

    async def start_now(self) -> None:
        """`start`, for a producer that is made: what does not respond within START_SECONDS is left to its first record.

        Errors: UnprovableBroker, OtherBroker.
        """
        try:
            async with asyncio.timeout(START_SECONDS):
                await self.start()
        except OtherBroker:
            raise
        except (OSError, ClusterUnreachable):
            pass

    async def _connection(self, broker: int) -> BrokerConnection:
        self._unproved.pop(broker, None)
        try:
            return await self._cluster.connection(broker)
        except (OtherBroker, UnprovableBroker) as error:
            self._unproved[broker] = str(error)
            raise

    def _requirement(self, topic: str) -> Requirement:
        return self._requirements.get(topic, self._others)

    def requires(self, topic: str) -> bool:
        """Whether more than one rack is required."""
        return self._requirement(topic).thresholds.min_insync_racks > 1

    async def before(self, topic: str, partition: int | None) -> RetriableProduceError | None:
        """The error of a record that must not be sent, by metadata at most KEPT_SECONDS old. Errors: ClusterUnreachable, UnprovableBroker."""
        await self.start()
        sample = self._samples.get(topic)
        if sample is None or not is_known(sample, asyncio.get_running_loop().time(), KEPT_SECONDS):
            broker, _ = await self._cluster.any_broker()
            try:
                sample = self._samples[topic] = await self._sample(broker, frozenset({topic}))
            except (OSError, RackspanError) as error:
                raise ClusterUnreachable(f"the ISR of topic {topic} cannot be read: {error}") from error
        refusal = topic_refusal_before(topic, partition, self._requirement(topic), sample)
        return None if refusal is None else refusal.error

    async def verified(self, topic: str, partition: int, offset: int) -> RetriableProduceError | None:
        """The error of a record that was acknowledged with this offset; below 0 if the client does not know it.

        Records that are acknowledged while others are verified share the next verification.
        """
        done: asyncio.Future[RetriableProduceError | None] = asyncio.get_running_loop().create_future()
        self._waiting.append(((topic, partition), offset + 1 if offset >= 0 else None, done))
        if self._running is None:
            self._running = asyncio.get_running_loop().create_task(self._verify_waiting())
        return await done

    async def _verify_waiting(self) -> None:
        while self._waiting:
            waiting, self._waiting = self._waiting, []
            verifying = asyncio.get_running_loop().create_task(self._verify_shared(waiting))
            self._verifying.add(verifying)
            verifying.add_done_callback(self._verifying.discard)
            # A partition whose rack is missing holds up no other.
            await asyncio.wait([verifying], timeout=_SHARED_SECONDS)
        self._running = None

    async def _verify_shared(
        self, waiting: Iterable[tuple[Partition, int | None, asyncio.Future[RetriableProduceError | None]]]
    ) -> None:
        ends: dict[Partition, int | None] = {}
        for partition, end, _ in waiting:
            known = ends.get(partition, 0)
            ends[partition] = None if end is None or known is None else max(end, known)
        errors: Mapping[Partition, RetriableProduceError]
        try:
            errors = await self.verify(ends)
        except Exception as failure:
            # Whatever it is: without a result the caller would never finish.
            errors = _not_verified(ends, str(failure))
        for partition, _, done in waiting:
            if not done.done():
                done.set_result(errors.get(partition))

    async def verify(self, end_offsets: Mapping[Partition, int | None]) -> dict[Partition, RetriableProduceError]:
        """The error of each partition whose records before this offset, all acknowledged, too few racks are shown to hold.

        None for an offset: the end of the leader's log now.
        """
        loop = asyncio.get_running_loop()
        now, pause_seconds = loop.time(), _PAUSE_SECONDS
        records = [
            RecordVerification(partition, self._requirement(partition[0]), end, now)
            for partition, end in end_offsets.items()
        ]
        failures: dict[Partition, str] = {}
        pending = records
        while pending and loop.time() < now + self.seconds:
            try:
                await self._observe_isr(pending, failures)
            except UnprovableBroker as failure:
                # No later start is another one.
                failures.update(dict.fromkeys((record.partition for record in pending), str(failure)))
                break
            await self._observe_logs(pending, failures)
            pending = [record for record in pending if not record.is_decided]
            if pending:
                await asyncio.sleep(pause_seconds)
                pause_seconds = min(2 * pause_seconds, _LONGEST_PAUSE_SECONDS)
        for record in pending:
            record.expire()
            for broker in self._replicas.get(record.partition, frozenset()) & self._unproved.keys():
                failures.setdefault(record.partition, self._unproved[broker])
        errors = {record.partition: _error(record, failures.get(record.partition)) for record in records}
        return {partition: error for partition, error in errors.items() if error is not None}

    async def _observe_isr(self, pending: Iterable[RecordVerification], failures: dict[Partition, str]) -> None:
        """Sample every replica of the partitions, and some brokers if those are unknown. Errors: UnprovableBroker, at the start only."""
        partitions = [record.partition for record in pending]
        try:
            await self.start()
            if not self._cluster.by_id:
                await self._cluster.refresh()
        except UnprovableBroker:
            raise
        except (OSError, RackspanError) as failure:
            failures.update(dict.fromkeys(partitions, f"no broker responds: {failure}"))
            return
        brokers = {broker for partition in partitions for broker in self._replicas.get(partition, ())}
        if any(partition not in self._replicas for partition in partitions):
            brokers |= set(self._cluster.some(3))
        topics = frozenset(topic for topic, _ in partitions)
        samples = await _responses({broker: self._sample(broker, topics) for broker in brokers})
        if not samples:
            # All of them may have moved.
            self._replicas.clear()
            self._cluster.by_id.clear()
        for record in pending:
            newest = newest_leader_sample(record.partition, samples.values())
            if newest is not None:
                record.observe(newest)

    async def _sample(self, broker: int, topics: frozenset[str]) -> Sample:
        connection = await self._connection(broker)
        requested_at = asyncio.get_running_loop().time()
        metadata = await read_metadata(connection, topics)
        for reported in metadata.brokers:
            self._cluster.record(reported.node_id, reported.host, reported.port)
        for topic in metadata.topics:
            for state in topic.partitions:
                self._replicas[topic.name or "", state.partition_index] = frozenset(state.replica_nodes)
        return sample_of(broker, requested_at, topics, metadata, rack_bits(registered_brokers(metadata)))

    async def _observe_logs(self, pending: Iterable[RecordVerification], failures: dict[Partition, str]) -> None:
        reads: dict[BrokerId, set[LogRead]] = {}
        for record in pending:
            for replica, (_, read) in record.reads.items():
                reads.setdefault(replica, set()).add(read)
        responses = await _responses({replica: self._read(replica, frozenset(reads[replica])) for replica in reads})
        for ends, refused in responses.values():
            for record in pending:
                record.observe_log_ends(ends)
            for read, code in refused.items():
                failures[read.partition] = f"broker {ends.replica} refuses to let its log be read: error {code}" + (
                    "; grant READ on the topic" if code == ErrorCode.TOPIC_AUTHORIZATION_FAILED else ""
                )

    async def _read(self, replica: BrokerId, reads: frozenset[LogRead]) -> tuple[LogEnds, Mapping[LogRead, int]]:
        connection = await self._connection(replica)
        requested_at = asyncio.get_running_loop().time()
        ends, refused = await read_log_ends(connection, reads, self.seconds)
        return LogEnds(replica, requested_at, reads, ends), refused


def _not_verified(partitions: Iterable[Partition], why: str) -> dict[Partition, RetriableProduceError]:
    """The error of records about which nothing was found out."""
    return {
        (topic, number): NotEnoughRacksAfterAppend(f"{topic}-{number}: the record could not be verified: {why}")
        for topic, number in partitions
    }


def _error(record: RecordVerification, failure: str | None) -> RetriableProduceError | None:
    refusal = record.refusal
    if refusal is None:
        return None
    return (refusal if failure is None else replace(refusal, message=f"{refusal.message}; {failure}")).error


async def _responses(requests: Mapping[BrokerId, Awaitable[T]] | Mapping[int, Awaitable[T]]) -> dict[int, T]:
    """The responses by broker, of those that respond in time."""
    if not requests:
        return {}
    tasks = {asyncio.ensure_future(request): broker for broker, request in requests.items()}
    done, late = await asyncio.wait(tasks, timeout=_RESPONSE_SECONDS)
    for task in late:
        task.cancel()
    await asyncio.gather(*late, return_exceptions=True)
    failures = (OSError, RackspanError)
    for task in done:
        if task.exception() is not None and not isinstance(task.exception(), failures):
            task.result()
    return {tasks[task]: task.result() for task in done if task.exception() is None}


class VerifierThread:
    """A RecordVerifier on an event loop in a thread of its own, for clients that have none. Reports have another thread."""

    def __init__(self, records: RecordVerifier) -> None:
        self.records = records
        self._loop = asyncio.new_event_loop()
        # Not on the loop: a callback of the user that is slow, or that waits for the loop, would hold up the others' reads.
        self._reports = DaemonExecutor(1, "rackspan-guard-reports")
        self._queued: dict[str, deque[tuple[int | None, Send]]] = {}
        """Records of each topic that wait for its ISR, in the order of the calls. Only the loop uses it."""
        self._sending: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._loop.run_forever, name="rackspan-guard", daemon=True)
        self._thread.start()

    def when_read(self, topic: str, partition: int | None, send: Send) -> None:
        """Call `send` with the error of a record that must not be sent, or with None, in the order of the calls for a topic.

        It runs on the event loop and must not wait. It is called again, after the ISR was read again if that is old, until it returns True.
        Errors: UsageError after `close`, and in a process that was forked.
        """
        if not self._thread.is_alive():
            raise UsageError(NOT_RUNNING)
        self._loop.call_soon_threadsafe(self._queue, topic, partition, send)

    def _queue(self, topic: str, partition: int | None, send: Send) -> None:
        queue = self._queued.setdefault(topic, deque())
        queue.append((partition, send))
        if len(queue) == 1:
            # The loop itself keeps weak references only.
            task = self._loop.create_task(self._send_queued(topic, queue))
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)

    async def _send_queued(self, topic: str, queue: deque[tuple[int | None, Send]]) -> None:
        while queue:
            partition, send = queue[0]
            try:
                error: Exception | None = await self.records.before(topic, partition)
            except Exception as failure:
                # Those that waited for the same response share its failure, whatever it is: without a result they would never finish.
                for _, waiting in queue:
                    waiting(failure)
                queue.clear()
                return
            sent = send(error)
            if sent:
                queue.popleft()
                if not queue:
                    # The next record begins another task: two on one queue would send it twice.
                    return
            await asyncio.sleep(0 if sent else _LONGEST_PAUSE_SECONDS)

    def report(self, call: Callable[[], None]) -> None:
        """Call it in the thread of the reports, behind those that wait there."""
        self._reports.submit(call)

    def verify(self, end_offsets: Mapping[Partition, int | None]) -> dict[Partition, RetriableProduceError]:
        """The result of RecordVerifier.verify, within END_SECONDS after its own limit. Errors: UsageError as of `when_read`."""
        seconds = self.records.seconds + END_SECONDS
        verifying = self._begun(self.records.verify(end_offsets))
        try:
            return verifying.result(seconds)
        except TimeoutError:
            verifying.cancel()
            return _not_verified(end_offsets, f"no result in {seconds:g} s")

    def start(self) -> None:
        """`RecordVerifier.start_now`. Errors: UnprovableBroker and OtherBroker, and the threads have ended."""
        starting = self._begun(self.records.start_now())
        try:
            starting.result()  # unlimited: `start_now` has the limit
        except BaseException:
            self.close()
            raise
        finally:
            starting.cancel()

    def _begun(self, work: Coroutine[Any, Any, T]) -> "Future[T]":
        if not self._thread.is_alive():
            # It would never end. A fork copies this thread's object, and not the thread.
            work.close()
            raise UsageError(NOT_RUNNING)
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def when_verified(
        self, topic: str, partition: int, offset: int, report: Callable[[RetriableProduceError | None], None]
    ) -> None:
        """Call `report` with the record's error, one report at a time. It may send records, and wait for other verifications."""
        if not self._thread.is_alive():
            report(*_not_verified([(topic, partition)], NOT_RUNNING).values())
            return

        async def verify() -> None:
            self._reports.submit(report, await self.records.verified(topic, partition, offset))

        asyncio.run_coroutine_threadsafe(verify(), self._loop)

    def close(self, unacknowledged: Callable[[], int] = lambda: 0) -> None:
        """End the threads, within END_SECONDS. What is not verified by then is not reported. A second call does nothing."""
        if self._thread.is_alive():
            end_within("the verifier of a guarded producer", self._close, END_SECONDS, unacknowledged=unacknowledged)

    def _close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()  # unlimited: `close` has the limit
        # Before the loop ends: a report may wait for it.
        self._reports.shutdown()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()  # unlimited: `close` has the limit
        self._loop.close()

    async def _end(self) -> None:
        self.records.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
