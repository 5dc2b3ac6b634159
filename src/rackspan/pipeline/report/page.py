"""Renders ReportData as one HTML page. Pure: equal data gives equal bytes."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined

from rackspan.advice.advice import Concern
from rackspan.audit.findings import REPAIR_ORDER, Severity
from rackspan.audit.outage import RackLoss, TopicHarm
from rackspan.model.ids import shown
from rackspan.pipeline.report import svg, words
from rackspan.pipeline.report.data import (
    BrokerRow,
    Cell,
    ClusterReport,
    DriftGroup,
    DurabilityState,
    FindingGroup,
    History,
    HistoryPoint,
    RackSafety,
    ReportData,
    TopicMap,
    TopicRow,
    severity_of,
)
from rackspan.pipeline.report.flow_picture import BASES, flow_picture, rack_name
from rackspan.pipeline.report.timeline import timeline
from rackspan.pipeline.report.traffic.data import BILLED_MAX, RackFlow
from rackspan.text import human_bytes

TOPICS_HIT_MAX: Final = 8
"""Topics named on a rack's card; the map and `rackspan outage` name more."""

BROKERS_MAX: Final = 6
"""Surviving brokers named on a rack's card."""

RACKS_AS_CARDS: Final = 9
"""With more racks, WORST_AS_CARDS of them get a card and all stand in a table."""

WORST_AS_CARDS: Final = 3

LONG_NAME: Final = 60
"""Characters of a topic's name that fit on the map; longer names are cut, and complete on hovering."""

RACKS_IN_WORDS: Final = 6
"""With more racks, a cell of the map has only numbers, and the map scrolls on its own."""

LONG_RACK: Final = 12
"""Characters of a rack's name that fit beside its bar on a phone; a longer one is above it."""

STEPS_MAX: Final = 5
"""Next steps beside the verdict; the findings have them all."""

BROKERS_OPEN_MAX: Final = 12
"""With more brokers, their table is shown when it is opened."""

CHANGES_MAX: Final = 60
"""Lines of the table under the time line."""


