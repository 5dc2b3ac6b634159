"""Tables of rackspan place: the replicas of each partition, then how even they leave the brokers."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from rich.console import RenderableType
from rich.text import Text

from rackspan.cli.output import page, table
from rackspan.text import count_noun

PARTITIONS_SHOWN: Final = 40


def spec_page(document: Mapping[str, Any]) -> RenderableType:
    return page(*_assignments(document["assignments"]), _levels({"per broker": document}))


def proposal_page(document: Mapping[str, Any], done: str) -> RenderableType:
    """`done`: created or added."""
    levels = {"per broker, of these": document, "per broker, of all": document["cluster"]}
    return page(*_assignments(document["assignments"]), _levels(levels), Text(), _verdict(document, done))


def _assignments(assignments: Mapping[str, Sequence[int]]) -> Iterator[RenderableType]:
    shown = list(assignments.items())[:PARTITIONS_SHOWN]
    yield table(
        ("partition", "leader", "replicas"),
        ((int(partition), replicas[0], ",".join(map(str, replicas))) for partition, replicas in shown),
    )
    if len(assignments) > len(shown):
        yield Text(
            f"and {count_noun(len(assignments) - len(shown), 'more partition')}: -o json lists them all", style="dim"
        )
    yield Text()


def _levels(levels: Mapping[str, Mapping[str, Any]]) -> RenderableType:
    return table(
        ("", "leaders", "replicas", "lowest possible maximum"),
        (
            (name, _range(level["leaders"]), _range(level["replicas"]), f"{level['replicas']['bound']}")
            for name, level in levels.items()
        ),
    )


def _verdict(document: Mapping[str, Any], done: str) -> Text:
    count = len(document["assignments"])
    words = f"topic {document['topic']}: {count} {'partition' if count == 1 else 'partitions'}"
    if document["applied"]:
        return Text(f"{words} {done}", style="bold green")
    return Text(f"{words} would be {done}; nothing is changed without --apply", style="bold")


def _range(level: Mapping[str, int]) -> str:
    return f"{level['min']} to {level['max']}"
