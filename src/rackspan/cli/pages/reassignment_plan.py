"""Tables of reassignment plans and lint findings."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from rich.console import RenderableType
from rich.text import Text

from rackspan.cli.output import page, table, whole
from rackspan.cli.pages.audit import finding_groups
from rackspan.cli.pages.difference import details_parts, difference_parts, less_safe_note
from rackspan.plan.reassignment_file import reassignment_json
from rackspan.reassign import PartitionReassignment
from rackspan.text import count_noun, human_bytes

STEPS_SHOWN: Final = 20

TOPICS_NAMED: Final = 10
"""Topics that stay unsafe, by name."""


def generate_page(
    current: Sequence[PartitionReassignment], proposed: Sequence[PartitionReassignment]
) -> RenderableType:
    """Letter for letter what Kafka's tool prints, for scripts that parse it."""
    lines = (
        "Current partition replica assignment",
        reassignment_json(current),
        "",
        "Proposed partition reassignment configuration",
        reassignment_json(proposed),
    )
    return page(*map(whole, lines))


def plan_page(document: Mapping[str, Any]) -> RenderableType:
    """What changes, steps, balance, then what is infeasible; the summary is last. With `details`, every partition."""
    return page(
        *difference_parts(document["difference"]),
        *details_parts(document.get("details", []), {step["step"]: step["reason"] for step in document["steps"]}),
        *_steps(document["steps"], unsized=document["moves_of_unknown_size"] > 0),
        _balances(document),
        Text(),
        *less_safe_note(document["difference"]),
        *_notes(document),
        _verdict(document),
    )


def lint_page(document: Mapping[str, Any]) -> RenderableType:
    findings, summary = document["findings"], document["summary"]
    parts: list[RenderableType] = [
        *difference_parts(document["difference"]),
        *details_parts(document.get("details", []), {0: "as the file lists them"}),
    ]
    # The document has them by partition; a topic's partitions stand in one row.
    parts += finding_groups(sorted(findings, key=lambda one: (one["severity"], one["constraint"], one["topic"] or "")))
    words = f"{count_noun(summary['partitions'], 'partition')}: {count_noun(summary['violations'], 'violation')}, {count_noun(summary['warnings'], 'warning')}"
    style = "bold red" if summary["violations"] else "bold yellow" if summary["warnings"] else "bold green"
    return page(*parts, Text(words, style=style))


def _steps(steps: Sequence[Mapping[str, Any]], *, unsized: bool) -> Iterator[RenderableType]:
    """`unsized`: some sizes are not known, so that a step of moves and 0 bytes is one of unknown size."""
    if not steps:
        return
    yield table(
        ("step", "partitions", "moves", "bytes", "because"),
        (
            (step["step"], len(step["partitions"]), step["moves"], _step_bytes(step, unsized), step["reason"])
            for step in steps[:STEPS_SHOWN]
        ),
    )
    if len(steps) > STEPS_SHOWN:
        yield Text(f"and {count_noun(len(steps) - STEPS_SHOWN, 'more step')}: -o json lists them all", style="dim")
    yield Text()


def _step_bytes(step: Mapping[str, Any], unsized: bool) -> str:
    return "unknown" if unsized and step["moves"] and not step["bytes"] else human_bytes(step["bytes"])


def copied_bytes(document: Mapping[str, Any]) -> str:
    """The bytes and replicas to copy, as far as they are known."""
    unsized = document["moves_of_unknown_size"]
    if not unsized:
        return human_bytes(document["bytes"]) if document["bytes"] else "0 bytes"
    if unsized == document["moves"]:
        return "an unknown number of bytes"
    return f"{human_bytes(document['bytes'])} and {count_noun(unsized, 'move')} of unknown size"


def _balances(document: Mapping[str, Any]) -> RenderableType:
    return table(
        ("per broker", "before", "after", "lowest possible maximum"),
        (
            (name, _spread(document["before"][key]), _spread(document["after"][key]), best)
            for name, key, best in (
                ("replicas", "replicas_per_broker", str(document["replicas_bound"])),
                ("preferred leaders", "leaders_per_broker", ""),
            )
        ),
    )


def _notes(document: Mapping[str, Any]) -> Iterator[RenderableType]:
    for words in document["left_out"]:
        yield Text(f"not planned: {words}", style="yellow")
    for entry in document["infeasible"]:
        word = "refused" if entry["refused"] else "impossible"
        yield Text(f"{word}: {entry['reason']}; {entry['remedy']}", style="bold red")
    yield from _left_unsafe(document["left_unsafe"])


def _left_unsafe(findings: Sequence[Mapping[str, Any]]) -> Iterator[RenderableType]:
    """A line for what the plan does not repair: more replicas, another min.insync.replicas or brokers that are down."""
    topics = ", ".join(finding["topic"] for finding in findings[:TOPICS_NAMED])
    if len(findings) == 1:
        (left,) = findings
        yield Text(f"stays unsafe: {topics}: {left['reason']}; fix with {left['remedy']}", style="bold yellow")
    elif findings:
        more = f" and {len(findings) - TOPICS_NAMED:,} more" if len(findings) > TOPICS_NAMED else ""
        yield Text(f"stay unsafe: {topics}{more}; rackspan audit says what repairs each", style="bold yellow")


def _verdict(document: Mapping[str, Any]) -> Text:
    moves, bound = document["moves"], document["lower_bound"]
    if not document["partitions"]:
        if document["infeasible"]:
            return Text("nothing is planned", style="bold red")
        if document["leaderless"]:
            have = count_noun(document["leaderless"], "partition", ",")
            has = "has" if document["leaderless"] == 1 else "have"
            return Text(f"no replica has to move, and {have} {has} no leader", style="bold red")
        return Text("nothing to move", style="bold yellow" if document["left_unsafe"] else "bold green")
    rest = " for the rest" if document["left_out"] or document["infeasible"] else ""
    proof = (
        f"no plan needs fewer{rest}"
        if document["gap_reason"] is None
        else f"at least {bound} are needed: {document['gap_reason']}"
    )
    return Text(
        f"{count_noun(moves, 'move')}, {copied_bytes(document)}, {count_noun(len(document['partitions']), 'partition')}; {proof}",
        style="bold",
    )


def _spread(spread: dict[str, int]) -> str:
    return f"{spread['min']} to {spread['max']}"
