"""The acknowledgement guard: the records of all Produce requests of a process, each judged by acks/verification.py.

It keeps the last sample of each broker, holds responses until their records are verified or the request's own timeout is over, and
lists the samples and log ends to be read. It decides nothing about a record itself, reads no clock, and sends nothing.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final, Protocol

from rackspan.acks.isr_samples import LogEnds, LogRead, Partition, Sample
from rackspan.acks.min_insync_racks import ProduceVerdict, Thresholds
from rackspan.acks.produce_errors import Cause, Refusal
from rackspan.acks.verification import (
    LATE_SECONDS,
    Leadership,
    RecordVerification,
    Requirement,
    VerificationRules,
    is_known,
    refusal_before,
)
from rackspan.model import BrokerId

NEVER: Final = float("-inf")
ALWAYS: Final = float("inf")

FAIL_OPEN_SECONDS: Final = 5.0
"""What is unknown is accepted after so long, if its topic is fail-open: clients wait no longer than their request's timeout."""

HOLD_BYTES: Final = 4096
HOLD_PARTITION_BYTES: Final = 1536
"""Memory of a request that waits, and of each of its partitions: tests/gateway/handlers/test_produce_rules.py measures it."""

_ONE_RACK: Final = Requirement(Thresholds())
"""Of a topic that is guarded no more."""

_PRUNE_ABOVE: Final = 10_000
"""Samples. There are as many as guarded topics that are produced to, times the brokers that lead them."""


class AcknowledgementMode(Enum):
    """How the gateway applies min.insync.racks to acknowledgements."""

    OFF = "off"
    """Nothing is read, refused or held; min.insync.racks is no config here."""
    ADVISORY = "advisory"
    """Nothing is refused. What `pre` would refuse is counted and logged."""
    PRE = "pre"
    """Refused before the request is forwarded. Requests that wait in the broker while the ISR shrinks are acknowledged."""
    VERIFIED = "verified"
    """And the acknowledgement is held until metadata read after it, and replicas' own logs, show the record in enough racks."""
    STRICT = "strict"
    """The same by the ISR in the controllers' log, in place of a broker's metadata, which may be late."""


@dataclass(frozen=True, slots=True)
class GuardSettings:
    """The mode, and how old a sample may be and how long it is waited for."""

    mode: AcknowledgementMode = AcknowledgementMode.VERIFIED
    max_staleness_seconds: float = 1.0
    """A sample that is older is not used."""
    refresh_seconds: float = 0.05
    """Age of a sample from which a new one is taken before a request is forwarded, and again while logs do not show a record."""
    hold_memory_bytes: int = 32 * 1024 * 1024
    """Of requests that wait for a rack, or for late logs. Beyond it they are refused at once."""
    sample_timeout_seconds: float = 2.0
    """How long a request waits for a sample before it is refused."""

    @property
    def refuses_before(self) -> bool:
        """Whether a request is refused before it is forwarded."""
        return self.mode is not AcknowledgementMode.ADVISORY

    @property
    def checks_after(self) -> bool:
        """Whether an acknowledgement is held until it is verified."""
        return self.mode in (AcknowledgementMode.VERIFIED, AcknowledgementMode.STRICT)


@dataclass(frozen=True, slots=True)
class Admission:
    """Refused partitions of a request. `unsampled` partitions wait for a sample of their leader first.

    `aging` topics have samples that the next request should not have to replace: a sample of them is requested, and nothing waits for it.
    """

    refusals: Mapping[Partition, Refusal]
    unsampled: frozenset[Partition]
    aging: frozenset[str]


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A partition whose ISR has enough racks by its leader's metadata, while logs do not show a record in them."""

    partition: Partition
    seconds: float
    isr: tuple[BrokerId, ...]
    holders: tuple[BrokerId, ...]

    def __str__(self) -> str:
        topic, number = self.partition
        return (
            f"{topic}-{number}: for {self.seconds:.1f} s metadata has brokers {_ids(self.isr)} in sync, and only the logs of "
            f"{_ids(self.holders)} show an acknowledged record; the leader's metadata is late, or a follower is behind"
        )


class ValuesLease(Protocol):
    """The lease on the values of min.insync.racks by which acknowledgements are judged."""

    def is_current(self) -> bool:
        """Whether every value is known that was acknowledged to the client who set it."""
        ...

    def is_raisable(self, topic: str, broker: int) -> bool:
        """Whether a value that is not known may require more of a topic on this leader."""
        ...


