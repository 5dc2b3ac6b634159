"""The acknowledgement guard: a state machine over produce requests, acknowledgements, samples of the ISR and log ends of replicas.

Before a request is forwarded, each partition's last sample must be fresh and span enough racks. After the broker's
acknowledgement, the response is held until a sample that was requested later shows the same topic, leader and enough racks; and,
in mode `verified`, until members of that ISR on enough racks have shown by their own logs, read after the acknowledgement, that
they hold the record. The leader's rack counts: it appended the record. What is unknown is refused.

It reads no clock: every event carries its time. Source: docs/min-insync-racks.md, "On a Kafka that nobody patches".
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from rackspan.acks.log_ends import AcknowledgedRecord
from rackspan.acks.min_insync_racks import ProduceVerdict, RackBits, Threshold, before_acknowledgement, missed_threshold
from rackspan.acks.produce_errors import error_message
from rackspan.gateway.core.acknowledgement.holds import Cause, Hold, Lead, PendingReads, Refusal, Unverified
from rackspan.gateway.core.acknowledgement.rules import LATE_SECONDS, SPARE_SECONDS, GuardRules, GuardSettings
from rackspan.gateway.core.acknowledgement.samples import (
    LogEnds,
    LogRead,
    Partition,
    PartitionIsr,
    Requirement,
    Sample,
)
from rackspan.model import BrokerId, shown

_PRUNE_ABOVE: Final = 10_000
"""Samples. There are as many as guarded topics that are produced to, times the brokers that lead them."""


@dataclass(frozen=True, slots=True)
class Admission:
    """What may be forwarded. `unsampled` partitions wait for a sample of their leader first."""

    refusals: Mapping[Partition, Refusal]
    unsampled: frozenset[Partition]


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A partition whose ISR has enough racks by its leader's metadata, while logs do not show a record in them."""

    partition: Partition
    seconds: float
    isr: tuple[BrokerId, ...]
    holders: tuple[BrokerId, ...]


