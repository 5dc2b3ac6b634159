"""The events of a rolling restart, as lines and as a state."""

import pytest
from msgspec.structs import fields

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
    after,
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


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_an_event_is_not_changed_once_it_has_happened(event: RestartEvent) -> None:
    for field in fields(event):
        with pytest.raises(AttributeError):
            setattr(event, field.name, None)


def test_each_event_is_one_line_with_its_name_first() -> None:
    assert [event_line(event) for event in EVENTS[1:]] == [
        '{"event":"batch-started","batch":1,"places":{"3":{"orders\u2028":[0,7]}}}',
        '{"event":"command-started","brokers":[3],"pid":99,"started":null}',
        '{"event":"stopped","brokers":[3]}',
        '{"event":"elected"}',
        '{"event":"batch-done"}',
    ]
    assert event_line(EVENTS[0]) == (
        '{"event":"began","batches":{"cluster_id":"c1","as_of":"2026-11-23T00:00:00Z","margin":1,"block_on":["rf1"],'
        '"accept":"t.*","batches":[{"brokers":[3]},{"brokers":[4]}]},"version":1}'
    )


def test_the_state_begins_with_nothing_done() -> None:
    begun = replay(EVENTS[:1])
    assert (begun.done, begun.places, begun.stopped, begun.elected) == (0, None, frozenset(), False)
    assert (begun.command_pid, begun.command_started, begun.brokers) == (None, None, (3,))


def test_each_event_changes_its_part_of_the_state() -> None:
    started = replay(EVENTS[:2])
    assert (started.places, started.done) == ({3: {"orders\u2028": (0, 7)}}, 0)
    commanded = after(started, CommandStarted((3,), 99, 1234))
    assert (commanded.command_pid, commanded.command_started) == (99, 1234)
    stopped = after(after(commanded, BrokersStopped((3,))), BrokersStopped((5,)))
    assert (stopped.stopped, stopped.command_pid, stopped.elected) == (frozenset({3, 5}), 99, False)
    assert after(stopped, LeadersElected()).elected
    done = after(stopped, BatchCompleted())
    assert (done, done.brokers) == (RestartState(BATCHES, 1), (4,))
    assert after(done, BatchCompleted()).brokers == ()
    assert after(done, BatchStarted(2, {})) == RestartState(BATCHES, 1, {})


def test_the_line_that_is_no_event_is_named_by_its_number() -> None:
    with pytest.raises(InvalidJournal, match=r"^line 2 is not an event"):
        read_events([event_line(EVENTS[1]), "", event_line(EVENTS[1])])
