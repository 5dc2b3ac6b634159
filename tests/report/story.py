"""Made-up clusters and their history, and the report on them worked out by hand: plain loops, no Spark, no NumPy.

The states follow docs of the table `partition_durability`; findings and losses are the judge's.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

from rackspan import __version__
from rackspan.advice.advice import Concern
from rackspan.audit import Finding, RackPolicy, Severity, assumptions, audit, outage, racks_down
from rackspan.audit.batch import snapshot_batch
from rackspan.audit.outage import RackLoss
from rackspan.model import UNNAMED_RACK, Broker, BrokerId, ClusterSnapshot, RackId, Topic, TopicName, columns
from rackspan.model.broker import Controller
from rackspan.report.broker_rows import broker_rows
from rackspan.report.data import (
    AT_RISK,
    DRIFT_MAX,
    TOPICS_MAX,
    ClusterReport,
    DriftGroup,
    DurabilityState,
    FindingGroup,
    History,
    HistoryPoint,
    LossHistory,
    ReportData,
    StateCounts,
    StateTime,
)
from rackspan.report.flow_picture import BASES
from rackspan.report.topic_map import rack_members, topic_map
from rackspan.report.traffic import (
    AdvisedStep,
    Billed,
    BilledPart,
    PathFlow,
    RackFlow,
    TrafficReport,
)
from tests.pipeline import expected, plain_time

NOON = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
POLICY = RackPolicy()


@dataclass(frozen=True)
class TopicPlan:
    """A topic and where its replicas stand: one list of broker ids a partition, preferred leader first."""

    name: str
    replicas: Sequence[Sequence[int]]
    min_insync_replicas: int = 2
    min_insync_racks: int | None = None
    internal: bool = False

    def topic(self) -> Topic:
        config = {"min.insync.replicas": str(self.min_insync_replicas)}
        if self.min_insync_racks is not None:
            config["min.insync.racks"] = str(self.min_insync_racks)
        return Topic(TopicName(self.name), internal=self.internal, config=config)


def spread(partitions: int, replication_factor: int, brokers: int = 6) -> list[list[int]]:
    """Brokers dealt in turn: with brokers dealt to racks in turn too, neighbours are in different racks."""
    return [[1 + (first + follower) % brokers for follower in range(replication_factor)] for first in range(partitions)]


def rack_of(broker: int, racks: int = 3) -> RackId:
    return RackId(f"r{1 + (broker - 1) % racks}")


def snapshot(
    plans: Sequence[TopicPlan],
    *,
    brokers: Mapping[int, str | None],
    gone: Iterable[int] = (),
    lagging: Iterable[int] = (),
    at: datetime = NOON,
    cluster_id: str = "Zk3vQ2h-TRKqB1n8xWcY0g",
    voters: Mapping[int, str | None] | None = None,
    partial: tuple[str, ...] = (),
) -> ClusterSnapshot:
    """A cluster whose brokers `gone` are fenced and whose brokers `lagging` follow nothing yet."""
    gone, out = set(gone), {*gone, *lagging}
    replicas = [partition for plan in plans for partition in plan.replicas]
    # Where everybody is gone the last in sync stay on the list, as Kafka keeps them.
    isr = [[one for one in partition if one not in out] or list(partition[:1]) for partition in replicas]
    return ClusterSnapshot(
        brokers=tuple(
            Broker(BrokerId(broker), None if rack is None else RackId(rack), fenced=broker in gone)
            for broker, rack in brokers.items()
        ),
        topics=tuple(plan.topic() for plan in plans),
        partitions=columns(
            topic=[code for code, plan in enumerate(plans) for _ in plan.replicas],
            partition=[partition for plan in plans for partition in range(len(plan.replicas))],
            leader=[next((one for one in held if one not in gone), -1) for held in isr],
            replicas=replicas,
            isr=isr,
        ),
        cluster_id=cluster_id,
        taken_at=at,
        controllers=tuple(
            Controller(BrokerId(voter), None if rack is None else RackId(rack))
            for voter, rack in (voters or {}).items()
        ),
        partial=partial,
    )


SIX_BROKERS: Mapping[int, str | None] = {broker: rack_of(broker) for broker in range(1, 7)}

SHOP = (
    TopicPlan("orders", spread(12, 3)),
    TopicPlan("payments", [[2, 5, 1], [5, 2, 4], [2, 5, 3], [5, 2, 6]]),
    TopicPlan("clicks", [[2, 5], [5, 2], [2, 5], [1, 3], [3, 4], [4, 6]], min_insync_replicas=1),
    TopicPlan("inventory", spread(6, 3), min_insync_racks=2),
    TopicPlan("audit-log", [[1], [2], [3]], min_insync_replicas=1),
    TopicPlan("__consumer_offsets", spread(10, 3), internal=True),
    TopicPlan("__transaction_state", spread(6, 3), internal=True),
)
"""Topics placed well and badly: payments has two replicas in r2, clicks is partly in r2 alone, audit-log has no copy."""


def shop_history(count: int = 20, voters: Mapping[int, str | None] | None = None) -> list[ClusterSnapshot]:
    """A shop whose rack r2 is lost at the 7th snapshot, back at the 12th and in sync again at the 15th."""
    voters = {101: "r1", 102: "r2", 103: "r3"} if voters is None else voters
    snapshots = []
    for index in range(count):
        gone = [2, 5] if 6 <= index < 11 else []
        lagging = [2, 5] if 11 <= index < 13 else [5] if index == 13 else []
        at = NOON + timedelta(seconds=30 * index, microseconds=1000 * index)
        snapshots.append(snapshot(SHOP, brokers=SIX_BROKERS, gone=gone, lagging=lagging, at=at, voters=voters))
    return snapshots


def safe_cluster(cluster_id: str = "calm", at: datetime = NOON) -> ClusterSnapshot:
    plans = [TopicPlan("orders", spread(12, 3)), TopicPlan("__consumer_offsets", spread(6, 3), internal=True)]
    return snapshot(plans, brokers=SIX_BROKERS, at=at, cluster_id=cluster_id, voters={101: "r1", 102: "r2", 103: "r3"})


def many_topics(topics: int) -> ClusterSnapshot:
    """The shop's topics, and healthy ones to make so many."""
    healthy = [TopicPlan(f"team-{code % 17}.events-{code}", spread(6, 3)) for code in range(topics - len(SHOP))]
    brokers = {broker: rack_of(broker) for broker in range(1, 13)}
    return snapshot([*SHOP, *healthy], brokers=brokers, cluster_id="many", voters={101: "r1", 102: "r2", 103: "r3"})


