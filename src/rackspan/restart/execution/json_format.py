"""The events of a rolling restart as JSON lines."""

from typing import Annotated, Literal, TypedDict

from msgspec import Meta

from rackspan.documents import Count, UtcTime
from rackspan.model import ClusterSnapshot
from rackspan.restart.execution.decision import (
    AwaitBrokers,
    Effect,
    ElectLeadersOfBatch,
    RecordEvent,
    RestartFinished,
    RunCommand,
)
from rackspan.restart.execution.events import BatchCompleted, BatchStarted, BrokersStopped, RestartState
from rackspan.text import count_noun, utc_text


class RestartEventDocument(TypedDict):
    """One line of a rolling restart."""

    event: Annotated[
        Literal["would-run", "may-stop", "command", "stopped", "waiting", "leaders-elected", "batch-done", "done"],
        Meta(
            description="would-run: `reason` with --apply. may-stop: from now on the brokers may stop. waiting: for `reason`; it may be repeated."
        ),
    ]
    batch: Annotated[Count, Meta(description="Of the batches, from 1; with done, the last one.")]
    batches: Count
    brokers: Annotated[list[int], Meta(description="Those that the event is about.")]
    reason: str | None
    as_of: Annotated[UtcTime | None, Meta(description="When the cluster was read, in UTC.")]


def restart_event_document(
    effect: Effect, state: RestartState, snapshot: ClusterSnapshot
) -> RestartEventDocument | None:
    """The line of an effect; `state` is the one that it follows from. None for an effect that is only internal."""
    as_of = None if snapshot.taken_at is None else utc_text(snapshot.taken_at)
    batches = len(state.batches.batches)
    document: RestartEventDocument = {
        "event": "waiting",
        "batch": min(state.done + 1, batches),
        "batches": batches,
        "brokers": list(state.brokers),
        "reason": None,
        "as_of": as_of,
    }
    match effect:
        case AwaitBrokers(why):
            return {**document, "reason": why}
        case RecordEvent(BatchStarted()):
            return {**document, "event": "may-stop"}
        case RunCommand(brokers):
            return {**document, "event": "command", "brokers": list(brokers)}
        case RecordEvent(BrokersStopped(brokers)):
            return {**document, "event": "stopped", "brokers": list(brokers)}
        case ElectLeadersOfBatch(partitions):
            return {**document, "event": "leaders-elected", "reason": count_noun(len(partitions), "partition", ",")}
        case RecordEvent(BatchCompleted()):
            return {**document, "event": "batch-done"}
        case RestartFinished():
            return {**document, "event": "done"}
        case _:
            return None
