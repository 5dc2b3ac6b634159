"""A run with its journal on a real disk, against a cluster in memory."""

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from rackspan.apply import Journal, Pace, RunUpdate, cancel, run
from rackspan.errors import InvalidJournal, ReassignmentStopped, UsageError
from rackspan.plan import RunLimits
from rackspan.plan.execution.effects import Finished, Paused, StartMoves
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


def test_cancelling_needs_a_run_that_began(tmp_path: Path) -> None:
    with (
        pytest.raises(InvalidJournal, match="nothing has begun in it; name the --journal of the run"),
        Journal(tmp_path / "journal") as opened,
    ):
        list(cancel(a_cluster(), PLAN, opened, PACE))
    assert not (tmp_path / "journal").exists()


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
