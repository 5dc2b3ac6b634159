"""The lines of a rolling restart, key by key."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from rackspan.model import TopicPartition
from rackspan.restart.execution.decision import (
    AwaitBrokers,
    Effect,
    ElectLeadersOfBatch,
    EndRestart,
    RecordEvent,
    RestartFinished,
    RunCommand,
)
from rackspan.restart.execution.events import (
    BatchCompleted,
    BatchStarted,
    BrokersStopped,
    LeadersElected,
    RestartState,
)
from rackspan.restart.execution.json_format import restart_event_document
from tests.restart.execution.snapshots import BATCHES, cluster

SECOND = RestartState(BATCHES, 1)
TWO = (TopicPartition("orders", 0), TopicPartition("orders", 2))


@pytest.mark.parametrize(
    ("effect", "event", "brokers", "reason"),
    [
        (AwaitBrokers("broker 2 is down", 1, "start it"), "waiting", [2, 5], "broker 2 is down"),
        (RecordEvent(BatchStarted(2, {})), "may-stop", [2, 5], None),
        (RunCommand((5,)), "command", [5], None),
        (RecordEvent(BrokersStopped((2,))), "stopped", [2], None),
        (ElectLeadersOfBatch(TWO), "leaders-elected", [2, 5], "2 partitions"),
        (ElectLeadersOfBatch(TWO * 500), "leaders-elected", [2, 5], "1,000 partitions"),
        (ElectLeadersOfBatch(TWO[:1]), "leaders-elected", [2, 5], "1 partition"),
        (RecordEvent(BatchCompleted()), "batch-done", [2, 5], None),
    ],
)
def test_an_effect_is_a_line(effect: Effect, event: str, brokers: list[int], reason: str | None) -> None:
    assert restart_event_document(effect, SECOND, cluster()) == {
        "event": event,
        "batch": 2,
        "batches": 3,
        "brokers": brokers,
        "reason": reason,
        "as_of": None,
    }


def test_the_last_line_names_the_last_batch_and_when_the_cluster_was_read() -> None:
    read = replace(cluster(), taken_at=datetime(2026, 11, 23, 7, 5, tzinfo=UTC))
    assert restart_event_document(RestartFinished(), RestartState(BATCHES, 3), read) == {
        "event": "done",
        "batch": 3,
        "batches": 3,
        "brokers": [],
        "reason": None,
        "as_of": "2026-11-23T07:05:00Z",
    }


@pytest.mark.parametrize("effect", [EndRestart("no"), RecordEvent(LeadersElected())])
def test_an_effect_that_is_only_internal_is_no_line(effect: Effect) -> None:
    assert restart_event_document(effect, SECOND, cluster()) is None
