"""One partition as its leader has it: appends, what its followers hold, the high watermark, who may be acknowledged.

Rules kept here: the committed ISR counts against both thresholds at all three moments; a duplicate waits like the
original; the watermark never goes back within a leadership; who waits when the leadership ends is told so.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from rackspan.acks import ProduceVerdict, RackBits, Thresholds
from rackspan.acks.min_insync_racks import Threshold, is_checked, missed
from rackspan.acks.replies import BY_RACKS, ERROR_CODES, error_message
from rackspan.cluster.core.batch import Batch
from rackspan.cluster.core.broker.counters import Counters
from rackspan.cluster.core.broker.isr import Isr
from rackspan.cluster.core.broker.purgatory import Purgatory, Waiting
from rackspan.cluster.core.broker.replica_state import FollowerState
from rackspan.cluster.core.broker.rules import BrokerRules
from rackspan.cluster.core.errors import KafkaError
from rackspan.cluster.core.ids import NO_OFFSET
from rackspan.cluster.core.log import Duplicate, PartitionLog
from rackspan.cluster.core.messages import Produce, ProduceResponse, Respond
from rackspan.cluster.core.metadata import PartitionState
from rackspan.model.ids import BrokerId, TopicPartition


@dataclass(frozen=True, slots=True)
class LeaderTerms:
    """What the image and the configs say, beyond the partition's own state. Sizes in bytes; None: nothing is forgotten."""

    asked: Thresholds
    racks: RackBits
    max_message_bytes: int
    retained_bytes: int | None


