"""The acknowledgement guard in a simulated cluster: no seed leaks, and each planted mistake is found."""

import os

import pytest

from rackspan.acks.min_insync_racks import ProduceVerdict, Thresholds, rack_bits
from rackspan.gateway.core.acknowledgement.guard import AcknowledgementGuard, Cause, PartitionIsr, Requirement, Sample
from rackspan.gateway.core.acknowledgement.rules import NEVER, AcknowledgementMode, GuardRules, GuardSettings
from rackspan.model import Broker, BrokerId, RackId
from tests.gateway.core.acknowledgement.world import World

SEEDS = 400 if os.environ.get("RACKSPAN_SOAK") else 40
ORDERS = ("orders", 0)
TWO_RACKS = Requirement(Thresholds(1, 2))
BITS = rack_bits([Broker(BrokerId(one), RackId(rack)) for one, rack in {1: "a", 2: "b", 3: "c"}.items()])


class SampleFromBefore(GuardRules):
    def is_after(self, requested_at: float, acknowledged_at: float) -> bool:
        return True

    def settled_at(self, last_good: float, stalled_at: float, acknowledged_at: float, settings: GuardSettings) -> float:
        return NEVER


class StaleIsFresh(GuardRules):
    def is_fresh(self, requested_at: float, now: float, oldest: float) -> bool:
        return True


class BeforeOnly(GuardRules):
    def checks_after(self, settings: GuardSettings) -> bool:
        return False


class NoSettling(GuardRules):
    def settled_at(self, last_good: float, stalled_at: float, acknowledged_at: float, settings: GuardSettings) -> float:
        return acknowledged_at


class StallsIgnored(GuardRules):
    def settled_at(self, last_good: float, stalled_at: float, acknowledged_at: float, settings: GuardSettings) -> float:
        return super().settled_at(last_good, NEVER, acknowledged_at, settings)


def first_violation(rules: GuardRules, seeds: range, settings: GuardSettings | None = None) -> str | None:
    for seed in seeds:
        violations = World(seed, rules, settings or GuardSettings()).run()
        if violations:
            return f"seed {seed}, {violations[0].at:.3f} s: {violations[0].what}"
    return None


def test_no_acknowledged_record_is_held_in_too_few_racks() -> None:
    worlds = [World(seed, GuardRules(), GuardSettings()) for seed in range(SEEDS)]
    assert [violation for world in worlds for violation in world.run()] == []
    assert sum(world.acknowledged for world in worlds) > 50 * SEEDS
    assert sum(world.refused for world in worlds) > SEEDS


@pytest.mark.parametrize("mistake", [SampleFromBefore, StaleIsFresh, BeforeOnly, NoSettling])
def test_a_planted_mistake_is_found(mistake: type[GuardRules]) -> None:
    assert first_violation(mistake(), range(SEEDS)) is not None


STRICT = GuardSettings(mode=AcknowledgementMode.STRICT, settle=0.0, stalled_settle=0.0)


def test_strict_needs_no_settling_where_what_is_committed_is_read() -> None:
    worlds = [World(seed, GuardRules(), STRICT, metadata_lag=0.0) for seed in range(SEEDS)]
    assert [violation for world in worlds for violation in world.run()] == []
    assert sum(world.acknowledged for world in worlds) > 50 * SEEDS
    # The same from a source that is behind, as a broker's metadata is.
    behind = [World(seed, GuardRules(), STRICT) for seed in range(SEEDS)]
    assert [violation for world in behind for violation in world.run()] != []


@pytest.mark.slow
def test_a_busy_partition_is_verified_where_metadata_is_a_second_late() -> None:
    late = [World(seed, GuardRules(), GuardSettings(), metadata_lag=1.2, pauses=False) for seed in range(SEEDS)]
    assert [violation for world in late for violation in world.run()] == []
    ignored = [World(seed, StallsIgnored(), GuardSettings(), metadata_lag=1.2, pauses=False) for seed in range(SEEDS)]
    assert [violation for world in ignored for violation in world.run()] != []


def test_mode_pre_leaks() -> None:
    assert first_violation(GuardRules(), range(SEEDS), GuardSettings(mode=AcknowledgementMode.PRE)) is not None


def sample(requested_at: float, isr: tuple[int, ...], *, leader: int = 1, epoch: int = 5) -> Sample:
    state = PartitionIsr(leader, epoch, tuple(map(BrokerId, isr)))
    return Sample(1, requested_at, BITS, frozenset({"orders"}), {ORDERS: state})


def held(guard: AcknowledgementGuard, requirement: Requirement = TWO_RACKS) -> object:
    """One request, forwarded at 0.1 and acknowledged at 0.2."""
    guard.observe(sample(0.09, (1, 2, 3)))
    hold = guard.forwarded(1, {ORDERS: requirement}, 0.1)
    assert hold is not None
    assert not guard.acknowledged(hold, [ORDERS], 0.2)
    return hold


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
    assert hold.refusals[ORDERS].cause is Cause.LEADER  # type: ignore[attr-defined]


def test_the_first_record_after_a_pause_needs_a_second_sample() -> None:
    guard = AcknowledgementGuard(GuardSettings(settle=0.1))
    hold = held(guard)
    assert guard.observe(sample(0.21, (1, 2, 3))) == []
    assert guard.observe(sample(0.29, (1, 2, 3))) == []
    assert guard.observe(sample(0.31, (1, 2, 3))) == [hold]
    second = guard.forwarded(1, {ORDERS: TWO_RACKS}, 0.4)
    assert second is not None
    guard.acknowledged(second, [ORDERS], 0.41)
    assert guard.observe(sample(0.42, (1, 2, 3))) == [second]


def test_a_request_that_waited_long_and_those_behind_it_settle_longer() -> None:
    guard = AcknowledgementGuard(GuardSettings(settle=0.1, stalled_settle=2.0))
    guard.observe(sample(0.09, (1, 2, 3)))
    stalled, behind = (guard.forwarded(1, {ORDERS: TWO_RACKS}, at) for at in (0.1, 3.0))
    assert stalled is not None
    assert behind is not None
    guard.acknowledged(stalled, [ORDERS], 3.1)
    guard.acknowledged(behind, [ORDERS], 3.2)
    assert guard.observe(sample(5.0, (1, 2, 3))) == []
    assert guard.observe(sample(5.1, (1, 2, 3))) == [stalled, behind]
    after = guard.forwarded(1, {ORDERS: TWO_RACKS}, 5.2)
    assert after is not None
    guard.acknowledged(after, [ORDERS], 5.21)
    assert guard.observe(sample(5.32, (1, 2, 3))) == [after]


def test_what_cannot_be_verified_in_time_is_refused_unless_it_fails_open() -> None:
    for fail_open in (False, True):
        guard = AcknowledgementGuard(GuardSettings(verify_timeout=1.0))
        hold = held(guard, Requirement(Thresholds(1, 2), fail_open))
        assert guard.expire(1.1) == []
        assert guard.expire(1.3) == [hold]
        assert bool(hold.refusals) is not fail_open  # type: ignore[attr-defined]
        assert guard.held == 0


def test_topics_that_clients_name_and_that_do_not_exist_leave_nothing_behind() -> None:
    guard = AcknowledgementGuard(GuardSettings())
    for number in range(60_000):
        guard.observe(Sample(1, number / 1000, BITS, frozenset({f"typo-{number}"}), {}))
    assert len(guard._samples) < 20_000
    # What is recent is still known.
    assert guard.admit(1, {("typo-59999", 0): TWO_RACKS}, 60.0).unsampled == set()
