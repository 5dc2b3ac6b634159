"""Verification of acknowledged records by a producer itself: what replicas report of the ISR, and what their own logs show.

The same proof as the gateway's (acks/log_ends.py), without its sample from before the record was sent: the leader and its epoch are
the newest that any replica of the partition reports after the acknowledgement. If a newer leader acknowledged the record, and
no replica that responds reports it, the record is verified by the wrong leader.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, Final, TypeVar

from rackspan.acks.log_ends import AcknowledgedRecord
from rackspan.acks.min_insync_racks import ProduceVerdict, Thresholds, before_acknowledgement
from rackspan.acks.produce_errors import ERROR_CODES, error_message, produce_error
from rackspan.client.login import Login
from rackspan.errors import ClusterUnreachable, NotEnoughRacksAfterAppend, RackspanError, RetriableProduceError
from rackspan.gateway.core.acknowledgement.samples import LogRead, Partition, PartitionIsr, Sample
from rackspan.gateway.guard.judge import KEPT_SECONDS, RackJudge, TopicIsr, unverified
from rackspan.gateway.upstream.cluster import UpstreamCluster
from rackspan.gateway.upstream.log_ends import read_log_ends
from rackspan.gateway.upstream.sampler import sample_of
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model import BrokerId, shown
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.metadata import MetadataRequestData, MetadataRequestTopic, MetadataResponseData

VERIFY_SECONDS: Final = 10.0
"""What is not verified in this time is an error."""

_RESPONSE_SECONDS: Final = 0.5
"""For the brokers of one round. The others are enough where one does not respond."""

_PAUSE_SECONDS: Final = 0.005
_LONGEST_PAUSE_SECONDS: Final = 0.2

T = TypeVar("T")


@dataclass(slots=True)
class _Unverified:
    """One partition: the records before `end_offset`, and why they are not verified yet."""

    partition: Partition
    end_offset: int | None
    thresholds: Thresholds
    leader_epoch: int = -1
    record: AcknowledgedRecord | None = None
    sample: Sample | None = None
    reason: str = "no broker reported its ISR"


class RecordVerifier:
    """Connections of its own to the brokers. Everything is awaited on one event loop."""

    def __init__(
        self,
        bootstrap_servers: str,
        login: Login,
        judge: RackJudge,
        seconds: float = VERIFY_SECONDS,
    ) -> None:
        """Errors: UsageError for addresses that cannot be."""
        self._cluster = UpstreamCluster(bootstrap_servers, login, Random())
        self._judge = judge
        self._seconds = seconds
        self._replicas: dict[Partition, frozenset[int]] = {}
        self._kept: dict[str, tuple[float, TopicIsr]] = {}
        self._waiting: list[tuple[Partition, int | None, asyncio.Future[RetriableProduceError | None]]] = []
        self._running: asyncio.Task[None] | None = None

    def close(self) -> None:
        self._cluster.close()

    def requires(self, topic: str) -> bool:
        """Whether more than one rack is required."""
        return self._judge.requires(topic)

    async def before(self, topic: str, partition: int | None) -> RetriableProduceError | None:
        """The error of a record that must not be sent, by metadata at most KEPT_SECONDS old. Errors: ClusterUnreachable."""
        now = asyncio.get_running_loop().time()
        known = self._kept.get(topic)
        if known is None or now - known[0] > KEPT_SECONDS:
            known = self._kept[topic] = now, await self._isr(topic)
        return self._judge.before(topic, partition, known[1])

    async def _isr(self, topic: str) -> TopicIsr:
        broker, _ = await self._cluster.any_broker()
        try:
            sample = await self._sample(broker, frozenset({topic}))
        except (OSError, TimeoutError, RackspanError) as error:
            raise ClusterUnreachable(f"the ISR of topic {topic} cannot be read: {error}") from error
        return TopicIsr(sample.racks, {number: state.isr for (_, number), state in sample.partitions.items()})

    async def verified(self, topic: str, partition: int, offset: int) -> RetriableProduceError | None:
        """The error of a record that was acknowledged with this offset; below 0 where the client does not know it.

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
            ends: dict[Partition, int | None] = {}
            for partition, end, _ in waiting:
                known = ends.get(partition, 0)
                ends[partition] = None if end is None or known is None else max(end, known)
            try:
                errors = await self.verify(ends)
            except Exception as failure:
                # Whatever it is: without a result the caller would never finish.
                errors = {partition: unverified(*partition, failure) for partition in ends}
            for partition, _, done in waiting:
                if not done.done():
                    done.set_result(errors.get(partition))
        self._running = None

    async def verify(self, end_offsets: Mapping[Partition, int | None]) -> dict[Partition, RetriableProduceError]:
        """The error of each partition whose records before this offset, all acknowledged, too few racks are shown to hold.

        None for an offset: the end of the leader's log now.
        """
        loop = asyncio.get_running_loop()
        until, pause = loop.time() + self._seconds, _PAUSE_SECONDS
        pending = {one: _Unverified(one, end, self._judge.thresholds(one[0])) for one, end in end_offsets.items()}
        errors: dict[Partition, RetriableProduceError] = {}
        while pending and loop.time() < until:
            await self._observe_isr(pending, errors)
            await self._observe_logs(pending)
            for partition, one in tuple(pending.items()):
                if _is_held(one):
                    del pending[partition]
            if pending:
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
        for (topic, number), one in pending.items():
            errors[topic, number] = NotEnoughRacksAfterAppend(f"{topic}-{number}: {one.reason}")
        return errors

    # The leader and the ISR.

    async def _observe_isr(
        self, pending: dict[Partition, _Unverified], errors: dict[Partition, RetriableProduceError]
    ) -> None:
        topics = frozenset(topic for topic, _ in pending)
        try:
            if not self._cluster.nodes:
                await self._cluster.refresh()
        except (OSError, TimeoutError, RackspanError) as failure:
            for one in pending.values():
                one.reason = f"no broker responds: {failure}"
            return
        unknown = [partition for partition in pending if partition not in self._replicas]
        brokers = {broker for partition in pending for broker in self._replicas.get(partition, ())}
        brokers |= set(self._cluster.some_nodes(3)) if unknown else set()
        samples = await _responses({broker: self._sample(broker, topics) for broker in brokers})
        if not samples:
            # All of them may have moved.
            self._replicas.clear()
            self._cluster.nodes.clear()
        for partition, one in tuple(pending.items()):
            newest = _newest(partition, samples.values())
            if newest is None:
                continue
            refusal = _observe_sample(one, *newest)
            if refusal is not None:
                errors[partition] = refusal
                del pending[partition]

    async def _sample(self, broker: int, topics: frozenset[str]) -> Sample:
        connection = await self._cluster.connection(broker)
        request = MetadataRequestData(
            topics=[MetadataRequestTopic(name=topic) for topic in sorted(topics)], allow_auto_topic_creation=False
        )
        metadata: MetadataResponseData = await connection.call(ApiKey.METADATA, request)
        for node in metadata.brokers:
            self._cluster.learn(node.node_id, node.host, node.port)
        for topic in metadata.topics:
            for state in topic.partitions:
                self._replicas[topic.name or "", state.partition_index] = frozenset(state.replica_nodes)
        return sample_of(broker, 0.0, topics, metadata, self._cluster)

    # The logs.

    async def _observe_logs(self, pending: Mapping[Partition, _Unverified]) -> None:
        reads: dict[BrokerId, dict[LogRead, _Unverified]] = {}
        for partition, one in pending.items():
            if one.record is None or one.sample is None:
                continue
            isr, racks = one.sample.partitions[partition].isr, one.sample.racks
            wanted = {
                **one.record.spare_reads(isr, racks),
                **one.record.reads(isr, racks, one.thresholds.min_insync_racks),
            }
            for replica, epoch in wanted.items():
                read = LogRead(partition, one.sample.topic_ids.get(partition[0]), epoch)
                reads.setdefault(replica, {})[read] = one
        ends = await _responses({replica: self._read(replica, of) for replica, of in reads.items()})
        for broker, (found, refused) in ends.items():
            replica = BrokerId(broker)
            for read, end in found.items():
                record = reads[replica][read].record
                if record is not None:
                    record.observe(replica, read.leader_epoch, end)
            for read, code in refused.items():
                reads[replica][read].reason = f"broker {replica} refuses to let its log be read: error {code}" + (
                    "; grant READ on the topic" if code == ErrorCode.TOPIC_AUTHORIZATION_FAILED else ""
                )

    async def _read(self, replica: int, reads: Iterable[LogRead]) -> Any:
        return await read_log_ends(await self._cluster.connection(replica), reads, self._seconds)