def render(data: ReportData) -> str:
    """The page. Every name in it is escaped: racks and cluster ids may hold anything."""
    return _environment().get_template("report.html.j2").render(data=data)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("rackspan.pipeline.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(_NAMES)
    environment.filters.update(_FILTERS)
    return environment


def title(data: ReportData) -> str:
    if len(data.clusters) == 1:
        cluster = data.clusters[0]
        return f"{cluster.shown_name}: {cluster.verdict.value}"
    return words.fleet_headline(data).rstrip(".")


def sign(verdict: RackSafety) -> str:
    """The name of the mark for a cluster's rack safety."""
    return {RackSafety.SAFE: "ok", RackSafety.NOT_SAFE: "offline"}.get(verdict, "unknown")


def worst_first(losses: Sequence[RackLoss]) -> list[RackLoss]:
    return sorted(losses, key=severity_of, reverse=True)


def next_steps(cluster: ClusterReport) -> list[FindingGroup]:
    """The violations of the latest snapshot in the order in which to repair them, STEPS_MAX at most."""
    order = {constraint: place for place, constraint in enumerate(REPAIR_ORDER)}
    violations = [
        finding for finding in cluster.findings if finding.findings and finding.severity is Severity.VIOLATION
    ]
    return sorted(violations, key=lambda finding: order.get(finding.constraint, len(order)))[:STEPS_MAX]


def broker_harm(row: BrokerRow) -> str:
    """`6 offline, 2 refuse acks=all`; empty where the loss of the broker does no harm."""
    numbers = ((row.offline_if_lost, "offline"), (row.refused_if_lost, "refuse acks=all"))
    return ", ".join(f"{number:,} {what}" for number, what in numbers if number)


def state_sign(row: TopicRow) -> str:
    """The mark of a topic's present state: no green where the loss of a rack does harm."""
    return row.states.worst.value if row.states.at_risk or row.healthy else "unknown"


def state_words(row: TopicRow) -> str:
    """The present state in words, and what is not shown by it."""
    if row.states.at_risk or not row.partitions:
        return words.states(row.states)
    return "ok, and without any one rack" if row.healthy else "ok now, harmed if a rack is lost"


def cards(cluster: ClusterReport) -> list[RackLoss]:
    """The losses that get a card, the worst first."""
    losses = worst_first(cluster.losses)
    if len(losses) <= RACKS_AS_CARDS:
        return losses
    return [loss for loss in losses[:WORST_AS_CARDS] if not loss.survived]


def members(cluster: ClusterReport, loss: RackLoss) -> str:
    """`brokers 1, 4 (4 fenced) · controller 101`."""
    parts = []
    for rack in cluster.racks:
        if rack.rack in loss.racks:
            fenced = f" ({_ids(rack.fenced)} fenced)" if rack.fenced else ""
            parts.append(f"{_noun('broker', rack.brokers)}{fenced}")
            parts += [_noun("controller", rack.controllers)] if rack.controllers else []
    return " · ".join(parts)


def worst_topics(loss: RackLoss) -> list[TopicHarm]:
    def badness(harm: TopicHarm) -> tuple[int, int, int, str]:
        return (-harm.offline, -harm.under_min_isr, -harm.under_min_racks, harm.topic)

    return sorted(loss.topics, key=badness)


def harm_words(harm: TopicHarm) -> str:
    """`6 offline, 2 under min ISR`, in the CLI's words and order."""
    numbers = (
        (harm.offline, "offline"),
        (harm.needs_unclean_election, "unclean election only"),
        (harm.under_min_isr, "under min ISR"),
        (harm.under_min_racks, "under min racks"),
    )
    return ", ".join(f"{number:,} {what}" for number, what in numbers if number)


def harm_state(harm: TopicHarm) -> DurabilityState:
    """The worst state that a loss causes in a topic."""
    if harm.offline:
        return DurabilityState.OFFLINE
    return DurabilityState.UNDER_MIN_ISR if harm.under_min_isr else DurabilityState.UNDER_MIN_RACKS


def harm_count(harm: TopicHarm) -> int:
    """Partitions in the state that `harm_state` names."""
    return harm.offline or harm.under_min_isr or harm.under_min_racks


def leaders_move(loss: RackLoss) -> str:
    gained = sorted(loss.leader_surge.items(), key=lambda item: (-item[1], item[0]))
    named = ", ".join(f"broker {broker} +{leaders:,}" for broker, leaders in gained[:BROKERS_MAX])
    more = f", and {len(gained) - BROKERS_MAX} more" if len(gained) > BROKERS_MAX else ""
    return f"{named}{more}" or "none"


def dense(drawn: TopicMap) -> bool:
    return len(drawn.racks) > RACKS_IN_WORDS


def map_kind(drawn: TopicMap) -> str:
    """How the map is laid out: numbers alone, or words, with the racks' names beside or above them on a phone."""
    if dense(drawn):
        return "dense"
    return "roomy long" if any(len(rack) > LONG_RACK for rack in drawn.racks) else "roomy"


def cell_words(cell: Cell) -> str:
    """`4 replicas, 2 leaders`; `3 of 4 in sync, 1 leader`."""
    if cell.in_sync < cell.replicas:
        held = f"{cell.in_sync:,} of {cell.replicas:,} in sync"
    else:
        held = words.count(cell.replicas, "replica")
    return f"{held}, {words.count(cell.leaders, 'leader')}" if cell.leaders else held


def held(cell: Cell) -> str:
    """`4`; `3 of 4` where one is out of sync."""
    return f"{cell.replicas:,}" if cell.in_sync == cell.replicas else f"{cell.in_sync:,} of {cell.replicas:,}"


def longest(row: TopicRow) -> int:
    """Replicas in the topic's fullest rack: the scale of its bars."""
    return max((cell.replicas for cell in row.cells), default=0)


def about(row: TopicRow) -> str:
    """`6 partitions, replication factor 3, min.insync.replicas 2`."""
    if not row.partitions:
        return "no partitions"
    factors = "–".join(
        str(factor) for factor in dict.fromkeys((min(row.replication_factors), max(row.replication_factors)))
    )
    parts = [words.count(row.partitions, "partition"), f"replication factor\N{NO-BREAK SPACE}{factors}"]
    parts.append(f"min.insync.replicas\N{NO-BREAK SPACE}{row.min_insync_replicas}")
    if row.min_insync_racks > 1:
        parts.append(f"min.insync.racks\N{NO-BREAK SPACE}{row.min_insync_racks}")
    if row.elsewhere:
        parts.append(f"{words.count(row.elsewhere, 'replica')} in no known rack")
    return ", ".join(parts)


def changes(points: tuple[HistoryPoint, ...]) -> list[HistoryPoint]:
    """The points at which the counts changed: the time line as a table. The latest CHANGES_MAX of them."""
    changed = [
        point
        for before, point in zip((None, *points), points, strict=False)
        if before is None or before.counts != point.counts
    ]
    return changed[-CHANGES_MAX:]


def occurred(history: History) -> list[DurabilityState]:
    """The states that the history's picture shows, and ok."""
    return [*(state.state for state in history.states), DurabilityState.OK]


def change_sign(group: DriftGroup) -> str | None:
    """The mark of a change of safety: the later state of the partitions."""
    if group.change == "safety-gained":
        return "ok"
    return group.after if group.change == "safety-lost" else None


def bases(flows: Iterable[RackFlow]) -> list[tuple[str, int]]:
    """Each basis that some of these flows have, with its bytes."""
    flows = list(flows)
    sums = ((basis, sum(flow.by_basis.get(basis, 0) for flow in flows)) for basis in BASES)
    return [(basis, size) for basis, size in sums if size]


def is_command(remedy: str) -> bool:
    return remedy.startswith(("rackspan ", "kafka-"))


def _noun(noun: str, ids: tuple[int, ...]) -> str:
    if not ids:
        return f"no {noun}s"
    return f"{noun}{'' if len(ids) == 1 else 's'} {_ids(ids)}"


def _ids(ids: tuple[int, ...]) -> str:
    more = f" and {len(ids) - 20} more" if len(ids) > 20 else ""
    return ", ".join(map(str, ids[:20])) + more


_FILTERS: Final[Mapping[str, Callable[..., Any]]] = {
    "bytes": human_bytes,
    "count": words.count,
    "listed": words.listed,
    "rack": shown,
    "span": words.span,
    "utc": words.utc,
}

_NAMES: Final[Mapping[str, Any]] = {
    "BASIS_MEANING": words.BASIS_MEANING,
    "BILLED_MAX": BILLED_MAX,
    "MEANING": words.MEANING,
    "MONEY": Concern.MONEY,
    "NOT_JUDGED": RackSafety.NOT_JUDGED,
    "STATES": tuple(DurabilityState),
    "LONG_NAME": LONG_NAME,
    "RACKS_AS_CARDS": RACKS_AS_CARDS,
    "TOPICS_HIT_MAX": TOPICS_HIT_MAX,
    "BROKERS_OPEN_MAX": BROKERS_OPEN_MAX,
    "RISK": Concern.RISK,
    "VIOLATION": Severity.VIOLATION,
    "WARNING": Concern.WARNING,
    "bases": bases,
    "broker_harm": broker_harm,
    "next_steps": next_steps,
    "state_sign": state_sign,
    "state_words": state_words,
    "about": about,
    "cards": cards,
    "cell_words": cell_words,
    "change_sign": change_sign,
    "changes": changes,
    "dense": dense,
    "flow_picture": flow_picture,
    "harm_count": harm_count,
    "harm_state": harm_state,
    "harm_words": harm_words,
    "is_command": is_command,
    "leaders_move": leaders_move,
    "held": held,
    "longest": longest,
    "map_kind": map_kind,
    "members": members,
    "occurred": occurred,
    "rack_name": rack_name,
    "sign": sign,
    "svg": svg,
    "timeline": timeline,
    "title": title,
    "words": words,
    "worst_first": worst_first,
    "worst_topics": worst_topics,
}
