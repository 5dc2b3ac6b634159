"""The human-readable output of advise, from its document: the first pieces of advice, each with its command; the count is last."""

from collections.abc import Iterator
from typing import Final

from rich.console import RenderableType
from rich.text import Text

from rackspan.advice.advice import Concern
from rackspan.advice.json_format import AdvisedDocument, RankedAdviceDocument
from rackspan.cli.output import page, whole
from rackspan.text import count_noun, human_bytes

ADVICE_SHOWN: Final = 10
"""-o json and csv have all."""

ADVICE_COLUMNS: Final = tuple(RankedAdviceDocument.__annotations__)

_STYLES: Final = {Concern.RISK: "bold red", Concern.WARNING: "yellow", Concern.MONEY: "cyan"}


def advice_page(document: AdvisedDocument) -> RenderableType:
    summary, advice = document["summary"], document["advice"]
    watched = "" if summary["seconds"] is None else f", traffic of {summary['seconds']:.1f} s"
    left_out = len(advice) - ADVICE_SHOWN
    return page(
        Text.assemble(
            ("cluster ", "bold"),
            (summary["cluster_name"] or summary["cluster_id"] or "without an id", "bold"),
            f"{watched}: {count_noun(summary['topics'], 'topic', ',')}",
        ),
        *[Text(f"could not be read: {words}", style="yellow") for words in summary["unread"]],
        Text(),
        *[line for each in advice[:ADVICE_SHOWN] for line in _lines(each)],
        *([Text(f"and {left_out:,} more: -o json and csv list them", style="dim")] if left_out > 0 else []),
        Text(_verdict(document), style="bold"),
    )


def _lines(advice: RankedAdviceDocument) -> Iterator[RenderableType]:
    about = advice["group"] or advice["topic"]
    yield Text.assemble(
        f"{advice['rank']:>2}  ",
        (advice["concern"], _STYLES[Concern(advice["concern"])]),
        f"  {advice['kind']}{'' if about is None else f', {about}'}{_saved(advice)}",
    )
    yield Text(f"    {advice['reason']}")
    if advice["seconds_at_risk"]:
        yield Text(f"    at risk for {advice['seconds_at_risk']:,.0f} s of the last 30 days")
    yield whole(f"    {advice['command']}") if _is_command(advice["command"]) else Text(f"    {advice['command']}")
    if advice["cost"]:
        yield Text(f"    cost: {advice['cost']}", style="dim")
    if advice["undo"]:
        yield Text(f"    undo: {advice['undo']}", style="dim")
    if advice["assumption"]:
        yield Text(f"    assumes: {advice['assumption']}", style="dim")
    yield Text()


def _is_command(words: str) -> bool:
    return words.startswith(("rackspan ", "kafka-"))


def _saved(advice: RankedAdviceDocument) -> str:
    size, money = advice["bytes_a_month"], advice["money_a_month"]
    if size is None:
        return ""
    priced = "" if money is None else f", {money:,.2f} {advice['currency']} less"
    return f": {human_bytes(abs(size))} {'less' if size >= 0 else 'more'} across racks in 30 days{priced}"


def _verdict(document: AdvisedDocument) -> str:
    counts = document["summary"]["by_concern"]
    named = [
        count_noun(counts[concern], noun)
        for concern, noun in ((Concern.RISK, "risk"), (Concern.WARNING, "warning"), (Concern.MONEY, "saving"))
        if counts[concern]
    ]
    measured = "" if document["summary"]["seconds"] is not None else "; traffic was not measured"
    return f"{', '.join(named) if named else 'nothing to do'}{measured}"