def _newest(partition: Partition, samples: Iterable[Sample]) -> tuple[Sample, PartitionIsr] | None:
    """The leader's own sample, if no broker reports a newer leader."""
    states = [(sample, sample.partitions[partition]) for sample in samples if partition in sample.partitions]
    newest = max((state.leader_epoch for _, state in states), default=-1)
    return next(
        ((one, state) for one, state in states if state.leader_epoch == newest and state.leader == one.source), None
    )


def _observe_sample(one: _Unverified, sample: Sample, state: PartitionIsr) -> RetriableProduceError | None:
    verdict = before_acknowledgement(state.isr, sample.racks, one.thresholds)
    if verdict is not ProduceVerdict.ACCEPT:
        message = error_message(verdict, *one.partition, state.isr, sample.racks, one.thresholds)
        return produce_error(ERROR_CODES[verdict], message)
    leader = BrokerId(state.leader)
    one.sample = sample
    if one.record is None or one.record.leader != leader or one.leader_epoch != state.leader_epoch:
        one.record, one.leader_epoch = (
            AcknowledgedRecord(leader, state.leader_epoch, one.end_offset),
            state.leader_epoch,
        )
    names = ",".join(map(shown, sample.racks.names(state.isr)))
    one.reason = (
        f"logs do not show the record in {one.thresholds.min_insync_racks} of the racks {names} that are in sync"
    )
    return None