class AcknowledgementGuard:
    """One for all connections of a process. Holds are completed by `observe` and `expire`."""

    def __init__(self, settings: GuardSettings, rules: GuardRules | None = None) -> None:
        self.settings = settings
        self._rules = rules or GuardRules()
        self._samples: dict[tuple[int, str], Sample] = {}
        """The last sample of each topic by each broker."""
        self._prune_above = _PRUNE_ABOVE
        self._holds: dict[int, dict[Hold, None]] = {}
        """Acknowledged and not verified, by broker, in order."""
        self._reads = PendingReads()
        self.late_records = 0
        """Acknowledgements that metadata showed in enough racks LATE_SECONDS before logs did, or before they were refused."""

    # Before a request is forwarded.

    def admit(
        self, broker: int, requirements: Mapping[Partition, Requirement], now: float, *, final: bool = False
    ) -> Admission:
        """Which partitions may be forwarded to the broker.

        `final`: nothing is waited for any more. A sample up to max.staleness.ms old is used then, and what has none is refused.
        """
        refusals: dict[Partition, Refusal] = {}
        unsampled: set[Partition] = set()
        for partition, requirement in requirements.items():
            sample = self._samples.get((broker, partition[0]))
            oldest = self.settings.max_staleness if final else self.settings.refresh
            if sample is None or not self._rules.is_fresh(sample.requested_at, now, oldest):
                if not final:
                    unsampled.add(partition)
                elif not requirement.fail_open:
                    refusals[partition] = self._unknown(partition, ProduceVerdict.NOT_ENOUGH_RACKS)
                continue
            refusal = self._before(partition, requirement, sample, sample.partitions.get(partition))
            if refusal is not None:
                refusals[partition] = refusal
        return Admission(refusals, frozenset(unsampled))

    def _before(
        self, partition: Partition, requirement: Requirement, sample: Sample, state: PartitionIsr | None
    ) -> Refusal | None:
        """None also where the broker refuses by itself: it does not lead the partition, or lacks replicas."""
        if state is None or state.leader != sample.source:
            return None
        if missed_threshold(state.isr, sample.racks, requirement.thresholds) is not Threshold.RACKS:
            return None
        return _refusal(partition, ProduceVerdict.NOT_ENOUGH_RACKS, state, sample, requirement)

    def refuses_before(self) -> bool:
        """False where refusals are counted only."""
        return self._rules.refuses_before(self.settings)

    def forwarded(self, broker: int, requirements: Mapping[Partition, Requirement]) -> Hold | None:
        """A request is forwarded now. None where its acknowledgement need not be held."""
        if not requirements or not self._rules.checks_after(self.settings):
            return None
        return Hold(broker, requirements, {partition: self._lead(partition, broker) for partition in requirements})

    def _lead(self, partition: Partition, broker: int) -> Lead | None:
        sample = self._samples.get((broker, partition[0]))
        state = sample.partitions.get(partition) if sample is not None else None
        if sample is None or state is None or state.leader != broker:
            return None
        return Lead(state.leader_epoch, sample.topic_ids.get(partition[0]))

    # After the broker's acknowledgement.

    def acknowledged(self, hold: Hold, end_offsets: Mapping[Partition, int | None], now: float) -> bool:
        """The broker acknowledged the records before these offsets; None where its response names none.

        Returns whether nothing is left to verify.
        """
        hold.begin(end_offsets, now)
        if not hold.waiting:
            return True
        self._holds.setdefault(hold.broker, {})[hold] = None
        for partition, unverified in hold.waiting.items():
            sample, lead = self._samples.get((hold.broker, partition[0])), hold.leads[partition]
            state = sample.partitions.get(partition) if sample is not None else None
            if sample is not None and state is not None and lead is not None:
                # The replicas to read are those of the last sample, so that logs and the next sample are read at the same time.
                self._show(hold, unverified, partition, state, sample)
                self._plan_reads(hold, partition, unverified, now)
        return False

    def observe(self, sample: Sample) -> list[Hold]:
        """The holds that a sample completes."""
        for topic in sample.topics:
            self._samples[sample.source, topic] = sample
        if len(self._samples) > self._prune_above:
            self._prune(sample.requested_at)
        complete: list[Hold] = []
        for hold in tuple(self._holds.get(sample.source, ())):
            for partition, unverified in tuple(hold.waiting.items()):
                if partition[0] in sample.topics and self._rules.is_after(sample.requested_at, unverified.sample_from):
                    self._observe_sample(hold, partition, unverified, sample)
            self._complete(hold, complete)
        return complete

    def _prune(self, now: float) -> None:
        """Drop samples that count for nothing any more: a client chooses how many topics it names, existing or not."""
        oldest = now - max(self.settings.max_staleness, self.settings.refresh)
        self._samples = {key: one for key, one in self._samples.items() if one.requested_at >= oldest}
        self._prune_above = max(_PRUNE_ABOVE, 2 * len(self._samples))

    def _observe_sample(self, hold: Hold, partition: Partition, unverified: Unverified, sample: Sample) -> None:
        state = sample.partitions.get(partition)
        refusal = self._after(hold, partition, state, sample)
        if state is None or refusal is not None:
            self._resolve(hold, partition, refusal)
            return
        unverified.sampled = True
        self._show(hold, unverified, partition, state, sample)
        if not self._verify(hold, partition, unverified, sample.requested_at):
            # Read again while logs do not show the record: the ISR may be smaller than this metadata has it.
            unverified.sample_from = sample.requested_at + self.settings.refresh
            self._plan_reads(hold, partition, unverified, sample.requested_at)

    def _show(
        self, hold: Hold, unverified: Unverified, partition: Partition, state: PartitionIsr, sample: Sample
    ) -> None:
        """The members of the ISR that may show the record."""
        unverified.isr, unverified.racks = state.isr, sample.racks
        if unverified.record is None and self._rules.reads_logs(self.settings):
            lead = hold.leads[partition]
            epoch = state.leader_epoch if lead is None else lead.leader_epoch
            unverified.topic_id = sample.topic_ids.get(partition[0]) if lead is None else lead.topic_id
            unverified.record = AcknowledgedRecord(BrokerId(hold.broker), epoch, unverified.end_offset)

    def _after(self, hold: Hold, partition: Partition, state: PartitionIsr | None, sample: Sample) -> Refusal | None:
        if state is None:
            return self._unknown(partition, ProduceVerdict.NOT_ENOUGH_RACKS_AFTER_APPEND)
        lead = hold.leads[partition]
        same = lead is None or (
            lead.leader_epoch == state.leader_epoch
            and self._rules.is_same_topic(lead.topic_id, sample.topic_ids.get(partition[0]))
        )
        if state.leader != hold.broker or not same:
            return Refusal(
                partition,
                ProduceVerdict.NOT_ENOUGH_RACKS_AFTER_APPEND,
                Cause.LEADER,
                f"{partition[0]}-{partition[1]}: the leader changed before in-sync racks could be counted",
            )
        requirement = hold.requirements[partition]
        verdict = before_acknowledgement(state.isr, sample.racks, requirement.thresholds)
        return None if verdict is ProduceVerdict.ACCEPT else _refusal(partition, verdict, state, sample, requirement)

    def _verify(self, hold: Hold, partition: Partition, unverified: Unverified, now: float) -> bool:
        if not unverified.sampled or not self._is_held(hold, partition, unverified):
            return False
        self.late_records += now - hold.acknowledged_at > LATE_SECONDS
        self._resolve(hold, partition, None)
        return True

    def _is_held(self, hold: Hold, partition: Partition, unverified: Unverified) -> bool:
        if not self._rules.reads_logs(self.settings):
            return True
        record, racks = unverified.record, unverified.racks
        least = hold.requirements[partition].thresholds.min_insync_racks
        return record is not None and racks is not None and self._rules.is_held(record, unverified.isr, racks, least)

    def _resolve(self, hold: Hold, partition: Partition, refusal: Refusal | None) -> None:
        hold.resolve(partition, refusal)
        self._reads.drop(hold, partition)

    def _complete(self, hold: Hold, complete: list[Hold]) -> None:
        if not hold.waiting:
            complete.append(hold)
            self._forget(hold)

    # Log ends of replicas.

    def _plan_reads(self, hold: Hold, partition: Partition, unverified: Unverified, at: float) -> None:
        record, racks = unverified.record, unverified.racks
        if record is None or racks is None:
            return
        least = hold.requirements[partition].thresholds.min_insync_racks
        spare_at = max(at, hold.acknowledged_at + SPARE_SECONDS)
        reads = {
            **{replica: (spare_at, epoch) for replica, epoch in record.spare_reads(unverified.isr, racks).items()},
            **{replica: (at, epoch) for replica, epoch in record.reads(unverified.isr, racks, least).items()},
        }
        planned = {
            replica: (from_, LogRead(partition, unverified.topic_id, epoch))
            for replica, (from_, epoch) in reads.items()
        }
        self._reads.plan(hold, partition, planned)

    def observe_log_ends(self, ends: LogEnds) -> list[Hold]:
        """The holds that a replica's log ends complete. What it did not show is read again a little later."""
        complete: list[Hold] = []
        for hold, partition, read in self._reads.waiting_for(ends.replica, ends.reads):
            unverified = hold.waiting[partition]
            if unverified.record is None or not self._rules.is_read_after(ends.requested_at, hold.acknowledged_at):
                continue
            if read in ends.ends:
                unverified.record.observe(ends.replica, read.leader_epoch, ends.ends[read])
            if not self._verify(hold, partition, unverified, ends.requested_at):
                waited = ends.requested_at - hold.acknowledged_at
                again = min(self.settings.refresh, _AGAIN_SECONDS + waited / 4)
                self._plan_reads(hold, partition, unverified, ends.requested_at + again)
            self._complete(hold, complete)
        return complete

    def replicas_to_read(self) -> Iterable[BrokerId]:
        """The brokers that hold what has to be read, now or later."""
        return self._reads.replicas()

    def reads_wanted(self, replica: BrokerId, now: float) -> frozenset[LogRead]:
        """What to read at this broker now."""
        return self._reads.wanted(replica, now)

    def reads_wanted_at(self, replica: BrokerId) -> float | None:
        """The earliest time at which something is to be read at this broker; None while nothing is."""
        return self._reads.wanted_at(replica)

    def disagreement(self, now: float) -> Disagreement | None:
        """The oldest record that logs do not show for LATE_SECONDS, while its leader's metadata shows enough racks in sync."""
        late = [
            Disagreement(
                partition,
                now - hold.acknowledged_at,
                unverified.isr,
                tuple(unverified.record.holders(unverified.isr)),
            )
            for holds in self._holds.values()
            for hold in holds
            if now - hold.acknowledged_at > LATE_SECONDS
            for partition, unverified in hold.waiting.items()
            if unverified.sampled and unverified.record is not None
        ]
        return max(late, key=lambda one: one.seconds, default=None)

    # What cannot be verified.

    def _unknown(self, partition: Partition, verdict: ProduceVerdict) -> Refusal:
        message = f"{partition[0]}-{partition[1]}: in-sync racks are unknown, no broker reported them in time"
        return Refusal(partition, verdict, Cause.UNKNOWN, message)

    def expire(self, now: float) -> list[Hold]:
        """The holds that could not be verified in time. Each is refused, unless its topic is fail-open."""
        expired = [
            hold
            for holds in self._holds.values()
            for hold in holds
            if now - hold.acknowledged_at > self.settings.verify_timeout
        ]
        for hold in expired:
            self._give_up(hold)
        return expired

    def _give_up(self, hold: Hold) -> None:
        for partition, unverified in tuple(hold.waiting.items()):
            refusal = self._not_shown(partition, unverified, hold.requirements[partition])
            self._resolve(hold, partition, None if hold.requirements[partition].fail_open else refusal)
        self._forget(hold)

    def _not_shown(self, partition: Partition, unverified: Unverified, requirement: Requirement) -> Refusal:
        record, racks = unverified.record, unverified.racks
        if not unverified.sampled or record is None or racks is None:
            return self._unknown(partition, ProduceVerdict.NOT_ENOUGH_RACKS_AFTER_APPEND)
        self.late_records += 1
        holders = record.holders(unverified.isr)
        names = ",".join(map(shown, racks.names(holders)))
        least = requirement.thresholds.min_insync_racks
        message = (
            f"{partition[0]}-{partition[1]}: logs show the record in racks {names} = {racks.count(holders)} < "
            f"min.insync.racks {least}, metadata has {','.join(map(shown, racks.names(unverified.isr)))} in sync"
        )
        return Refusal(
            partition, ProduceVerdict.NOT_ENOUGH_RACKS_AFTER_APPEND, Cause.LOGS, message, _names(racks, holders)
        )

    def _forget(self, hold: Hold) -> None:
        self._holds.get(hold.broker, {}).pop(hold, None)

    # What has to be sampled.

    def wanted(self, broker: int, now: float) -> frozenset[str]:
        """The topics of which a sample of this broker, requested now, would verify something."""
        return frozenset(
            partition[0]
            for hold in self._holds.get(broker, ())
            for partition, unverified in hold.waiting.items()
            if unverified.sample_from <= now
        )

    def wanted_at(self, broker: int) -> float | None:
        """The earliest time at which a sample of this broker is wanted; None while nothing is held."""
        times = [one.sample_from for hold in self._holds.get(broker, ()) for one in hold.waiting.values()]
        return min(times, default=None)

    @property
    def held(self) -> int:
        return sum(map(len, self._holds.values()))


def out_of_order(partition: Partition) -> Refusal:
    """Of a batch behind one that was refused; see order.py."""
    message = f"{partition[0]}-{partition[1]}: an earlier batch of this producer was refused and has to come first"
    return Refusal(partition, ProduceVerdict.NOT_ENOUGH_RACKS, Cause.ORDER, message)


def _refusal(
    partition: Partition, verdict: ProduceVerdict, state: PartitionIsr, sample: Sample, requirement: Requirement
) -> Refusal:
    return Refusal(
        partition,
        verdict,
        _CAUSES.get(verdict, Cause.RACKS),
        error_message(verdict, *partition, state.isr, sample.racks, requirement.thresholds),
        _names(sample.racks, state.isr),
    )


def _names(racks: RackBits, brokers: Iterable[BrokerId]) -> tuple[str, ...]:
    return tuple(map(shown, racks.names(brokers)))


_AGAIN_SECONDS: Final = 0.002
"""Until a log that did not show a record is read again; longer each time."""

_CAUSES: Final = {
    ProduceVerdict.NOT_ENOUGH_REPLICAS: Cause.REPLICAS,
    ProduceVerdict.NOT_ENOUGH_REPLICAS_AFTER_APPEND: Cause.REPLICAS,
}
