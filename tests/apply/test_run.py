"""A run with its journal on a real disk, against a cluster in memory."""

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from rackspan.apply import Happened, Journal, Pace, cancel, run
from rackspan.errors import InvalidJournal, ReassignmentStopped, UsageError
from rackspan.plan import Limits, Toward, WrittenPlan
from rackspan.plan.execution.effects import Finished, Paused, StartMoves
from rackspan.plan.written import PartitionMove, WrittenStep
from tests.plan.fake_cluster import FakeCluster

MOVES = (PartitionMove("orders", 0, (4, 5), (1, 2)), PartitionMove("orders", 1, (2, 3, 1), (3, 2, 4)))
PLAN = WrittenPlan("the-cluster", {}, tuple(WrittenStep(number, "", (move,)) for number, move in enumerate(MOVES, 1)))
PACE = Pace(now=lambda: 0.0, sleep=lambda seconds: None)


def a_cluster() -> FakeCluster:
    return FakeCluster({move.place: move.undo for move in MOVES}, Random(1), set(range(1, 6)))


def carry_out(
    cluster: FakeCluster,
    journal: Path,
    toward: Toward = Toward.TARGETS,
    plan: WrittenPlan = PLAN,
    limits: Limits = Limits(),
) -> list[Happened]:
    with Journal(journal) as opened:
        return list(run(cluster, plan, toward, opened, limits, PACE))


def test_there_and_back_and_there_again(tmp_path: Path) -> None:
    cluster, journal = a_cluster(), tmp_path / "journal"
    for toward in (Toward.TARGETS, Toward.ORIGINALS, Toward.TARGETS):
        assert carry_out(cluster, journal, toward)[-1].effect == Finished()
        assert cluster.replicas == {move.place: move.end(toward) for move in MOVES}
    assert cluster.copied == 9
    assert not [one for one in carry_out(cluster, journal) if isinstance(one.effect, StartMoves)]


def test_a_file_that_does_not_say_what_was_there_can_be_undone_by_its_journal(tmp_path: Path) -> None:
    steps = tuple(replace(step, moves=tuple(replace(one, undo=()) for one in step.moves)) for step in PLAN.steps)
    cluster, plain = a_cluster(), replace(PLAN, steps=steps)
    with pytest.raises(ReassignmentStopped, match="the plan does not say where replicas were"):
        carry_out(cluster, tmp_path / "journal", Toward.ORIGINALS, plain)
    carry_out(cluster, tmp_path / "journal", Toward.TARGETS, plain)
    carry_out(cluster, tmp_path / "journal", Toward.ORIGINALS, plain)
    assert cluster.replicas == {move.place: move.undo for move in MOVES}


def test_the_journal_knows_topics_by_id_even_where_the_file_did_not(tmp_path: Path) -> None:
    cluster, journal = a_cluster(), tmp_path / "journal"
    assert carry_out(cluster, journal, limits=Limits(moves=2))[-1].effect == Paused()
    cluster.topic_ids["orders"] = "another"
    with pytest.raises(ReassignmentStopped, match="topic orders was deleted and created anew since"):
        carry_out(cluster, journal)


def test_what_is_refused_before_it_began_leaves_no_journal(tmp_path: Path) -> None:
    cluster, journal = a_cluster(), tmp_path / "journal"
    with pytest.raises(UsageError, match=r"^--max-moves 1: orders-0 alone copies 2; allow 2 or more$"):
        carry_out(cluster, journal, limits=Limits(moves=1))
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
        for one in run(cluster, PLAN, Toward.TARGETS, opened, Limits(), PACE):
            if isinstance(one.effect, StartMoves) and MOVES[1].place in one.effect.targets:
                cluster.brokers.discard(1)
            if cluster.in_flight.keys() == {MOVES[1].place}:
                break
        list(cancel(cluster, PLAN, opened, PACE))
    assert cluster.replicas == {MOVES[0].place: MOVES[0].replicas, MOVES[1].place: MOVES[1].undo}
    assert cluster.in_flight == {}
