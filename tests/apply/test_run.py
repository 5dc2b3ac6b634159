"""A run with its journal on a real disk, against a cluster in memory."""

from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from rackspan.apply import Journal, Pace, RunUpdate, cancel, run
from rackspan.errors import InvalidJournal, ReassignmentStopped, UsageError
from rackspan.model.topic import LEADER_REPLICAS
from rackspan.plan import RunLimits
from rackspan.plan.execution.effects import Finished, Paused, Record, SetConfigs, StartMoves
from rackspan.plan.execution.events import ForeignThrottleRecorded
from rackspan.plan.execution.throttle import ConfigKey, Holder
from rackspan.reassign import Direction, PartitionReassignment, ReassignmentPlan, Step, reassignment_columns
from tests.plan.fake_cluster import FakeCluster

MOVES = (PartitionReassignment("orders", 0, (4, 5), (1, 2)), PartitionReassignment("orders", 1, (2, 3, 1), (3, 2, 4)))
PLAN = ReassignmentPlan("the-cluster", {}, tuple(Step.of(number, "", (move,)) for number, move in enumerate(MOVES, 1)))
PACE = Pace(now=lambda: 0.0, sleep=lambda seconds: None)


def a_cluster() -> FakeCluster:
    return FakeCluster({move.topic_partition: move.undo for move in MOVES}, Random(1), set(range(1, 6)))


def carry_out(
    cluster: FakeCluster,
    journal: Path,
    direction: Direction = Direction.TARGETS,
    plan: ReassignmentPlan = PLAN,
    limits: RunLimits = RunLimits(),
) -> list[RunUpdate]:
    with Journal(journal) as opened:
        return list(run(cluster, plan, direction, opened, limits, PACE))


def test_there_and_back_and_there_again(tmp_path: Path) -> None:
    cluster, journal = a_cluster(), tmp_path / "journal"
    for direction in (Direction.TARGETS, Direction.ORIGINALS, Direction.TARGETS):
        assert carry_out(cluster, journal, direction)[-1].effect == Finished()
        assert cluster.replicas == {move.topic_partition: move.end(direction) for move in MOVES}
    assert cluster.copied == 9
    assert not [one for one in carry_out(cluster, journal) if isinstance(one.effect, StartMoves)]


def test_a_run_that_ended_is_not_done_again_where_something_else_moved_a_partition(tmp_path: Path) -> None:
    cluster, journal = a_cluster(), tmp_path / "journal"
    carry_out(cluster, journal)
    cluster.replicas[MOVES[0].topic_partition] = MOVES[0].undo
    with pytest.raises(ReassignmentStopped, match="orders-0 is on 1,2: the run ended on 4,5, and it was changed since"):
        carry_out(cluster, journal)
    assert cluster.replicas[MOVES[0].topic_partition] == MOVES[0].undo


def test_a_file_that_does_not_say_what_was_there_can_be_undone_by_its_journal(tmp_path: Path) -> None:
    steps = tuple(
        replace(step, columns=reassignment_columns(replace(one, undo=()) for one in step.partitions))
        for step in PLAN.steps
    )
    cluster, plain = a_cluster(), replace(PLAN, steps=steps)
    with pytest.raises(ReassignmentStopped, match="the plan does not say where replicas were"):
        carry_out(cluster, tmp_path / "journal", Direction.ORIGINALS, plain)
    carry_out(cluster, tmp_path / "journal", Direction.TARGETS, plain)
    carry_out(cluster, tmp_path / "journal", Direction.ORIGINALS, plain)
    assert cluster.replicas == {move.topic_partition: move.undo for move in MOVES}


def test_the_journal_has_topic_ids_even_where_the_file_has_none(tmp_path: Path) -> None:
    cluster, journal = a_cluster(), tmp_path / "journal"
    assert carry_out(cluster, journal, limits=RunLimits(moves=2))[-1].effect == Paused()
    cluster.topic_ids["orders"] = "another"
    with pytest.raises(ReassignmentStopped, match="topic orders was deleted and created again since"):
        carry_out(cluster, journal)