class Leader:
    """One leadership: `leader_epoch` of one partition on one broker. A later epoch is another object."""

    __slots__ = (
        "_counters",
        "_rules",
        "broker",
        "epoch_start",
        "followers",
        "isr",
        "leader_epoch",
        "log",
        "partition",
        "purgatory",
        "replicas",
        "terms",
        "topic_id",
    )

    def __init__(
        self,
        broker: BrokerId,
        partition: TopicPartition,
        log: PartitionLog,
        state: PartitionState,
        terms: LeaderTerms,
        rules: BrokerRules,
        counters: Counters,
        now: int,
    ) -> None:
        self.broker, self.partition, self.topic_id, self.log = broker, partition, log.topic_id, log
        self.terms, self._rules, self._counters = terms, rules, counters
        self.leader_epoch = state.leader_epoch
        self.epoch_start = log.end_offset
        # The epoch begins here even if nothing is ever written in it: followers may ask where the one before ended.
        log.epochs.assign(state.leader_epoch, log.end_offset)
        self.isr = Isr.of(state)
        self.purgatory = Purgatory()
        self.replicas = state.replicas
        self.followers: dict[BrokerId, FollowerState] = {}
        self._follow(now)

    def _follow(self, now: int) -> None:
        others = [replica for replica in self.replicas if replica != self.broker]
        self.followers = {replica: self.followers.get(replica) or FollowerState(now) for replica in others}

    def update(self, state: PartitionState, now: int) -> bool:
        """The image has a newer state of the same leadership; whether the ISR is news."""
        if state.replicas != self.replicas:
            self.replicas = state.replicas
            self._follow(now)
        return self.isr.commit(state.isr, state.partition_epoch)

    # Appending.

    def produce(self, now: int, message: Produce) -> ProduceResponse | None:
        """Append, or say why not. None: it waits in the purgatory for the watermark, which may be there already."""
        error = self._refusal(message) or self._batch_error(message)
        if error is not None:
            return error
        standing = self._standing(message.batches)
        if isinstance(standing, KafkaError) and standing is not KafkaError.NONE:
            return ProduceResponse(standing)
        again = isinstance(standing, Duplicate)
        base, required = self._append(now, message.batches) if not isinstance(standing, Duplicate) else _span(standing)
        if not is_checked(message.acks) or (again and not self._rules.duplicate_waits()):
            return self._acknowledged(base)
        self.purgatory.add(Waiting(message.correlation_id, required, base, now + message.timeout_ms))
        return None

    def _refusal(self, message: Produce) -> ProduceResponse | None:
        if not is_checked(message.acks):
            return None
        verdict = self._rules.before_append(self._rules.counted(self.isr), self.terms.racks, self.asked)
        return None if verdict is ProduceVerdict.ACCEPT else self._refused(verdict)

    def _batch_error(self, message: Produce) -> ProduceResponse | None:
        for batch in message.batches:
            if batch.size_bytes > self.terms.max_message_bytes:
                return ProduceResponse(KafkaError.MESSAGE_TOO_LARGE)
            if batch.control and not message.internal:
                return ProduceResponse(KafkaError.INVALID_RECORD)
        return None

    def _standing(self, batches: Iterable[Batch]) -> KafkaError | Duplicate:
        """What the first batch that is no plain next one is."""
        for batch in batches:
            standing = self._rules.standing(self.log, batch)
            if standing is not KafkaError.NONE:
                return standing
        return KafkaError.NONE

    def _append(self, now: int, batches: Iterable[Batch]) -> tuple[int, int]:
        """The first offset, and the one the watermark must reach."""
        end = self.log.end_offset
        for follower in self.followers.values():
            follower.fell_behind(now, end)
        for batch in batches:
            self.log.append_as_leader(batch, self.leader_epoch)
        return end, self.log.end_offset

    def _acknowledged(self, base_offset: int) -> ProduceResponse:
        return ProduceResponse(KafkaError.NONE, base_offset, -1, self.log.start_offset)

    # Followers and the ISR.

    def fetched(self, now: int, broker: BrokerId, broker_epoch: int, offset: int) -> None:
        """A follower stands at `offset`, and its log is the leader's up to there."""
        follower = self.followers.get(broker)
        if follower is not None:
            follower.broker_epoch = broker_epoch
            follower.fetched(now, offset, self.log.end_offset)

    def joiners(self, now: int, lag_max_ms: int) -> Iterator[BrokerId]:
        """Who is out of the ISR, at the watermark, and not long out of touch."""
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
        return any(self.followers[one].end_offset < end for one in self.isr.committed if one in self.followers)

    # The watermark and what it lets go.

    def advance_watermark(self) -> bool:
        """Move it to what the maximal ISR holds, if the committed one meets both thresholds; whether it moved."""
        rules, log = self._rules, self.log
        target = rules.watermark(log.end_offset, rules.maximal(self.isr), self.followers)
        if target <= log.high_watermark:
            return False
        if not rules.watermark_may_advance(rules.counted(self.isr), self.terms.racks, self.asked):
            return False
        log.high_watermark = target
        return True

    def acknowledged(self) -> Iterator[Respond]:
        """To everybody whose records the watermark has passed: the offset, or that the ISR no longer spans enough."""
        reached = self.purgatory.reached(self.log.high_watermark)
        verdict = self._rules.before_acknowledgement(self._rules.counted(self.isr), self.terms.racks, self.asked)
        for waiting in reached:
            accepted = verdict is ProduceVerdict.ACCEPT
            yield Respond(
                waiting.correlation_id, self._acknowledged(waiting.base_offset) if accepted else self._refused(verdict)
            )

    def timed_out(self, now: int) -> Iterator[Respond]:
        """To everybody who waited too long; the records stay in the log."""
        for waiting in self.purgatory.expired(now):
            self._counters.rack_check_failures += self.lacks_racks
            yield Respond(waiting.correlation_id, ProduceResponse(KafkaError.REQUEST_TIMED_OUT))

    def resigned(self) -> Iterator[Respond]:
        """To everybody who waits: whether the record stays is for another leader to say."""
        error = self._rules.on_resigning()
        for waiting in self.purgatory.emptied():
            yield Respond(
                waiting.correlation_id, ProduceResponse(error, waiting.base_offset if not error else NO_OFFSET)
            )

    # What is asked, and what is wrong.

    @property
    def asked(self) -> Thresholds:
        return self.terms.asked.of_partition(len(self.replicas))

    @property
    def lacks_racks(self) -> bool:
        return missed(self.isr.committed, self.terms.racks, self.asked) is Threshold.RACKS

    def _refused(self, verdict: ProduceVerdict) -> ProduceResponse:
        self._counters.rack_check_failures += verdict in BY_RACKS
        return ProduceResponse(KafkaError(ERROR_CODES[verdict].own), message=self._message(verdict))

    def _message(self, verdict: ProduceVerdict) -> str:
        topic, partition = self.partition
        isr, asked = self._rules.counted(self.isr), self.asked
        words = error_message(verdict, topic, partition, isr, self.terms.racks, asked)
        return words or (
            f"The size of the current ISR : {len(isr)} is insufficient to satisfy the min.isr requirement of "
            f"{asked.min_insync_replicas} for partition {self.partition}"
        )


def _span(standing: Duplicate) -> tuple[int, int]:
    return standing.base_offset, standing.last_offset + 1
