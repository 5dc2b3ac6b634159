"""The journal on a real disk: torn, locked, mistaken for another file."""

import os
from pathlib import Path

import pytest
from hypothesis import given

from rackspan.apply import journal as journals
from rackspan.apply.journal import Journal
from rackspan.errors import InvalidJournal, UsageError
from rackspan.plan.execution.events import (
    DirectionSet,
    Event,
    RunCancelled,
    RunCompleted,
    RunStarted,
    StepCompleted,
    StepDeferred,
    ThrottleRecorded,
    ThrottleRemoved,
    replay,
)
from rackspan.plan.execution.events_format import event_line, read_events
from rackspan.plan.execution.throttle import ConfigKey, Holder
from rackspan.reassign import Direction, PartitionReassignment, ReassignmentPlan, Step
from tests.plan.plans import reassignment_plans
from tests.power_loss import FlushedFolder

PLAN = ReassignmentPlan(
    "c1", {"orders": "id\u2028"}, (Step.of(1, "because", (PartitionReassignment("orders", 0, (1, 2), (1, 3)),)),)
)
CONFIG = ConfigKey(Holder.TOPIC, "orders", "leader.replication.throttled.replicas")
EVENTS: list[Event] = [
    RunStarted(PLAN),
    ThrottleRecorded(1, {CONFIG: None, ConfigKey(Holder.BROKER, "1", "leader.replication.throttled.rate"): "5"}),
    DirectionSet(Direction.ORIGINALS),
    RunCancelled(),
    ThrottleRemoved((CONFIG,)),
    StepCompleted(1),
    StepDeferred(2),
    RunCompleted(),
]


def written(path: Path, events: list[Event]) -> Path:
    with Journal(path) as journal:
        for event in events:
            journal.append(event)
    return path


def test_what_was_appended_is_what_is_read(tmp_path: Path) -> None:
    path = written(tmp_path / "journal", EVENTS)
    assert read_events(path.read_text().removesuffix("\n").split("\n")) == tuple(EVENTS)
    assert Journal.peek(path) == replay(EVENTS)
    with Journal(path) as journal:
        assert journal.state == replay(EVENTS)


def test_each_event_outlives_a_power_loss_once_it_was_appended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = FlushedFolder(tmp_path, monkeypatch)
    with Journal(tmp_path / "journal") as journal:
        for number, event in enumerate(EVENTS, start=1):
            journal.append(event)
            lines = disk.left()["journal"].decode().removesuffix("\n").split("\n")
            assert read_events(lines) == tuple(EVENTS[:number])


def test_the_folder_is_written_to_disk_for_a_new_file_and_not_for_every_event(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[Path] = []
    monkeypatch.setattr(journals, "to_disk", flushed.append)
    path = written(tmp_path / "journal", EVENTS[:3])
    with Journal(path) as journal:
        journal.append(RunCancelled())
    assert flushed == [tmp_path]


@given(reassignment_plans())
def test_a_plan_survives_its_journal(plan: ReassignmentPlan) -> None:
    assert read_events([event_line(RunStarted(plan))]) == (RunStarted(plan),)


@pytest.mark.slow
def test_cut_off_at_any_byte_it_says_what_was_whole_and_can_be_gone_on_with(tmp_path: Path) -> None:
    whole = written(tmp_path / "whole", EVENTS).read_bytes()
    for length in range(len(whole) + 1):
        path = tmp_path / "cut"
        path.write_bytes(whole[:length])
        kept = EVENTS[: whole[:length].count(b"\n")]
        assert Journal.peek(path) == (replay(kept) if kept else None)
        with Journal(path) as journal:
            journal.append(RunCancelled() if kept else EVENTS[0])
        assert Journal.peek(path) == replay([*kept, RunCancelled()] if kept else EVENTS[:1])


def test_two_runs_cannot_share_one(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    with Journal(path):
        with pytest.raises(
            UsageError, match=r"journal: another rackspan is carrying this plan out; wait for it"
        ) as refused:
            Journal(path)
        # The error's frames still hold the second file.
        assert refused.tb is not None
        assert times_open(path) == 1
    Journal(path).close()


def times_open(path: Path) -> int:
    return [os.readlink(entry) for entry in Path("/proc/self/fd").iterdir() if entry.is_symlink()].count(str(path))


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("no journal at all", "not a journal of rackspan; name another --journal"),
        ("{}\n", "line 1 is not an event; restore the file, or name another --journal"),
        ('{"event": "dreamt"}\n', "line 1 is not an event; restore the file, or name another --journal"),
        ('{"event": "ended"}\n', "it does not begin with a plan; is it a journal of rackspan reassign apply?"),
        ('{"event": "began", "version": 2}\n', "version 2 is not known; take the rackspan that wrote it"),
        (
            '{"event": "began", "version": 1, "plan": {}}\n',
            "line 1 is not an event; restore the file, or name another --journal",
        ),
        (f"{event_line(EVENTS[0])}\n" * 2, "it begins twice; keep one journal for each plan"),
        (
            f'{event_line(EVENTS[0])}\n{{"event": "throttling", "step": 1, "own": [["topic", "a", "b", 7]]}}\n',
            "line 2 is not an event; restore the file, or name another --journal",
        ),
        (b"\xff\n", "not a journal of rackspan; name another --journal"),
    ],
)
def test_another_file_is_refused_and_left_as_it_is(tmp_path: Path, content: str | bytes, line: str) -> None:
    path, before = tmp_path / "journal", content if isinstance(content, bytes) else content.encode()
    path.write_bytes(before)
    for read in (Journal.peek, Journal):
        with pytest.raises(InvalidJournal) as refused:
            read(path)
        assert (str(refused.value), times_open(path)) == (f"{path}: {line}", 0)
    assert path.read_bytes() == before


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    for read in (Journal.peek, Journal):
        with pytest.raises(UsageError, match="cannot be used as a journal: Is a directory; name another --journal"):
            read(tmp_path)


def test_an_event_that_does_not_fit_the_disk_did_not_happen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path / "journal", EVENTS[:2])
    with Journal(path) as journal:

        def full(_descriptor: int) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr("os.fsync", full)
        line = r"journal: the journal cannot be written: No space left on device; make room, and run the same command again"
        with pytest.raises(UsageError, match=line):
            journal.append(RunCancelled())
        assert journal.state == replay(EVENTS[:2])


def test_no_journal_says_nothing(tmp_path: Path) -> None:
    assert Journal.peek(tmp_path / "absent") is None
    assert not (tmp_path / "absent").exists()
