"""Tables of what a plan changes: brokers and topics before and after; with details, every partition and its reason."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Annotated, Final, TypedDict

from msgspec import Meta
from rich.console import RenderableType
from rich.text import Text

from rackspan.cli.output import table
from rackspan.documents import Count
from rackspan.plan.difference import PartitionDifference, PlanDifference
from rackspan.text import human_bytes

SHOWN: Final = 40
"""Rows of a table that people read; -o json has all."""


class ChangeDocument(TypedDict):
    before: Count
    after: Count


class SafetyLossDocument(TypedDict):
    partitions: Count
    reason: str


class BrokerDifferenceDocument(TypedDict):
    broker: int
    rack: str | None
    replicas: ChangeDocument
    leaders: ChangeDocument
    bytes_in: Count
    bytes_out: Count


class TopicDifferenceDocument(TypedDict):
    topic: str
    partitions: Count
    changed: Count
    moves: Count
    bytes: Count
    moves_of_unknown_size: Count
    racks: Annotated[ChangeDocument, Meta(description="The fewest racks of a changed partition.")]


class DifferenceDocument(TypedDict):
    less_safe: Annotated[SafetyLossDocument | None, Meta(description="null: no partition ends less safe.")]
    brokers: list[BrokerDifferenceDocument]
    topics: list[TopicDifferenceDocument]


class DetailDocument(TypedDict):
    topic: str
    partition: Count
    before: list[int]
    after: list[int]
    step: Count
    reason: str


class WithDetails(TypedDict, total=False):
    details: Annotated[list[DetailDocument], Meta(description="With --details.")]


def difference_document(difference: PlanDifference) -> DifferenceDocument:
    loss = difference.safety_loss
    return {
        "less_safe": None if loss is None else {"partitions": loss.partitions, "reason": loss.reason},
        "brokers": [
            {
                "broker": broker.broker,
                "rack": broker.rack,
                "replicas": _change(broker.replicas),
                "leaders": _change(broker.leaders),
                "bytes_in": broker.bytes_in,
                "bytes_out": broker.bytes_out,
            }
            for broker in difference.brokers
        ],
        "topics": [
            {
                "topic": topic.topic,
                "partitions": topic.partitions,
                "changed": topic.changed,
                "moves": topic.moves,
                "bytes": topic.bytes,
                "moves_of_unknown_size": topic.unsized,
                "racks": _change(topic.racks),
            }
            for topic in difference.topics
        ],
    }


def details_document(details: Iterable[PartitionDifference]) -> list[DetailDocument]:
    return [
        {
            "topic": detail.topic,
            "partition": detail.partition,
            "before": list(detail.before),
            "after": list(detail.after),
            "step": detail.step,
            "reason": detail.reason,
        }
        for detail in details
    ]


def difference_parts(document: DifferenceDocument) -> Iterator[RenderableType]:
    """The brokers, then the topics, those that change alone."""
    brokers, topics = document["brokers"], document["topics"]
    if brokers:
        yield table(
            ("broker", "rack", "replicas", "leaders", "bytes in", "bytes out"),
            (
                (
                    str(broker["broker"]),
                    broker["rack"],
                    _arrow(broker["replicas"]),
                    _arrow(broker["leaders"]),
                    human_bytes(broker["bytes_in"]),
                    human_bytes(broker["bytes_out"]),
                )
                for broker in brokers[:SHOWN]
            ),
        )
        yield from _more(len(brokers), "brokers")
        yield Text()
    if topics:
        yield table(
            ("topic", "partitions", "racks", "moves", "bytes"),
            (
                (
                    topic["topic"],
                    f"{topic['changed']} of {topic['partitions']}",
                    _arrow(topic["racks"]),
                    topic["moves"],
                    _topic_bytes(topic),
                )
                for topic in topics[:SHOWN]
            ),
        )
        yield from _more(len(topics), "topics")
        yield Text()


def details_parts(details: Sequence[DetailDocument], reasons: dict[int, str]) -> Iterator[RenderableType]:
    """`orders-0: 1,4,7 → 1,5,9` and why, below each step. What leaves is red and what arrives green where there are colours."""
    for number, entries in groupby(details, key=lambda one: one["step"]):
        yield Text(f"step {number}: {reasons[number]}", style="bold")
        for entry in entries:
            yield _detail(entry)
        yield Text()


def less_safe_note(document: DifferenceDocument) -> Iterator[Text]:
    loss = document["less_safe"]
    if loss is not None:
        noun = "partition" if loss["partitions"] == 1 else "partitions"
        yield Text(f"less safe: {loss['partitions']} {noun} left {loss['reason']}", style="bold yellow")


def human_duration(seconds: int) -> str:
    """`45 s`, `12 min`, `3 h 20 min`."""
    if seconds < 90:
        return f"{seconds} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


def _detail(one: DetailDocument) -> Text:
    before, after = one["before"], one["after"]
    return Text.assemble(
        f"  {one['topic']}-{one['partition']}: ",
        *_replicas(before, set(before) - set(after), "red"),
        " → ",
        *_replicas(after, set(after) - set(before), "green"),
        (f"  {one['reason']}", "dim"),
    )


def _replicas(replicas: Sequence[int], marked: set[int], colour: str) -> Iterator[tuple[str, str]]:
    for at, broker in enumerate(replicas):
        if at:
            yield ",", ""
        yield str(broker), colour if broker in marked else ""


def _topic_bytes(topic: TopicDifferenceDocument) -> str:
    if topic["moves"] and topic["moves_of_unknown_size"] == topic["moves"]:
        return "unknown"
    known = human_bytes(topic["bytes"])
    return f"over {known}" if topic["moves_of_unknown_size"] else known


def _change(pair: tuple[int, int]) -> ChangeDocument:
    return {"before": pair[0], "after": pair[1]}


def _arrow(change: ChangeDocument) -> str:
    before, after = change["before"], change["after"]
    return str(after) if before == after else f"{before} → {after}"


def _more(count: int, noun: str) -> Iterator[Text]:
    if count > SHOWN:
        yield Text(f"and {count - SHOWN} more {noun}: -o json lists them all", style="dim")