def _is_held(one: _Unverified) -> bool:
    if one.record is None or one.sample is None:
        return False
    isr = one.sample.partitions[one.partition].isr
    return one.record.is_held(isr, one.sample.racks, one.thresholds.min_insync_racks)


async def _responses(requests: Mapping[int, Awaitable[T]]) -> dict[int, T]:
    """The responses by broker, of those that respond in time."""
    if not requests:
        return {}
    tasks = {asyncio.ensure_future(request): broker for broker, request in requests.items()}
    done, late = await asyncio.wait(tasks, timeout=_RESPONSE_SECONDS)
    for task in late:
        task.cancel()
    await asyncio.gather(*late, return_exceptions=True)
    failures = (OSError, TimeoutError, RackspanError)
    for task in done:
        if task.exception() is not None and not isinstance(task.exception(), failures):
            task.result()
    return {tasks[task]: task.result() for task in done if task.exception() is None}


class VerifierThread:
    """A RecordVerifier on an event loop in a thread of its own, for clients that have none."""

    def __init__(self, records: RecordVerifier) -> None:
        self.records = records
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="rackspan-guard", daemon=True)
        self._thread.start()

    def before(self, topic: str, partition: int | None) -> RetriableProduceError | None:
        """As of RecordVerifier."""
        return asyncio.run_coroutine_threadsafe(self.records.before(topic, partition), self._loop).result()

    def verify(self, end_offsets: Mapping[Partition, int | None]) -> dict[Partition, RetriableProduceError]:
        """As of RecordVerifier."""
        return asyncio.run_coroutine_threadsafe(self.records.verify(end_offsets), self._loop).result()

    def when_verified(
        self, topic: str, partition: int, offset: int, report: Callable[[RetriableProduceError | None], None]
    ) -> None:
        """Call `report` from the thread with the record's error."""

        async def verify() -> None:
            report(await self.records.verified(topic, partition, offset))

        asyncio.run_coroutine_threadsafe(verify(), self._loop)

    def close(self) -> None:
        """End the thread. What is not verified by then is not reported."""
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _end(self) -> None:
        self.records.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
