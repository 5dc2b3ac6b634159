"""A run against a cluster in memory, killed before or after any of its effects, reversed, cancelled, resumed.

The reference is the cluster itself: which replicas there are at the end, whose throttles, and what was copied on the way.
"""

import time
from collections.abc import Mapping
from contextlib import suppress
from itertools import islice
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rackspan.apply import executor
from rackspan.apply.executor import Pace, RunUpdate, _completes_something, _Patience, _spent, execute
from rackspan.errors import ClusterRequestFailed, ClusterUnauthorized, ClusterUnreachable, ReassignmentStopped
from rackspan.model.ids import TopicPartition
from rackspan.plan.execution.decision import RunLimits
from rackspan.plan.execution.effects import Effect, Finished, Paused, Record, StartMoves, Stop, Wait
from rackspan.plan.execution.events import DirectionSet, Event, RunCancelled, RunCompleted, StepCompleted, StepDeferred
from rackspan.plan.execution.observed import InFlight, ObservationRequest, ObservedCluster
from rackspan.plan.execution.throttle import ConfigKey, Holder
from rackspan.reassign import Direction, PartitionReassignment, ReassignmentPlan, Step
from tests.depth import examples
from tests.plan.fake_cluster import RATES, FakeCluster, Killed, Memory
from tests.plan.plans import BROKERS, reassignment_plans

AT_ONCE = Pace(now=lambda: 0.0, sleep=lambda seconds: None)

LEADER_LIST = "leader.replication.throttled.replicas"

users_configs = st.fixed_dictionaries(
    {},
    optional={
        ConfigKey(Holder.TOPIC, "orders", LEADER_LIST): st.sampled_from(["*", "0:1", "9:1,0:2"]),
        ConfigKey(Holder.BROKER, "1", RATES[0]): st.just("123"),
        ConfigKey(Holder.BROKER, "2", RATES[1]): st.just("456"),
    },
)


class Doomed:
    """A cluster and a journal in the hands of a run that is killed at its `last` effect, before or after it."""

    def __init__(self, cluster: FakeCluster, journal: Memory, last: int | None, after: bool, rate: int | None) -> None:
        self._cluster, self._journal = cluster, journal
        self._left, self._after, self._rate = last, after, rate

    @property
    def state(self) -> Any:
        return self._journal.state

    def observe(self, request: ObservationRequest) -> ObservedCluster:
        return self._cluster.observe(request)

    def append(self, event: Event) -> None:
        self._perhaps(lambda: self._journal.append(event))

    def set_configs(self, values: Mapping[ConfigKey, str | None]) -> None:
        self._perhaps(lambda: self._cluster.set_configs(values))

    def start_moves(self, targets: Mapping[Any, tuple[int, ...]]) -> None:
        self._perhaps(lambda: self._cluster.start_moves(targets))
        if self._rate is not None:
            for topic_partition in self._cluster.in_flight:
                self._check_throttle(topic_partition)

    def cancel_moves(self, partitions: Any) -> None:
        self._perhaps(lambda: self._cluster.cancel_moves(partitions))

    def elect_leaders(self, partitions: Any) -> None:
        self._perhaps(lambda: self._cluster.elect_leaders(partitions))

    def _perhaps(self, effect: Any) -> None:
        if self._left == 0:
            if self._after:
                effect()
            raise Killed
        self._left = None if self._left is None else self._left - 1
        effect()

    def _check_throttle(self, topic_partition: TopicPartition) -> None:
        """Every copy is throttled on both sides, at the requested rate, on the brokers that are alive."""
        moving, configs = self._cluster.in_flight[topic_partition], self._cluster.configs
        for broker in set(moving.replicas) & self._cluster.brokers:
            assert all(configs[ConfigKey(Holder.BROKER, str(broker), key)] == str(self._rate) for key in RATES)
        if not moving.adding:
            return
        following = configs[ConfigKey(Holder.TOPIC, topic_partition.topic, "follower.replication.throttled.replicas")]
        assert {f"{topic_partition.partition}:{broker}" for broker in moving.adding} <= set(following.split(","))