def wide_cluster(racks: int = 30, topics: int = 60, cluster_id: str = "wide") -> ClusterSnapshot:
    """Two brokers a rack; every topic has replicas in every rack, and a name as long as Kafka allows."""
    brokers = {broker: f"eu-central-{1 + (broker - 1) % racks}" for broker in range(1, 2 * racks + 1)}
    plans = [
        TopicPlan(f"{code:03}-" + "long.topic_name-" * 15 + "e" * 5, spread(racks, 2, len(brokers)))
        for code in range(topics)
    ]
    return snapshot(plans, brokers=brokers, cluster_id=cluster_id, voters={1: brokers[1], 2: brokers[2], 3: brokers[3]})


def empty_cluster(cluster_id: str = "new") -> ClusterSnapshot:
    return snapshot([], brokers=SIX_BROKERS, cluster_id=cluster_id)


def durability_rows(cluster: ClusterSnapshot) -> Iterator[dict[str, object]]:
    """The rows of `partition_durability`, by loops."""
    rack = {int(broker.id): broker.rack or UNNAMED_RACK for broker in cluster.brokers}
    for row in cluster.partitions:
        topic = cluster.topics[row.topic]
        replica_racks = sorted({rack[one] for one in row.replicas if one in rack})
        isr_racks = sorted({rack[one] for one in row.isr if one in rack})
        min_isr, min_racks = (int(topic.config.get(key, "1")) for key in ("min.insync.replicas", "min.insync.racks"))
        yield {
            "cluster_id": cluster.cluster_id,
            "taken_at": cluster.taken_at,
            "topic": topic.name,
            "partition": row.partition,
            "internal": topic.internal,
            "leader": row.leader,
            "replication_factor": len(row.replicas),
            "isr_size": len(row.isr),
            "replica_racks": replica_racks,
            "isr_racks": isr_racks,
            "replica_rack_count": len(replica_racks),
            "isr_rack_count": len(isr_racks),
            "min_insync_replicas": min_isr,
            "min_insync_racks": min_racks,
            "state": _state(
                row.leader,
                len(row.isr),
                len(isr_racks),
                min(min_isr, len(row.replicas)),
                min_racks,
                len(set(rack.values())),
            ),
            "size_bytes": None,
            "schema_version": 1,
        }


def finding_rows(cluster: ClusterSnapshot) -> Iterator[dict[str, object]]:
    """The rows of `findings`, as the audit returns them."""
    for one in audit(cluster, POLICY).findings:
        yield {
            "cluster_id": cluster.cluster_id,
            "taken_at": cluster.taken_at,
            "constraint": one.constraint,
            "severity": one.severity.value,
            "topic": one.topic,
            "partition": one.partition,
            "reason": one.reason,
            "remedy": one.remedy,
            "schema_version": 1,
        }


