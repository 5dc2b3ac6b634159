"""What the tables must hold of a snapshot, worked out a partition at a time with plain sets: no column, no Spark.

Findings are the audit's own list; states and racks follow the definitions of docs/tables.md.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from rackspan.audit import ClusterPolicies, RackPolicy, audit
from rackspan.model import ClusterSnapshot, Partition, Topic, UnrackedPolicy
from rackspan.text import utc_text
from tests.audit import brute_force, brute_force_drift

NEVER = datetime.min.replace(tzinfo=UTC)
HARM = ("offline", "needs_unclean_election", "under_min_isr", "under_min_racks")

Rows = list[dict[str, Any]]


def findings(snapshot: ClusterSnapshot, policy: RackPolicy) -> Rows:
    return [
        {
            **_keys(snapshot),
            "constraint": one.constraint,
            "severity": one.severity.value,
            "topic": one.topic,
            "partition": one.partition,
            "reason": one.reason,
            "remedy": one.remedy,
            "schema_version": 9,
        }
        for one in audit(snapshot, policy).findings
    ]


def partition_durability(snapshot: ClusterSnapshot, policy: RackPolicy) -> Rows:
    racks = _racks(snapshot, policy)
    return [_durability(snapshot, policy, racks, row) for row in snapshot.partitions]


def outage_impact(snapshot: ClusterSnapshot, policy: RackPolicy) -> Rows:
    cluster = brute_force.document(snapshot)
    losses: list[list[str]] = [[], *([rack] for rack in brute_force.all_racks(cluster, policy))]
    return [row for lost in losses for row in _impact(snapshot, cluster, policy, lost)]


def _impact(
    snapshot: ClusterSnapshot, cluster: brute_force.Document, policy: RackPolicy, lost: list[str]
) -> Iterator[dict[str, Any]]:
    after = brute_force.after_loss(cluster, policy, set(lost), targets=False)
    quorum_lost = brute_force.quorum_lost(cluster, policy, set(lost))
    internal = {topic["name"]: topic["internal"] for topic in cluster["topics"]}
    total: Counter[str] = sum(after["topics"].values(), Counter())
    keys = {**_keys(snapshot), "lost_racks": lost}
    nothing = {"survived": None, "quorum_holds": None, "leader_surge": None, "schema_version": 4}
    yield {
        **keys,
        "topic": None,
        "internal": None,
        **{state: total[state] for state in HARM},
        "survived": not total and not brute_force.quorum_may_be_lost(cluster, policy, set(lost)),
        "quorum_holds": not quorum_lost if brute_force.voters(cluster, policy) else None,
        "leader_surge": [{"broker": broker, "leaders": n} for broker, n in sorted(after["surge"].items())],
        "schema_version": 4,
    }
    for topic, counts in after["topics"].items():
        yield {
            **keys,
            "topic": topic,
            "internal": internal[topic],
            **{state: counts[state] for state in HARM},
            **nothing,
        }


def drift(snapshots: Iterable[ClusterSnapshot], policies: ClusterPolicies) -> Rows:
    """Of clusters' snapshots in any order; the first of each cluster is only there to be compared with."""
    in_time = sorted(snapshots, key=lambda one: (str(one.cluster_id), utc_text(one.taken_at or NEVER)))
    return [
        {**_keys(after), "previous_taken_at": _keys(before)["taken_at"], **row, "schema_version": 3}
        for before, after in pairwise(in_time)
        if before.cluster_id == after.cluster_id
        for row in brute_force_drift.drift(
            brute_force.document(before), brute_force.document(after), _of(after, policies)
        )
    ]


EXPECTED = {"findings": findings, "partition_durability": partition_durability, "outage_impact": outage_impact}


def table(name: str, snapshots: Iterable[ClusterSnapshot], policies: ClusterPolicies) -> Rows:
    """All rows of a table over some snapshots, in order of nothing."""
    if name == "drift":
        return drift(snapshots, policies)
    return [row for snapshot in snapshots for row in EXPECTED[name](snapshot, _of(snapshot, policies))]


def _of(snapshot: ClusterSnapshot, policies: ClusterPolicies) -> RackPolicy:
    return policies.of_cluster(str(snapshot.cluster_id))


def ordered(rows: Iterable[Mapping[str, Any]], grain: tuple[str, ...]) -> list[Mapping[str, Any]]:
    """By the grain, nulls first; that of changes is their time."""
    names = ["taken_at" if name == "valid_from" else name for name in grain]
    return sorted(rows, key=lambda row: [(row[name] is not None, row[name]) for name in names])


def _keys(snapshot: ClusterSnapshot) -> dict[str, Any]:
    assert snapshot.taken_at is not None
    return {"cluster_id": snapshot.cluster_id, "taken_at": utc_text(snapshot.taken_at)}


def _racks(snapshot: ClusterSnapshot, policy: RackPolicy) -> dict[int, str | None]:
    return {one.id: one.rack if one.rack is not None else _unracked(one.id, policy) for one in snapshot.brokers}


def _unracked(broker: int, policy: RackPolicy) -> str | None:
    return {
        UnrackedPolicy.SHARED: "",
        UnrackedPolicy.OWN: f"(broker {broker})",
        UnrackedPolicy.IGNORE: None,
    }[policy.unracked]


def _durability(
    snapshot: ClusterSnapshot, policy: RackPolicy, racks: Mapping[int, str | None], row: Partition
) -> dict[str, Any]:
    topic = snapshot.topics[row.topic]
    staying = set(row.replicas) - set(row.removing_replicas)
    replica_racks, isr_racks = _named(racks, staying), _named(racks, row.isr)
    replicas_required, racks_required = _required(topic, policy)
    several_racks = len({rack for rack in racks.values() if rack is not None}) > 1
    state = "ok"
    if row.leader == -1:
        state = "offline"
    elif len(row.isr) < min(replicas_required, len(row.replicas)):
        state = "under-min-isr"
    elif racks_required > 1 and len(isr_racks) < racks_required:
        state = "under-min-racks"
    elif several_racks and len(isr_racks) < 2:
        state = "one-rack"
    return {
        **_keys(snapshot),
        "topic": topic.name,
        "partition": row.partition,
        "internal": topic.internal,
        "leader": row.leader,
        "replication_factor": len(staying),
        "isr_size": len(row.isr),
        "replica_racks": replica_racks,
        "isr_racks": isr_racks,
        "replica_rack_count": len(replica_racks),
        "isr_rack_count": len(isr_racks),
        "min_insync_replicas": replicas_required,
        "min_insync_racks": racks_required,
        "state": state,
        "schema_version": 3,
    }


def _named(racks: Mapping[int, str | None], brokers: Iterable[int]) -> list[str]:
    return sorted({rack for broker in brokers if (rack := racks.get(broker)) is not None})


def _required(topic: Topic, policy: RackPolicy) -> tuple[int, int]:
    by_policy = policy.topic_min_insync_racks.get(topic.name, policy.min_insync_racks)
    enforced = int(topic.config.get("min.insync.racks", "1"))
    return int(topic.config.get("min.insync.replicas", "1")), max(enforced, by_policy)


OF_THE_RUN = ("day", "snapshot_id", "run_id", "size_bytes")
"""Columns of the tables that do not follow from a snapshot and a policy alone: a size is that of when the row was written."""


def judged_columns(rows: Iterable[Mapping[str, Any]]) -> Rows:
    """The rows of a table without the columns that a run adds; the day of each is checked."""
    found = []
    for row in rows:
        assert row["day"] == row["taken_at"][:10]
        assert row["run_id"]
        found.append({name: value for name, value in row.items() if name not in OF_THE_RUN})
    return found