def a_cluster(plan: ReassignmentPlan, seed: int, configs: Mapping[ConfigKey, str] | None = None) -> FakeCluster:
    replicas = {move.topic_partition: move.undo for move in plan.partitions()}
    topics = {topic for topic, _ in replicas}
    own = {key: one for key, one in (configs or {}).items() if key.holder is Holder.BROKER or key.name in topics}
    return FakeCluster(replicas, Random(seed), set(BROKERS), own)


def run(
    cluster: FakeCluster,
    journal: Memory,
    limits: RunLimits = RunLimits(),
    last: int | None = None,
    after: bool = False,
) -> list[RunUpdate]:
    doomed = Doomed(cluster, journal, last, after, limits.bytes_per_second)
    updates = []
    for one in execute(doomed, doomed, limits, AT_ONCE):
        updates.append(one)
        assert len(updates) < 2_000, "the run does not end"
    return updates


kills = st.lists(st.tuples(st.integers(0, 12), st.booleans()), max_size=8)
intents = st.sampled_from([None, RunCancelled(), DirectionSet(Direction.ORIGINALS), DirectionSet(Direction.TARGETS)])
rates = st.sampled_from([None, 1_000])


@pytest.mark.slow
@examples(3)
@given(
    reassignment_plans(), st.integers(0, 2**32), users_configs, kills, st.lists(intents, max_size=8), rates, st.data()
)
def test_whenever_it_is_killed_or_reversed_it_ends_in_its_last_direction(
    plan: ReassignmentPlan,
    seed: int,
    configs: dict[ConfigKey, str],
    kills: list[tuple[int, bool]],
    changes: list[Event | None],
    rate: int | None,
    data: st.DataObject,
) -> None:
    cluster, journal = a_cluster(plan, seed, configs), Memory(plan)
    users = dict(cluster.configs)
    for number, (last, after) in enumerate(kills):
        with suppress(Killed):
            run(cluster, journal, RunLimits(rate), last, after)
        if number < len(changes) and changes[number] is not None:
            journal.append(changes[number])  # type: ignore[arg-type]
    direction = data.draw(st.sampled_from(Direction))
    journal.append(DirectionSet(direction))
    updates = run(cluster, journal, RunLimits(rate))
    assert updates[-1].effect == Finished()
    cluster.finish_all()
    assert cluster.replicas == {move.topic_partition: move.end(direction) for move in plan.partitions()}
    assert cluster.configs == users


@given(reassignment_plans(), st.integers(0, 2**32), users_configs, st.integers(0, 20), st.booleans())
def test_a_cancelled_run_leaves_each_partition_at_one_of_its_two_ends(
    plan: ReassignmentPlan, seed: int, configs: dict[ConfigKey, str], last: int, after: bool
) -> None:
    cluster, journal = a_cluster(plan, seed, configs), Memory(plan)
    users = dict(cluster.configs)
    with suppress(Killed):
        run(cluster, journal, RunLimits(1_000), last, after)
    journal.append(RunCancelled())
    assert run(cluster, journal, RunLimits(1_000))[-1].effect == Finished()
    assert not cluster.in_flight
    for move in plan.partitions():
        assert cluster.replicas[move.topic_partition] in (move.undo, move.replicas)
    assert cluster.configs == users


@settings(deadline=None)
@given(reassignment_plans(), st.integers(0, 2**32))
def test_an_undisturbed_run_copies_what_the_plan_says_and_one_step_at_a_time(plan: ReassignmentPlan, seed: int) -> None:
    cluster = a_cluster(plan, seed)
    updates = run(cluster, Memory(plan), RunLimits(1_000))
    assert cluster.copied == sum(step.moves for step in plan.steps)
    steps = {
        topic_partition: step.number
        for step in plan.steps
        for topic_partition in (move.topic_partition for move in step.partitions)
    }
    moving = [{steps[topic_partition] for topic_partition in one.cluster.in_flight} for one in updates]
    assert all(len(numbers) <= 1 for numbers in moving)
    order = [number for numbers in moving for number in numbers]
    assert order == sorted(order)


