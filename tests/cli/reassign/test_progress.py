"""What a run says while it goes on: lines where nobody watches, a bar on a terminal."""

import csv
import io
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from rich.console import Console

from rackspan.apply import Pace, RunUpdate
from rackspan.apply.executor import execute
from rackspan.cli import output
from rackspan.cli.options import Output
from rackspan.cli.reassign import progress as run_progress
from rackspan.cli.reassign.execution import HOW_TO_RESUME, noting_how_to_resume, write_outcome
from rackspan.errors import ReassignmentStopped
from rackspan.plan import RunLimits
from rackspan.plan.execution.effects import StartMoves, Wait
from rackspan.plan.execution.events import RunCancelled
from rackspan.plan.execution.observed import InFlight
from rackspan.plan.execution.progress import Progress
from rackspan.plan.execution.throttle import LEADER_RATE, ConfigKey, Holder
from rackspan.reassign import PartitionReassignment, ReassignmentPlan, Step
from tests.plan.fake_cluster import FakeCluster, Memory

MOVES = (PartitionReassignment("orders", 0, (4, 2), (1, 2)), PartitionReassignment("orders", 1, (2, 3), (3, 2)))
PLAN = ReassignmentPlan("the-cluster", {}, tuple(Step.of(number, "", (move,)) for number, move in enumerate(MOVES, 1)))


def happened(limits: RunLimits = RunLimits(1_000), *events: RunCancelled) -> Iterator[RunUpdate]:
    cluster = FakeCluster(
        {move.topic_partition: move.undo for move in MOVES}, Random(7), {1, 2, 3, 4} if not events else {1, 2, 3}
    )
    ledger = Memory(PLAN)
    for event in events:
        cluster.start_moves({MOVES[0].topic_partition: MOVES[0].replicas})
        ledger.append(event)
    return execute(cluster, ledger, limits, Pace(now=lambda: 0.0, sleep=lambda seconds: None))


def test_each_thing_that_happens_gets_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    last = run_progress.follow(happened())
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines() == [
        "step 1 of 2: throttled",
        "step 1 of 2: 1 partition started, 1 copy to make",
        "step 1 of 2: throttle removed",
        "step 1 of 2: done",
        "step 2 of 2: 1 partition started, 0 copies to make",
        "step 2 of 2: done",
        "electing 1 preferred leader",
    ]
    assert last.state.completed


def test_the_outcome_of_a_run_is_a_row(capsys: pytest.CaptureFixture[str]) -> None:
    last = run_progress.follow(happened())
    write_outcome(last, Path("plan.journal"), "done", {}, Output.CSV)
    (row,) = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert (row["state"], row["journal"], row["steps_done"], row["moves_done"]) == ("done", "plan.journal", "2", "1")


@pytest.mark.parametrize("moving", [False, True])
def test_how_to_resume_is_noted_if_a_run_that_stops_at_once_has_moves_under_way(
    capsys: pytest.CaptureFixture[str], moving: bool
) -> None:
    cluster = FakeCluster({move.topic_partition: move.undo for move in MOVES}, Random(7), {1, 2, 3, 4})
    cluster.cluster_id = "another"
    if moving:
        cluster.start_moves({MOVES[0].topic_partition: MOVES[0].replicas})
        cluster.brokers.discard(4)
    with pytest.raises(ReassignmentStopped):
        list(noting_how_to_resume(execute(cluster, Memory(PLAN), RunLimits())))
    assert capsys.readouterr().err == (f"{HOW_TO_RESUME}\n" if moving else "")


def test_what_is_cancelled_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    run_progress.follow(happened(RunLimits(), RunCancelled()))
    assert "1 partition on the way cancelled" in capsys.readouterr().err