class Hold:
    """A forwarded request: its acknowledgement, once it has been received, until every record in it is decided."""

    __slots__ = (
        "acknowledged_at",
        "broker",
        "end_offsets",
        "is_stalled",
        "leaderships",
        "refusals",
        "requirements",
        "size_bytes",
        "until",
        "waiting",
    )

    def __init__(
        self,
        broker: int,
        requirements: Mapping[Partition, Requirement],
        leaderships: Mapping[Partition, Leadership | None],
        until: float,
    ) -> None:
        """`until`: the end of the request's own timeout."""
        self.broker = broker
        self.requirements = requirements
        self.leaderships = leaderships
        """None if it is unknown. A partition that is guarded since the request was forwarded is in neither."""
        self.until = until
        self.acknowledged_at = NEVER
        self.end_offsets: Mapping[Partition, int | None] = {}
        """By acknowledged partition, the offset after its records; None if the broker's response names none."""
        self.is_stalled = False
        """Whether racks were missing, or logs were late, after the acknowledgement."""
        self.size_bytes = 0
        self.refusals: dict[Partition, Refusal] = {}
        self.waiting: dict[Partition, RecordVerification] = {}


class AcknowledgementGuard:
    """One for all connections of a process. Holds are completed by `observe`, `observe_log_ends`, `leased` and `expire`."""

    def __init__(
        self,
        settings: GuardSettings,
        rules: VerificationRules | None = None,
        required: Callable[[str, int], Requirement | None] | None = None,
        lease: ValuesLease | None = None,
    ) -> None:
        """`required` gives what a topic requires on a leader now; without it a record has to meet what was required when it was sent."""
        self.settings = settings
        """Replaced when the config is read again, but for the mode."""
        self._required = required
        self._lease = lease
        self._unleased: dict[Hold, None] = {}
        """Acknowledged, and to be verified once the values are leased, in order."""
        self._rules = rules or VerificationRules()
        self.checks_after = settings.checks_after and self._rules.checks_after()
        """Whether acknowledgements are held."""
        self._samples: dict[tuple[int, str], Sample] = {}
        """The last sample of each topic by each broker."""
        self._prune_above = _PRUNE_ABOVE
        self._holds: dict[int, dict[Hold, None]] = {}
        """Acknowledged and not verified, by broker, in order."""
        self._reads: dict[BrokerId, dict[RecordVerification, Hold]] = {}
        """The records whose log ends are to be read, by replica."""
        self.late_records = 0
        """Acknowledgements that metadata showed in enough racks LATE_SECONDS before logs did, or before they were refused."""
        self.ends_at = ALWAYS
        """When the process ends: nothing is held for longer."""
        self.on_stalled: Callable[[Hold], None] = lambda _: None
        """Called with each hold that begins to wait for a rack, or for late logs."""
        self.stalled_bytes = 0
        """Memory of the holds that wait so."""
        self.overflows = 0
        """Requests that were refused because they would have taken more memory than that may be."""

    # Before a request is forwarded.

    def admit(
        self, broker: int, requirements: Mapping[Partition, Requirement], now: float, *, final: bool = False
    ) -> Admission:
        """Which partitions may be forwarded to the broker.

        `final`: nothing is waited for any more. A sample up to max.staleness.ms old is used then; without one the partition is refused.
        """
        refusals: dict[Partition, Refusal] = {}
        unsampled: set[Partition] = set()
        aging: set[str] = set()
        oldest_seconds = self.settings.max_staleness_seconds if final else self.settings.refresh_seconds
        for partition, requirement in requirements.items():
            sample = self._samples.get((broker, partition[0]))
            if not is_known(sample, now, oldest_seconds, self._rules):
                if not final:
                    unsampled.add(partition)
                    continue
                sample = None
            elif not is_known(sample, now, self.settings.refresh_seconds / 2, self._rules):
                aging.add(partition[0])
            refusal = refusal_before(partition, requirement, sample, sent_to=broker)
            if refusal is not None:
                refusals[partition] = refusal
        return Admission(refusals, frozenset(unsampled), frozenset(aging))

    def forwarded(self, broker: int, requirements: Mapping[Partition, Requirement], until: float) -> Hold | None:
        """A request is forwarded now, whose own timeout ends at `until`. None if its acknowledgement need not be held."""
        if not requirements or not self.checks_after:
            return None
        leaderships = {partition: self._leadership(partition, broker) for partition in requirements}
        return Hold(broker, requirements, leaderships, until)

    def _leadership(self, partition: Partition, broker: int) -> Leadership | None:
        sample = self._samples.get((broker, partition[0]))
        state = sample.partitions.get(partition) if sample is not None else None
        if sample is None or state is None or state.leader != broker:
            return None
        return Leadership(state.leader_epoch, sample.topic_ids.get(partition[0]))

    # After the broker's acknowledgement.

    def acknowledged(self, hold: Hold, end_offsets: Mapping[Partition, int | None], now: float) -> bool:
        """The broker acknowledged the records before these offsets; None if its response names none.

        Returns whether nothing is left to verify.
        """
        hold.acknowledged_at, hold.end_offsets = now, end_offsets
        hold.size_bytes = HOLD_BYTES + len(end_offsets) * HOLD_PARTITION_BYTES
        return self._verify(hold, now)

    def _verify(self, hold: Hold, now: float) -> bool:
        """Begin to verify what is required now. Returns whether nothing is left to verify."""
        if self._is_unleased(hold):
            self._unleased[hold] = None
            return False
        for partition, end_offset in hold.end_offsets.items():
            if partition in hold.refusals or not self._is_guarded(hold, partition):
                continue
            record = hold.waiting[partition] = RecordVerification(
                partition,
                self._requirement(hold, partition),
                end_offset,
                now,
                broker=hold.broker,
                leadership=hold.leaderships.get(partition),
                refresh_seconds=self.settings.refresh_seconds,
                rules=self._rules,
            )
            # In mode strict no sample of before is used: the ISR of the controllers' log is to be that after the acknowledgement.
            verified = self.settings.mode is AcknowledgementMode.VERIFIED
            record.expect(self._samples.get((hold.broker, partition[0])), counts=verified)
            self._plan_reads(hold, record)
        if hold.waiting:
            self._holds.setdefault(hold.broker, {})[hold] = None
        return not hold.waiting

    def _is_guarded(self, hold: Hold, partition: Partition) -> bool:
        """Whether a record is verified: its topic requires more than one rack, or did when the request was forwarded."""
        guarded = self._required is None or self._required(partition[0], hold.broker) is not None
        return guarded or partition in hold.requirements

    # The lease on the values by which is judged.

    def _is_unleased(self, hold: Hold) -> bool:
        """Whether a value that is not known here may require more of a record in the hold."""
        undecided = hold.end_offsets.keys() - hold.refusals.keys()
        return any(self.is_unleased(topic, hold.broker) for topic, _ in undecided)

    def is_unleased(self, topic: str, broker: int) -> bool:
        """Whether acks=all of a topic may not be acknowledged, since a value that is not known here may require more."""
        return not self.is_leased() and self._lease is not None and self._lease.is_raisable(topic, broker)

    def is_leased(self) -> bool:
        """Whether every topic is acknowledged by values that are known."""
        return self._lease is None or self._lease.is_current()

    def leased(self, now: float) -> list[Hold]:
        """The values are leased again: verify what waited for that. The holds of which nothing is left to verify."""
        unleased, self._unleased = self._unleased, {}
        complete: list[Hold] = []
        for hold in unleased:
            if self._verify(hold, now):
                self._end(hold, complete)
        return complete

    def observe(self, sample: Sample) -> list[Hold]:
        """The holds that a sample completes."""
        for topic in sample.topics:
            before = self._samples.get((sample.source, topic))
            if before is None or before.requested_at <= sample.requested_at:
                self._samples[sample.source, topic] = sample
        if len(self._samples) > self._prune_above:
            self._prune(sample.requested_at)
        complete: list[Hold] = []
        for hold in tuple(self._holds.get(sample.source, ())):
            for record in tuple(hold.waiting.values()):
                record.requirement = self._requirement(hold, record.partition)
                if record.observe(sample):
                    self._continue(hold, record, complete)
                    if record.lacking is not None and not record.is_decided:
                        self._stall(hold, complete)
        return complete

    def _prune(self, now: float) -> None:
        """Drop samples that are too old to be used: a client chooses how many topics it names, existing or not."""
        oldest = now - max(self.settings.max_staleness_seconds, self.settings.refresh_seconds)
        self._samples = {key: sample for key, sample in self._samples.items() if sample.requested_at >= oldest}
        self._prune_above = max(_PRUNE_ABOVE, 2 * len(self._samples))

    def observe_log_ends(self, ends: LogEnds) -> list[Hold]:
        """The holds that a replica's log ends complete."""
        complete: list[Hold] = []
        for record, hold in tuple(self._reads.get(ends.replica, {}).items()):
            record.requirement = self._requirement(hold, record.partition)
            if record.observe_log_ends(ends):
                self._continue(hold, record, complete)
        return complete

    def expire(self, now: float) -> list[Hold]:
        """The holds that could not be verified within their request's timeout. Each is refused, unless its topic is fail-open."""
        complete: list[Hold] = []
        for hold in self._all_holds():
            if now > min(hold.until, self.ends_at):
                self._refuse(hold, complete)
                continue
            waited_seconds = now - hold.acknowledged_at
            if waited_seconds > FAIL_OPEN_SECONDS:
                for record in tuple(hold.waiting.values()):
                    if record.requirement.fail_open and record.lacking is None:
                        self._expire(hold, record, complete)
            if waited_seconds > LATE_SECONDS:
                self._stall(hold, complete)
        for hold in tuple(self._unleased):
            if now > min(hold.until, self.ends_at):
                self._refuse(hold, complete)
            elif now - hold.acknowledged_at > LATE_SECONDS:
                self._stall(hold, complete)
        return complete

    def drop(self, hold: Hold) -> None:
        """The client of a request is gone: nothing more is read for it."""
        for record in tuple(hold.waiting.values()):
            record.abandon()
            self._continue(hold, record, [])
        if hold in self._unleased:
            del self._unleased[hold]
            self._end(hold, [])

    def _stall(self, hold: Hold, complete: list[Hold]) -> None:
        """A request begins to wait for longer than a verification takes. Without memory for it, it is refused at once."""
        if hold.is_stalled or not (hold.waiting or hold in self._unleased):
            return
        if self.stalled_bytes + hold.size_bytes > self.settings.hold_memory_bytes:
            self.overflows += 1
            self._refuse(hold, complete)
            return
        hold.is_stalled = True
        self.stalled_bytes += hold.size_bytes
        self.on_stalled(hold)

    def _refuse(self, hold: Hold, complete: list[Hold]) -> None:
        if hold in self._unleased:
            del self._unleased[hold]
            for partition in hold.end_offsets.keys() - hold.refusals.keys():
                verifies = self._is_guarded(hold, partition) and not self._requirement(hold, partition).fail_open
                if verifies or self.is_unleased(partition[0], hold.broker):
                    hold.refusals[partition] = unleased_refusal(partition, after=True)
            self._end(hold, complete)
        for record in tuple(hold.waiting.values()):
            self._expire(hold, record, complete)

    def _expire(self, hold: Hold, record: RecordVerification, complete: list[Hold]) -> None:
        record.requirement = self._requirement(hold, record.partition)
        record.expire()
        self._continue(hold, record, complete)

    def _end(self, hold: Hold, complete: list[Hold]) -> None:
        self.stalled_bytes -= hold.size_bytes * hold.is_stalled
        complete.append(hold)

    def _requirement(self, hold: Hold, partition: Partition) -> Requirement:
        """The requirement now: values may have changed since the request was forwarded, and Kafka judges a produce that waits so too."""
        if self._required is None:
            return hold.requirements[partition]
        return self._required(partition[0], hold.broker) or _ONE_RACK

    def _continue(self, hold: Hold, record: RecordVerification, complete: list[Hold]) -> None:
        """After an event of a record: plan its reads, and end the hold with its last record."""
        self._plan_reads(hold, record)
        if not record.is_decided:
            return
        del hold.waiting[record.partition]
        self.late_records += record.was_late
        if record.refusal is not None:
            hold.refusals[record.partition] = record.refusal
        if not hold.waiting:
            del self._holds[hold.broker][hold]
            if self._is_unleased(hold):
                # By values that may be older than one that was acknowledged: it is verified again by those that are read.
                self._unleased[hold] = None
            else:
                self._end(hold, complete)

    def _plan_reads(self, hold: Hold, record: RecordVerification) -> None:
        for replica, pending in tuple(self._reads.items()):
            if replica not in record.reads and pending.pop(record, None) is not None and not pending:
                del self._reads[replica]
        for replica in record.reads:
            self._reads.setdefault(replica, {})[record] = hold

    # What has to be read.

    def topics_to_sample(self, broker: int, now: float) -> frozenset[str]:
        """The topics of which a sample of this broker, requested now, would verify something."""
        return frozenset(record.partition[0] for record in self._waiting(broker) if record.sample_from <= now)

    def next_sample_at(self, broker: int, covered: float = NEVER) -> float | None:
        """The earliest time, later than `covered`, at which a sample of this broker is due; None if none is."""
        return min(
            (record.sample_from for record in self._waiting(broker) if record.sample_from > covered), default=None
        )

    def replicas_to_read(self) -> Iterable[BrokerId]:
        """The brokers whose logs have to be read, now or later."""
        return tuple(self._reads)

    def reads_due(self, replica: BrokerId, now: float) -> frozenset[LogRead]:
        """The reads of this broker that are due, at most one epoch of each partition: a Fetch request names a partition once.

        It is that of the record that has waited longest: newer ones would keep its own from being read.
        """
        due: dict[Partition, LogRead] = {}
        for at, read in (record.reads[replica] for record in self._reads.get(replica, ())):
            if at <= now:
                due.setdefault(read.partition, read)
        return frozenset(due.values())

    def next_read_at(self, replica: BrokerId, covered: float = NEVER) -> float | None:
        """The earliest time, later than `covered`, at which something is to be read at this broker; None if nothing is."""
        due = (record.reads[replica][0] for record in self._reads.get(replica, ()))
        return min((at for at in due if at > covered), default=None)

    # State.

    @property
    def held(self) -> int:
        """Requests whose acknowledgement is held."""
        return sum(map(len, self._holds.values())) + len(self._unleased)

    @property
    def brokers(self) -> Iterable[int]:
        """Those whose acknowledgements are held."""
        return tuple(self._holds)

    @property
    def waits_for_lease(self) -> bool:
        """Whether an acknowledgement is held because the values are not leased."""
        return bool(self._unleased)

    def oldest_seconds(self, now: float) -> float:
        """For how long the oldest of them has been held; 0.0 without one."""
        return max((now - hold.acknowledged_at for hold in (*self._all_holds(), *self._unleased)), default=0.0)

    def disagreement(self, now: float) -> Disagreement | None:
        """The oldest record that logs do not show for LATE_SECONDS, while its leader's metadata shows enough racks in sync."""
        # Holds first: with thousands of them, nothing is late as a rule.
        late = [
            Disagreement(record.partition, now - record.late_from, record.isr, tuple(record.record.holders(record.isr)))
            for hold in self._all_holds()
            if now - hold.acknowledged_at > LATE_SECONDS
            for record in hold.waiting.values()
            if record.is_late(now) and record.record is not None
        ]
        return max(late, key=lambda found: found.seconds, default=None)

    def _waiting(self, broker: int) -> Iterable[RecordVerification]:
        return (record for hold in self._holds.get(broker, ()) for record in hold.waiting.values())

    def _all_holds(self) -> list[Hold]:
        return [hold for holds in self._holds.values() for hold in holds]


def unleased_refusal(partition: Partition, *, after: bool) -> Refusal:
    """The refusal, before or `after` the append, of a record for which more may be required than is known here."""
    verdict = ProduceVerdict.NOT_ENOUGH_RACKS_AFTER_APPEND if after else ProduceVerdict.NOT_ENOUGH_RACKS
    message = f"{partition[0]}-{partition[1]}: the gateway cannot read the end of its config topic, so that a higher min.insync.racks may hold"
    return Refusal(partition, verdict, Cause.CONFIG, message)


def out_of_order(partition: Partition) -> Refusal:
    """The refusal of a batch behind one that was refused; see order.py."""
    message = f"{partition[0]}-{partition[1]}: an earlier batch of this producer was refused and has to come first"
    return Refusal(partition, ProduceVerdict.NOT_ENOUGH_RACKS, Cause.ORDER, message)


def _ids(brokers: Iterable[BrokerId]) -> str:
    return ",".join(map(str, brokers))