@settings(deadline=None)
@given(reassignment_plans(), st.integers(0, 2**32), st.integers(4, 6))
def test_each_run_copies_no_more_than_it_may_and_enough_runs_end_it(
    plan: ReassignmentPlan, seed: int, most: int
) -> None:
    cluster, journal = a_cluster(plan, seed), Memory(plan)
    for _ in range(20):
        before = cluster.copied
        effect = run(cluster, journal, RunLimits(1_000, most))[-1].effect
        assert cluster.copied - before <= most
        assert not [key for key in cluster.configs if key.key in RATES]
        if effect == Finished():
            break
        assert effect == Paused()
    assert cluster.replicas == {move.topic_partition: move.replicas for move in plan.partitions()}


MOVE = PartitionReassignment("orders", 0, (1, 2, 4), (1, 2, 3))
OTHER = PartitionReassignment("orders", 1, (2, 3, 5), (2, 3, 6))
PLAN = ReassignmentPlan(
    "the-cluster",
    {"orders": "id-of-orders"},
    (Step.of(1, "", (MOVE,)), Step.of(2, "", (OTHER,))),
)
ANEW = "make a new plan with rackspan reassign plan"


def stopped(cluster: FakeCluster, limits: RunLimits = RunLimits(1_000)) -> str:
    users = dict(cluster.configs)
    with pytest.raises(ReassignmentStopped) as refused:
        run(cluster, Memory(PLAN), limits)
    if not cluster.in_flight:
        assert cluster.configs == users
    return str(refused.value)


def test_it_stops_where_the_cluster_is_another() -> None:
    cluster = a_cluster(PLAN, 1)
    cluster.cluster_id = "elsewhere"
    assert stopped(cluster) == f"this is cluster elsewhere, the plan is for the-cluster; name that one, or {ANEW}"


def test_it_stops_where_a_topic_was_deleted_and_created_anew() -> None:
    cluster = a_cluster(PLAN, 1)
    cluster.topic_ids["orders"] = "new"
    assert (
        stopped(cluster)
        == f"topic orders was deleted and created again since: its id is new, the plan's id-of-orders; {ANEW}"
    )


def test_it_stops_where_replicas_are_neither_old_nor_new() -> None:
    cluster = a_cluster(PLAN, 1)
    cluster.replicas[OTHER.topic_partition] = (7, 1)
    assert stopped(cluster) == f"orders-1 is on 7,1: the plan found it on 2,3,6 and leads to 2,3,5; {ANEW}"
    # What came before it was done.
    assert cluster.replicas[MOVE.topic_partition] == MOVE.replicas


def test_it_starts_nothing_beside_anybody_elses_reassignment() -> None:
    cluster = a_cluster(PLAN, 1)
    cluster.in_flight[TopicPartition("payments", 0)] = InFlight((9, 1), (9,), (1,))
    cluster.replicas[TopicPartition("payments", 0)] = (9, 1)
    assert (
        stopped(cluster)
        == "payments-0: being reassigned, not by this plan; wait for the end, or cancel it with rackspan reassign cancel --in-flight, then run again"
    )
    assert cluster.copied == 0


def test_it_stops_where_somebody_takes_its_partition_elsewhere() -> None:
    cluster = a_cluster(PLAN, 1)
    cluster.in_flight[MOVE.topic_partition] = InFlight((9, 1, 2, 3), (9,), (1, 2, 3))
    assert (
        stopped(cluster)
        == "orders-0 is being reassigned to 9, not by this plan; wait for the end, or cancel it with rackspan reassign cancel --in-flight, then run again"
    )


