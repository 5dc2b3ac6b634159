"""Reassignments under way, by any tool, and what a cancel makes of them."""

from collections.abc import Mapping
from typing import Annotated, Final, TypedDict

from msgspec import Meta
from rich.console import RenderableType
from rich.text import Text

from rackspan.cli.output import page, table
from rackspan.documents import Count
from rackspan.model import TopicPartition
from rackspan.reassign import ReassignmentPlan
from rackspan.text import count_noun

PARTITIONS_SHOWN: Final = 40

OF_A_RUN: Final = (
    "end the tool that started them first, or it may start them again; for a run of rackspan, rackspan reassign cancel "
    "--plan FILE also restores the order of replicas and removes its throttles"
)


class InFlightPartition(TypedDict):
    topic: str
    partition: Count
    moves_to: list[int]
    replicas: Annotated[list[int], Meta(description="After the cancel.")]


class InFlightDocument(TypedDict):
    """Reassignments under way."""

    applied: bool
    cluster_id: str | None
    in_flight: Count
    partitions: list[InFlightPartition]


def in_flight_document(
    plan: ReassignmentPlan, replicas: Mapping[TopicPartition, tuple[int, ...]], *, applied: bool
) -> InFlightDocument:
    """`replicas`: those after the cancel, where it was made; a partition without has those that it would have."""
    return {
        "applied": applied,
        "cluster_id": plan.cluster_id,
        "in_flight": len(plan),
        "partitions": [
            {
                "topic": partition.topic,
                "partition": partition.partition,
                "moves_to": list(partition.replicas),
                "replicas": list(replicas.get(partition.topic_partition, partition.undo)),
            }
            for partition in plan.partitions()
        ],
    }


def in_flight_page(document: InFlightDocument) -> RenderableType:
    listed, count = document["partitions"], document["in_flight"]
    if not count:
        return page(Text("nothing is being reassigned", style="bold green"))
    after = "replicas" if document["applied"] else "replicas after a cancel"
    rows = [
        (
            f"{partition['topic']}-{partition['partition']}",
            ",".join(map(str, partition["moves_to"])),
            ",".join(map(str, partition["replicas"])),
        )
        for partition in listed[:PARTITIONS_SHOWN]
    ]
    parts: list[RenderableType] = [table(("partition", "moves to", after), rows), Text()]
    if count > len(rows):
        more = count_noun(count - len(rows), "more partition")
        parts.append(Text(f"and {more}: -o json lists them all\n", style="dim"))
    reassignments = count_noun(count, "reassignment")
    if document["applied"]:
        ended = sum(set(partition["replicas"]) == set(partition["moves_to"]) for partition in listed)
        words = f"{count_noun(count - ended, 'reassignment')} cancelled" + (f", {ended} had ended" if ended else "")
        return page(*parts, Text(words, style="bold green"))
    return page(
        *parts, Text(OF_A_RUN), Text(f"{reassignments} under way; add --apply to cancel {_them(count)}", style="bold")
    )


def _them(count: int) -> str:
    return "it" if count == 1 else "them"
