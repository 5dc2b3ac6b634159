"""The acknowledgement guard: a state machine over produce requests, acknowledgements and samples of the ISR.

Before a request is forwarded, each partition's last sample must be fresh and span enough racks. After the broker's
acknowledgement, the response is held until a sample that was requested later shows the same leader and enough racks. A member
joins the ISR only after it has reached the high watermark, so every member of an ISR that is current after the
acknowledgement holds the record (unclean elections and lost disks aside). What is unknown is refused.

It reads no clock: every event carries its time. Source: docs/min-insync-racks.md, "On a Kafka nobody may patch".
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias

from rackspan.acks.min_insync_racks import (
    ProduceVerdict,
    RackBits,
    Threshold,
    Thresholds,
    before_acknowledgement,
    missed_threshold,
)
from rackspan.acks.produce_errors import error_message
from rackspan.gateway.core.acknowledgement.rules import NEVER, STALLED_SECONDS, GuardRules, GuardSettings
from rackspan.model import BrokerId, shown

Partition: TypeAlias = tuple[str, int]
"""Topic and partition."""

_PRUNE_ABOVE: Final = 10_000
"""Samples. There are as many as guarded topics that are produced to, times the brokers that lead them."""


@dataclass(frozen=True, slots=True)
class PartitionIsr:
    """One partition in a sample. `leader` is -1 where there is none."""

    leader: int
    leader_epoch: int
    isr: tuple[BrokerId, ...]


@dataclass(frozen=True, slots=True)
class Sample:
    """The ISRs that `source` reported to a request sent at `requested_at`. Of `topics` it has every partition there is."""

    source: int
    requested_at: float
    racks: RackBits
    topics: frozenset[str]
    partitions: Mapping[Partition, PartitionIsr]


@dataclass(frozen=True, slots=True)
class Requirement:
    """What a guarded partition requires. `fail_open`: what is unknown is accepted."""

    thresholds: Thresholds
    fail_open: bool = False


class Cause(Enum):
    """Why a partition of a request was refused, for metrics and logs."""

    RACKS = "too few racks in sync"
    REPLICAS = "too few replicas in sync"
    UNKNOWN = "the ISR is unknown"
    LEADER = "the leader changed"
    ORDER = "an earlier batch of the producer was refused"


@dataclass(frozen=True, slots=True)
class Refusal:
    """The response for one partition in place of the broker's."""

    partition: Partition
    verdict: ProduceVerdict
    cause: Cause
    message: str | None
    isr_racks: tuple[str, ...] = ()
    """The racks of the sampled ISR, by name; empty where it is unknown."""


@dataclass(frozen=True, slots=True)
class Admission:
    """What may be forwarded. `unsampled` partitions wait for a sample of their leader first."""

    refusals: Mapping[Partition, Refusal]
    unsampled: frozenset[Partition]


class Hold:
    """A request that was forwarded: its acknowledgement, once it has come, until it is verified."""

    __slots__ = ("_waiting", "acknowledged_at", "broker", "forwarded_at", "leader_epochs", "refusals", "requirements")

    def __init__(
        self,
        broker: int,
        forwarded_at: float,
        requirements: Mapping[Partition, Requirement],
        leader_epochs: Mapping[Partition, int | None],
    ) -> None:
        self.broker = broker
        self.forwarded_at = forwarded_at
        self.requirements = requirements
        self.leader_epochs = leader_epochs
        """As sampled before the request was forwarded; None where that is not known."""
        self.acknowledged_at = NEVER
        self.refusals: dict[Partition, Refusal] = {}
        self._waiting: dict[Partition, float] = {}
        """The time from which a sample counts, by partition that is not verified yet."""

    def begin(self, partitions: Iterable[Partition], now: float) -> None:
        self.acknowledged_at = now
        self._waiting = dict.fromkeys(partitions, now)

    @property
    def waiting(self) -> Mapping[Partition, float]:
        return self._waiting

    def resolve(self, partition: Partition, refusal: Refusal | None) -> None:
        del self._waiting[partition]
        if refusal is not None:
            self.refusals[partition] = refusal

    def wait_until(self, partition: Partition, sample_from: float) -> None:
        self._waiting[partition] = sample_from


