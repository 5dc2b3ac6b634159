"""What passes between racks as measured, and the piece of advice that compares it with what would pass."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final

from rackspan.advice.advice import Advice, Concern
from rackspan.clients import ClientFinding, GroupReads, ReplicaSelectors, find_causes, measured_reads
from rackspan.clients.reads import read_again
from rackspan.model import ClusterSnapshot
from rackspan.traffic import (
    GroupProgress,
    Interval,
    PriceFile,
    TrafficFlow,
    TrafficPath,
    Volumes,
    read_bytes,
    reading_as_measured,
)
from rackspan.traffic.bill import MONTH_SECONDS
from rackspan.traffic.what_if import produced_with_leaders_of

LEAST_BYTES_A_MONTH: Final = 10 * 2**30
"""Savings below it are left out: at 0.02 a GB they are 20 cents."""


@dataclass(frozen=True, slots=True)
class MeasuredTraffic:
    """What was measured in `seconds`: the cluster, its volumes, and who reads what.

    `selectors` is by broker. `produced` has the flows of producers. `through_gateway` has the ids of clients that gateways count.
    """

    snapshot: ClusterSnapshot
    volumes: Volumes
    reads: Sequence[GroupReads]
    progress: GroupProgress
    seconds: float
    selectors: Mapping[int, ReplicaSelectors] = field(default_factory=dict)
    produced: Sequence[TrafficFlow] = ()
    through_gateway: frozenset[str] = frozenset()


def measured_traffic(
    passed: Interval, repaired: ClusterSnapshot | None = None
) -> tuple[MeasuredTraffic, list[ClientFinding]]:
    """What passed, and why groups read across racks; of a `repaired` cluster what would have passed in it, and why."""
    after, counted = passed.after, passed.counted
    cluster = repaired or after.snapshot
    reads = (
        passed.reads if repaired is None else [read_again(group, cluster, after.selectors) for group in passed.reads]
    )
    produced = [flow for flow in passed.flows if flow.link.path is TrafficPath.PRODUCE]
    if repaired is not None:
        produced = [*produced_with_leaders_of(produced, passed.volumes.bytes_in, after.snapshot, repaired)]
    measured = [measured_reads(group, after.groups, read_bytes(counted)) for group in reads]
    pairs = [*zip(reads, measured, strict=True)]
    traffic = MeasuredTraffic(
        cluster,
        passed.volumes,
        [reading_as_measured(group, measure, counted) for group, measure in pairs],
        passed.progress,
        passed.seconds,
        after.selectors,
        produced,
        frozenset(flow.client_id for flow in counted if flow.path is not TrafficPath.PRODUCE),
    )
    return traffic, [cause for group, measure in pairs for cause in find_causes(group, cluster, measure)]


@dataclass(frozen=True, slots=True)
class Terms:
    """What makes bytes a saving: over how long they were measured, what they cost, and how many are worth advice."""

    seconds: float
    prices: PriceFile | None
    least_bytes_a_month: int

    @property
    def a_month(self) -> Fraction:
        """What the measured figures are multiplied by."""
        return Fraction(MONTH_SECONDS) / Fraction(self.seconds)

    def are_enough(self, size_bytes: int, *, more_than: int = 0) -> bool:
        """Whether so many measured bytes are worth advice; never if they are no more than what rounding makes of none."""
        return size_bytes > more_than and size_bytes * self.a_month >= max(1, self.least_bytes_a_month)


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """What to do, as in Advice, without what it saves."""

    kind: str
    reason: str
    command: str
    cost: str
    undo: str
    topic: str | None = None
    group: str | None = None


def saving(remedy: Remedy, now: Sequence[TrafficFlow], then: Sequence[TrafficFlow], terms: Terms) -> Advice | None:
    """The advice if enough is saved, else None. `now` and `then` are the same flows before and after the remedy.

    Bytes that are known to be free do not count as enough: a remedy that saves no money is none by a price file.
    """
    saved = _across(now)
    saved.subtract(_across(then))
    money = _money(saved, terms.prices, terms.a_month)
    charged = saved if terms.prices is None or money is None else _charged(saved, terms.prices)
    # Equal parts of bytes are rounded, each by less than one.
    rounded = len(now) + len(then)
    if not terms.are_enough(sum(charged.values()), more_than=rounded) or (money is not None and money <= 0):
        return None
    return Advice(
        Concern.MONEY,
        remedy.kind,
        remedy.reason,
        remedy.command,
        remedy.cost,
        remedy.undo,
        remedy.topic,
        remedy.group,
        int(sum(saved.values()) * terms.a_month),
        money,
        assumption=_assumptions((*now, *then)),
    )


def _across(flows: Iterable[TrafficFlow]) -> Counter[TrafficPath]:
    sums = Counter[TrafficPath]()
    for flow in flows:
        if flow.link.crosses:
            sums[flow.link.path] += flow.size_bytes or 0
    return sums


def _money(saved: Mapping[TrafficPath, int], prices: PriceFile | None, a_month: Fraction) -> float | None:
    """None if the price of a path is not known whose bytes change."""
    if prices is None:
        return None
    total = Fraction(0)
    for path, size in saved.items():
        price = prices.per_byte(path) if size else Fraction(0)
        if price is None:
            return None
        total += size * price
    return float(total * a_month)


def _charged(saved: Mapping[TrafficPath, int], prices: PriceFile) -> Mapping[TrafficPath, int]:
    return {path: size for path, size in saved.items() if prices.per_byte(path)}


def _assumptions(flows: Iterable[TrafficFlow]) -> str:
    """Those of all bytes that cross racks, before or after."""
    return "; ".join(sorted({flow.link.assumption for flow in flows if flow.link.crosses and flow.size_bytes}))
