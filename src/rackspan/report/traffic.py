"""The traffic of one cluster as values: bytes and money within the last HOURS_MAX hours, and the advice of the newest reading."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from rackspan.advice.advice import Concern

HOURS_MAX: Final = 24
"""A day, so that the busy hours and the quiet ones are in it."""

ADVICE_MAX: Final = 10
"""Pieces of advice on the page; `rackspan advise --warehouse` prints all."""

BILLED_MAX: Final = 20
"""Topics, and groups, with a line of their own in the bill; the others are summed up."""


@dataclass(frozen=True, slots=True)
class RackFlow:
    """What passed from one rack to another, or stayed in it. `source` and `destination` are None where not known.

    `by_basis` has the bytes by the values of `Basis`, as far as they are known.
    """

    source: str | None
    destination: str | None
    by_basis: Mapping[str, int]

    @property
    def size_bytes(self) -> int:
        return sum(self.by_basis.values())

    @property
    def crosses(self) -> bool | None:
        """Whether the bytes crossed racks; None if a rack is not known."""
        if self.source is None or self.destination is None:
            return None
        return self.source != self.destination


@dataclass(frozen=True, slots=True)
class PathFlow:
    """The bytes of one path and basis: those that crossed racks, that stayed in one, and of which a rack is not known."""

    path: str
    basis: str
    across: int
    within: int
    rack_unknown: int
    assumptions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BilledPart:
    """The bill of one topic or group; `name` is None for what is of no group.

    `money` is by currency, of the rows whose price is known: empty if no row's is. `size_bytes` has the bytes of all rows as far as they are
    known. `reasons` says why a price is not known, with the bytes of those rows, None where bytes are not known.
    """

    name: str | None
    money: Mapping[str, float]
    size_bytes: int
    reasons: Mapping[str, int | None]


@dataclass(frozen=True, slots=True)
class Billed:
    """The largest parts of a bill, the most expensive first, and the sum of the `others`, None if there are none."""

    parts: tuple[BilledPart, ...]
    others: BilledPart | None = None
    others_count: int = 0


@dataclass(frozen=True, slots=True)
class AdvisedStep:
    """A row of the table `advice`."""

    rank: int
    concern: Concern
    kind: str
    topic: str | None
    group: str | None
    reason: str
    bytes_a_month: int | None
    money_a_month: float | None
    currency: str | None
    command: str
    cost: str
    undo: str
    assumption: str


@dataclass(frozen=True, slots=True)
class TrafficReport:
    """The traffic of one cluster in the hours that begin from `first_hour` to `last_hour`; `hours` of them have rows, `hours_billed` have a bill.

    `read_at` is the newest reading, of which `advice` has the first rows, and `advice_counts` the number of all by concern. Of
    `topics_incomplete` a part of the bytes is not known; `unread` is what readings of these hours could not read. `readings` counts all that
    are stored of the cluster.
    """

    read_at: datetime
    first_hour: datetime
    last_hour: datetime
    hours: int
    flows: tuple[RackFlow, ...]
    paths: tuple[PathFlow, ...]
    topics_incomplete: tuple[str, ...]
    hours_billed: int
    bill: BilledPart
    by_topic: Billed
    by_group: Billed
    advice: tuple[AdvisedStep, ...]
    advice_counts: Mapping[Concern, int] = field(default_factory=dict)
    unread: tuple[str, ...] = ()
    readings: int = 1

    @property
    def across(self) -> int:
        """The bytes that crossed racks, of those that are known."""
        return sum(flow.size_bytes for flow in self.flows if flow.crosses)

    @property
    def savings(self) -> list[AdvisedStep]:
        """The pieces of advice that save bytes; what is a risk is a finding of the audit."""
        return [step for step in self.advice if step.concern is Concern.MONEY]
