"""The lines of a journal, key for key as docs/formats.md has them, and lines that are none."""

import json

import pytest

from rackspan.errors import InvalidJournal
from rackspan.plan.execution.events import (
    DirectionSet,
    Event,
    ForeignThrottleRecorded,
    RateSet,
    RunCancelled,
    RunCompleted,
    RunStarted,
    StepCompleted,
    StepDeferred,
    ThrottleRecorded,
    ThrottleRemoved,
)
from rackspan.plan.execution.events_format import event_line, read_events
from rackspan.plan.execution.throttle import ConfigKey, Holder
from rackspan.reassign import Direction, PartitionReassignment, ReassignmentPlan, Step

RATE = ConfigKey(Holder.BROKER, "4", "leader.replication.throttled.rate")
LISTED = ConfigKey(Holder.TOPIC, "orders", "leader.replication.throttled.replicas")
PLAN = ReassignmentPlan(
    "c", {"orders": "id-1"}, (Step.of(1, "für Ü", (PartitionReassignment("orders", 0, (4, 2), (1, 2)),)),)
)

LINES: list[tuple[Event, str]] = [
    (
        RunStarted(PLAN),
        '{"event":"began","version":1,"plan":{"partitions":[{"topic":"orders","partition":0,"replicas":[4,2]}],'
        '"cluster_id":"c","topic_ids":{"orders":"id-1"},"steps":[{"step":1,"reason":"für Ü","partitions":'
        '[{"topic":"orders","partition":0,"replicas":[4,2],"undo":[1,2]}]}]}}',
    ),
    (
        RunStarted(ReassignmentPlan("c", {}, ()), 15_000_000),
        '{"event":"began","version":1,"bytes_per_second":15000000,'
        '"plan":{"partitions":[],"cluster_id":"c","topic_ids":{},"steps":[]}}',
    ),
    (RateSet(0), '{"event":"rate","bytes_per_second":0}'),
    (
        ForeignThrottleRecorded({RATE: "5", LISTED: None}),
        '{"event":"throttled-by-others","own":[["broker","4","leader.replication.throttled.rate","5"],'
        '["topic","orders","leader.replication.throttled.replicas",null]]}',
    ),
    (DirectionSet(Direction.ORIGINALS), '{"event":"turned","toward":"originals"}'),
    (RunCancelled(), '{"event":"cancelled"}'),
    (
        ThrottleRecorded(3, {RATE: "77", LISTED: None}),
        '{"event":"throttling","step":3,"own":[["broker","4","leader.replication.throttled.rate","77"],'
        '["topic","orders","leader.replication.throttled.replicas",null]]}',
    ),
    (
        ThrottleRemoved((LISTED, RATE)),
        '{"event":"unthrottled","configs":[["topic","orders","leader.replication.throttled.replicas"],'
        '["broker","4","leader.replication.throttled.rate"]]}',
    ),
    (StepCompleted(2), '{"event":"step-done","step":2}'),
    (StepDeferred(5), '{"event":"step-deferred","step":5}'),
    (RunCompleted(), '{"event":"ended"}'),
]


@pytest.mark.parametrize(("event", "line"), LINES)
def test_each_event_is_one_line_and_is_read_from_it(event: Event, line: str) -> None:
    assert event_line(event) == line
    assert read_events([line]) == (event,)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "{",
        "[]",
        "7",
        "{}",
        '{"event":"other"}',
        '{"event":["ended"]}',
        '{"event":"step-done"}',
        '{"event":"step-done","step":"x"}',
        '{"event":"turned","toward":"nowhere"}',
        '{"event":"throttling","step":1,"own":[["broker","4","a.rate",5]]}',
        '{"event":"throttling","step":1,"own":[["broker","4","a.rate"]]}',
        '{"event":"unthrottled","configs":[["nobody","4","a.rate"]]}',
        '{"event":"unthrottled","configs":[["broker",4,"a.rate"]]}',
        '{"event":"throttling","step":1,"own":[["topic","orders",["a.rate"],"5"]]}',
        '{"event":"step-done","step":"2"}',
        '{"event":"step-deferred","step":0}',
        '{"event":"began","version":1,"plan":[]}',
        '{"event":"began","version":1,"plan":{"partitions":7}}',
        '{"event":"began","version":1,"bytes_per_second":"5","plan":{"partitions":[]}}',
        '{"event":"rate","bytes_per_second":-1}',
        '{"event":"rate","bytes_per_second":true}',
        '{"event":"rate"}',
        '{"event":"throttled-by-others","own":[["broker","4","a.rate"]]}',
        "[" * 100_000,
    ],
)
def test_a_line_that_is_no_event_is_refused_by_its_number(line: str) -> None:
    with pytest.raises(InvalidJournal) as refused:
        read_events(['{"event":"ended"}', line])
    assert str(refused.value) == "line 2 is not an event; restore the file, or name another --journal"


def test_a_journal_of_another_version_is_refused() -> None:
    line = json.dumps({**json.loads(LINES[0][1]), "version": 2})
    with pytest.raises(InvalidJournal) as refused:
        read_events([line])
    assert str(refused.value) == "version 2 is not known; take the rackspan that wrote it"
