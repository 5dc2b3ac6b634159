"""Sends rows from a Spark task with librdkafka's idempotent producer, each subject to min.insync.racks if that is set.

Without it rows are in flight until `finish`. With it they are sent in groups: the ISR is read before a group is sent; after it was
acknowledged the replicas' own logs have to show it (acks/verification.py, by the verifier of `rackspan.producers`). A record that was
acknowledged while too few racks held it is in the log: the sink fails, or waits until the racks are back and sends it again. Either way
a record may be in the log twice, and is never counted too soon.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, Protocol, TypeAlias

from confluent_kafka import KafkaError, KafkaException

from rackspan.acks.isr_samples import Sample, SampledPartition
from rackspan.acks.min_insync_racks import Thresholds, rack_bits
from rackspan.acks.verification import Requirement, topic_refusal_before
from rackspan.client.config.translation import kafka_python_settings, librdkafka_settings
from rackspan.client.login import login_of
from rackspan.errors import ClusterRequestFailed, ClusterUnreachable, RetriableProduceError
from rackspan.kafka_source.cluster import SourceCluster, SourceMetadata
from rackspan.kafka_source.writing.options import SinkOptions
from rackspan.kafka_source.writing.rows import Headers, OutgoingRow
from rackspan.model import Broker, BrokerId, RackId
from rackspan.producers.confluent import acknowledged_offset
from rackspan.producers.handles import Producer
from rackspan.producers.verifier import RecordVerifier, VerifierThread
from rackspan.text import count_noun

ReadMetadata: TypeAlias = Callable[[Iterable[str]], SourceMetadata]
Target: TypeAlias = tuple[str, int]
Verify: TypeAlias = Callable[[Mapping[Target, int | None]], Mapping[Target, RetriableProduceError]]
"""The error of each partition whose records before an offset are in too few racks; None stands for the leader's log end."""

GROUP_ROWS: Final = 50_000
GROUP_BYTES: Final = 32 << 20
"""Rows that are verified together: each group costs a wait for its acknowledgements and a read of its replicas' logs."""

NO_PARTITION: Final = -1
"""The key chooses."""

_PAUSE_SECONDS: Final = 0.5
_QUEUE_FULL_SECONDS: Final = 0.1
_LINGER_MS: Final = 20
"""Rows come by the ten thousand, so that waiting fills batches and delays none."""


class RecordProducer(Protocol):
    """The part of confluent-kafka's Producer that is used."""

    def produce(
        self,
        topic: str,
        value: str | bytes | None = None,
        key: str | bytes | None = None,
        partition: int = NO_PARTITION,
        *,
        on_delivery: Callable[[Any, Any], None] | None = None,
        headers: Headers = None,
    ) -> None: ...
    def poll(self, seconds: float) -> int: ...
    def flush(self, seconds: float) -> int: ...


@dataclass(slots=True)
class WriteReport:
    """What one task wrote: records that were acknowledged, by topic."""

    records: Counter[str] = field(default_factory=Counter)
    size_bytes: int = 0
    """The size of keys and values, before compression."""
    sent_again: int = 0
    """Records that were acknowledged by too few racks and are in the log twice."""
    waited_seconds: float = 0.0


@contextmanager
def opened_sender(options: SinkOptions) -> Iterator["RowSender"]:
    """A sender with a producer of its own. Errors: UsageError, ClusterUnreachable, OtherBroker, UnprovableBroker."""
    try:
        producer = Producer(_producer_settings(options))
    except KafkaException as error:
        raise ClusterRequestFailed(f"the producer cannot be started: {error.args[0].str()}") from None
    with SourceCluster(options.client) as cluster, _verifier(options) as verify:
        try:
            yield RowSender(options, producer, cluster.metadata, verify)
        finally:
            # After an error nothing is waited for: Spark runs the task again.
            producer.purge()
            producer.flush(0)


@contextmanager
def _verifier(options: SinkOptions) -> Iterator[Verify]:
    if options.min_insync_racks == 1:
        yield lambda _: {}
        return
    login = login_of(kafka_python_settings(options.client.properties))
    verifier = VerifierThread(
        RecordVerifier(
            *(options.client.bootstrap_servers, login, {}),
            others=options.min_insync_racks,
            identity=options.broker_identity,
        )
    )
    verifier.start()
    try:
        yield verifier.verify
    finally:
        verifier.close()


