"""One piece of advice, and the rule by which many are ranked."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Concern(StrEnum):
    """The reason for a piece of advice, the most urgent first."""

    RISK = "risk"
    """A constraint is broken."""
    WARNING = "warning"
    """A goal is missed, or something could not be judged."""
    MONEY = "money"
    """Fewer bytes would cross racks."""


@dataclass(frozen=True, slots=True)
class Advice:
    """What to do, why, what it costs and how to undo it. Figures of a month are at the rate that was measured.

    `place` is the place within its concern, by the rule of risks.py or savings.py. `topic` and `group` are None if it is about
    more than one. `money_a_month` is None without a price of every path concerned. `assumption` is what the bytes rest on.
    """

    concern: Concern
    kind: str
    reason: str
    command: str
    cost: str
    undo: str
    topic: str | None = None
    group: str | None = None
    bytes_a_month: int | None = None
    money_a_month: float | None = None
    place: int = 0
    assumption: str = ""


def ranked(advice: Iterable[Advice]) -> list[Advice]:
    """By concern, and within one in the order in which to follow it: each figure is true once those before it are carried out."""
    order = list(Concern)
    return sorted(advice, key=lambda each: (order.index(each.concern), each.place))
