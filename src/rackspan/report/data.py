"""The content of a report as values: clusters, each with its rack safety, topic map, history and findings.

Everything here is a summary with a bounded size: at most TOPICS_MAX topics, POINTS_MAX points in time and DRIFT_MAX groups of
changes a cluster. Times are in UTC, durations in seconds.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Final

from rackspan.audit import LostRack, RackLoss, Severity, TopicHarm
from rackspan.audit.judge import LEAVES_OPEN
from rackspan.model.ids import RackId
from rackspan.model.snapshot import SIZES
from rackspan.report.traffic import TrafficReport

TOPICS_MAX: Final = 60
"""Topics on a cluster's map, the worst first: more than a reader scrolls through, and under 500 KB with 30 racks."""

LISTED_MAX: Final = 1_000
"""Topics that are listed below the map, to be found by their names."""

POINTS_MAX: Final = 240
"""Points in a cluster's picture: on a phone each is already narrower than a pixel and a half."""


DRIFT_MAX: Final = 40
"""Groups of changes of a cluster, the latest first."""


class DurabilityState(StrEnum):
    """The state of a partition, as in the table partition_durability. Worst first."""

    OFFLINE = "offline"
    UNDER_MIN_ISR = "under-min-isr"
    UNDER_MIN_RACKS = "under-min-racks"
    ONE_RACK = "one-rack"
    OK = "ok"

    @property
    def field(self) -> str:
        """The state's name in StateCounts."""
        return self.value.replace("-", "_")


AT_RISK: Final = tuple(state for state in DurabilityState if state is not DurabilityState.OK)


class RackSafety(StrEnum):
    """Whether a cluster survives the loss of any one rack."""

    SAFE = "survives the loss of any one rack"
    NOT_SAFE = "does not survive the loss of a rack"
    NOT_CERTAIN = "not certain to survive the loss of a rack"
    NOT_JUDGED = "not judged"


@dataclass(frozen=True, slots=True)
class StateCounts:
    """How many partitions are in each state."""

    offline: int = 0
    under_min_isr: int = 0
    under_min_racks: int = 0
    one_rack: int = 0
    ok: int = 0

    def of(self, state: DurabilityState) -> int:
        return int(getattr(self, state.field))

    @property
    def total(self) -> int:
        return self.at_risk + self.ok

    @property
    def at_risk(self) -> int:
        """Partitions that are not ok."""
        return self.offline + self.under_min_isr + self.under_min_racks + self.one_rack

    @property
    def worst(self) -> DurabilityState:
        return next((state for state in AT_RISK if self.of(state)), DurabilityState.OK)


@dataclass(frozen=True, slots=True)
class HistoryPoint:
    """The states of all partitions in one snapshot of the history."""

    taken_at: datetime
    counts: StateCounts


@dataclass(frozen=True, slots=True)
class StateTime:
    """How long at least one partition was in `state`, and when the most were for the first time."""

    state: DurabilityState
    most: int
    most_at: datetime
    seconds: float


@dataclass(frozen=True, slots=True)
class History:
    """Durability over time. A state lasts until the next snapshot, but not beyond what its own says something of: there nothing is known.

    The last one has no duration.

    `points` has all snapshots, or the worst of each of POINTS_MAX stretches and the last. `states` names only those that
    occurred. `seconds_at_risk` counts the time when any partition was not ok.
    """

    snapshots: int
    first_taken_at: datetime
    last_taken_at: datetime
    points: tuple[HistoryPoint, ...]
    states: tuple[StateTime, ...]
    seconds_at_risk: float
    longest_gap_seconds: float
    seconds_unknown: float

    @property
    def seconds(self) -> float:
        return (self.last_taken_at - self.first_taken_at).total_seconds()

    @property
    def condensed(self) -> bool:
        return len(self.points) < self.snapshots

    @property
    def worst(self) -> HistoryPoint | None:
        """The first of the worst points: by partitions offline, then under min ISR, and so on. None if all were ok."""
        worst = max(self.points, key=lambda point: [point.counts.of(state) for state in AT_RISK])
        return worst if worst.counts.at_risk else None


