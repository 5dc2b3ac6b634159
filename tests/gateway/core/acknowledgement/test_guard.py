"""The acknowledgement guard in a simulated cluster: no seed leaks, and each planted mistake is found."""

from collections.abc import Collection
from typing import Any
from uuid import UUID

import pytest

from rackspan.acks import verification
from rackspan.acks.isr_samples import LogEnd, LogEnds, LogRead, Sample, SampledPartition
from rackspan.acks.min_insync_racks import ProduceVerdict, RackBits, Thresholds, rack_bits
from rackspan.acks.produce_errors import Cause
from rackspan.acks.verification import (
    AcknowledgedRecord,
    Leadership,
    RecordVerification,
    Requirement,
    VerificationRules,
)
from rackspan.gateway.core.acknowledgement import guard as guard_module
from rackspan.gateway.core.acknowledgement.guard import (
    HOLD_BYTES,
    HOLD_PARTITION_BYTES,
    AcknowledgementGuard,
    AcknowledgementMode,
    GuardSettings,
    Hold,
)
from rackspan.model import Broker, BrokerId, RackId
from tests.depth import at_depth
from tests.gateway.core.acknowledgement.world import World

SEEDS = at_depth(test=12, soak=400)
LATE_SECONDS = 6.0
ORDERS = ("orders", 0)
TWO_RACKS = Requirement(Thresholds(1, 2))
BITS = rack_bits([Broker(BrokerId(one), RackId(rack)) for one, rack in {1: "a", 2: "b", 3: "c"}.items()])
ID, OTHER_ID = UUID(int=1), UUID(int=2)


class NoLogs(VerificationRules):
    """Version 0.2 without its waits: enough racks in a sample requested after the acknowledgement."""

    def is_held(self, record: AcknowledgedRecord, isr: Collection[BrokerId], racks: RackBits, min_racks: int) -> bool:
        return True


class Settles(NoLogs):
    """Version 0.2: the sample is requested 0.1 s after the acknowledgement, at once where one was verified a second ago."""

    settle, quick = 0.1, 1.0

    def __init__(self) -> None:
        self.last_good = float("-inf")

    def is_after(self, requested_at: float, acknowledged_at: float) -> bool:
        settle = self.settle if acknowledged_at - self.last_good > self.quick else 0.0
        if requested_at < acknowledged_at + settle:
            return False
        self.last_good = max(self.last_good, acknowledged_at)
        return True


class SettlesAlways(Settles):
    """The same without the quick path."""

    quick = -1.0


class SampleFromBefore(NoLogs):
    def is_after(self, requested_at: float, acknowledged_at: float) -> bool:
        return True


class StaleIsFresh(VerificationRules):
    def is_fresh(self, requested_at: float, now: float, oldest: float) -> bool:
        return True


class NoLeadersLog(VerificationRules):
    def needs_leader(self) -> bool:
        return False


class BeforeOnly(VerificationRules):
    def checks_after(self) -> bool:
        return False


class AnEarlierEpoch(AcknowledgedRecord):
    """A log that is long enough counts, whatever the epoch of its end."""

    def reads(self, isr: Collection[BrokerId], racks: RackBits, min_racks: int) -> dict[BrokerId, int]:
        reads = super().reads(isr, racks, min_racks)
        return {one: epoch if one == self.leader else epoch - 1 for one, epoch in reads.items()}

    def observe(self, replica: BrokerId, requested_epoch: int, end: LogEnd | None) -> None:
        if replica == self.leader:
            super().observe(replica, requested_epoch, end)
        elif end is not None and self.end_offset is not None and end.end_offset >= self.end_offset:
            self._holders.add(replica)


def first_violation(
    rules: VerificationRules,
    seeds: range,
    settings: GuardSettings | None = None,
    *,
    metadata_lag: float = 0.03,
    reads_by_name: bool = False,
    forges: bool = False,
    misplaces: bool = False,
    proves: bool = True,
) -> str | None:
    for seed in seeds:
        world = World(
            *(seed, rules, settings or GuardSettings()),
            metadata_lag=metadata_lag,
            reads_by_name=reads_by_name,
            forges=forges,
            misplaces=misplaces,
            proves=proves,
        )
        if violations := world.run():
            return f"seed {seed}, {violations[0].at:.3f} s: {violations[0].what}"
    return None


