"""The rule of min.insync.racks outside of brokers, as a state machine: read the ISR, send, wait, read again, judge.

`admit`: before a record is sent, a sample of the ISR must be fresh and span enough racks. `RecordVerification`: after the record was
acknowledged, a sample requested later must show the same topic, the same leader and enough racks in sync, or one that is still fresh has
shown them and the leader's own log shows the record in that epoch; and members of that ISR on enough racks must have shown by their own logs, read after the acknowledgement, that they hold the record. The
leader's rack counts: it appended the record. What is unknown is refused.

It reads no clock: every event carries its time, in seconds of one monotonic clock. Source: docs/min-insync-racks.md, "On a Kafka that
nobody patches".
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from rackspan.acks.isr_samples import LogEnd, LogEnds, LogRead, Partition, Sample, SampledPartition
from rackspan.acks.min_insync_racks import (
    ProduceVerdict,
    RackBits,
    Thresholds,
    before_acknowledgement,
    before_append,
)
from rackspan.acks.produce_errors import Cause, Refusal, error_message
from rackspan.model import BrokerId, shown

SPARE_SECONDS: Final = 0.02
"""Further replicas are read if the first ones have not shown a record in so long."""

LATE_SECONDS: Final = 1.0
"""A record that metadata shows in enough racks, and that logs do not show in so long, is late."""

_LACKS: Final = frozenset({Cause.RACKS, Cause.REPLICAS})
"""Causes that end when a replica is back in the ISR: a broker too lets an appended record wait for it."""

_SAMPLES_LONGEST: Final = 5.0
"""Limit of how many times longer each interval between two samples gets, while a record waits."""

_AGAIN_SECONDS: Final = 0.002
_AGAIN_MAX_SECONDS: Final = 0.05
"""Until a log that did not show a record is read again; longer each time."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """The thresholds of a guarded partition. `fail_open`: what is unknown is accepted."""

    thresholds: Thresholds
    fail_open: bool = False


@dataclass(frozen=True, slots=True)
class Leadership:
    """A partition's leadership as sampled before a record was sent."""

    leader_epoch: int
    topic_id: UUID | None


class AcknowledgedRecord:
    """The record before `end_offset` of one partition, acknowledged by `leader`, and the replicas whose logs show it.

    A replica whose log has the leader epoch of a record, and ends behind the record, holds it: logs that share an entry of an epoch
    are equal up to that entry (KIP-101). No metadata and no time is part of that.
    """

    __slots__ = ("_holders", "_may_be_older", "end_offset", "leader", "leader_epoch", "needs_leader")

    def __init__(self, leader: BrokerId, leader_epoch: int, end_offset: int | None) -> None:
        self.leader = leader
        self.leader_epoch = leader_epoch
        """In which the record was acknowledged; once the leader's log shows that it is older, an epoch of the log before that."""
        self.end_offset = end_offset
        """None until read from the leader's log: the response to a repeated batch need not name its offset."""
        self._holders = {leader}
        self._may_be_older: bool | None = None
        """Whether the epoch below has to be read from the leader's log. None while no replica lacks the epoch."""
        self.needs_leader = False
        """Whether the leader's own log has yet to show the record in this epoch: no metadata since the acknowledgement names the epoch."""

    def reads(self, isr: Collection[BrokerId], racks: RackBits, min_racks: int) -> dict[BrokerId, int]:
        """The replicas to read, each with the leader epoch to request: one of each rack that is missing, as many as are required.

        The leader too if its log has to show the record's offset, or that the record is of an earlier epoch: a batch that
        is repeated after an election is acknowledged by the new leader, and no log need have an entry of the new epoch.
        """
        if self.end_offset is None:
            return {self.leader: self.leader_epoch}
        counted = list(self.holders(isr))
        reads: dict[BrokerId, int] = {}
        for replica in self._in_turn(isr):
            missing = racks.count(counted) < min_racks
            if missing and racks.count((*counted, replica)) > racks.count(counted):
                counted.append(replica)
                reads[replica] = self.leader_epoch
        if self.needs_leader:
            reads[self.leader] = self.leader_epoch
        if self._may_be_older and self.leader_epoch > 0:
            reads[self.leader] = self.leader_epoch - 1
        return reads

    def spare_reads(self, isr: Collection[BrokerId], racks: RackBits) -> dict[BrokerId, int]:
        """Every replica that would add a rack, for when those of `reads` do not respond."""
        if self.end_offset is None:
            return {}
        holders = self.holders(isr)
        count = racks.count(holders)
        return {broker: self.leader_epoch for broker in self._in_turn(isr) if racks.count((*holders, broker)) > count}

    def _in_turn(self, isr: Collection[BrokerId]) -> Sequence[BrokerId]:
        """Those after the leader first, so that brokers that lead equally many partitions are read equally often."""
        return sorted(isr, key=lambda replica: (replica < self.leader, replica))

    def observe(self, replica: BrokerId, requested_epoch: int, end: LogEnd | None) -> None:
        """A replica's response to one of `reads`; None for a log that ends in an epoch before the requested one."""
        if replica == self.leader:
            self._observe_leader(requested_epoch, end)
        elif requested_epoch != self.leader_epoch or self.end_offset is None:
            return
        elif end is None or end.leader_epoch < self.leader_epoch:
            if self._may_be_older is None:
                self._may_be_older = True
        elif end.end_offset >= self.end_offset > end.log_start_offset:
            self._holders.add(replica)

    def _observe_leader(self, requested_epoch: int, end: LogEnd | None) -> None:
        if end is None:
            return
        if self.end_offset is None:
            if requested_epoch == end.leader_epoch == self.leader_epoch:
                self.end_offset = end.end_offset
        elif requested_epoch == self.leader_epoch:
            shows = end.leader_epoch == self.leader_epoch and end.end_offset >= self.end_offset > end.log_start_offset
            self.needs_leader = self.needs_leader and not (shows and end.is_by_id)
        elif requested_epoch == self.leader_epoch - 1:
            # The epoch before the record's own has to end before it; else the record is of that one, or of one before.
            self._may_be_older = None if self.end_offset <= end.end_offset else False
            if self._may_be_older is None:
                self.leader_epoch = end.leader_epoch

    def holders(self, isr: Collection[BrokerId]) -> list[BrokerId]:
        """The members of an ISR that hold the record, the leader first."""
        return [self.leader, *(broker for broker in isr if broker in self._holders and broker != self.leader)]

    def is_held(self, isr: Collection[BrokerId], racks: RackBits, min_racks: int) -> bool:
        """Whether members of the ISR on so many racks hold the record."""
        known = self.end_offset is not None and not self.needs_leader
        return known and racks.count(self.holders(isr)) >= min_racks