def _state(leader: int, isr: int, isr_racks: int, min_isr: int, min_racks: int, cluster_racks: int) -> str:
    if leader < 0:
        return "offline"
    if isr < min_isr:
        return "under-min-isr"
    if min_racks > 1 and isr_racks < min_racks:
        return "under-min-racks"
    return "one-rack" if isr_racks == 1 and cluster_racks > 1 else "ok"


def report_by_hand(*histories: Sequence[ClusterSnapshot]) -> ReportData:
    """What the report must hold: each history is one cluster, in time order."""
    return ReportData(tuple(_cluster(list(history)) for history in histories), __version__)


def _cluster(snapshots: Sequence[ClusterSnapshot]) -> ClusterReport:
    latest = snapshots[-1]
    now, losses = outage(latest, POLICY)
    partition_batch = snapshot_batch(latest, POLICY)
    history, drift = _history(snapshots), _drift_groups(snapshots)
    return ClusterReport(
        cluster_id=latest.cluster_id or "",
        taken_at=history.last_taken_at,
        topics=len(latest.topics),
        partitions=len(latest.partitions),
        racks=rack_members(partition_batch.members),
        unracked_brokers=0,
        lost_racks=racks_down(latest, POLICY),
        assumed=assumptions(latest, POLICY),
        now=now,
        losses=tuple(losses),
        harmed={loss.racks[0]: harmed_by_hand(latest, loss.racks[0]) for loss in losses},
        topic_map=topic_map(latest, partition_batch, losses, _states_by_topic(latest), TOPICS_MAX),
        states=history.points[-1].counts,
        history=history,
        findings=tuple(_groups(snapshots)),
        partial=latest.partial,
        loss_history=tuple(_loss_history(snapshots)),
        drift=tuple(drift[:DRIFT_MAX]),
        drift_groups=len(drift),
        broker_rows=broker_rows(partition_batch),
    )


def impact_rows(snapshots: Iterable[ClusterSnapshot]) -> list[dict[str, object]]:
    return [timed(row) for row in expected.table("outage_impact", snapshots, POLICY)]


def drift_rows(snapshots: Iterable[ClusterSnapshot]) -> list[dict[str, object]]:
    return [timed(row) for row in expected.table("drift", snapshots, POLICY)]


def timed(row: Mapping[str, Any]) -> dict[str, object]:
    return {name: datetime.fromisoformat(value) if name.endswith("taken_at") else value for name, value in row.items()}


def _loss_history(snapshots: Sequence[ClusterSnapshot]) -> list[LossHistory]:
    spans = plain_time.spans(plain_time.of_one_append([_at(one) for one in snapshots]))
    lasted = {taken_at: (end - start).total_seconds() for start, end, taken_at in spans}
    timed = [(_at(one), lasted.get(_at(one), 0.0), loss) for one in snapshots for loss in outage(one, POLICY)[1]]
    racks = {loss.racks[0] for _at, _wait, loss in timed}
    losses = [_loss_of_rack(rack, [one for one in timed if one[2].racks == (rack,)]) for rack in racks]
    return sorted(losses, key=lambda one: (-one.seconds_not_survived, -one.not_survived, one.rack))


def _loss_of_rack(rack: RackId, timed: Sequence[tuple[datetime, float, RackLoss]]) -> LossHistory:
    failed = [one for one in timed if not one[2].survived]
    states = ("offline", "under_min_isr", "under_min_racks")
    return LossHistory(
        rack,
        len(timed),
        len(failed),
        sum(wait for _, wait, _ in failed),
        max((at for at, _, _ in failed), default=None),
        *(max(loss.total(state) for _, _, loss in timed) for state in states),
    )