@dataclass(frozen=True, slots=True)
class RackMembers:
    """Broker and controller ids of a rack. `fenced` brokers are among `brokers`."""

    rack: RackId
    brokers: tuple[int, ...]
    fenced: tuple[int, ...]
    controllers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Cell:
    """One topic in one rack: replicas, in-sync replicas, leaders, and the effect of the rack's loss on the topic."""

    replicas: int
    in_sync: int
    leaders: int
    harm: TopicHarm | None


@dataclass(frozen=True, slots=True)
class TopicRow:
    """A topic across the racks.

    `cells` are in the order of the map's racks; `elsewhere` counts replicas in none of them: on brokers that the cluster
    does not list, or that count in no rack.
    """

    topic: str
    internal: bool
    partitions: int
    replication_factors: tuple[int, ...]
    min_insync_replicas: int
    min_insync_racks: int
    states: StateCounts
    cells: tuple[Cell, ...]
    elsewhere: int

    @property
    def healthy(self) -> bool:
        """Whether every partition is ok now, and stays so without any one rack."""
        return self.states.worst is DurabilityState.OK and not any(cell.harm for cell in self.cells)


@dataclass(frozen=True, slots=True)
class BrokerRow:
    """What one broker holds, and what its loss alone would do: partitions newly offline, and those that would refuse acks=all.

    `rack` is None where the broker counts in none; `size_bytes` sums the sizes that are known.
    """

    broker: int
    rack: RackId | None
    fenced: bool
    replicas: int
    out_of_sync: int
    leaders: int
    preferred: int
    size_bytes: int
    offline_if_lost: int
    refused_if_lost: int


@dataclass(frozen=True, slots=True)
class TopicMap:
    """Racks × topics. `rows` holds the worst topics of `topics` in all, `listed` the next ones, which are not drawn."""

    racks: tuple[RackId, ...]
    rows: tuple[TopicRow, ...]
    topics: int
    listed: tuple[TopicRow, ...] = ()

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row.cells) != len(self.racks):
                raise ValueError(f"topic {row.topic}: {len(row.cells)} cells on a map of {len(self.racks)} racks")


@dataclass(frozen=True, slots=True)
class FindingGroup:
    """All findings of one constraint and severity.

    `findings` and `topics` count those of the latest snapshot, 0 where it is over; `topic`, `partition`, `reason` and
    `remedy` are the first of them in the last snapshot that had any. `snapshots` had it, the last at `last_found_at`; `since` is
    the first of those that had it without a break up to the latest. Both are None in the audit of one snapshot, which has a group for
    each remedy.
    """

    constraint: str
    severity: Severity
    findings: int
    topics: int
    snapshots: int
    last_found_at: datetime | None
    topic: str | None
    partition: int | None
    reason: str
    remedy: str
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class LossHistory:
    """The effect of the loss of one rack, over all snapshots that had the rack.

    `not_survived` of `snapshots`, for `seconds_not_survived` in all and last at `last_at` (None for never); the most
    partitions that any of them would have had in each state.
    """

    rack: RackId
    snapshots: int
    not_survived: int
    seconds_not_survived: float
    last_at: datetime | None
    most_offline: int
    most_under_min_isr: int
    most_under_min_racks: int


@dataclass(frozen=True, slots=True)
class DriftGroup:
    """Changes of one kind between two snapshots; where safety was lost or gained, of one cause and between two states.

    The first of them by topic, partition and broker is named. `before` and `after` are the states, or what the first one
    was and is.
    """

    taken_at: datetime
    change: str
    changes: int
    topics: int
    topic: str | None
    partition: int | None
    broker: int | None
    before: str | None
    after: str | None
    cause: str | None
    cause_broker: int | None


