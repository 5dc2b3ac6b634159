"""Renders ReportData as one HTML page. Pure: equal data gives equal bytes."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined

from rackspan.audit.findings import REPAIR_ORDER, Severity
from rackspan.audit.outage import RackLoss, TopicHarm
from rackspan.model.ids import RackId, shown
from rackspan.report import svg, words
from rackspan.report.data import (
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
    StateCounts,
    TopicMap,
    TopicRow,
    severity_of,
)
from rackspan.report.flow_picture import BASES, flow_picture, rack_name
from rackspan.report.timeline import timeline
from rackspan.report.traffic import BILLED_MAX, RackFlow
from rackspan.text import human_bytes

TOPICS_HIT_MAX: Final = 8
"""Topics named on a rack's card; the map and `rackspan outage` name more."""

BROKERS_MAX: Final = 6
"""Surviving brokers named on a rack's card."""

RACKS_AS_CARDS: Final = 9
"""With more racks, their boxes hold brokers only, and the losses stand in a table."""

LONG_NAME: Final = 60
"""Characters of a topic's name that fit on the map; longer names are cut, and complete on hovering."""

RACKS_IN_WORDS: Final = 6
"""With more racks, a cell of the map has only numbers, and the map scrolls on its own."""

LONG_RACK: Final = 12
"""Characters of a rack's name that fit beside its bar on a phone; a longer one is above it."""

STEPS_MAX: Final = 40
"""Steps on the page; `rackspan audit` lists the others."""

TILES_MAX: Final = 24
"""Brokers drawn in the box of a rack; their table has them all."""

COMMAND: Final = re.compile(r"(?:rackspan|kafka-[a-z-]+\.sh) .+?(?=, or |; |$)")
"""A command in a remedy, up to another way out."""

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
        loader=PackageLoader("rackspan.report"),
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
    bad = dict.fromkeys((RackSafety.NOT_SAFE, RackSafety.NOT_CERTAIN), "offline")
    return {RackSafety.SAFE: "ok", **bad}.get(verdict, "unknown")


@dataclass(frozen=True, slots=True)
class RepairStep:
    """What to do once, and the groups of findings that it repairs."""

    remedy: str
    groups: tuple[FindingGroup, ...]

    @property
    def severity(self) -> Severity:
        return self.groups[0].severity


@dataclass(frozen=True, slots=True)
class RackBox:
    """A rack as it is drawn: its members, its brokers' rows, and its loss. The `rack` is None for brokers that count in none."""

    rack: RackId | None
    rows: tuple[BrokerRow, ...]
    controllers: tuple[int, ...]
    loss: RackLoss | None


def rack_boxes(cluster: ClusterReport) -> list[RackBox]:
    """A box for each rack, by name; the last one for the brokers that count in none, if there are any."""
    rows: dict[RackId | None, list[BrokerRow]] = {}
    for row in cluster.broker_rows:
        rows.setdefault(row.rack, []).append(row)
    loss_of = {loss.racks[0]: loss for loss in cluster.losses}
    boxes = [
        RackBox(rack.rack, tuple(rows.get(rack.rack, ())), rack.controllers, loss_of.get(rack.rack))
        for rack in cluster.racks
    ]
    return boxes + ([RackBox(None, tuple(rows[None]), (), None)] if None in rows else [])


def most_replicas(cluster: ClusterReport) -> int:
    """The replicas of the fullest broker: the scale of the picture."""
    return max((row.replicas for row in cluster.broker_rows), default=0)


def worst_first(losses: Sequence[RackLoss]) -> list[RackLoss]:
    return sorted(losses, key=severity_of, reverse=True)


def steps(cluster: ClusterReport) -> list[RepairStep]:
    """What to do about the findings of the latest snapshot: violations in the order of repair, then warnings; each remedy once."""
    order = {constraint: place for place, constraint in enumerate(REPAIR_ORDER)}
    current = sorted(
        (group for group in cluster.findings if group.findings),
        key=lambda group: (group.severity is Severity.WARNING, order.get(group.constraint, len(order))),
    )
    together: dict[str, list[FindingGroup]] = {}
    for group in current:
        together.setdefault(group.remedy, []).append(group)
    return [RepairStep(remedy, tuple(groups)) for remedy, groups in together.items()]


def remedy_parts(remedy: str) -> list[tuple[str, bool]]:
    """The words of a remedy in order, each with whether it is a command to be copied."""
    parts, end = [], 0
    for found in COMMAND.finditer(remedy):
        parts += [(remedy[end : found.start()], False), (found[0], True)]
        end = found.end()
    return [(words, command) for words, command in (*parts, (remedy[end:], False)) if words]


def place(group: FindingGroup) -> str:
    """`orders-3`, `orders`; empty if the cluster itself is meant."""
    if group.topic is None:
        return ""
    return group.topic if group.partition is None else f"{group.topic}-{group.partition}"


def drawn_topics(cluster: ClusterReport) -> frozenset[str]:
    """The topics of the map, which findings link to."""
    return frozenset(row.topic for row in cluster.topic_map.rows)


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


def in_full(cluster: ClusterReport) -> bool:
    """Whether the box of each rack has the numbers of its loss; of many racks they stand in a table."""
    return len(cluster.racks) <= RACKS_AS_CARDS


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


def present_states(counts: StateCounts) -> list[DurabilityState]:
    """The states that partitions are in, and ok."""
    return [state for state in DurabilityState if counts.of(state) or state is DurabilityState.OK]


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
    "NOT_JUDGED": RackSafety.NOT_JUDGED,
    "STEPS_MAX": STEPS_MAX,
    "TILES_MAX": TILES_MAX,
    "STATES": tuple(DurabilityState),
    "LONG_NAME": LONG_NAME,
    "TOPICS_HIT_MAX": TOPICS_HIT_MAX,
    "BROKERS_OPEN_MAX": BROKERS_OPEN_MAX,
    "VIOLATION": Severity.VIOLATION,
    "bases": bases,
    "broker_harm": broker_harm,
    "drawn_topics": drawn_topics,
    "in_full": in_full,
    "most_replicas": most_replicas,
    "place": place,
    "present_states": present_states,
    "rack_boxes": rack_boxes,
    "remedy_parts": remedy_parts,
    "steps": steps,
    "state_sign": state_sign,
    "state_words": state_words,
    "about": about,
    "cell_words": cell_words,
    "change_sign": change_sign,
    "changes": changes,
    "dense": dense,
    "flow_picture": flow_picture,
    "harm_count": harm_count,
    "harm_state": harm_state,
    "harm_words": harm_words,
    "leaders_move": leaders_move,
    "held": held,
    "longest": longest,
    "map_kind": map_kind,
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
