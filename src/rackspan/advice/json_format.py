"""Advice as a JSON document, from which the page is drawn too."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, TypedDict

from msgspec import Meta

from rackspan.advice.advice import Advice, Concern
from rackspan.audit.json_format import HeadDocument, head_document
from rackspan.documents import AtLeastOne, Count, UtcTime
from rackspan.model import ClusterSnapshot
from rackspan.text import utc_text


class RankedAdviceDocument(TypedDict):
    rank: AtLeastOne
    concern: Concern
    kind: Annotated[str, Meta(description="A constraint of docs/constraints.md, or a saving of docs/how-to/advise.md.")]
    topic: Annotated[str | None, Meta(description="null: about more than one, or none.")]
    group: Annotated[str | None, Meta(description="Of savings; null: about more than one.")]
    reason: str
    seconds_at_risk: Annotated[
        float | None,
        Meta(
            description="How long the worst partition or rack that it is about was at risk in the last 30 days, by a warehouse; null: not known."
        ),
    ]
    bytes_a_month: Annotated[
        int | None,
        Meta(
            description="Bytes less across racks in 30 days, negative if more bytes cross racks, for less money; null of risks."
        ),
    ]
    money_a_month: Annotated[float | None, Meta(description="Less in 30 days; null without a price.")]
    currency: str | None
    command: Annotated[str, Meta(description="A command if it begins with rackspan or kafka-; else what to do.")]
    cost: Annotated[str, Meta(description="What doing it takes; empty: nothing is known.")]
    undo: str
    assumption: Annotated[str, Meta(description="What the bytes of a saving rest on; empty of risks.")]


class AdviceSummary(HeadDocument):
    seconds: Annotated[float | None, Meta(description="How long traffic was measured; null: not, as in a snapshot.")]
    hour: Annotated[
        UtcTime | None,
        Meta(description="When the hour of a warehouse began whose traffic it was; null: of no warehouse."),
    ]
    by_concern: Annotated[dict[str, Count], Meta(description="Pieces of advice by concern.")]
    unread: Annotated[list[str], Meta(description="What could not be read, and why.")]


class AdvisedDocument(TypedDict):
    """What to do first. Risks come before money; the two are never added up."""

    summary: AdviceSummary
    advice: list[RankedAdviceDocument]


def advice_document(
    snapshot: ClusterSnapshot,
    advice: Sequence[Advice],
    *,
    seconds: float | None = None,
    hour: datetime | None = None,
    currency: str | None = None,
    unread: Sequence[str] = (),
    name: str | None = None,
    seconds_at_risk: Sequence[float | None] = (),
) -> AdvisedDocument:
    """`advice` as it is ranked. `unread` has one line for each part that could not be read; `seconds_at_risk` a value for each piece, if known."""
    at_risk = seconds_at_risk or (None,) * len(advice)
    return {
        "summary": {
            **head_document(snapshot, name),
            "seconds": None if seconds is None else round(seconds, 3),
            "hour": None if hour is None else utc_text(hour),
            "by_concern": {concern: sum(each.concern is concern for each in advice) for concern in Concern},
            "unread": list(unread),
        },
        "advice": [
            {
                "rank": rank,
                "concern": each.concern,
                "kind": each.kind,
                "topic": each.topic,
                "group": each.group,
                "reason": each.reason,
                "seconds_at_risk": risk_seconds,
                "bytes_a_month": each.bytes_a_month,
                "money_a_month": None if each.money_a_month is None else round(each.money_a_month, 2),
                "currency": None if each.money_a_month is None else currency,
                "command": each.command,
                "cost": each.cost,
                "undo": each.undo,
                "assumption": each.assumption,
            }
            for rank, (each, risk_seconds) in enumerate(zip(advice, at_risk, strict=True), 1)
        ],
    }