@dataclass(frozen=True, slots=True)
class ClusterReport:
    """One cluster: its latest snapshot and its history.

    `losses` has one entry a rack; `harmed` says how many partitions each of them harms, every partition counted once,
    however many thresholds it falls under. `lost_racks` are down already. `states` counts the partitions of the latest snapshot.
    `assumed` is what the verdict rests on, in words. `drift` holds the latest of `drift_groups` in all. `history` is None in the audit of one
    snapshot.
    """

    cluster_id: str | None
    taken_at: datetime | None
    topics: int
    partitions: int
    racks: tuple[RackMembers, ...]
    unracked_brokers: int
    lost_racks: tuple[LostRack, ...]
    assumed: tuple[str, ...]
    now: RackLoss
    losses: tuple[RackLoss, ...]
    harmed: Mapping[RackId, int]
    topic_map: TopicMap
    states: StateCounts
    history: History | None
    findings: tuple[FindingGroup, ...]
    partial: tuple[str, ...]
    loss_history: tuple[LossHistory, ...] = ()
    drift: tuple[DriftGroup, ...] = ()
    drift_groups: int = 0
    name: str | None = None
    broker_rows: tuple[BrokerRow, ...] = ()
    traffic: TrafficReport | None = None
    """None without readings."""

    @property
    def complete(self) -> bool:
        """Whether all that a constraint needs could be read."""
        return all(note.startswith(SIZES) for note in self.partial)

    @property
    def shown_name(self) -> str:
        """The name to show: the one that rackspan.toml gives to the cluster's id, else the id."""
        return self.name or self.cluster_id or "without an id"

    @property
    def left_open(self) -> bool:
        """Whether a violation leaves open what the loss of a rack does, whatever `losses` say."""
        return any(
            group.findings and group.severity is Severity.VIOLATION and group.constraint in LEAVES_OPEN
            for group in self.findings
        )

    @property
    def verdict(self) -> RackSafety:
        if any(not loss.survived for loss in self.losses):
            return RackSafety.NOT_SAFE
        # A cluster without racks or partitions would survive every loss, which has no meaning.
        if not (self.losses and self.partitions and self.complete):
            return RackSafety.NOT_JUDGED
        return RackSafety.NOT_CERTAIN if self.left_open else RackSafety.SAFE

    @property
    def brokers(self) -> int:
        return sum(len(rack.brokers) for rack in self.racks) + self.unracked_brokers

    @property
    def worst_loss(self) -> RackLoss | None:
        """The worst loss: by partitions offline, then the controllers, then refused acknowledgements."""
        return max(self.losses, key=severity_of, default=None)

    @property
    def violations(self) -> int:
        return sum(group.findings for group in self.findings if group.severity is Severity.VIOLATION)

    @property
    def warnings(self) -> int:
        return sum(group.findings for group in self.findings if group.severity is Severity.WARNING)


@dataclass(frozen=True, slots=True)
class ReportData:
    """All clusters of a warehouse, or the one of an audit: those that do not survive the loss of a rack first, then by id."""

    clusters: tuple[ClusterReport, ...]
    rackspan_version: str

    def __post_init__(self) -> None:
        urgency = (RackSafety.NOT_SAFE, RackSafety.NOT_CERTAIN, RackSafety.NOT_JUDGED, RackSafety.SAFE)
        ordered = sorted(self.clusters, key=lambda cluster: (urgency.index(cluster.verdict), cluster.cluster_id or ""))
        object.__setattr__(self, "clusters", tuple(ordered))

    def named(self, names: Mapping[str, str]) -> "ReportData":
        """The same report with the names to show of clusters, by id."""
        return replace(
            self,
            clusters=tuple(replace(cluster, name=names.get(cluster.cluster_id or "")) for cluster in self.clusters),
        )

    def with_traffic(self, traffic: Mapping[str, TrafficReport]) -> "ReportData":
        """The same report with the traffic of clusters, by id."""
        return replace(
            self,
            clusters=tuple(
                replace(cluster, traffic=traffic.get(cluster.cluster_id or "")) for cluster in self.clusters
            ),
        )

    @property
    def snapshots(self) -> int:
        return sum(1 if cluster.history is None else cluster.history.snapshots for cluster in self.clusters)

    @property
    def of_warehouse(self) -> bool:
        return not any(cluster.history is None for cluster in self.clusters)


def severity_of(loss: RackLoss) -> tuple[int, int, int, int]:
    """A sort key: how bad a loss is."""
    return (
        loss.total("offline"),
        int(loss.quorum_lost),
        loss.total("under_min_isr"),
        loss.total("under_min_racks"),
    )