class VerificationRules:
    """The decisions of a verification, one method each, so that a test plants a mistake by overriding one."""

    def checks_after(self) -> bool:
        """Whether an acknowledged record is verified at all."""
        return True

    def is_fresh(self, requested_at: float, now: float, oldest_seconds: float) -> bool:
        """Whether a record may be sent by a sample, at most `oldest_seconds` old."""
        return now - requested_at <= oldest_seconds

    def is_after(self, requested_at: float, acknowledged_at: float) -> bool:
        """Whether a sample was requested after an acknowledgement.

        Every member of an ISR that is current after an acknowledgement holds the record; of an earlier ISR that is unknown.
        """
        return requested_at >= acknowledged_at

    def is_read_after(self, requested_at: float, acknowledged_at: float) -> bool:
        """Whether a log end was requested after an acknowledgement: a replica read before may have lost its log since."""
        return requested_at >= acknowledged_at

    def needs_leader(self) -> bool:
        """Whether the leader's log has to show a record that no sample since its acknowledgement counts for."""
        return True

    def is_same_topic(self, before: UUID | None, after: UUID | None) -> bool:
        """Whether a topic was not created anew under its name. Its leader epochs begin at 0 again."""
        return before == after

    def is_held(self, record: AcknowledgedRecord, isr: Collection[BrokerId], racks: RackBits, min_racks: int) -> bool:
        """Whether the logs of members of the ISR show the record in enough racks."""
        return record.is_held(isr, racks, min_racks)


RULES: Final = VerificationRules()


def is_known(sample: Sample | None, now: float, oldest_seconds: float, rules: VerificationRules = RULES) -> bool:
    """Whether a sample is there and fresh."""
    return sample is not None and rules.is_fresh(sample.requested_at, now, oldest_seconds)