def test_what_is_refused_before_it_began_leaves_no_journal(tmp_path: Path) -> None:
    cluster, journal = a_cluster(), tmp_path / "journal"
    with pytest.raises(UsageError, match=r"^--max-moves 1: orders-0 alone copies 2; allow 2 or more$"):
        carry_out(cluster, journal, limits=RunLimits(moves=1))
    cluster.cluster_id = "another"
    with pytest.raises(ReassignmentStopped, match="this is cluster another, the plan is for the-cluster"):
        carry_out(cluster, journal)
    assert not journal.exists()


def test_a_journal_is_of_one_plan_and_one_cluster(tmp_path: Path) -> None:
    cluster, journal = a_cluster(), tmp_path / "journal"
    carry_out(cluster, journal)
    before = journal.read_bytes()
    with pytest.raises(InvalidJournal, match=r"journal: the journal of another plan; name the --journal of this one$"):
        carry_out(cluster, journal, plan=replace(PLAN, steps=PLAN.steps[:1]))
    cluster.cluster_id = "another"
    with pytest.raises(ReassignmentStopped, match="this is cluster another"):
        carry_out(cluster, journal)
    assert journal.read_bytes() == before


RATES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")


def rates_set(updates: list[RunUpdate]) -> list[str]:
    """The rates that a run sets, in order, each once in a row."""
    found = [
        value
        for one in updates
        if isinstance(one.effect, SetConfigs)
        for config, value in one.effect.values.items()
        if config.key in RATES and value is not None
    ]
    return [rate for rate, before in zip(found, [None, *found], strict=False) if rate != before]


def begun(cluster: FakeCluster, journal: Path, limits: RunLimits, events: int) -> None:
    """A run that is killed once its journal has so many lines."""
    with Journal(journal) as opened:
        for _ in run(cluster, PLAN, Direction.TARGETS, opened, limits, PACE):
            if len(journal.read_bytes().splitlines()) >= events:
                return


@pytest.mark.parametrize("events", range(1, 8))
@pytest.mark.parametrize(
    ("resumed", "rates"), [(None, ["15"]), (15, ["15"]), (20, ["20"]), (0, [])], ids=["kept", "same", "other", "none"]
)
def test_a_resumed_run_keeps_its_throttle_unless_it_is_given_another(
    tmp_path: Path, events: int, resumed: int | None, rates: list[str]
) -> None:
    cluster, journal = a_cluster(), tmp_path / "journal"
    begun(cluster, journal, RunLimits(15), events)
    updates = carry_out(cluster, journal, limits=RunLimits(resumed))
    assert updates[-1].effect == Finished()
    assert set(rates_set(updates)) <= set(rates)
    assert (set(rates_set(updates)) == set(rates)) or events > 5, "after the second step is throttled nothing is set"
    assert cluster.configs == {}
    with Journal(journal) as opened:
        assert opened.state.bytes_per_second == (15 if resumed is None else resumed)


def test_a_throttle_is_kept_in_the_other_direction_and_after_a_cancel(tmp_path: Path) -> None:
    cluster, journal = a_cluster(), tmp_path / "journal"
    begun(cluster, journal, RunLimits(15), 4)
    with Journal(journal) as opened:
        list(cancel(cluster, PLAN, opened, PACE))
    assert cluster.configs == {}
    assert rates_set(carry_out(cluster, journal)) == ["15"]
    assert rates_set(carry_out(cluster, journal, Direction.ORIGINALS)) == ["15"]


@pytest.mark.parametrize(("resumed", "rates"), [(None, []), (20, ["20"]), (0, [])])
def test_a_journal_of_before_has_no_rate_and_goes_on_with_what_is_given(
    tmp_path: Path, resumed: int | None, rates: list[str]
) -> None:
    cluster, journal = a_cluster(), tmp_path / "journal"
    rate = ConfigKey(Holder.BROKER, "3", RATES[0])
    cluster.configs[rate] = "77"
    begun(cluster, journal, RunLimits(15), 4)
    journal.write_bytes(journal.read_bytes().replace(b'"bytes_per_second":15,', b""))
    updates = carry_out(cluster, journal, limits=RunLimits(resumed))
    assert ([rate for rate in rates_set(updates) if rate != "77"], updates[-1].effect) == (rates, Finished())
    assert cluster.configs == {rate: "77"}, "the unknown rate is not taken for one that others have set"