class Clock:
    """Time that passes by sleeping."""

    seconds = 0.0

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds


def test_a_broker_that_goes_is_waited_for_and_then_named() -> None:
    cluster, journal, clock = a_cluster(PLAN, 1), Memory(PLAN), Clock()
    cluster.brokers.discard(5)
    pace = Pace(60.0, now=lambda: clock.seconds, sleep=clock.sleep)
    with pytest.raises(ReassignmentStopped) as refused:
        list(execute(cluster, journal, RunLimits(), pace))
    assert str(refused.value) == f"broker 5 is down and must receive orders-1; bring it back, or {ANEW}"
    assert clock.seconds >= 60
    cluster.brokers.add(5)
    assert run(cluster, journal)[-1].effect == Finished()


@pytest.mark.parametrize("rate", [None, 1_000])
@pytest.mark.parametrize("started", [False, True])
def test_a_partition_that_loses_its_leader_holds_up_no_other_step(rate: int | None, started: bool) -> None:
    cluster, journal, clock = a_cluster(PLAN, 1), Memory(PLAN), Clock()
    if started:
        cluster.start_moves({MOVE.topic_partition: MOVE.replicas})
    cluster.leaderless.add(MOVE.topic_partition)
    pace = Pace(60.0, now=lambda: clock.seconds, sleep=clock.sleep)
    with pytest.raises(ReassignmentStopped) as refused:
        list(execute(cluster, journal, RunLimits(rate), pace))
    assert str(refused.value) == (
        f"orders-0 has no leader to copy from; bring back a replica that was in sync, or {ANEW}"
    )
    assert clock.seconds >= 60
    assert cluster.replicas[OTHER.topic_partition] == OTHER.replicas
    cluster.leaderless.clear()
    assert run(cluster, journal, RunLimits(rate))[-1].effect == Finished()
    assert cluster.replicas == {move.topic_partition: move.replicas for move in PLAN.partitions()}
    assert cluster.configs == {}


@pytest.mark.slow
@given(reassignment_plans(), st.integers(0, 2**32), kills, rates, st.data())
def test_whatever_can_finish_does_whichever_partitions_cannot(
    plan: ReassignmentPlan, seed: int, kills: list[tuple[int, bool]], rate: int | None, data: st.DataObject
) -> None:
    cluster, journal = a_cluster(plan, seed), Memory(plan)
    partitions = sorted(move.topic_partition for move in plan.partitions())
    cluster.leaderless = set(data.draw(st.lists(st.sampled_from(partitions), unique=True)))
    lost, everyone = set(cluster.leaderless), set(cluster.brokers)
    cluster.brokers -= set(data.draw(st.lists(st.sampled_from(BROKERS), unique=True, max_size=2)))
    clock = Clock()
    pace = Pace(60.0, now=lambda: clock.seconds, sleep=clock.sleep)
    for last, after in [*kills, (None, False)]:
        doomed = Doomed(cluster, journal, last, after, rate)
        with suppress(Killed, ReassignmentStopped):
            list(execute(doomed, doomed, RunLimits(rate), pace))
    for move in plan.partitions():
        can_finish = move.topic_partition not in lost and set(move.replicas) <= cluster.brokers
        if can_finish or set(move.replicas) == set(move.undo):
            assert cluster.replicas[move.topic_partition] == move.replicas
    cluster.leaderless.clear()
    cluster.brokers = everyone
    assert run(cluster, journal, RunLimits(rate))[-1].effect == Finished()
    assert cluster.replicas == {move.topic_partition: move.replicas for move in plan.partitions()}
    assert cluster.configs == {}