@pytest.mark.slow
@pytest.mark.parametrize("metadata_lag", [0.03, 1.2, LATE_SECONDS])
def test_no_acknowledged_record_is_held_in_too_few_racks_however_late_metadata_is(metadata_lag: float) -> None:
    worlds = [World(seed, VerificationRules(), GuardSettings(), metadata_lag=metadata_lag) for seed in range(SEEDS)]
    assert [violation for world in worlds for violation in world.run()] == []
    assert sum(world.acknowledged for world in worlds) > 200 * SEEDS
    assert sum(world.refused for world in worlds) > 10 * SEEDS
    assert sum(world.waited for world in worlds) > 5 * SEEDS


@pytest.mark.slow
@pytest.mark.parametrize("mistake", [NoLogs, Settles, SampleFromBefore, StaleIsFresh, BeforeOnly])
def test_a_planted_mistake_is_found(mistake: type[VerificationRules]) -> None:
    assert first_violation(mistake(), range(SEEDS)) is not None


@pytest.mark.slow
def test_a_sample_from_before_without_the_leaders_own_log_is_found() -> None:
    # One of the first eighty seeds finds it: a leader has to change twice while a sample is fresh.
    assert first_violation(NoLeadersLog(), range(68, 68 + SEEDS)) is not None


@pytest.mark.slow
def test_the_rule_that_always_waits_is_found_where_metadata_is_late() -> None:
    assert first_violation(SettlesAlways(), range(SEEDS), metadata_lag=LATE_SECONDS) is not None


@pytest.mark.slow
def test_the_log_of_an_earlier_topic_of_the_name_is_found() -> None:
    assert first_violation(VerificationRules(), range(SEEDS), reads_by_name=True) is not None


