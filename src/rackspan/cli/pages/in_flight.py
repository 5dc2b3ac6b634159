"""Reassignments under way, by any tool, and what a cancel makes of them."""

from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Final, TypedDict

from msgspec import Meta
from rich.console import RenderableType
from rich.text import Text

from rackspan.audit import HarmfulCancel
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


class _Harm(TypedDict):
    harm: Annotated[str | None, Meta(description="What the cancel stops, in words; null for nothing.")]
    allowed_by: Annotated[str | None, Meta(description="The flag with which --apply cancels it all the same.")]


class InFlightPartition(_Harm):
    topic: str
    partition: Count
    moves_to: list[int]
    replicas: Annotated[list[int], Meta(description="After a cancel, also of one that is left out.")]
    left_out: Annotated[bool, Meta(description="--apply does not cancel it, with the flags of this command.")]


class InFlightDocument(TypedDict):
    """Reassignments under way."""

    applied: bool
    cluster_id: str | None
    in_flight: Count
    partitions: list[InFlightPartition]


def in_flight_document(
    plan: ReassignmentPlan,
    replicas: Mapping[TopicPartition, tuple[int, ...]],
    harmful: Mapping[TopicPartition, HarmfulCancel],
    left_out: Collection[TopicPartition],
    *,
    applied: bool,
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
                **_harm(harmful.get(partition.topic_partition)),
                "left_out": partition.topic_partition in left_out,
            }
            for partition in plan.partitions()
        ],
    }


def _harm(harm: HarmfulCancel | None) -> _Harm:
    if harm is None:
        return {"harm": None, "allowed_by": None}
    return {"harm": harm.reason, "allowed_by": None if harm.never else "--allow-refused-writes"}


def in_flight_page(document: InFlightDocument) -> RenderableType:
    listed, count = document["partitions"], document["in_flight"]
    if not count:
        return page(Text("nothing is being reassigned", style="bold green"))
    after = "replicas" if document["applied"] else "replicas after a cancel"
    # Those that a cancel would harm first: they must not be lost among many.
    shown = sorted(listed, key=lambda partition: partition["harm"] is None)[:PARTITIONS_SHOWN]
    rows = [
        (
            _name(partition),
            ",".join(map(str, partition["moves_to"])),
            "left out" if partition["left_out"] else ",".join(map(str, partition["replicas"])),
        )
        for partition in shown
    ]
    parts: list[RenderableType] = [table(("partition", "moves to", after), rows), Text()]
    if count > len(rows):
        more = count_noun(count - len(rows), "more partition")
        parts.append(Text(f"and {more}: -o json lists them all\n", style="dim"))
    harmed = [Text(f"{_name(partition)}: {partition['harm']}") for partition in shown if partition["harm"]]
    parts += [Text("Harm of a cancel", style="bold"), *harmed, Text()] if harmed else []
    left_out = sum(partition["left_out"] for partition in listed)
    if document["applied"]:
        ended = sum(
            set(partition["replicas"]) == set(partition["moves_to"])
            for partition in listed
            if not partition["left_out"]
        )
        words = f"{count_noun(count - left_out - ended, 'reassignment')} cancelled" + (
            f", {ended} had ended" if ended else ""
        )
        words += f", {left_out} left out: {_until(listed)}" if left_out else ""
        return page(*parts, Text(words, style="bold yellow" if left_out else "bold green"))
    words = f"{count_noun(count, 'reassignment')} under way"
    if left_out < count:
        words += f"; add --apply to cancel {_them(count - left_out, left_out)}"
    words += f"; --apply leaves {left_out} out: {_until(listed)}" if left_out else ""
    return page(*parts, Text(OF_A_RUN), Text(words, style="bold yellow" if left_out else "bold"))


def _name(partition: InFlightPartition) -> str:
    return f"{partition['topic']}-{partition['partition']}"


def _until(listed: Sequence[InFlightPartition]) -> str:
    """What to do about those that are left out."""
    flags = {partition["allowed_by"] for partition in listed if partition["left_out"]} - {None}
    accept = f", or accept refused writes with {flags.pop()}" if flags else ""
    return f"wait until the reassignment has ended or its brokers are back{accept}"


def _them(count: int, left_out: int) -> str:
    if left_out:
        return f"the other {count}" if count > 1 else "the other one"
    return "it" if count == 1 else "them"