@given(reassignment_plans(), st.integers(0, 2**32), kills)
def test_a_partition_that_gets_another_preferred_leader_is_led_by_it_at_the_end(
    plan: ReassignmentPlan, seed: int, kills: list[tuple[int, bool]]
) -> None:
    cluster, journal = a_cluster(plan, seed), Memory(plan)
    cluster.leaders = {one.topic_partition: one.undo[-1] for one in plan.partitions()}
    kept = {one.topic_partition for one in plan.partitions() if one.undo[0] == one.replicas[0]}
    for last, after in [*kills, (None, False)]:
        doomed = Doomed(cluster, journal, last, after, None)
        with suppress(Killed):
            list(execute(doomed, doomed, RunLimits(), AT_ONCE))
    assert isinstance(journal.events[-1], RunCompleted)
    for one in plan.partitions():
        if one.topic_partition not in kept:
            assert cluster.leaders[one.topic_partition] == one.replicas[0]
        elif one.undo[-1] in one.replicas:
            assert cluster.leaders[one.topic_partition] == one.undo[-1], "who leads it was not the plan's to change"


def test_a_preferred_leader_that_is_away_is_not_elected_and_the_run_ends() -> None:
    swapped = PartitionReassignment("orders", 9, (2, 1), (1, 2))
    plan = ReassignmentPlan("the-cluster", {}, (Step.of(1, "", (swapped,)),))
    cluster, journal = a_cluster(plan, 1), Memory(plan)
    cluster.brokers -= {2}
    assert run(cluster, journal)[-1].effect == Finished()
    assert cluster.leaders[swapped.topic_partition] == 1


def test_a_broker_that_dies_with_its_throttle_set_is_owed_its_own_until_it_is_back() -> None:
    cluster, journal = a_cluster(PLAN, 1, {ConfigKey(Holder.BROKER, "6", RATES[0]): "77"}), Memory(PLAN)
    for one in execute(cluster, journal, RunLimits(1_000), AT_ONCE):
        if isinstance(one.effect, StartMoves) and OTHER.topic_partition in one.effect.targets:
            cluster.brokers.discard(6)
        last = one.effect
    owed = {ConfigKey(Holder.BROKER, "6", key) for key in RATES}
    assert isinstance(last, Finished)
    assert set(last.owed) == owed
    cluster.brokers.add(6)
    assert run(cluster, journal)[-1].effect == Finished()
    assert cluster.configs == {ConfigKey(Holder.BROKER, "6", RATES[0]): "77"}


class Scripted:
    """A cluster that shows one observation after another, the last one for ever, and the requests that it got."""

    def __init__(self, *shown: Mapping[TopicPartition, tuple[int, ...]]) -> None:
        self.shown = list(shown)
        self.requests: list[str] = []

    def observe(self, request: ObservationRequest) -> ObservedCluster:
        replicas = self.shown.pop(0) if len(self.shown) > 1 else self.shown[0]
        moving = {one: InFlight(held, held[2:3], held[3:]) for one, held in replicas.items() if len(held) == 4}
        ids = {"orders": "id-of-orders"}
        return ObservedCluster("the-cluster", frozenset(BROKERS), ids, replicas, in_flight=moving)

    def start_moves(self, targets: Mapping[Any, tuple[int, ...]]) -> None:
        self.requests.append(f"start {','.join(str(one.partition) for one in targets)}")

    def append(self, event: Event) -> None:
        self.requests.append(type(event).__name__)
        self.journal.append(event)

    def runs(self, limits: RunLimits = RunLimits(), pace: Pace = AT_ONCE, plan: ReassignmentPlan = PLAN) -> list[str]:
        """What the run requests of the cluster and the journal, in order."""
        self.journal = Memory(plan)
        updates = execute(self, self, limits, pace)  # type: ignore[arg-type]
        with suppress(StopIteration):
            for _ in range(200):
                next(updates)
        return self.requests

    @property
    def state(self) -> Any:
        return self.journal.state


def shows(first: tuple[int, ...], second: tuple[int, ...]) -> dict[TopicPartition, tuple[int, ...]]:
    return {MOVE.topic_partition: first, OTHER.topic_partition: second}