def refusal_before(
    partition: Partition, requirement: Requirement, sample: Sample | None, *, sent_to: int | None = None
) -> Refusal | None:
    """The refusal of a record that must not be sent, by a sample that is fresh, or by none; None if it may be sent.

    `sent_to` is the broker that would get the record: it refuses what it does not lead, and too few replicas, by itself.
    """
    if sample is None or partition[0] in sample.undescribed:
        return None if requirement.fail_open else _unknown(partition, ProduceVerdict.NOT_ENOUGH_RACKS, sample)
    state = sample.partitions.get(partition)
    if state is None or sent_to not in (None, state.leader):
        return None
    verdict = before_append(state.isr, sample.racks, _thresholds(requirement, state))
    if verdict is ProduceVerdict.ACCEPT or (verdict is ProduceVerdict.NOT_ENOUGH_REPLICAS and sent_to is not None):
        return None
    return _refusal(partition, verdict, state, sample, requirement)


def topic_refusal_before(topic: str, partition: int | None, requirement: Requirement, sample: Sample) -> Refusal | None:
    """The same for a record of a topic. Without a partition, which the client chooses later, every partition has to lack racks."""
    chosen = (
        [(topic, partition)] if partition is not None else [known for known in sample.partitions if known[0] == topic]
    )
    refusals = [refusal_before(known, requirement, sample) for known in chosen]
    return refusals[0] if refusals and all(refusals) else None