@pytest.mark.parametrize("theirs", ["5", None])
def test_a_throttle_that_others_change_while_a_run_has_it_is_theirs_at_the_end(
    tmp_path: Path, theirs: str | None
) -> None:
    cluster, journal = a_cluster(), tmp_path / "journal"
    rate, listed = ConfigKey(Holder.BROKER, "2", RATES[0]), ConfigKey(Holder.TOPIC, "orders", LEADER_REPLICAS)
    cluster.configs[rate] = "77"
    updates, changed = [], False
    with Journal(journal) as opened:
        for one in run(cluster, PLAN, Direction.TARGETS, opened, RunLimits(15), PACE):
            updates.append(one)
            if isinstance(one.effect, StartMoves) and not changed:
                changed = True
                cluster.set_configs({rate: theirs, listed: f"{cluster.configs[listed]},9:9"})
    recorded = [one.effect.event for one in updates if isinstance(one.effect, Record)]
    assert ForeignThrottleRecorded({rate: theirs, listed: "9:9"}) in recorded
    assert set(rates_set(updates)) == {"15", *([theirs] if theirs else [])}
    assert cluster.configs == {listed: "9:9", **({rate: theirs} if theirs else {})}


@pytest.mark.slow
def test_a_journal_cut_after_any_line_goes_on_with_its_throttle_and_leaves_what_others_set(tmp_path: Path) -> None:
    rate = ConfigKey(Holder.BROKER, "2", RATES[1])
    whole = tmp_path / "whole"
    cluster = a_cluster()
    cluster.configs[rate] = "77"
    before: object = None
    with Journal(whole) as opened:
        for one in run(cluster, PLAN, Direction.TARGETS, opened, RunLimits(15), PACE):
            *others, last = whole.read_bytes().splitlines(keepends=True)
            # A line can be torn until the effect that follows it, and the first one holds the throttle.
            torn = [last[:-1], last[: len(last) // 2], b""] if isinstance(before, Record) else []
            for end in (last, *torn):
                after, cut = deepcopy(cluster), tmp_path / "cut"
                cut.write_bytes(b"".join(others) + end)
                updates = carry_out(after, cut)
                assert updates[-1].effect == Finished()
                assert set(rates_set(updates)) <= {"15", "77"}
                assert after.configs == {rate: "77"}, (one.effect, end)
                with Journal(cut) as resumed:
                    assert resumed.state.bytes_per_second == 15
            before = one.effect
    assert cluster.configs == {rate: "77"}


def test_cancelling_needs_a_run_that_began(tmp_path: Path) -> None:
    with (
        pytest.raises(InvalidJournal, match="nothing has begun in it; name the --journal of the run"),
        Journal(tmp_path / "journal") as opened,
    ):
        list(cancel(a_cluster(), PLAN, opened, PACE))
    assert not (tmp_path / "journal").exists()


def test_cancelling_is_of_the_journals_plan_and_cluster(tmp_path: Path) -> None:
    cluster, journal = a_cluster(), tmp_path / "journal"
    carry_out(cluster, journal, limits=RunLimits(moves=2))
    before = journal.read_bytes()
    with pytest.raises(InvalidJournal, match=r"/journal: the journal of another plan"), Journal(journal) as opened:
        list(cancel(cluster, replace(PLAN, steps=PLAN.steps[:1]), opened, PACE))
    cluster.cluster_id = "another"
    with pytest.raises(ReassignmentStopped, match="this is cluster another"), Journal(journal) as opened:
        list(cancel(cluster, PLAN, opened, PACE))
    assert journal.read_bytes() == before


def test_cancelling_takes_back_what_is_in_flight_and_keeps_what_is_done(tmp_path: Path) -> None:
    cluster, journal = a_cluster(), tmp_path / "journal"
    with Journal(journal) as opened:
        for one in run(cluster, PLAN, Direction.TARGETS, opened, RunLimits(), PACE):
            if isinstance(one.effect, StartMoves) and MOVES[1].topic_partition in one.effect.targets:
                cluster.brokers.discard(1)
            if cluster.in_flight.keys() == {MOVES[1].topic_partition}:
                break
        list(cancel(cluster, PLAN, opened, PACE))
    assert cluster.replicas == {MOVES[0].topic_partition: MOVES[0].replicas, MOVES[1].topic_partition: MOVES[1].undo}
    assert cluster.in_flight == {}