def test_waiting_gets_a_line_every_so_often_and_what_keeps_it_a_line_once_it_lasts(
    capsys: pytest.CaptureFixture[str],
) -> None:
    clock = [0.0]
    lines = run_progress._Lines(lambda: clock[0])
    (first, *_) = happened()
    for seconds, effect in [(1, Wait()), (31, Wait()), (40, Wait()), (41, Wait("a")), (44, Wait("a")), (46, Wait("a"))]:
        clock[0] = float(seconds)
        lines.report(replace(first, effect=effect), f"{effect.stalled} at {seconds}")
    assert capsys.readouterr().err.splitlines() == ["None at 31", "a at 46"]


def test_what_is_awaited_is_named_once_none_got_in_sync_for_long() -> None:
    clock = [0.0]
    timer = run_progress._Timer(lambda: clock[0])
    (first, *_), place = happened(), MOVES[0].topic_partition
    moving = replace(first.cluster, in_flight={place: InFlight((4, 2, 1), (4,), (1,))}, isr={place: (1, 2)})
    waiting = replace(first, effect=Wait(), cluster=moving)
    at_first = run_progress._words(waiting, None, timer)
    clock[0] = 299.0
    assert run_progress._words(waiting, None, timer) == at_first
    clock[0] = 600.0
    words = run_progress._words(waiting, None, timer)
    why = "none got in sync for 10 min, orders-0 waits for 4: a large copy, or a broker that cannot follow"
    assert words == f"{at_first}; {why}"
    in_sync = replace(moving, isr={place: (1, 2, 4)})
    assert "none got in sync" not in str(run_progress._words(replace(waiting, cluster=in_sync), None, timer))


@pytest.mark.parametrize(
    ("seconds", "copied", "left"),
    [
        (60.0, 250, ", about 3 min left"),
        (60.0, 1, ", about 16 h 39 min left"),
        (1.0, 999, ", about 0 s left"),
        # Nothing is known before anything was copied, and nothing is left at the end.
        (60.0, 0, ""),
        (0.0, 250, ""),
        (60.0, 1_000, ""),
    ],
)
def test_the_time_that_is_left_follows_from_what_was_copied_since_the_first_report(
    seconds: float, copied: int, left: str
) -> None:
    """5,000 bytes had been copied before, by an earlier run."""
    clock = [100.0]
    timer = run_progress._Timer(lambda: clock[0])
    done = Progress(1, 2, 0, 4, 1, bytes=6_000, bytes_copied=5_000)
    assert timer.left(done) == ""
    clock[0] += seconds
    assert timer.left(replace(done, bytes_copied=5_000 + copied)) == left


def test_on_a_terminal_a_bar_is_drawn(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        output, "stderr_console", lambda: Console(stderr=True, force_terminal=True, width=100, highlight=False)
    )
    run_progress.follow(happened())
    captured = capsys.readouterr().err
    assert "step 1 of 2: throttled" in captured
    assert "step 2 of 2" in captured
    assert "1 of 1 copy in sync" in captured


def test_a_throttle_of_others_is_restored_by_name_and_is_not_called_removed(capsys: pytest.CaptureFixture[str]) -> None:
    cluster = FakeCluster({move.topic_partition: move.undo for move in MOVES}, Random(7), {1, 2, 3, 4})
    rates = [ConfigKey(Holder.BROKER, broker, LEADER_RATE) for broker in "12"]
    cluster.configs = dict.fromkeys(rates, "77")
    journal = Memory(PLAN, 1_000)

    def updates() -> Iterator[RunUpdate]:
        for one in execute(cluster, journal, RunLimits(), Pace(now=lambda: 0.0, sleep=lambda seconds: None)):
            if isinstance(one.effect, StartMoves) and one.effect.copies:
                cluster.configs[rates[1]] = "5"
            yield one

    run_progress.follow(updates())
    lines = capsys.readouterr().err.splitlines()
    assert (
        "step 1 of 2: changed by others: broker 2: leader.replication.throttled.rate = 5: restored when this run ends"
        in lines
    )
    assert (
        "step 1 of 2: throttle of this run removed, others restored: broker 1: leader.replication.throttled.rate = 77; "
        "broker 2: leader.replication.throttled.rate = 5"
    ) in lines
    assert not [line for line in lines if line.endswith("throttle removed")]