class RecordVerification:
    """One partition's acknowledged records, up to `end_offset`, until they are verified or refused.

    An ISR with too few racks refuses nothing before `expire`: as in a broker, the records wait until it has enough again.
    `broker` acknowledged them, `leadership` is what was sampled of it before they were sent. Without `broker` it is the leader in the
    samples: a new one starts the verification again. With `broker` a new one refuses the records.
    """

    __slots__ = (
        "_broker",
        "_lacked_by",
        "_leadership",
        "_refresh_seconds",
        "_rules",
        "_sampled_epoch",
        "_topic_id",
        "acknowledged_at",
        "end_offset",
        "is_decided",
        "isr",
        "lacking",
        "late_from",
        "partition",
        "racks",
        "reads",
        "record",
        "refusal",
        "requirement",
        "sample_from",
        "sampled",
        "was_late",
    )

    def __init__(
        self,
        partition: Partition,
        requirement: Requirement,
        end_offset: int | None,
        acknowledged_at: float,
        *,
        broker: int | None = None,
        leadership: Leadership | None = None,
        refresh_seconds: float = 0.0,
        rules: VerificationRules = RULES,
    ) -> None:
        """`end_offset` None: the response names none. `refresh_seconds`: between two samples, while logs do not show the record."""
        self.partition = partition
        self.requirement = requirement
        self.end_offset = end_offset
        self.acknowledged_at = acknowledged_at
        self._broker = broker
        self._leadership = leadership
        self._refresh_seconds = refresh_seconds
        self._rules = rules
        self.sample_from = acknowledged_at
        """The time from which a sample counts."""
        self.sampled = False
        """Whether the last sample that counts met the thresholds."""
        self.lacking: Refusal | None = None
        """Why it did not."""
        self._lacked_by: tuple[object, ...] = ()
        self.late_from = acknowledged_at
        """The time from which logs may be late: when metadata showed enough racks again, if some were missing."""
        self.isr: tuple[BrokerId, ...] = ()
        self.racks: RackBits | None = None
        self._sampled_epoch = -1
        self._topic_id: UUID | None = None
        self.record: AcknowledgedRecord | None = None
        """None while the leader epoch is unknown."""
        self.reads: Mapping[BrokerId, tuple[float, LogRead]] = {}
        """The log ends to read, each with the replica and the time from which it is due."""
        self.is_decided = False
        self.refusal: Refusal | None = None
        """None once it is decided: the record is verified, or its topic is fail-open."""
        self.was_late = False

    # Events.

    def expect(self, sample: Sample | None, *, counts: bool) -> None:
        """Plan reads by a sample from before the acknowledgement, so that logs and the next sample are read at the same time.

        If it `counts` and is fresh, the next sample is due only when this one is no longer fresh. Until then the leader's own log, read by the
        topic's id after the acknowledgement, has to show the record in the epoch that the sample has: a new leader, and a topic that
        was created anew, do not show that.
        """
        state = None if sample is None else sample.partitions.get(self.partition)
        if sample is None or state is None or self._leadership is None:
            return
        self._show(state, sample)
        if (
            counts
            and self.record is not None
            and self.end_offset is not None
            and self._topic_id is not None
            and self._rules.is_fresh(sample.requested_at, self.acknowledged_at, self._refresh_seconds)
            and self._refusal_after(state, sample) is None
        ):
            self.sampled = True
            self.record.needs_leader = self._rules.needs_leader()
            self.sample_from = sample.requested_at + self._refresh_seconds
        self._plan_reads(self.acknowledged_at)

    def observe(self, sample: Sample) -> bool:
        """Receive a sample of the leader, or of the metadata log. Returns whether it counts."""
        if self.is_decided or self.partition[0] not in sample.topics:
            return False
        counts_from = self.acknowledged_at if self._needs_leader() else self.sample_from
        if not self._rules.is_after(sample.requested_at, counts_from):
            return False
        state = sample.partitions.get(self.partition)
        if self.lacking is not None and self._lacked_by == self._judged(state, sample):
            # Thousands may wait for one rack.
            self._sample_later(sample.requested_at)
            return True
        if self._broker is None and state is not None and state.leader_epoch < self._sampled_epoch:
            # Of an earlier leader, since the newer one did not respond this time.
            return False
        refusal = self._refusal_after(state, sample)
        if state is None or (refusal is not None and refusal.cause not in _LACKS):
            self._decide(None if state is None and self.requirement.fail_open else refusal)
            return True
        if self.lacking is not None:
            self.late_from = sample.requested_at
        self.sampled, self.lacking = refusal is None, refusal
        self._lacked_by = self._judged(state, sample)
        self._show(state, sample)
        if self.record is not None:
            self.record.needs_leader = False
        if not self._judge(sample.requested_at):
            # Sample again while logs do not show the record: the ISR may be smaller than this metadata has it.
            self._sample_later(sample.requested_at)
            self._plan_reads(sample.requested_at)
        return True

    def _sample_later(self, sampled_at: float) -> None:
        waited_seconds = sampled_at - self.acknowledged_at
        self.sample_from = sampled_at + self._refresh_seconds * min(_SAMPLES_LONGEST, 1 + waited_seconds)

    def _judged(self, state: SampledPartition | None, sample: Sample) -> tuple[object, ...]:
        """What a sample is judged by."""
        return state, sample.racks, self.requirement, sample.topic_ids.get(self.partition[0])

    def observe_log_ends(self, ends: LogEnds) -> bool:
        """Receive the log ends of a replica. What they do not show is read again a little later. Returns whether they count."""
        _, read = self.reads.get(ends.replica, (0.0, None))
        if read is None or read not in ends.reads or self.record is None:
            return False
        if not self._rules.is_read_after(ends.requested_at, self.acknowledged_at):
            return False
        if read in ends.ends:
            self.record.observe(ends.replica, read.leader_epoch, ends.ends[read])
        if ends.replica == self.record.leader and self._needs_leader():
            # Only a sample can show it, so the next one is due now.
            self.sample_from = self.acknowledged_at
        if not self._judge(ends.requested_at):
            waited_seconds = ends.requested_at - self.acknowledged_at
            self._plan_reads(ends.requested_at + min(_AGAIN_MAX_SECONDS, _AGAIN_SECONDS + waited_seconds / 4))
        return True

    def expire(self) -> None:
        """Refuse what is not verified yet, unless its topic is fail-open and no sample says that racks are missing."""
        if not self.is_decided:
            refusal = self.lacking or self._not_shown()
            self._decide(None if self.requirement.fail_open and self.lacking is None else refusal)

    def abandon(self) -> None:
        """Nobody waits for the result any more."""
        self._decide(None)

    def is_late(self, now: float) -> bool:
        """Whether logs have not shown the record for LATE_SECONDS, while metadata shows enough racks in sync."""
        known = self.sampled and self.record is not None and not self._needs_leader()
        return known and now - self.late_from > LATE_SECONDS

    # Judgement.

    def _needs_leader(self) -> bool:
        return self.record is not None and self.record.needs_leader

    def _show(self, state: SampledPartition, sample: Sample) -> None:
        """Take over the members of the ISR that may show the record, and on the first time the record's leader epoch."""
        self.isr, self.racks = state.isr, sample.racks
        if self._broker is None and self.record is not None:
            changed = (self.record.leader, self._sampled_epoch) != (state.leader, state.leader_epoch)
            self.record = None if changed else self.record
        if self.record is None:
            known = self._leadership or Leadership(state.leader_epoch, sample.topic_ids.get(self.partition[0]))
            leader = BrokerId(state.leader if self._broker is None else self._broker)
            self._topic_id, self._sampled_epoch = known.topic_id, known.leader_epoch
            self.record = AcknowledgedRecord(leader, known.leader_epoch, self.end_offset)

    def _refusal_after(self, state: SampledPartition | None, sample: Sample) -> Refusal | None:
        if state is None:
            return _unknown(self.partition, ProduceVerdict.NOT_ENOUGH_RACKS_AFTER_APPEND, sample)
        if not self._is_led_as_before(state, sample):
            topic, number = self.partition
            message = f"{topic}-{number}: the leader changed before in-sync racks could be counted"
            return Refusal(self.partition, ProduceVerdict.NOT_ENOUGH_RACKS_AFTER_APPEND, Cause.LEADER, message)
        verdict = before_acknowledgement(state.isr, sample.racks, _thresholds(self.requirement, state))
        if verdict is ProduceVerdict.ACCEPT:
            return None
        return _refusal(self.partition, verdict, state, sample, self.requirement)

    def _is_led_as_before(self, state: SampledPartition, sample: Sample) -> bool:
        if self._broker is None:
            return True
        before = self._leadership
        return state.leader == self._broker and (
            before is None
            or (
                before.leader_epoch == state.leader_epoch
                and self._rules.is_same_topic(before.topic_id, sample.topic_ids.get(self.partition[0]))
            )
        )

    def _judge(self, now: float) -> bool:
        """Whether the record is verified now."""
        if not self.sampled or not self._is_held():
            return False
        self.was_late = now - self.late_from > LATE_SECONDS
        self._decide(None)
        return True

    def _is_held(self) -> bool:
        min_racks = self.requirement.thresholds.min_insync_racks
        return (
            self.record is not None
            and self.racks is not None
            and self._rules.is_held(self.record, self.isr, self.racks, min_racks)
        )

    def _decide(self, refusal: Refusal | None) -> None:
        self.is_decided, self.refusal, self.reads = True, refusal, {}

    def _plan_reads(self, at: float) -> None:
        record, racks = self.record, self.racks
        if record is None or racks is None:
            return
        min_racks = self.requirement.thresholds.min_insync_racks
        spare_at = max(at, self.acknowledged_at + SPARE_SECONDS)
        spares, needed = record.spare_reads(self.isr, racks), record.reads(self.isr, racks, min_racks)
        due = {**dict.fromkeys(spares, spare_at), **dict.fromkeys(needed, at)}
        epochs = {**spares, **needed}
        self.reads = {
            replica: (from_, LogRead(self.partition, self._topic_id, epochs[replica])) for replica, from_ in due.items()
        }

    def _not_shown(self) -> Refusal:
        verdict, record, racks = ProduceVerdict.NOT_ENOUGH_RACKS_AFTER_APPEND, self.record, self.racks
        if not self.sampled or record is None or racks is None or record.needs_leader:
            return _unknown(self.partition, verdict)
        self.was_late = True
        holders = record.holders(self.isr)
        names = _names(racks, holders)
        message = (
            f"{self.partition[0]}-{self.partition[1]}: logs show the record in racks {','.join(names)} = {len(names)} < "
            f"min.insync.racks {self.requirement.thresholds.min_insync_racks}, metadata has "
            f"{','.join(_names(racks, self.isr))} in sync"
        )
        return Refusal(self.partition, verdict, Cause.LOGS, message, names)