@pytest.mark.slow
def test_a_log_end_of_an_earlier_epoch_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verification, "AcknowledgedRecord", AnEarlierEpoch)
    # Two of the first forty seeds find it, this one first.
    assert first_violation(VerificationRules(), range(9, 9 + SEEDS), metadata_lag=LATE_SECONDS) is not None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("place", "name", "mistake", "found"),
    [
        (verification, "_LACKS", frozenset(), "refused before its timeout"),
        (AcknowledgementGuard, "expire", lambda _guard, _now: [], "held after its timeout"),
        (RecordVerification, "expire", RecordVerification.abandon, "acknowledged and held in"),
    ],
    ids=["at once", "never", "acknowledged"],
)
def test_a_mistake_about_the_end_of_what_waits_for_a_rack_is_found(
    place: Any, name: str, mistake: Any, found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(place, name, mistake)
    assert found in str(first_violation(VerificationRules(), range(SEEDS)))


def as_a_producer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Records are verified as by a guarded producer: without the leadership from before they were sent."""

    def without_leadership(*args: Any, broker: int, leadership: Leadership | None, **settings: Any) -> Any:
        return RecordVerification(*args, **settings)

    monkeypatch.setattr(guard_module, "RecordVerification", without_leadership)


@pytest.mark.slow
def test_records_of_a_producer_that_sampled_nothing_before_are_held_in_enough_racks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    as_a_producer(monkeypatch)
    worlds = [World(seed, VerificationRules(), GuardSettings(), metadata_lag=LATE_SECONDS) for seed in range(SEEDS)]
    assert [violation for world in worlds for violation in world.run()] == []
    assert sum(world.acknowledged for world in worlds) > 200 * SEEDS


@pytest.mark.parametrize("mistake", [NoLogs, SampleFromBefore])
def test_a_mistake_planted_in_a_producer_is_found(
    mistake: type[VerificationRules], monkeypatch: pytest.MonkeyPatch
) -> None:
    as_a_producer(monkeypatch)
    assert first_violation(mistake(), range(SEEDS)) is not None


STRICT = GuardSettings(mode=AcknowledgementMode.STRICT)


@pytest.mark.slow
@pytest.mark.parametrize(("settings", "metadata_lag"), [(STRICT, 0.0), (GuardSettings(), 0.03)])
def test_a_client_that_plays_followers_gets_nothing_acknowledged_that_they_lack(
    settings: GuardSettings, metadata_lag: float
) -> None:
    worlds = [
        World(seed, VerificationRules(), settings, metadata_lag=metadata_lag, forges=True) for seed in range(SEEDS)
    ]
    assert [violation for world in worlds for violation in world.run()] == []
    assert sum(world.acknowledged for world in worlds) > 200 * SEEDS


@pytest.mark.slow
def test_what_the_controllers_have_committed_needs_no_logs_unless_a_client_plays_followers() -> None:
    assert first_violation(NoLogs(), range(SEEDS), STRICT, metadata_lag=0.0) is None
    assert first_violation(NoLogs(), range(SEEDS), STRICT, metadata_lag=0.0, forges=True) is not None


@pytest.mark.slow
@pytest.mark.parametrize(("settings", "metadata_lag"), [(STRICT, 0.0), (GuardSettings(), LATE_SECONDS)])
def test_the_log_of_another_broker_at_a_followers_address_counts_for_nothing(
    settings: GuardSettings, metadata_lag: float
) -> None:
    worlds = [
        World(seed, VerificationRules(), settings, metadata_lag=metadata_lag, misplaces=True) for seed in range(SEEDS)
    ]
    assert [violation for world in worlds for violation in world.run()] == []
    assert sum(world.acknowledged for world in worlds) > 200 * SEEDS


@pytest.mark.slow
@pytest.mark.parametrize("as_by", ["gateway", "producer"])
def test_an_address_that_is_taken_for_the_broker_is_found(as_by: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if as_by == "producer":
        as_a_producer(monkeypatch)
    found = first_violation(VerificationRules(), range(SEEDS), metadata_lag=LATE_SECONDS, misplaces=True, proves=False)
    assert found is not None


def test_mode_pre_leaks() -> None:
    assert first_violation(VerificationRules(), range(SEEDS), GuardSettings(mode=AcknowledgementMode.PRE)) is not None


def sample(
    requested_at: float, isr: tuple[int, ...], *, leader: int = 1, epoch: int = 5, topic_id: UUID = ID
) -> Sample:
    state = SampledPartition(leader, epoch, tuple(map(BrokerId, isr)))
    return Sample(1, requested_at, BITS, frozenset({"orders"}), {ORDERS: state}, {"orders": topic_id})


def log_ends(replica: int, requested_at: float, end: LogEnd | None, *, epoch: int = 5, topic_id: UUID = ID) -> LogEnds:
    read = LogRead(ORDERS, topic_id, epoch)
    return LogEnds(BrokerId(replica), requested_at, frozenset({read}), {read: end})


END = 40


def held(
    guard: AcknowledgementGuard, requirement: Requirement = TWO_RACKS, end: int | None = END, until: float = 30.0
) -> Hold:
    """One request, forwarded after 0.09 and acknowledged at 0.2."""
    guard.observe(sample(0.09, (1, 2, 3)))
    hold = guard.forwarded(1, {ORDERS: requirement}, until)
    assert hold is not None
    assert not guard.acknowledged(hold, {ORDERS: end}, 0.2)
    return hold


def reads(guard: AcknowledgementGuard, replica: int, now: float) -> set[int]:
    """The epochs to read at a replica."""
    return {read.leader_epoch for read in guard.reads_due(BrokerId(replica), now)}


def test_what_was_never_sampled_waits_and_is_then_refused() -> None:
    guard = AcknowledgementGuard(GuardSettings())
    assert guard.admit(1, {ORDERS: TWO_RACKS}, 0.0).unsampled == {ORDERS}
    refusal = guard.admit(1, {ORDERS: TWO_RACKS}, 0.0, final=True).refusals[ORDERS]
    assert (refusal.cause, refusal.verdict) == (Cause.UNKNOWN, ProduceVerdict.NOT_ENOUGH_RACKS)


def test_a_topic_that_fails_open_is_admitted_unknown_and_refused_when_racks_are_known_to_be_few() -> None:
    guard = AcknowledgementGuard(GuardSettings())
    lenient = {ORDERS: Requirement(Thresholds(1, 2), fail_open=True)}
    assert not guard.admit(1, lenient, 0.0, final=True).refusals
    guard.observe(sample(0.0, (1,)))
    assert guard.admit(1, lenient, 0.01).refusals[ORDERS].cause is Cause.RACKS


def test_replicas_are_left_to_the_broker() -> None:
    guard = AcknowledgementGuard(GuardSettings())
    guard.observe(sample(0.0, (1,)))
    assert not guard.admit(1, {ORDERS: Requirement(Thresholds(2, 2))}, 0.01).refusals


def test_a_new_leader_epoch_refuses_what_waits() -> None:
    guard = AcknowledgementGuard(GuardSettings())
    hold = held(guard)
    assert guard.observe(sample(0.3, (1, 2, 3), epoch=6)) == [hold]
    assert hold.refusals[ORDERS].cause is Cause.LEADER


def test_a_topic_created_anew_refuses_what_waits() -> None:
    guard = AcknowledgementGuard(GuardSettings())
    hold = held(guard)
    assert guard.observe(sample(0.3, (1, 2, 3), topic_id=OTHER_ID)) == [hold]
    assert hold.refusals[ORDERS].cause is Cause.LEADER


def test_a_sample_and_a_log_end_from_after_the_acknowledgement_are_needed() -> None:
    guard = AcknowledgementGuard(GuardSettings())
    hold = held(guard)
    assert guard.observe(sample(0.19, (1, 2, 3))) == []
    assert guard.observe_log_ends(log_ends(2, 0.19, LogEnd(5, END))) == []
    assert guard.observe(sample(0.21, (1, 2, 3))) == []
    assert guard.observe_log_ends(log_ends(2, 0.21, LogEnd(5, END))) == [hold]
    assert not hold.refusals
    assert not guard.replicas_to_read()


def held_by_a_fresh_sample(guard: AcknowledgementGuard) -> Hold:
    """One request, forwarded after 0.16 and acknowledged at 0.2; a sample is fresh for 0.05."""
    guard.observe(sample(0.16, (1, 2, 3)))
    hold = guard.forwarded(1, {ORDERS: TWO_RACKS}, 30.0)
    assert hold is not None
    assert not guard.acknowledged(hold, {ORDERS: END}, 0.2)
    assert (reads(guard, 1, 0.2), reads(guard, 2, 0.2)) == ({5}, {5})
    assert guard.observe_log_ends(log_ends(2, 0.2, LogEnd(5, END))) == []
    return hold


def test_a_sample_from_before_counts_while_it_is_fresh_if_the_leaders_own_log_shows_the_record() -> None:
    guard = AcknowledgementGuard(GuardSettings())
    hold = held_by_a_fresh_sample(guard)
    assert guard.topics_to_sample(1, 0.2) == frozenset()
    assert guard.observe_log_ends(log_ends(1, 0.2, LogEnd(5, END))) == [hold]
    assert not hold.refusals


@pytest.mark.parametrize(
    "end",
    [None, LogEnd(4, END), LogEnd(5, END - 1), LogEnd(5, END, END), LogEnd(5, END, is_by_id=False)],
    ids=["older", "other epoch", "shorter", "deleted", "by name"],
)
def test_a_leaders_log_that_does_not_show_the_record_leaves_it_to_the_next_sample(end: LogEnd | None) -> None:
    guard = AcknowledgementGuard(GuardSettings())
    hold = held_by_a_fresh_sample(guard)
    assert guard.observe_log_ends(log_ends(1, 0.2, end)) == []
    assert guard.topics_to_sample(1, 0.2) == {"orders"}
    assert guard.observe(sample(0.2, (1, 2, 3), epoch=7)) == [hold]
    assert hold.refusals[ORDERS].cause is Cause.LEADER


def test_a_sample_from_after_the_acknowledgement_replaces_the_leaders_log() -> None:
    guard = AcknowledgementGuard(GuardSettings())
    hold = held_by_a_fresh_sample(guard)
    assert guard.observe(sample(0.201, (1, 2, 3))) == [hold]
    assert not hold.refusals


def test_a_leader_that_shows_nothing_more_is_no_disagreement_of_logs_and_metadata() -> None:
    guard = AcknowledgementGuard(GuardSettings())
    hold = held_by_a_fresh_sample(guard)
    assert guard.disagreement(5.0) is None
    assert guard.expire(30.1) == [hold]
    assert hold.refusals[ORDERS].cause is Cause.UNKNOWN


def test_of_one_partition_the_record_that_has_waited_longest_is_read_first() -> None:
    guard = AcknowledgementGuard(GuardSettings())
    held(guard)
    guard.observe_log_ends(log_ends(2, 0.2, None))
    guard.observe_log_ends(log_ends(1, 0.2, None))
    assert reads(guard, 1, 0.3) == {4}
    guard.observe(sample(0.29, (1, 2, 3)))
    newer = guard.forwarded(1, {ORDERS: TWO_RACKS}, 30.0)
    assert newer is not None
    guard.acknowledged(newer, {ORDERS: END + 1}, 0.3)
    assert reads(guard, 1, 0.31) == {4}


def test_in_mode_strict_no_sample_from_before_counts() -> None:
    guard = AcknowledgementGuard(STRICT)
    guard.observe(sample(0.16, (1, 2, 3)))
    hold = guard.forwarded(1, {ORDERS: TWO_RACKS}, 30.0)
    assert hold is not None
    assert not guard.acknowledged(hold, {ORDERS: END}, 0.2)
    assert not reads(guard, 1, 0.2)
    assert guard.topics_to_sample(1, 0.2) == {"orders"}


@pytest.mark.parametrize(("racks", "shown"), [(3, (2, 3)), (2, (2,)), (1, ())], ids=["raised", "unchanged", "lowered"])
@pytest.mark.parametrize("changed_at", ["forwarded", "acknowledged"])
def test_a_record_that_waits_is_judged_by_the_value_that_is_in_force(
    racks: int, shown: tuple[int, ...], changed_at: str
) -> None:
    """As Kafka judges a produce that waits by min.insync.replicas. `shown` are the replicas whose logs have to show it."""
    required: list[Requirement | None] = [TWO_RACKS]
    guard = AcknowledgementGuard(GuardSettings(), required=lambda _topic, _broker: required[0])
    now = None if racks == 1 else Requirement(Thresholds(1, racks))
    guard.observe(sample(0.09, (1, 2, 3)))
    hold = guard.forwarded(1, {ORDERS: TWO_RACKS}, 30.0)
    assert hold is not None
    required[0] = now if changed_at == "forwarded" else TWO_RACKS
    assert not guard.acknowledged(hold, {ORDERS: END}, 0.2)
    required[0] = now
    complete = guard.observe(sample(0.21, (1, 2, 3)))
    for replica in shown:
        assert complete == []
        complete = guard.observe_log_ends(log_ends(replica, 0.22, LogEnd(5, END)))
    assert (complete, hold.refusals) == ([hold], {})


def test_logs_may_be_read_before_the_sample() -> None:
    guard = AcknowledgementGuard(GuardSettings())
    hold = held(guard)
    assert guard.observe_log_ends(log_ends(2, 0.2, LogEnd(5, END))) == []
    assert guard.observe(sample(0.2, (1, 2, 3))) == [hold]


@pytest.mark.parametrize(
    "end",
    [LogEnd(5, END - 1), LogEnd(4, END), LogEnd(5, END + 9, END), None],
    ids=["short", "epoch", "deleted", "older"],
)
def test_a_log_that_does_not_show_the_record_is_read_again(end: LogEnd | None) -> None:
    guard = AcknowledgementGuard(GuardSettings())
    hold = held(guard)
    guard.observe(sample(0.2, (1, 2, 3)))
    assert reads(guard, 2, 0.2) == {5}
    assert guard.observe_log_ends(log_ends(2, 0.2, end)) == []
    assert reads(guard, 2, 0.2) == set()
    assert reads(guard, 2, 0.21) == {5}
    assert guard.observe_log_ends(log_ends(2, 0.21, LogEnd(5, END))) == [hold]


def test_a_replica_that_holds_the_record_and_is_not_in_sync_does_not_count() -> None:
    guard = AcknowledgementGuard(GuardSettings())
    hold = held(guard)
    guard.observe_log_ends(log_ends(2, 0.2, LogEnd(5, END)))
    assert guard.observe(sample(0.21, (1, 3))) == []
    assert guard.observe_log_ends(log_ends(3, 0.22, LogEnd(5, END))) == [hold]


def test_the_replica_of_another_rack_is_read_when_the_first_does_not_respond() -> None:
    guard = AcknowledgementGuard(GuardSettings())
    hold = held(guard)
    guard.observe(sample(0.2, (1, 2, 3)))
    assert (reads(guard, 2, 0.2), reads(guard, 3, 0.2)) == ({5}, set())
    assert reads(guard, 3, 0.23) == {5}
    assert guard.observe_log_ends(log_ends(3, 0.23, LogEnd(5, END))) == [hold]


def test_an_offset_that_the_response_does_not_name_is_read_from_the_leader() -> None:
    guard = AcknowledgementGuard(GuardSettings())
    hold = held(guard, end=None)
    guard.observe(sample(0.2, (1, 2, 3)))
    assert (reads(guard, 1, 0.2), reads(guard, 2, 0.2)) == ({5}, set())
    guard.observe_log_ends(log_ends(1, 0.2, LogEnd(5, END)))
    assert reads(guard, 2, 0.3) == {5}
    assert guard.observe_log_ends(log_ends(2, 0.3, LogEnd(5, END - 1))) == []
    assert guard.observe_log_ends(log_ends(2, 0.4, LogEnd(5, END))) == [hold]


def test_a_repeated_batch_of_an_earlier_epoch_is_shown_by_that_epoch() -> None:
    """After an election its producer sends it again, and nothing else may be written for hours."""
    guard = AcknowledgementGuard(GuardSettings())
    hold = held(guard)
    guard.observe(sample(0.2, (1, 2, 3)))
    guard.observe_log_ends(log_ends(2, 0.2, None))
    assert reads(guard, 1, 0.3) == {4}
    guard.observe_log_ends(log_ends(1, 0.3, LogEnd(3, END + 2), epoch=4))
    assert reads(guard, 2, 0.4) == {3}
    assert guard.observe_log_ends(log_ends(2, 0.4, LogEnd(3, END), epoch=3)) == [hold]


def test_a_record_that_logs_do_not_show_in_time_is_refused_and_named() -> None:
    guard = AcknowledgementGuard(GuardSettings())
    hold = held(guard, until=2.2)
    guard.observe(sample(0.3, (1, 2, 3)))
    assert guard.disagreement(1.1) is None
    late = guard.disagreement(1.3)
    assert late is not None
    assert (late.partition, late.isr, late.holders) == (ORDERS, (1, 2, 3), (1,))
    assert guard.expire(2.3) == [hold]
    assert (hold.refusals[ORDERS].cause, guard.late_records) == (Cause.LOGS, 1)
    assert hold.refusals[ORDERS].message == (
        "orders-0: logs show the record in racks a = 1 < min.insync.racks 2, metadata has a,b,c in sync"
    )


def test_metadata_is_sampled_again_while_logs_do_not_show_the_record() -> None:
    guard = AcknowledgementGuard(GuardSettings())
    hold = held(guard)
    assert guard.observe(sample(0.3, (1, 2, 3))) == []
    assert guard.topics_to_sample(1, 0.4) == {"orders"}
    assert guard.observe(sample(0.4, (1,))) == []
    assert guard.expire(30.1) == [hold]
    assert hold.refusals[ORDERS].cause is Cause.RACKS


def test_what_cannot_be_verified_in_time_is_refused_unless_it_fails_open() -> None:
    for fail_open in (False, True):
        guard = AcknowledgementGuard(GuardSettings())
        hold = held(guard, Requirement(Thresholds(1, 2), fail_open), until=1.2)
        assert guard.expire(1.1) == []
        assert guard.expire(1.3) == [hold]
        assert bool(hold.refusals) is not fail_open
        assert guard.held == 0


def test_what_fails_open_is_accepted_before_its_client_gives_up_unless_racks_are_known_to_be_few() -> None:
    for isr, accepted in (((1, 2, 3), True), ((1,), False)):
        guard = AcknowledgementGuard(GuardSettings())
        hold = held(guard, Requirement(Thresholds(1, 2), fail_open=True))
        guard.observe(sample(0.3, isr))
        assert guard.expire(5.1) == []
        assert guard.expire(5.3) == ([hold] if accepted else [])
        assert not hold.refusals


def test_a_record_whose_rack_has_left_the_isr_is_held_until_it_is_back_and_holds_the_record() -> None:
    guard = AcknowledgementGuard(GuardSettings())
    hold = held(guard)
    assert guard.observe(sample(0.3, (1,))) == []
    assert guard.expire(29.9) == []
    assert guard.observe(sample(29.91, (1, 2))) == []
    assert guard.observe_log_ends(log_ends(2, 29.92, LogEnd(5, END - 1))) == []
    assert guard.observe_log_ends(log_ends(2, 29.93, LogEnd(5, END))) == [hold]
    assert (hold.refusals, guard.held, guard.stalled_bytes, guard.late_records) == ({}, 0, 0, 0)


def test_it_is_refused_at_the_end_of_its_own_timeout_and_by_the_last_isr() -> None:
    guard = AcknowledgementGuard(GuardSettings())
    hold = held(guard, until=3.0)
    guard.observe(sample(0.3, (1,)))
    assert guard.expire(3.0) == []
    assert guard.expire(3.01) == [hold]
    refusal = hold.refusals[ORDERS]
    assert (refusal.cause, refusal.verdict) == (Cause.RACKS, ProduceVerdict.NOT_ENOUGH_RACKS_AFTER_APPEND)
    assert refusal.message == "orders-0: in-sync racks a = 1 < min.insync.racks 2"


@pytest.mark.parametrize("changed", [{"epoch": 6}, {"leader": 2}, {"topic_id": OTHER_ID}], ids=str)
def test_a_new_leader_refuses_at_once_what_waits_for_a_rack(changed: dict[str, Any]) -> None:
    guard = AcknowledgementGuard(GuardSettings())
    hold = held(guard)
    assert guard.observe(sample(0.3, (1,))) == []
    assert guard.observe(sample(0.6, (1,), **changed)) == [hold]
    assert hold.refusals[ORDERS].cause is Cause.LEADER


def test_a_topic_that_is_deleted_refuses_at_once_what_waits_for_a_rack() -> None:
    guard = AcknowledgementGuard(GuardSettings())
    hold = held(guard)
    guard.observe(sample(0.3, (1,)))
    assert guard.observe(Sample(1, 0.6, BITS, frozenset({"orders"}), {})) == [hold]
    assert hold.refusals[ORDERS].cause is Cause.UNKNOWN


def test_while_a_rack_is_missing_the_isr_is_sampled_a_few_times_a_second() -> None:
    guard = AcknowledgementGuard(GuardSettings())
    held(guard)
    at, samples = 0.3, 0
    while at < 20.2:
        guard.observe(sample(at, (1,)))
        samples += 1
        due = guard.next_sample_at(1)
        assert due is not None
        assert due - at <= 0.25 + 1e-9
        at = due
    assert samples < 100


def test_without_memory_for_what_waits_for_a_rack_it_is_refused_at_once_and_what_is_verified_takes_none() -> None:
    guard = AcknowledgementGuard(GuardSettings(hold_memory_bytes=2 * (guard_module.HOLD_BYTES + 1_600)))
    stalled: list[Hold] = []
    guard.on_stalled = stalled.append
    holds = [held(guard) for _ in range(3)]
    assert guard.stalled_bytes == 0
    assert guard.observe(sample(0.3, (1,))) == holds[2:]
    assert holds[2].refusals[ORDERS].verdict is ProduceVerdict.NOT_ENOUGH_RACKS_AFTER_APPEND
    assert (stalled, guard.held, guard.overflows) == (holds[:2], 2, 1)
    guard.drop(holds[0])
    assert (guard.held, guard.replicas_to_read()) == (1, ())
    further = held(guard)
    guard.observe(sample(0.6, (1,)))
    assert stalled == [*holds[:2], further]
    assert guard.expire(30.1) == [holds[1], further]
    assert guard.stalled_bytes == 0


def test_at_the_end_of_the_process_nothing_is_held_for_longer() -> None:
    guard = AcknowledgementGuard(GuardSettings())
    hold = held(guard)
    guard.observe(sample(0.3, (1,)))
    assert guard.oldest_seconds(1.0) == pytest.approx(0.8)
    guard.ends_at = 2.0
    assert (guard.expire(2.0), guard.expire(2.1)) == ([], [hold])
    assert guard.oldest_seconds(3.0) == 0.0


@pytest.mark.slow
def test_topics_that_clients_name_and_that_do_not_exist_leave_nothing_behind() -> None:
    guard = AcknowledgementGuard(GuardSettings())
    for number in range(60_000):
        guard.observe(Sample(1, number / 1000, BITS, frozenset({f"typo-{number}"}), {}))
    assert len(guard._samples) < 20_000
    # What is recent is still known.
    assert guard.admit(1, {("typo-59999", 0): TWO_RACKS}, 60.0).unsampled == set()


class Lease:
    """A lease that a test ends and begins. A value that is not known may be of every topic but `lenient`."""

    current = True

    def is_current(self) -> bool:
        return self.current

    def is_raisable(self, topic: str, broker: int) -> bool:
        return topic != "lenient"


PLAIN, LENIENT = ("plain", 0), ("lenient", 0)


def leased_guard() -> tuple[AcknowledgementGuard, Lease, dict[str, Requirement]]:
    """A guard by values that a test changes."""
    lease, values = Lease(), {"orders": TWO_RACKS}
    return AcknowledgementGuard(GuardSettings(), None, lambda topic, _: values.get(topic), lease), lease, values


def test_without_a_lease_an_acknowledgement_of_any_topic_waits_for_it() -> None:
    guard, lease, _ = leased_guard()
    lease.current = False
    hold = Hold(1, {}, {}, until=30.0)
    assert not guard.acknowledged(hold, {PLAIN: None}, 0.2)
    assert (guard.held, guard.waits_for_lease) == (1, True)
    assert guard.expire(0.3) == []
    lease.current = True
    assert guard.leased(0.4) == [hold]
    assert (hold.refusals, guard.held) == ({}, 0)


def test_a_lease_that_does_not_come_refuses_what_may_be_guarded() -> None:
    guard, lease, _ = leased_guard()
    lease.current = False
    hold = Hold(1, {}, {}, until=10.2)
    assert not guard.acknowledged(hold, {PLAIN: None, LENIENT: None}, 0.2)
    assert guard.expire(10.2) == []
    assert guard.expire(10.3) == [hold]
    (refusal,) = hold.refusals.values()
    assert (refusal.partition, refusal.verdict) == (PLAIN, ProduceVerdict.NOT_ENOUGH_RACKS_AFTER_APPEND)
    assert refusal.cause is Cause.CONFIG
    assert guard.held == 0


def test_what_waits_for_a_lease_takes_memory_and_without_it_is_refused() -> None:
    guard, lease, _ = leased_guard()
    lease.current = False
    guard.settings = GuardSettings(hold_memory_bytes=HOLD_BYTES + HOLD_PARTITION_BYTES)
    stalled: list[Hold] = []
    guard.on_stalled = stalled.append
    first, second, third = (Hold(1, {}, {}, until=30.0) for _ in range(3))
    for hold in (first, second):
        assert not guard.acknowledged(hold, {PLAIN: None}, 0.2)
    assert guard.expire(1.3) == [second]
    assert (second.refusals[PLAIN].cause, guard.overflows, stalled) == (Cause.CONFIG, 1, [first])
    assert guard.stalled_bytes == HOLD_BYTES + HOLD_PARTITION_BYTES
    lease.current = True
    assert guard.leased(1.4) == [first]
    lease.current = False
    assert not guard.acknowledged(third, {PLAIN: None}, 1.5)
    assert guard.expire(2.6) == []
    guard.drop(third)
    assert (guard.held, guard.stalled_bytes) == (0, 0)


def test_where_no_value_can_be_raised_nothing_waits_for_a_lease() -> None:
    guard, lease, _ = leased_guard()
    lease.current = False
    assert guard.acknowledged(Hold(1, {}, {}, until=30.0), {LENIENT: None}, 0.2)


def test_a_value_that_came_with_the_lease_is_verified() -> None:
    guard, lease, values = leased_guard()
    lease.current = False
    hold = Hold(1, {}, {}, until=30.0)
    assert not guard.acknowledged(hold, {PLAIN: None}, 0.2)
    values["plain"], lease.current = TWO_RACKS, True
    assert guard.leased(0.4) == []
    assert guard.held == 1
    assert guard.topics_to_sample(1, 0.4) == {"plain"}


def test_what_was_verified_without_a_lease_is_verified_again_by_the_values_of_the_lease() -> None:
    guard, lease, values = leased_guard()
    hold = held(guard)
    assert guard.observe(sample(0.21, (1, 2, 3))) == []
    lease.current = False
    assert guard.observe_log_ends(log_ends(2, 0.21, LogEnd(5, END))) == []
    assert guard.waits_for_lease
    values["orders"], lease.current = Requirement(Thresholds(1, 3)), True
    assert guard.leased(0.5) == []
    assert guard.observe(sample(0.51, (1, 2, 3))) == []
    assert guard.observe_log_ends(log_ends(2, 0.51, LogEnd(5, END))) == []
    assert guard.observe_log_ends(log_ends(3, 0.51, LogEnd(5, END))) == [hold]
    assert not hold.refusals


def test_what_is_refused_anyway_waits_for_no_lease() -> None:
    guard, lease, _ = leased_guard()
    hold = held(guard)
    lease.current = False
    assert guard.observe(sample(0.3, (1, 2, 3), epoch=6)) == [hold]
    assert hold.refusals[ORDERS].cause is Cause.LEADER