BEFORE, MOVED = shows(MOVE.undo, OTHER.undo), shows(MOVE.replicas, OTHER.undo)
MOVING, BOTH = shows((1, 2, 4, 3), OTHER.undo), shows(MOVE.replicas, OTHER.replicas)


def test_a_step_is_done_when_two_observations_in_a_row_show_it() -> None:
    """A broker that lags shows what was true before: here, that the first partition is where a run before left it."""
    ended = ["StepCompleted", "start 1", "StepCompleted", "RunCompleted"]
    assert Scripted(MOVED, BEFORE, MOVED, MOVED, MOVED, BOTH).runs() == ["start 0", *ended]
    assert Scripted(MOVED, BEFORE, MOVED, MOVING, MOVED, MOVED, MOVED, BOTH).runs() == ["start 0", *ended]
    assert Scripted(MOVED, MOVED, MOVED, BOTH).runs() == ended


def test_a_broker_that_lags_has_time_between_the_two_observations() -> None:
    clock = Clock()

    class Lagging(Scripted):
        def observe(self, request: ObservationRequest) -> ObservedCluster:
            self.shown = [MOVED if clock.seconds < 0.2 else BEFORE]
            return super().observe(request)

    pace = Pace(settle_seconds=0.25, now=lambda: clock.seconds, sleep=clock.sleep)
    assert Lagging().runs(RunLimits(moves=1), pace) == ["start 0"]


def test_a_start_that_does_not_show_yet_is_repeated_and_counted_once() -> None:
    ended = ["StepCompleted", "start 1", "StepCompleted", "RunCompleted"]
    repeated = Scripted(BEFORE, BEFORE, MOVED, MOVED, MOVED, BOTH)
    assert repeated.runs(RunLimits(moves=2)) == ["start 0", "start 0", *ended]
    assert Scripted(BEFORE, BEFORE, MOVED).runs(RunLimits(moves=1)) == ["start 0"], "nothing may be copied any more"


def test_a_change_that_never_shows_ends_the_run_when_its_patience_does() -> None:
    clock = Clock()
    with pytest.raises(ReassignmentStopped) as refused:
        Scripted(BEFORE).runs(pace=Pace(60.0, 1.0, 1.0, now=lambda: clock.seconds, sleep=clock.sleep))
    assert str(refused.value) == "the cluster took a change and does not show it; look at its controller's log"
    assert 60 <= clock.seconds < 70


def test_only_the_same_wait_without_anything_in_between_runs_out_of_patience() -> None:
    clock, slept = Clock(), list[float]()

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        clock.seconds += seconds

    patience = _Patience(Pace(60.0, 10.0, 0.25, now=lambda: clock.seconds, sleep=sleep))
    stalled, start = Wait(stalled="broker 5 is down"), StartMoves({MOVE.topic_partition: MOVE.replicas}, 1)
    for between, seconds in ((Record(RunCancelled()), []), (Wait(), [10.0]), (start, [0.25])):
        slept.clear()
        for _ in range(6):
            patience.after(stalled, stalled)
        patience.after(between, stalled)
        assert slept == [10.0] * 6 + seconds
    for _ in range(6):
        patience.after(start, start)
    with pytest.raises(ReassignmentStopped, match=r"^the cluster took a change and does not show it;"):
        patience.after(start, start)


def test_a_run_waits_five_minutes_and_looks_twice_a_second() -> None:
    assert Pace() == Pace(300.0, 0.5, 0.25, time.monotonic, time.sleep)


def test_whatever_completes_something_needs_two_observations() -> None:
    events: list[Event] = [StepCompleted(1), StepDeferred(1), RunCompleted()]
    assert _completes_something(Finished())
    assert all(_completes_something(Record(event)) for event in events)
    others: list[Effect] = [Record(RunCancelled()), Wait(), Paused(), StartMoves({}, 0)]
    assert not any(_completes_something(effect) for effect in others)