def _producer_settings(options: SinkOptions) -> dict[str, Any]:
    return {
        "linger.ms": _LINGER_MS,
        **librdkafka_settings(options.client.properties),
        **options.producer,
        "bootstrap.servers": options.client.bootstrap_servers,
        "enable.idempotence": True,
        "acks": "all",
        # Keys go to the partitions that the Java producer gives them.
        "partitioner": "murmur2_random",
        "delivery.timeout.ms": int(options.client.progress_timeout_seconds * 1000),
    }


class RowSender:
    """`send` takes rows in order; after `finish` all of them are acknowledged, and held by the racks required."""

    def __init__(
        self,
        options: SinkOptions,
        producer: RecordProducer,
        metadata: ReadMetadata,
        verify: Verify,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._options = options
        self._producer = producer
        self._metadata = metadata
        self._verify = verify
        self._requirement = Requirement(Thresholds(1, options.min_insync_racks))
        self._sleep = sleep
        self._clock = clock
        self._timeout = options.client.progress_timeout_seconds
        self._partition_counts: dict[str, int] = {}
        self._group: list[OutgoingRow] = []
        self._group_bytes = 0
        self._error: tuple[str, int, KafkaError] | None = None
        self._report = WriteReport()

    def send(self, rows: Sequence[OutgoingRow]) -> None:
        """Errors: ClusterRequestFailed for a record that is refused; ClusterUnreachable; RetriableProduceError where racks are few."""
        self._check_targets(rows)
        for row in rows:
            self._report.records[row.topic] += 1
            self._report.size_bytes += row.size_bytes
        if self._options.min_insync_racks == 1:
            self._produce(rows, [self._delivered] * len(rows))
            return
        for row in rows:
            self._group.append(row)
            self._group_bytes += row.size_bytes
            if len(self._group) >= GROUP_ROWS or self._group_bytes >= GROUP_BYTES:
                self._send_group()

    def finish(self) -> WriteReport:
        """Errors: as `send`."""
        if self._group:
            self._send_group()
        self._flush()
        return self._report

    # -- targets

    def _check_targets(self, rows: Sequence[OutgoingRow]) -> None:
        """Librdkafka would create a topic, or wait minutes for a partition that there is not."""
        if unknown := {row.topic for row in rows} - self._partition_counts.keys():
            metadata = self._metadata(unknown)
            for name in sorted(unknown):
                if name not in metadata.topics:
                    problem = metadata.errors.get(name, "no broker lists it")
                    raise ClusterRequestFailed(
                        f"topic {name}: {problem}; create it, or check the name and the right to write to it"
                    )
                self._partition_counts[name] = len(metadata.topics[name].partitions)
        for row in rows:
            if row.partition is not None and row.partition >= (count := self._partition_counts[row.topic]):
                raise ClusterRequestFailed(
                    f"column 'partition': {row.topic} has {count_noun(count, 'partition')}, and a row names {row.partition}"
                )

    # -- librdkafka

    def _produce(self, rows: Sequence[OutgoingRow], reports: Sequence[Callable[[Any, Any], None]]) -> None:
        for row, report in zip(rows, reports, strict=True):
            partition = NO_PARTITION if row.partition is None else row.partition
            while True:
                try:
                    self._producer.produce(
                        row.topic, row.value, row.key, partition, on_delivery=report, headers=row.headers
                    )
                except BufferError:
                    self._producer.poll(_QUEUE_FULL_SECONDS)
                    self._raise_error()
                except KafkaException as error:
                    raise self._refused(row.topic, row.partition, error.args[0]) from None
                else:
                    break
        self._producer.poll(0)
        self._raise_error()

    def _delivered(self, error: Any, message: Any) -> None:
        if error is not None and self._error is None:
            self._error = (message.topic(), message.partition(), error)

    def _flush(self) -> None:
        """Every record is acknowledged or has its error within the delivery timeout, which librdkafka keeps."""
        until = self._clock() + self._timeout + _PAUSE_SECONDS
        while self._producer.flush(_PAUSE_SECONDS):
            self._raise_error()
            if self._clock() > until:
                raise ClusterUnreachable(f"records were not acknowledged for {self._timeout:.0f} s")
        self._raise_error()

    def _raise_error(self) -> None:
        if self._error is not None:
            topic, partition, error = self._error
            raise self._refused(topic, partition, error)

    def _refused(self, topic: str, partition: int | None, error: Any) -> ClusterRequestFailed | ClusterUnreachable:
        where = topic if partition is None or partition < 0 else f"{topic}-{partition}"
        if error.code() == KafkaError._MSG_TIMED_OUT:
            return ClusterUnreachable(
                f"{where}: a record was not acknowledged for {self._timeout:.0f} s; are brokers down?"
            )
        more = (
            "; raise kafka.max.request.size and the topic's max.message.bytes"
            if error.code() == KafkaError.MSG_SIZE_TOO_LARGE
            else ""
        )
        return ClusterRequestFailed(f"{where}: a record was refused: {error.str()}{more}")

    # -- min.insync.racks

    def _send_group(self) -> None:
        rows, self._group, self._group_bytes = self._group, [], 0
        deadline = self._clock() + self._timeout
        while rows:
            self._await_racks(rows, deadline)
            places = self._acknowledged(rows)
            partitions = [partition for partition, _ in places]
            lacking = self._verify(_end_offsets(rows, places))
            if not lacking:
                return
            error = lacking[min(lacking)]
            if not self._options.wait_for_racks or self._clock() > deadline:
                raise error
            rows = [
                replace(row, partition=partition)
                for row, partition in zip(rows, partitions, strict=True)
                if (row.topic, partition) in lacking
            ]
            self._report.sent_again += len(rows)

    def _acknowledged(self, rows: Sequence[OutgoingRow]) -> list[tuple[int, int]]:
        """The partition that each row went to, and its offset; below 0 where librdkafka has none."""
        places = [(-1, -1)] * len(rows)

        def delivered(index: int, error: Any, message: Any) -> None:
            self._delivered(error, message)
            places[index] = message.partition(), acknowledged_offset(message)

        self._produce(rows, [partial(delivered, index) for index in range(len(rows))])
        self._flush()
        return places

    def _await_racks(self, rows: Sequence[OutgoingRow], deadline: float) -> None:
        """Errors: NotEnoughRacks, at once or after waiting."""
        targets = sorted({(row.topic, row.partition) for row in rows}, key=str)
        began = self._clock()
        while error := self._lacking_racks(targets):
            if not self._options.wait_for_racks or self._clock() > deadline:
                raise error
            self._sleep(_PAUSE_SECONDS)
        self._report.waited_seconds += self._clock() - began

    def _lacking_racks(self, targets: Sequence[tuple[str, int | None]]) -> RetriableProduceError | None:
        """The error of the first target that has too few racks in sync now."""
        topics = frozenset(topic for topic, _ in targets)
        sample = _sample(self._metadata(topics), topics, self._clock())
        refusals = (topic_refusal_before(topic, number, self._requirement, sample) for topic, number in targets)
        return next((refusal.error for refusal in refusals if refusal is not None), None)


def _end_offsets(rows: Sequence[OutgoingRow], places: Sequence[tuple[int, int]]) -> dict[Target, int | None]:
    ends: dict[Target, int | None] = {}
    for row, (partition, offset) in zip(rows, places, strict=True):
        known = ends.get((row.topic, partition), 0)
        ends[row.topic, partition] = None if known is None or offset < 0 else max(known, offset + 1)
    return ends


def _sample(metadata: SourceMetadata, topics: frozenset[str], requested_at: float) -> Sample:
    """The ISRs of topics. A topic that no broker lists now has no partition: a record of it is sent, and refused after the append."""
    brokers = [
        Broker(BrokerId(broker), None if rack is None else RackId(rack)) for broker, rack in metadata.racks.items()
    ]
    partitions = {
        (topic, number): SampledPartition(state.leader, -1, tuple(map(BrokerId, state.isr)))
        for topic, found in metadata.topics.items()
        for number, state in found.partitions.items()
    }
    return Sample(-1, requested_at, rack_bits(brokers), topics, partitions)
