"""Documents and tables of a run: its preview, its result, and how far a reassignment is."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeAlias, TypedDict

from msgspec import Meta
from rich.console import RenderableType
from rich.text import Text

from rackspan.cli.output import page, table
from rackspan.cli.pages.difference import (
    DifferenceDocument,
    WithDetails,
    details_parts,
    difference_document,
    difference_parts,
    human_duration,
    less_safe_note,
)
from rackspan.cli.pages.reassignment_plan import STEPS_SHOWN, copied_bytes
from rackspan.cli.pages.throttles import ThrottleDocument, throttles_document
from rackspan.documents import AtLeastOne, Count
from rackspan.plan import (
    ConfigKey,
    Finished,
    PlanDifference,
    RunLimits,
    RunState,
    VerifiedPartition,
    VerifiedState,
    all_done,
    counted,
)
from rackspan.plan.execution.progress import progress
from rackspan.reassign import Direction
from rackspan.text import count_noun, human_bytes

if TYPE_CHECKING:
    from rackspan.apply import RunUpdate

PARTITIONS_SHOWN: Final = 40

_STYLES: Final = {"done": "bold green", "undone": "bold green", "cancelled": "bold green", "paused": "bold yellow"}


class PreviewStep(TypedDict):
    step: AtLeastOne
    reason: str
    partitions: Count
    moves: Count
    done: bool


class PreviewDocument(WithDetails):
    """What a run would change: every step, the copies it makes, and whether it is done."""

    applied: Literal[False]
    cluster_id: str | None
    toward: Direction
    journal: str
    bytes_per_second: Count | None
    moves: Annotated[Count, Meta(description="Still to make.")]
    bytes: Count
    moves_of_unknown_size: Count
    seconds_at_least: Annotated[
        Count | None, Meta(description="How long the run takes at least, by its throttle; null without one.")
    ]
    difference: DifferenceDocument
    steps: list[PreviewStep]


RunEnd: TypeAlias = Literal["done", "undone", "paused", "cancelled"]


class OutcomeDocument(TypedDict):
    """How a run ended."""

    applied: Literal[True]
    state: RunEnd
    cluster_id: str | None
    toward: Direction
    journal: str
    steps: Count
    steps_done: Count
    moves: Count
    moves_done: Count
    throttle_left_on_brokers: list[int]
    foreign_throttles: Annotated[
        list[ThrottleDocument],
        Meta(
            description="Replication throttles that others have set on the plan's topics and brokers, as they are at the end."
        ),
    ]


class VerdictSummary(TypedDict):
    partitions: Count
    done: Count
    in_progress: Count
    not_started: Count
    differs: Count


class PartitionVerdict(TypedDict):
    topic: str
    partition: Count
    replicas: list[int]
    verdict: VerifiedState
    reason: str | None


class VerdictDocument(TypedDict):
    """How far each partition of a reassignment file is."""

    summary: VerdictSummary
    partitions: list[PartitionVerdict]


def preview_document(state: RunState, limits: RunLimits, journal: Path, difference: PlanDifference) -> PreviewDocument:
    return {
        "applied": False,
        "cluster_id": state.plan.cluster_id,
        "toward": state.direction,
        "journal": str(journal),
        "bytes_per_second": limits.rate(state) or None,
        "moves": sum(topic.moves for topic in difference.topics),
        "bytes": sum(topic.bytes for topic in difference.topics),
        "moves_of_unknown_size": sum(topic.unsized for topic in difference.topics),
        "seconds_at_least": _seconds_at_least(limits.rate(state), difference),
        "difference": difference_document(difference),
        "steps": [
            {
                "step": step.number,
                "reason": step.reason,
                "partitions": len(step.columns),
                "moves": step.copies(state.direction),
                "done": step.number in state.done,
            }
            for step in state.plan.in_order(state.direction)
        ],
    }


def _seconds_at_least(bytes_per_second: int | None, difference: PlanDifference) -> int | None:
    """What the throttle alone makes the run take: the broker that receives most. None without a throttle."""
    if not bytes_per_second:
        return None
    return -(-max((broker.bytes_in for broker in difference.brokers), default=0) // bytes_per_second)


def preview_page(document: PreviewDocument) -> RenderableType:
    steps = [step for step in document["steps"] if not step["done"]]
    rows = [(step["step"], step["partitions"], step["moves"], step["reason"]) for step in steps[:STEPS_SHOWN]]
    parts: list[RenderableType] = [
        *difference_parts(document["difference"]),
        *details_parts(document.get("details", []), {step["step"]: step["reason"] for step in steps}),
    ]
    parts += [table(("step", "partitions", "moves", "because"), rows), Text()] if rows else []
    parts += less_safe_note(document["difference"])
    if len(steps) > STEPS_SHOWN:
        parts.append(
            Text(f"and {count_noun(len(steps) - STEPS_SHOWN, 'more step')}: -o json lists them all\n", style="dim")
        )
    rate = document["bytes_per_second"]
    held = "unthrottled" if rate is None else f"throttled to {human_bytes(rate)} a second"
    if document["seconds_at_least"]:
        held += f": {human_duration(document['seconds_at_least'])} or more"
    words = (
        f"{count_noun(document['moves'], 'move')}, {copied_bytes(document)}, in {count_noun(len(steps), 'step')} "
        f"on cluster {document['cluster_id']}, {held}"
    )
    nothing = "nothing is left to do" if document["steps"] else "nothing to move"
    return page(*parts, Text(f"{words}; add --apply to do it" if steps else nothing, style="bold"))


def outcome_document(
    last: "RunUpdate", journal: Path, state: RunEnd, foreign: Mapping[ConfigKey, str]
) -> OutcomeDocument:
    """`foreign`: throttles that others have set."""
    done = progress(last.state, last.cluster)
    return {
        "applied": True,
        "state": state,
        "cluster_id": last.cluster.cluster_id,
        "toward": last.state.direction,
        "journal": str(journal),
        "steps": done.steps,
        "steps_done": len(last.state.done),
        "moves": done.copies,
        "moves_done": done.copied,
        "throttle_left_on_brokers": brokers_owed(last),
        "foreign_throttles": throttles_document(foreign),
    }


def outcome_page(document: OutcomeDocument) -> RenderableType:
    state, journal = document["state"], document["journal"]
    done = f"{document['steps_done']} of {count_noun(document['steps'], 'step')}"
    words = f"{state}: {done}, {document['moves_done']} of {count_noun(document['moves'], 'move')}; journal {journal}"
    owed = document["throttle_left_on_brokers"]
    gone = f"gone with its throttle set: {', '.join(map(str, owed))}; run this again once it is back"
    notes = [Text(gone, style="yellow")] if owed else []
    return page(*notes, Text(words, style=_STYLES[state]))


def verdict_document(verified: Sequence[VerifiedPartition]) -> VerdictDocument:
    numbers = dict(counted(verified))
    return {
        "summary": {
            "partitions": len(verified),
            "done": numbers[VerifiedState.DONE],
            "in_progress": numbers[VerifiedState.IN_PROGRESS],
            "not_started": numbers[VerifiedState.NOT_STARTED],
            "differs": numbers[VerifiedState.DIFFERS],
        },
        "partitions": [
            {
                "topic": partition.reassignment.topic,
                "partition": partition.reassignment.partition,
                "replicas": list(partition.reassignment.replicas),
                "verdict": partition.state,
                "reason": partition.reason,
            }
            for partition in verified
        ],
    }


def verdict_page(verified: Sequence[VerifiedPartition]) -> RenderableType:
    """The partitions that are not done, then their count."""
    undone = [partition for partition in verified if partition.state is not VerifiedState.DONE]
    rows = [
        (
            partition.reassignment.name,
            partition.state.value,
            ",".join(map(str, partition.reassignment.replicas)),
            partition.reason,
        )
        for partition in undone[:PARTITIONS_SHOWN]
    ]
    parts: list[RenderableType] = [table(("partition", "verdict", "expected", "actual"), rows), Text()] if rows else []
    if len(undone) > PARTITIONS_SHOWN:
        parts.append(
            Text(
                f"and {count_noun(len(undone) - PARTITIONS_SHOWN, 'more partition')}: -o json lists them all\n",
                style="dim",
            )
        )
    words = ", ".join(f"{number} {verdict.value}" for verdict, number in counted(verified) if number)
    total = f"{count_noun(len(verified), 'partition')}: {words}" if verified else "nothing to move"
    return page(*parts, Text(total, style="bold green" if all_done(verified) else "bold yellow"))


def brokers_owed(last: "RunUpdate") -> list[int]:
    """The brokers that are gone and keep the run's throttle."""
    owed = last.effect.owed if isinstance(last.effect, Finished) else ()
    return sorted({int(config.name) for config in owed})