def _thresholds(requirement: Requirement, state: SampledPartition) -> Thresholds:
    """The thresholds as the broker applies them: it requires no more replicas than there are."""
    factor = state.replication_factor
    return requirement.thresholds if factor is None else requirement.thresholds.of_partition(factor)


def _unknown(partition: Partition, verdict: ProduceVerdict, sample: Sample | None = None) -> Refusal:
    topic, number = partition
    reason = "no broker reported them in time"
    if sample is not None and topic in sample.undescribed:
        reason = "the broker does not describe the topic, for which DESCRIBE on it is needed"
    message = f"{topic}-{number}: in-sync racks are unknown, {reason}"
    return Refusal(partition, verdict, Cause.UNKNOWN, message)


def _refusal(
    partition: Partition, verdict: ProduceVerdict, state: SampledPartition, sample: Sample, requirement: Requirement
) -> Refusal:
    cause = Cause.REPLICAS if verdict in _BY_REPLICAS else Cause.RACKS
    message = error_message(verdict, *partition, state.isr, sample.racks, requirement.thresholds)
    return Refusal(partition, verdict, cause, message, _names(sample.racks, state.isr))


_BY_REPLICAS: Final = frozenset({ProduceVerdict.NOT_ENOUGH_REPLICAS, ProduceVerdict.NOT_ENOUGH_REPLICAS_AFTER_APPEND})


def _names(racks: RackBits, brokers: Iterable[BrokerId]) -> tuple[str, ...]:
    return tuple(map(shown, racks.names(brokers)))
