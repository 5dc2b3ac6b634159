"""The leader's replica of one partition: appends, its followers' progress, the high watermark, acknowledgements.

Rules kept here: the committed ISR counts against both thresholds at all three checks; a duplicate waits like the
original; the high watermark never goes back within a leadership; produces that wait when the leadership ends get an error.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush

from rackspan.acks import ProduceVerdict, Thresholds
from rackspan.acks.min_insync_racks import Threshold, is_checked, missed_threshold
from rackspan.acks.produce_errors import BY_RACKS, ERROR_CODES, error_message
from rackspan.cluster.core.batch import Marker, RecordBatch
from rackspan.cluster.core.broker.broker_state import Counters, LeaderConfig
from rackspan.cluster.core.broker.replica_state import FollowerState, Isr
from rackspan.cluster.core.broker.rules import BrokerRules
from rackspan.cluster.core.ids import NO_OFFSET, CorrelationId
from rackspan.cluster.core.log import Duplicate, PartitionLog
from rackspan.cluster.core.messages import Produce, ProduceResponse, Respond, TransactionEnded
from rackspan.cluster.core.metadata import PartitionState
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import BrokerId, TopicPartition


@dataclass(frozen=True, slots=True)
class DelayedProduce:
    """One produce, acknowledged once the high watermark reaches `required_offset`; `deadline` in ms."""

    correlation_id: CorrelationId
    required_offset: int
    base_offset: int
    deadline: int
    marker: tuple[int, Marker] | None = None
    """The producer id and the marker, where the produce ends a transaction."""


@dataclass(slots=True)
class DelayedProduces:
    """The delayed produces of one partition, ordered by offset. Deadlines are checked at each clock tick."""

    _waiting: list[tuple[int, int, DelayedProduce]] = field(default_factory=list)
    _count: int = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def has_reached(self, high_watermark: int) -> bool:
        """Whether a produce requires no more than this."""
        return bool(self._waiting) and self._waiting[0][0] <= high_watermark

    def add(self, produce: DelayedProduce) -> None:
        self._count += 1
        heappush(self._waiting, (produce.required_offset, self._count, produce))

    def pop_reached(self, high_watermark: int) -> list[DelayedProduce]:
        """Remove and return the produces that require no more than this."""
        reached: list[DelayedProduce] = []
        while self._waiting and self._waiting[0][0] <= high_watermark:
            reached.append(heappop(self._waiting)[2])
        return reached

    def pop_expired(self, now: int) -> list[DelayedProduce]:
        """Remove and return the produces whose deadline has passed."""
        due = [entry[2] for entry in self._waiting if entry[2].deadline <= now]
        if due:
            self._waiting = sorted(entry for entry in self._waiting if entry[2].deadline > now)
        return due

    def pop_all(self) -> list[DelayedProduce]:
        """Remove and return every produce."""
        produces, self._waiting = [entry[2] for entry in self._waiting], []
        return produces


class Leader:
    """One leadership: `leader_epoch` of one partition on one broker. A later epoch is another object."""

    __slots__ = (
        "_counters",
        "_rules",
        "broker",
        "config",
        "delayed_produces",
        "epoch_start",
        "followers",
        "isr",
        "leader_epoch",
        "log",
        "partition",
        "replicas",
        "topic_id",
    )

    def __init__(
        self,
        broker: BrokerId,
        partition: TopicPartition,
        log: PartitionLog,
        state: PartitionState,
        config: LeaderConfig,
        rules: BrokerRules,
        counters: Counters,
        now: int,
    ) -> None:
        self.broker, self.partition, self.topic_id, self.log = broker, partition, log.topic_id, log
        self.config, self._rules, self._counters = config, rules, counters
        self.leader_epoch = state.leader_epoch
        self.epoch_start = log.end_offset
        # The epoch begins here even if nothing is ever written in it: followers may request the end of the one before.
        log.epochs.assign(state.leader_epoch, log.end_offset)
        self.isr = Isr.of(state)
        self.delayed_produces = DelayedProduces()
        self.replicas = state.replicas
        self.followers: dict[BrokerId, FollowerState] = {}
        self._follow(now)

    def _follow(self, now: int) -> None:
        others = [replica for replica in self.replicas if replica != self.broker]
        self.followers = {replica: self.followers.get(replica) or FollowerState(now) for replica in others}

    def update(self, state: PartitionState, now: int) -> bool:
        """Take a newer state of the same leadership from the metadata. Whether the ISR is a newer one."""
        if state.replicas != self.replicas:
            self.replicas = state.replicas
            self._follow(now)
        return self.isr.commit(state.isr, state.partition_epoch)

    # Appending.

    def produce(self, now: int, message: Produce) -> ProduceResponse | None:
        """Append and respond. None: the produce waits for the high watermark, which may have reached it already."""
        error = self._refusal(message) or self._batch_error(message)
        if error is not None:
            return error
        check = self._sequence_check(message.batches)
        if isinstance(check, ErrorCode) and check is not ErrorCode.NONE:
            return ProduceResponse(check)
        repeated = isinstance(check, Duplicate)
        base, required = self._append(now, message.batches) if not isinstance(check, Duplicate) else _span(check)
        if not is_checked(message.acks) or (repeated and not self._rules.duplicate_waits()):
            return self._success(base)
        deadline = now + message.timeout_ms
        self.delayed_produces.add(
            DelayedProduce(message.correlation_id, required, base, deadline, _marker(message.batches))
        )
        return None

    def _refusal(self, message: Produce) -> ProduceResponse | None:
        if not is_checked(message.acks):
            return None
        verdict = self._rules.before_append(self._rules.counted(self.isr), self.config.racks, self.required)
        return None if verdict is ProduceVerdict.ACCEPT else self._refused(verdict)

    def _batch_error(self, message: Produce) -> ProduceResponse | None:
        for batch in message.batches:
            if batch.size_bytes > self.config.max_message_bytes:
                return ProduceResponse(ErrorCode.MESSAGE_TOO_LARGE)
            if batch.control and not message.internal:
                return ProduceResponse(ErrorCode.INVALID_RECORD)
        return None

    def _sequence_check(self, batches: Iterable[RecordBatch]) -> ErrorCode | Duplicate:
        """The first batch's check that is not NONE, else NONE."""
        for batch in batches:
            check = self._rules.sequence_check(self.log, batch)
            if check is not ErrorCode.NONE:
                return check
        return ErrorCode.NONE

    def _append(self, now: int, batches: Iterable[RecordBatch]) -> tuple[int, int]:
        """The first offset, and the one that the high watermark must reach."""
        end = self.log.end_offset
        for follower in self.followers.values():
            follower.fell_behind(now, end)
        for batch in batches:
            self.log.append_as_leader(batch, self.leader_epoch)
        return end, self.log.end_offset

    def _success(self, base_offset: int) -> ProduceResponse:
        return ProduceResponse(ErrorCode.NONE, base_offset, -1, self.log.start_offset)

    # Followers and the ISR.

    def fetched(self, now: int, broker: BrokerId, broker_epoch: int, offset: int) -> None:
        """A follower fetches from `offset`; up to there its log is the leader's."""
        follower = self.followers.get(broker)
        if follower is not None:
            follower.broker_epoch = broker_epoch
            follower.fetched(now, offset, self.log.end_offset)

    def joiners(self, now: int, lag_max_ms: int) -> Iterator[BrokerId]:
        """Followers out of the ISR that have reached the high watermark and are not behind for too long."""
        for broker, follower in self.followers.items():
            if broker not in self.isr.committed and self._may_join(follower, now, lag_max_ms):
                yield broker

    def _may_join(self, follower: FollowerState, now: int, lag_max_ms: int) -> bool:
        caught_up = self._rules.has_caught_up(follower, self.log.high_watermark, self.epoch_start)
        return caught_up and not self._rules.is_out_of_sync(follower, self.log.end_offset, now, lag_max_ms)

    def stragglers(self, now: int, lag_max_ms: int) -> tuple[BrokerId, ...]:
        """Members of the ISR that have been behind for too long."""
        end, states = self.log.end_offset, self.followers
        return tuple(
            member
            for member in self.isr.committed
            if member in states and self._rules.is_out_of_sync(states[member], end, now, lag_max_ms)
        )

    @property
    def has_members_behind(self) -> bool:
        end = self.log.end_offset
        return any(self.followers[member].end_offset < end for member in self.isr.committed if member in self.followers)

    # The high watermark and the produces that wait for it.

    def advance_watermark(self) -> bool:
        """Move it to what the maximal ISR holds, if the committed ISR meets both thresholds. Whether it moved."""
        rules, log = self._rules, self.log
        target = rules.watermark(log.end_offset, rules.maximal(self.isr), self.followers)
        if target <= log.high_watermark:
            return False
        if not rules.watermark_may_advance(rules.counted(self.isr), self.config.racks, self.required):
            return False
        log.high_watermark = target
        return True

    def acknowledged(self) -> Iterator[Respond | TransactionEnded]:
        """Responses to the produces that the high watermark has reached: the offset, or that the ISR is too small by now."""
        reached = self.delayed_produces.pop_reached(self.log.high_watermark)
        verdict = self._rules.before_acknowledgement(self._rules.counted(self.isr), self.config.racks, self.required)
        for produce in reached:
            accepted = verdict is ProduceVerdict.ACCEPT
            if accepted and produce.marker is not None:
                yield TransactionEnded(self.partition, *produce.marker)
            yield Respond(
                produce.correlation_id, self._success(produce.base_offset) if accepted else self._refused(verdict)
            )

    def timed_out(self, now: int) -> Iterator[Respond]:
        """Responses to the produces that waited too long; their records stay in the log."""
        for produce in self.delayed_produces.pop_expired(now):
            self._counters.rack_check_failures += self.lacks_racks
            yield Respond(produce.correlation_id, ProduceResponse(ErrorCode.REQUEST_TIMED_OUT))

    def resigned(self) -> Iterator[Respond]:
        """Responses to all produces that wait when the leadership ends. The next leader decides whether their records stay."""
        error = self._rules.on_resigning()
        for produce in self.delayed_produces.pop_all():
            yield Respond(
                produce.correlation_id, ProduceResponse(error, produce.base_offset if not error else NO_OFFSET)
            )

    # The thresholds, and the errors when they are missed.

    @property
    def required(self) -> Thresholds:
        """The thresholds of this partition, by its replication factor."""
        return self.config.required.of_partition(len(self.replicas))

    @property
    def isr_racks(self) -> int:
        """How many racks the committed ISR spans."""
        return self.config.racks.count(self.isr.committed)

    @property
    def lacks_racks(self) -> bool:
        return missed_threshold(self.isr.committed, self.config.racks, self.required) is Threshold.RACKS

    def _refused(self, verdict: ProduceVerdict) -> ProduceResponse:
        self._counters.rack_check_failures += verdict in BY_RACKS
        return ProduceResponse(ErrorCode(ERROR_CODES[verdict]), message=self._message(verdict))

    def _message(self, verdict: ProduceVerdict) -> str:
        topic, partition = self.partition
        isr, required = self._rules.counted(self.isr), self.required
        words = error_message(verdict, topic, partition, isr, self.config.racks, required)
        return words or (
            f"The size of the current ISR : {len(isr)} is insufficient to satisfy the min.isr requirement of "
            f"{required.min_insync_replicas} for partition {self.partition}"
        )


def _marker(batches: Iterable[RecordBatch]) -> tuple[int, Marker] | None:
    return next(((batch.producer_id, batch.marker) for batch in batches if batch.marker is not None), None)


def _span(duplicate: Duplicate) -> tuple[int, int]:
    return duplicate.base_offset, duplicate.last_offset + 1