def _drift_groups(snapshots: Sequence[ClusterSnapshot]) -> list[DriftGroup]:
    """In the order of the page."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
    for row in drift_rows(snapshots):
        states = (row["before"], row["after"]) if str(row["change"]).startswith("safety-") else (None, None)
        groups[row["taken_at"], row["change"], row["cause"], row["cause_broker"], *states].append(row)
    ordered = sorted(groups.items(), key=_drift_order)
    return [_drift_group(key[0], key[1], key[2], key[3], rows) for key, rows in ordered]


def _drift_order(group: tuple[tuple[Any, ...], list[dict[str, Any]]]) -> list[Any]:
    (at, change, *rest), rows = group
    safety_first = {"safety-lost": 0, "safety-gained": 1}.get(change, 2)
    return [-at.timestamp(), safety_first, -len(rows), change, *((one is not None, one or 0) for one in rest)]


def _drift_group(
    at: datetime, change: str, cause: str | None, broker: int | None, rows: list[dict[str, Any]]
) -> DriftGroup:
    names = ("topic", "partition", "broker", "before", "after")
    first = min(rows, key=lambda row: [(row[name] is not None, row[name]) for name in names])
    topics = {row["topic"] for row in rows} - {None}
    example = {name: first[name] for name in names}
    return DriftGroup(at, change, len(rows), len(topics), **example, cause=cause, cause_broker=broker)


def harmed_by_hand(cluster: ClusterSnapshot, lost: RackId) -> int:
    """Partitions that are offline or refuse acks=all once a rack's brokers are gone, each judged on its own."""
    alive = {int(one.id): one.rack or UNNAMED_RACK for one in cluster.brokers if not one.fenced}
    alive = {broker: rack for broker, rack in alive.items() if rack != lost}
    of_broker = {int(one.id): one.rack for one in cluster.brokers}
    # A controller and a broker of one id are one process, in the broker's rack.
    voters = {int(one.id): of_broker.get(int(one.id)) or one.rack for one in cluster.controllers if one.voter}
    fenced = {int(one.id) for one in cluster.brokers if one.fenced}
    dead = {
        int(one.id) for one in cluster.controllers if (int(one.id) in fenced if one.alive is None else not one.alive)
    }
    left_to_vote = [voter for voter, rack in voters.items() if rack != lost and voter not in dead]
    majority = not voters or 2 * len(left_to_vote) > len(voters)
    harmed = 0
    for row in cluster.partitions:
        config = cluster.topics[row.topic].config
        left = [alive[broker] for broker in row.isr if broker in alive and broker not in row.offline_replicas]
        # A leader of −2 is there, and not known.
        leads = row.leader != -1 and (bool(left) if majority or row.leader == -2 else row.leader in alive)
        min_isr, racks = (int(config.get(key, "1")) for key in ("min.insync.replicas", "min.insync.racks"))
        harmed += not leads or len(left) < min(min_isr, len(row.replicas)) or len(set(left)) < racks
    return harmed


def _states_by_topic(cluster: ClusterSnapshot) -> dict[str, StateCounts]:
    found: dict[str, list[dict[str, object]]] = defaultdict(list)
    for row in durability_rows(cluster):
        found[str(row["topic"])].append(row)
    return {topic: _counts(rows) for topic, rows in found.items()}


def _counts(rows: Iterable[Mapping[str, object]]) -> StateCounts:
    numbers = Counter(DurabilityState(str(row["state"])).field for row in rows)
    return StateCounts(**numbers)


def _history(snapshots: Sequence[ClusterSnapshot]) -> History:
    points = [HistoryPoint(_at(one), _counts(durability_rows(one))) for one in snapshots]
    waits = [(after.taken_at - before.taken_at).total_seconds() for before, after in pairwise(points)]
    known = plain_time.of_one_append([point.taken_at for point in points])
    spans = plain_time.spans(known)
    lasted = {taken_at: (end - start).total_seconds() for start, end, taken_at in spans}
    seconds = [lasted.get(point.taken_at, 0.0) for point in points]
    timed = list(zip(points, seconds, strict=True))
    return History(
        snapshots=len(points),
        first_taken_at=points[0].taken_at,
        last_taken_at=points[-1].taken_at,
        points=tuple(points),
        states=tuple(_state_time(timed, state) for state in AT_RISK if any(one.counts.of(state) for one in points)),
        seconds_at_risk=sum(lasted for one, lasted in timed if one.counts.at_risk),
        longest_gap_seconds=max(waits, default=0.0),
        seconds_unknown=sum((end - start).total_seconds() for start, end, taken_at in spans if taken_at is None),
    )


def _state_time(timed: Sequence[tuple[HistoryPoint, float]], state: DurabilityState) -> StateTime:
    most = max(one.counts.of(state) for one, _ in timed)
    return StateTime(
        state=state,
        most=most,
        most_at=next(one.taken_at for one, _ in timed if one.counts.of(state) == most),
        seconds=sum(lasted for one, lasted in timed if one.counts.of(state)),
    )


def _groups(snapshots: Sequence[ClusterSnapshot]) -> list[FindingGroup]:
    by_time = [(_at(one), audit(one, POLICY).findings) for one in snapshots]
    kinds = {(one.constraint, one.severity) for _, findings in by_time for one in findings}
    groups = [_group(by_time, constraint, severity) for constraint, severity in kinds]
    return sorted(
        groups, key=lambda one: (one.findings == 0, one.severity is Severity.WARNING, -one.findings, one.constraint)
    )


