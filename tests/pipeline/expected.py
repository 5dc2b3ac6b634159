"""What the tables must hold of a snapshot, worked out a partition at a time with plain sets: no column, no Spark.

Findings are the audit's own list; states and racks are told from the words of docs/tables.md.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from rackspan.audit import RackPolicy, audit
from rackspan.model import ClusterSnapshot, Partition, Topic, UnrackedPolicy
from rackspan.model.json_format import utc_text

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
            "schema_version": 1,
        }
        for one in audit(snapshot, policy).findings
    ]


def partition_durability(snapshot: ClusterSnapshot, policy: RackPolicy) -> Rows:
    racks = _racks(snapshot, policy)
    return [_durability(snapshot, policy, racks, row) for row in snapshot.partitions]


EXPECTED = {"findings": findings, "partition_durability": partition_durability}


def table(name: str, snapshots: Iterable[ClusterSnapshot], policy: RackPolicy) -> Rows:
    """All rows of a table over some snapshots, in order of nothing."""
    return [row for snapshot in snapshots for row in EXPECTED[name](snapshot, policy)]


def ordered(rows: Iterable[Mapping[str, Any]], grain: tuple[str, ...]) -> list[Mapping[str, Any]]:
    """By the grain, nulls first."""
    return sorted(rows, key=lambda row: [(row[name] is not None, row[name]) for name in grain])


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
    replicas_asked, racks_asked = _asked(topic, policy)
    several_racks = len({rack for rack in racks.values() if rack is not None}) > 1
    state = "ok"
    if row.leader == -1:
        state = "offline"
    elif len(row.isr) < replicas_asked:
        state = "under-min-isr"
    elif racks_asked > 1 and len(isr_racks) < racks_asked:
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
        "min_insync_replicas": replicas_asked,
        "min_insync_racks": racks_asked,
        "state": state,
        "size_bytes": row.size_bytes,
        "schema_version": 1,
    }


def _named(racks: Mapping[int, str | None], brokers: Iterable[int]) -> list[str]:
    return sorted({rack for broker in brokers if (rack := racks.get(broker)) is not None})


def _asked(topic: Topic, policy: RackPolicy) -> tuple[int, int]:
    by_policy = policy.topic_min_insync_racks.get(topic.name, policy.min_insync_racks)
    return int(topic.config.get("min.insync.replicas", "1")), int(topic.config.get("min.insync.racks", by_policy))
