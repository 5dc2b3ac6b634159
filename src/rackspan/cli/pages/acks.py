"""Tables of rackspan acks, from the same document as -o json; what must be acted on comes first."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from rich.console import RenderableType
from rich.text import Text

from rackspan.acks import HardenOutcome
from rackspan.cli.output import page, table, whole
from rackspan.cli.pages.audit import NOTHING_TO_JUDGE
from rackspan.model.topic import MIN_INSYNC_REPLICAS
from rackspan.text import count_noun

TOPICS_SHOWN: Final = 40

_STYLES: Final = {
    HardenOutcome.IMPOSSIBLE: "bold red",
    HardenOutcome.UNSAFE: "bold red",
    HardenOutcome.RAISE: "bold red",
    HardenOutcome.ENFORCED: "yellow",
    HardenOutcome.SUFFICES: "green",
}
"""In the order in which topics are listed. Topics that require one rack are not listed."""


def harden_page(document: Mapping[str, Any]) -> RenderableType:
    order = [str(outcome) for outcome in _STYLES]
    listed = sorted(
        (topic for topic in document["topics"] if topic["outcome"] in order),
        key=lambda topic: order.index(topic["outcome"]),
    )
    return page(
        *_topics(listed),
        *_commands(document["commands"]),
        *_applied(document),
        _verdict(document["summary"]["outcomes"])
        if document["topics"]
        else Text(NOTHING_TO_JUDGE, style="bold yellow"),
    )


def _topics(listed: Sequence[Mapping[str, Any]]) -> Iterator[RenderableType]:
    if not listed:
        return
    columns = (
        "outcome",
        "topic",
        f"{MIN_INSYNC_REPLICAS} now",
        "needed",
        "racks",
        "why",
        "losses that stop writes",
        "do",
    )
    rows = [_row(topic) for topic in listed[:TOPICS_SHOWN]]
    filled = [at for at in range(len(columns)) if any(row[at] != "" for row in rows)]
    yield table([columns[at] for at in filled], [[row[at] for at in filled] for row in rows])
    if len(listed) > TOPICS_SHOWN:
        yield Text(f"and {count_noun(len(listed) - TOPICS_SHOWN, 'more topic')}: -o json lists them", style="dim")
    yield Text()


def _row(topic: Mapping[str, Any]) -> Sequence[object]:
    return (
        Text(topic["outcome"], style=_STYLES[HardenOutcome(topic["outcome"])]),
        topic["topic"] + (" (internal)" if topic["internal"] else ""),
        topic["current"] if topic["known"] else "unknown",
        "none" if topic["least"] is None else topic["least"],
        topic["min_insync_racks"],
        topic["reason"],
        "\n".join(loss["words"] for loss in topic["losses"]),
        "\n".join(topic["remedies"]),
    )


def _commands(commands: Sequence[str]) -> Iterator[RenderableType]:
    if not commands:
        return
    yield Text("By Kafka's own tool:", style="bold")
    # One line each, however wide: they are there to be copied.
    yield from (whole(f"  {line}") for line in commands[:TOPICS_SHOWN])
    if len(commands) > TOPICS_SHOWN:
        yield Text(f"  and {count_noun(len(commands) - TOPICS_SHOWN, 'more command')}: -o json lists them", style="dim")
    yield Text()


def _applied(document: Mapping[str, Any]) -> Iterator[RenderableType]:
    """Only after --apply: what was set, and what audit still finds."""
    for entry in document.get("applied", [])[:TOPICS_SHOWN]:
        yield Text(f"topic {entry['topic']}: {MIN_INSYNC_REPLICAS} is now {entry[MIN_INSYNC_REPLICAS]}", style="green")
    if len(document.get("applied", [])) > TOPICS_SHOWN:
        yield Text(
            f"and {count_noun(len(document['applied']) - TOPICS_SHOWN, 'more topic')}: -o json lists them", style="dim"
        )
    found = sorted(document.get("audit", []), key=lambda one: (one["topic"], one["constraint"]))
    for (topic, constraint), same in groupby(found, key=lambda one: (one["topic"], one["constraint"])):
        first, *more = same
        others = f" (and {count_noun(len(more), 'partition', ',')} more)" if more else ""
        yield Text(f"after the change, {topic}: {constraint}: {first['reason']}{others}", style="yellow")


def _verdict(outcomes: dict[str, int]) -> Text:
    if not outcomes.keys() - {HardenOutcome.NOTHING_REQUIRED}:
        return Text("no topic requires more than 1 rack; set the number with --min-insync-racks N", style="bold yellow")
    wrong = [
        f"{outcomes[outcome]} {words}"
        for outcome, words in (
            (HardenOutcome.RAISE, "to raise"),
            (HardenOutcome.UNSAFE, "to place first"),
            (HardenOutcome.IMPOSSIBLE, "impossible as placed"),
        )
        if outcome in outcomes
    ]
    if wrong:
        return Text(f"topics: {', '.join(wrong)}", style="bold red")
    return Text("every acknowledged record is on the required racks", style="bold green")


def watch_page(document: Mapping[str, Any], address: str | None) -> RenderableType:
    """A line of what is wrong now, one of what the loss of a rack would do, and a table of the brokers that lead what is wrong."""
    under, leaderless = document["under_min_rack_isr"], document["leaderless"]
    counts = [
        f"under min.insync.racks: {under}",
        f"at it: {document['at_min_rack_isr']}",
        f"without a leader: {leaderless}",
    ]
    served = [] if address is None else [f"metrics: http://{address}/metrics"]
    line = Text(f"partitions {', '.join(counts)}", style="bold red" if under or leaderless else "bold green")
    wrong = [
        (broker["id"], broker["rack"], broker["under_min_rack_isr"])
        for broker in document["brokers"]
        if broker["under_min_rack_isr"]
    ]
    of_losses = _losses_line(document["any_rack_loss_survived"], document["not_survived"])
    return page(*served, line, of_losses, *([table(("broker", "rack", "leads under"), wrong)] if wrong else []))


def _losses_line(survived: bool | None, not_survived: Sequence[str]) -> Text:
    if not_survived:
        return Text(f"loss of rack {' or '.join(not_survived)}: not survived", style="bold red")
    words = {
        True: ("survived", "bold green"),
        False: ("not certain to be survived, rackspan audit says why", "bold red"),
        None: ("not known to be survived", "bold yellow"),
    }
    outcome, style = words[survived]
    return Text(f"loss of any one rack: {outcome}", style=style)