class AcknowledgementGuard:
    """One for all connections of a process. Holds are completed by `observe` and `expire`."""

    def __init__(self, settings: GuardSettings, rules: GuardRules | None = None) -> None:
        self.settings = settings
        self._rules = rules or GuardRules()
        self._samples: dict[tuple[int, str], Sample] = {}
        """The last sample of each topic by each broker."""
        self._prune_above = _PRUNE_ABOVE
        self._last_good: dict[Partition, float] = {}
        self._stalled: dict[Partition, float] = {}
        """When a request was acknowledged last that had waited long for followers."""
        self._holds: dict[int, dict[Hold, None]] = {}
        """Acknowledged and not verified, by broker, in order."""

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

    def forwarded(self, broker: int, requirements: Mapping[Partition, Requirement], now: float) -> Hold | None:
        """A request is forwarded now. None where its acknowledgement need not be held."""
        if not requirements or not self._rules.checks_after(self.settings):
            return None
        epochs = {partition: self._leader_epoch(partition, broker) for partition in requirements}
        return Hold(broker, now, requirements, epochs)

    def _leader_epoch(self, partition: Partition, broker: int) -> int | None:
        sample = self._samples.get((broker, partition[0]))
        state = sample.partitions.get(partition) if sample is not None else None
        return state.leader_epoch if state is not None and state.leader == broker else None

    # After the broker's acknowledgement.

    def acknowledged(self, hold: Hold, partitions: Sequence[Partition], now: float) -> bool:
        """The broker acknowledged these partitions. Whether nothing is left to verify."""
        hold.begin(partitions, now)
        if not hold.waiting:
            return True
        if now - hold.forwarded_at > STALLED_SECONDS:
            self._stalled.update(dict.fromkeys(partitions, now))
        self._holds.setdefault(hold.broker, {})[hold] = None
        return False

    def observe(self, sample: Sample) -> list[Hold]:
        """The holds that a sample completes."""
        for topic in sample.topics:
            self._samples[sample.source, topic] = sample
        if len(self._samples) > self._prune_above:
            self._prune(sample.requested_at)
        complete: list[Hold] = []
        for hold in tuple(self._holds.get(sample.source, ())):
            for partition, sample_from in tuple(hold.waiting.items()):
                if partition[0] in sample.topics and self._rules.is_after(sample.requested_at, sample_from):
                    self._verify(hold, partition, sample)
            if not hold.waiting:
                complete.append(hold)
                self._forget(hold)
        return complete

    def _prune(self, now: float) -> None:
        """Drop samples that count for nothing any more: a client chooses how many topics it names, existing or not."""
        oldest = now - max(self.settings.max_staleness, self.settings.refresh)
        self._samples = {key: one for key, one in self._samples.items() if one.requested_at >= oldest}
        self._prune_above = max(_PRUNE_ABOVE, 2 * len(self._samples))

    def _verify(self, hold: Hold, partition: Partition, sample: Sample) -> None:
        requirement = hold.requirements[partition]
        state = sample.partitions.get(partition)
        refusal = self._after(hold, partition, requirement, state, sample)
        if refusal is not None:
            hold.resolve(partition, refusal)
            self._last_good.pop(partition, None)
            return
        last_good = self._last_good.get(partition, NEVER)
        stalled_at = self._stalled.get(partition, NEVER)
        settled_at = self._rules.settled_at(last_good, stalled_at, hold.acknowledged_at, self.settings)
        if sample.requested_at < settled_at:
            hold.wait_until(partition, settled_at)
            return
        hold.resolve(partition, None)
        self._last_good[partition] = max(last_good, hold.forwarded_at)
        if sample.requested_at >= stalled_at + self.settings.stalled_settle:
            self._stalled.pop(partition, None)

    def _after(
        self, hold: Hold, partition: Partition, requirement: Requirement, state: PartitionIsr | None, sample: Sample
    ) -> Refusal | None:
        if state is None:
            return self._unknown(partition, ProduceVerdict.NOT_ENOUGH_RACKS_AFTER_APPEND)
        epoch = hold.leader_epochs[partition]
        if state.leader != hold.broker or epoch not in (None, state.leader_epoch):
            return Refusal(
                partition,
                ProduceVerdict.NOT_ENOUGH_RACKS_AFTER_APPEND,
                Cause.LEADER,
                f"{partition[0]}-{partition[1]}: the leader changed before in-sync racks could be counted",
            )
        verdict = before_acknowledgement(state.isr, sample.racks, requirement.thresholds)
        return None if verdict is ProduceVerdict.ACCEPT else _refusal(partition, verdict, state, sample, requirement)

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
        for partition in tuple(hold.waiting):
            unknown = self._unknown(partition, ProduceVerdict.NOT_ENOUGH_RACKS_AFTER_APPEND)
            hold.resolve(partition, None if hold.requirements[partition].fail_open else unknown)
        self._forget(hold)

    def _forget(self, hold: Hold) -> None:
        self._holds.get(hold.broker, {}).pop(hold, None)

    # What has to be sampled.

    def wanted(self, broker: int, now: float) -> frozenset[str]:
        """The topics of which a sample of this broker, requested now, would verify something."""
        return frozenset(
            partition[0]
            for hold in self._holds.get(broker, ())
            for partition, sample_from in hold.waiting.items()
            if sample_from <= now
        )

    def wanted_at(self, broker: int) -> float | None:
        """The earliest time at which a sample of this broker is wanted; None while nothing is held."""
        times = [sample_from for hold in self._holds.get(broker, ()) for sample_from in hold.waiting.values()]
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
        tuple(map(shown, sample.racks.names(state.isr))),
    )


_CAUSES: Final = {
    ProduceVerdict.NOT_ENOUGH_REPLICAS: Cause.REPLICAS,
    ProduceVerdict.NOT_ENOUGH_REPLICAS_AFTER_APPEND: Cause.REPLICAS,
}