def _group(by_time: Sequence[tuple[datetime, Sequence[Finding]]], constraint: str, severity: Severity) -> FindingGroup:
    of_kind = [
        (at, [one for one in findings if (one.constraint, one.severity) == (constraint, severity)])
        for at, findings in by_time
    ]
    having = [(at, findings) for at, findings in of_kind if findings]
    last_found_at, last = having[-1]
    example = min(last, key=lambda one: (one.topic or "", -1 if one.partition is None else one.partition, one.reason))
    left = of_kind[-1][1]
    return FindingGroup(
        constraint=constraint,
        severity=severity,
        findings=len(left),
        topics=len({one.topic for one in left if one.topic is not None}),
        snapshots=len(having),
        last_found_at=last_found_at,
        topic=example.topic,
        partition=example.partition,
        reason=example.reason,
        remedy=example.remedy,
        since=_since(of_kind),
    )


def _since(of_kind: Sequence[tuple[datetime, Sequence[Finding]]]) -> datetime | None:
    """When a finding that the latest snapshot has was last new."""
    since = None
    for at, findings in of_kind:
        since = None if not findings else since or at
    return since


def _at(cluster: ClusterSnapshot) -> datetime:
    assert cluster.taken_at is not None
    return cluster.taken_at


def history_of(cluster: ClusterReport) -> History:
    """The history of a cluster of a warehouse, which always has one."""
    assert cluster.history is not None
    return cluster.history


def at_times(cluster: ClusterSnapshot, times: Iterable[datetime]) -> list[ClusterSnapshot]:
    """The same cluster at several times."""
    return [replace(cluster, taken_at=time) for time in times]


def traffic(
    racks: Sequence[str | None] = ("r1", "r2", "r3"), name: str = "orders", prices: bool = True
) -> TrafficReport:
    """A day of traffic of racks that each send 1 GiB to themselves, 2 GiB to the next one and so on; names are all `name`."""
    flows = tuple(
        RackFlow(source, destination, {BASES[column % 3]: (1 + (column - row) % len(racks)) * 2**30})
        for row, source in enumerate(racks)
        for column, destination in enumerate(racks)
    )
    unknown = {"the price of replicate is not known": 3 * 2**30, "a rack is not known": None}
    parts = (
        BilledPart(name, {"USD": 1234.5}, 2**40, {}),
        BilledPart(f"{name}-2", {"EUR": 2.0, "USD": 0.001}, 2**30, unknown),
        BilledPart(f"{name}-3", {}, 2**30, unknown),
        BilledPart(None, {"USD": 0.0}, 2**20, {}),
    )
    whole = BilledPart(None, {"EUR": 2.0, "USD": 1234.501}, 2**41, unknown)
    billed = Billed(parts, BilledPart(None, {}, 0, unknown), 7)
    step = AdvisedStep(1, Concern.RISK, "survives-rack-loss", name, None, name, None, None, None, "", name, name, "")
    saving = replace(step, rank=2, concern=Concern.MONEY, kind="read-in-rack", group=name, command=f"set {name}")
    return TrafficReport(
        read_at=NOON,
        first_hour=NOON - timedelta(hours=24),
        last_hour=NOON - timedelta(hours=1),
        hours=22,
        flows=flows,
        paths=(PathFlow("produce", "estimated", 2**33, 2**32, 2**20, (name, "uniform")),),
        topics_incomplete=tuple(f"{name}-{number}" for number in range(6)),
        hours_billed=20 if prices else 0,
        bill=whole if prices else BilledPart(None, {}, 0, {}),
        by_topic=billed if prices else Billed(()),
        by_group=billed if prices else Billed(()),
        advice=(
            replace(step, command=f"rackspan reassign plan --topic {name}"),
            replace(saving, bytes_a_month=2**40, money_a_month=10.0, currency="USD", assumption=name),
            replace(saving, rank=3, bytes_a_month=-(2**30), money_a_month=2.0, currency="USD"),
            replace(saving, rank=4, bytes_a_month=2**30),
        ),
        advice_counts={Concern.RISK: 1, Concern.MONEY: 12},
        unread=(f"group {name}: not authorized",),
    )


def with_traffic(data: ReportData, traffic_report: TrafficReport) -> ReportData:
    """The same report with the same traffic of each cluster."""
    return data.with_traffic({str(cluster.cluster_id): traffic_report for cluster in data.clusters})