def test_copies_are_counted_once_for_a_start_and_never_below_none() -> None:
    start = StartMoves({MOVE.topic_partition: MOVE.replicas}, 2)
    assert _spent(RunLimits(moves=3), start, None).moves == 1
    assert _spent(RunLimits(moves=1), start, None).moves == 0
    assert _spent(RunLimits(moves=3), start, start).moves == 3
    assert _spent(RunLimits(), start, None).moves is None


@pytest.mark.parametrize("effect", [Wait(), Stop("why"), Paused(), Finished()])
def test_a_refusal_is_raised_once_nothing_of_the_run_is_left_to_undo(
    effect: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    decided = iter([Record(RunCancelled()), effect, effect])
    monkeypatch.setattr(executor, "decide", lambda *_: next(decided))
    cluster, journal = a_cluster(PLAN, 1), Memory(PLAN)
    running = executor._Run(cluster, journal, RunLimits(), AT_ONCE)
    running._refusal = ClusterRequestFailed("orders-0 was not reassigned: no")
    assert running.next_update() is not None
    if effect == Finished():
        assert running.next_update() is None, "it completes something"
    with pytest.raises(ClusterRequestFailed, match="orders-0 was not reassigned: no"):
        running.next_update()


class Flaky(FakeCluster):
    """A cluster that executes every request and loses every other response."""

    calls = 0

    def start_moves(self, targets: Mapping[Any, tuple[int, ...]]) -> None:
        super().start_moves(targets)
        self.calls += 1
        if self.calls % 2:
            raise ClusterUnreachable("no answer")


def test_a_response_that_is_lost_is_no_failure() -> None:
    cluster = Flaky({move.topic_partition: move.undo for move in PLAN.partitions()}, Random(1), set(BROKERS))
    assert run(cluster, Memory(PLAN), RunLimits(moves=2))[-1].effect == Finished()
    assert cluster.copied == 2


class Deaf(FakeCluster):
    """A cluster that is observed, and never responds to a start."""

    def start_moves(self, targets: Mapping[Any, tuple[int, ...]]) -> None:
        raise ClusterUnreachable("no answer")


def test_a_start_without_a_response_is_repeated_for_as_long_as_patience_lasts() -> None:
    clock = Clock()
    cluster = Deaf({move.topic_partition: move.undo for move in PLAN.partitions()}, Random(1), set(BROKERS))
    pace = Pace(60.0, now=lambda: clock.seconds, sleep=clock.sleep)
    with pytest.raises(ClusterUnreachable, match="no answer"):
        list(islice(execute(cluster, Memory(PLAN), RunLimits(), pace), 1_000))
    assert 60 <= clock.seconds < 61


class Refusing(FakeCluster):
    def start_moves(self, targets: Mapping[Any, tuple[int, ...]]) -> None:
        raise ClusterRequestFailed("orders-0 was not reassigned: no")


def test_a_refusal_restores_throttles_before_it_is_raised() -> None:
    cluster = Refusing({move.topic_partition: move.undo for move in PLAN.partitions()}, Random(1), set(BROKERS))
    with pytest.raises(ClusterRequestFailed, match="orders-0 was not reassigned: no"):
        run(cluster, Memory(PLAN), RunLimits(1_000))
    assert cluster.configs == {}


def test_what_is_refused_on_the_way_back_is_raised_at_once() -> None:
    class Forbidden(Refusing):
        def set_configs(self, values: Mapping[Any, str | None]) -> None:
            if None in values.values():
                raise ClusterUnauthorized("throttles were not removed: no")
            super().set_configs(values)

    cluster = Forbidden({move.topic_partition: move.undo for move in PLAN.partitions()}, Random(1), set(BROKERS))
    with pytest.raises(ClusterUnauthorized, match="throttles were not removed: no"):
        run(cluster, Memory(PLAN), RunLimits(1_000))
