"""The events of a rolling restart, as lines and as a state."""

import pytest

from rackspan.errors import InvalidJournal
from rackspan.restart.execution.events import (
    BatchCompleted,
    BatchStarted,
    BrokersStopped,
    CommandStarted,
    LeadersElected,
    RestartEvent,
    RestartStarted,
    RestartState,
    event_line,
    read_events,
    replay,
)
from rackspan.restart.execution.plan_file import PlannedBatch, RestartBatches
from rackspan.restart.stopping import BlockOn

BATCHES = RestartBatches(
    "c1", "2026-11-23T00:00:00Z", 1, (BlockOn.RF1,), "t.*", (PlannedBatch((3,)), PlannedBatch((4,)))
)
EVENTS: list[RestartEvent] = [
    RestartStarted(BATCHES),
    BatchStarted(1, {3: {"orders\u2028": (0, 7)}}),
    CommandStarted((3,), 99),
    BrokersStopped((3,)),
    LeadersElected(),
    BatchCompleted(),
]


def test_what_is_written_is_what_is_read() -> None:
    lines = [event_line(event) for event in EVENTS]
    assert lines[0].startswith('{"event":"began"')
    assert not any("\n" in line for line in lines)
    assert read_events(lines) == tuple(EVENTS)


def test_the_state_is_what_the_events_add_up_to() -> None:
    assert replay(EVENTS[:5]) == RestartState(
        BATCHES, 0, {3: {"orders\u2028": (0, 7)}}, frozenset({3}), command_pid=99, elected=True
    )
    assert replay(EVENTS) == RestartState(BATCHES, 1)


@pytest.mark.parametrize(
    "line", ["{}", "[]", '{"event":"began"}', '{"event":"paused"}', '{"event":"stopped","brokers":3}']
)
def test_a_line_that_is_no_event_is_refused(line: str) -> None:
    with pytest.raises(InvalidJournal, match=r"^line 1 is not an event; restore the file, or name another --journal$"):
        read_events([line])


def test_a_journal_of_another_version_is_refused() -> None:
    with pytest.raises(InvalidJournal, match="version 2 is not known"):
        read_events([event_line(RestartStarted(BATCHES, 2))])


@pytest.mark.parametrize("events", [EVENTS[1:], [*EVENTS, EVENTS[0]]], ids=["no beginning", "two"])
def test_a_journal_begins_once(events: list[RestartEvent]) -> None:
    with pytest.raises(InvalidJournal, match="it does not begin with its plan, or begins twice"):
        replay(events)
