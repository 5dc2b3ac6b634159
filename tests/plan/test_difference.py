"""What a plan changes, against plain loops over the partitions."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackspan.audit import RackPolicy
from rackspan.audit.loads import BELIEVED_BYTES_MAX
from rackspan.model import Broker, BrokerId, ClusterSnapshot, RackId, Topic, TopicName
from rackspan.model import columns as partition_columns
from rackspan.plan.difference import (
    SafetyLoss,
    TopicDifference,
    columns_toward,
    full_disk_lines,
    known_sizes,
    left_to_change,
    partition_differences,
    plan_difference,
)
from rackspan.reassign import (
    Direction,
    PartitionReassignment,
    ReassignmentColumns,
    ReassignmentRequest,
    plan,
    reassignment_columns,
    snapshot_after,
)
from tests.reassign import brute_force
from tests.reassign.instances import cluster
from tests.snapshots import of_one_topic
from tests.strategies import policies, snapshots


def vars_of(topic: TopicDifference) -> tuple[object, ...]:
    return topic.topic, topic.partitions, topic.changed, topic.moves, topic.bytes, topic.unsized, topic.racks


def topics_by_plain_loops(
    snapshot: ClusterSnapshot, then: ClusterSnapshot, policy: RackPolicy
) -> Iterator[tuple[object, ...]]:
    """What TopicDifference holds, of each topic that changes."""
    survivals = [brute_force.survival(one, policy) for one in (snapshot, then)]
    rows = list(zip(snapshot.partitions, then.partitions, *survivals, strict=True))
    for code, topic in enumerate(snapshot.topics):
        changed = [row for row in rows if row[0].topic == code and row[0].replicas != row[1].replicas]
        if not changed:
            continue
        copies = [
            (before.size_bytes, len(set(after.replicas) - set(before.replicas))) for before, after, _, _ in changed
        ]
        yield (
            topic.name,
            sum(row[0].topic == code for row in rows),
            len(changed),
            sum(count for _, count in copies),
            sum(min(size or 0, BELIEVED_BYTES_MAX) * count for size, count in copies),
            sum(count for size, count in copies if size is None),
            (min(row[2].racks for row in changed), min(row[3].racks for row in changed)),
        )


NO_COLUMNS = reassignment_columns(())


@pytest.mark.slow
@given(snapshots(), policies(), st.sampled_from([None, 1, 3]), st.booleans())
def test_brokers_and_topics_change_as_the_snapshot_after_it_does(
    snapshot: ClusterSnapshot, policy: RackPolicy, factor: int | None, balance: bool
) -> None:
    request = ReassignmentRequest(
        replication_factor=factor, balance=balance, replace_missing=True, allow_fewer_racks=True
    )
    planned = plan(snapshot, policy, request)
    found = plan_difference(snapshot, planned.columns(), policy)
    then = snapshot_after(snapshot, planned)
    counts = [Counter(broker for row in one.partitions for broker in row.replicas) for one in (snapshot, then)]
    leaders = [Counter(row.replicas[0] for row in one.partitions) for one in (snapshot, then)]
    came: Counter[int] = Counter()
    went: Counter[int] = Counter()
    touched = set()
    for before, after in zip(snapshot.partitions, then.partitions, strict=True):
        for broker in set(after.replicas) - set(before.replicas):
            came[broker] += min(before.size_bytes or 0, BELIEVED_BYTES_MAX)
            touched.add(broker)
        for broker in set(before.replicas) - set(after.replicas):
            went[broker] += min(before.size_bytes or 0, BELIEVED_BYTES_MAX)
            touched.add(broker)
    touched |= {broker for broker in leaders[0] | leaders[1] if leaders[0][broker] != leaders[1][broker]}
    assert {one.broker for one in found.brokers} == touched
    for one in found.brokers:
        assert one.replicas == (counts[0][one.broker], counts[1][one.broker])
        assert one.leaders == (leaders[0][one.broker], leaders[1][one.broker])
        assert (one.bytes_in, one.bytes_out) == (came[one.broker], went[one.broker])
    rack_of = {broker.id: broker.rack for broker in snapshot.brokers}
    assert all(one.rack == rack_of.get(BrokerId(one.broker)) for one in found.brokers)
    assert [vars_of(one) for one in found.topics] == list(topics_by_plain_loops(snapshot, then, policy))
    survivals = [brute_force.survival(one, policy) for one in (snapshot, then)]
    worse = sum(not after >= before for before, after in zip(*survivals, strict=True))
    assert (0 if found.safety_loss is None else found.safety_loss.partitions) == worse


def test_a_partition_says_each_reason_for_which_it_changes() -> None:
    racks = {1: "a", 2: "b", 3: "a", 4: "b"}
    snapshot = cluster([[1, 2], [1, 2], [1, 2], [1, 2], [1, 9], [1, 3]], racks)
    targets = [[1, 4, 2], [2, 1], [1, 4], [3, 4], [1, 2], [1, 2]]
    names = [snapshot.topics[row.topic].name for row in snapshot.partitions]
    columns = reassignment_columns(
        PartitionReassignment(names[number], number, tuple(target)) for number, target in enumerate(targets)
    )
    steps = range(7, 13)
    details = list(partition_differences(snapshot, columns, RackPolicy(), steps, frozenset({1, 2})))
    assert [(one.topic, one.partition, one.step) for one in details] == [
        ("topic-000000", number, step) for number, step in enumerate(steps)
    ]
    assert [list(one.after) for one in details] == targets
    assert [one.reason for one in details] == [
        "brokers 1,2 drained; replication factor 2 → 3",
        "brokers 1,2 drained; preferred leader 1 → 2",
        "brokers 1,2 drained",
        "brokers 1,2 drained",
        "replicas on brokers the cluster does not list: 9; down, and their racks unknown; broker 1 drained",
        "2 replicas are in 1 rack (a: 1,3); 2 racks would hold them as 1+1; broker 1 drained",
    ]
    reasons = [one.reason for one in partition_differences(snapshot, columns, RackPolicy(), steps)]
    assert reasons[:3] == ["replication factor 2 → 3", "preferred leader 1 → 2", "replicas spread over brokers"]


def test_every_partition_says_why_it_moves() -> None:
    racks = {1: "a", 2: "b", 3: "c", 4: "a", 5: "b"}
    snapshot = cluster([[1, 2, 3], [1, 4, 3], [4, 5, 3]], racks)
    planned = plan(snapshot, request=ReassignmentRequest(drain=frozenset({2}), reorder_leaders=False))
    steps = [1] * len(planned)
    details = partition_differences(snapshot, planned.columns(), RackPolicy(), steps, frozenset({2}))
    reasons = {one.partition: (one.before, one.after, one.reason) for one in details}
    assert reasons == {
        0: ((1, 2, 3), (1, 5, 3), "broker 2 drained"),
        1: (
            (1, 4, 3),
            reasons[1][1],
            "3 replicas are in 2 racks (a: 1,4; c: 3); 3 racks would hold them as 1+1+1",
        ),
    }


def test_a_partition_with_several_problems_names_the_most_urgent_alone() -> None:
    """On a broker that is gone, and with both others in one rack."""
    snapshot = cluster([[9, 1, 2]], {1: "a", 2: "a", 3: "b", 4: "c"})
    columns = reassignment_columns([PartitionReassignment("topic-000000", 0, (3, 1, 4), (9, 1, 2))])
    (only,) = partition_differences(snapshot, columns, RackPolicy(), [1])
    assert only.reason == "replicas on brokers the cluster does not list: 9; down, and their racks unknown"


def test_sizes_are_known_where_the_snapshot_has_them() -> None:
    snapshot = cluster([[1, 2]], {1: "a", 2: "b", 3: "a"})
    planned = plan(snapshot, request=ReassignmentRequest(drain=frozenset({1})))
    assert list(known_sizes(snapshot, planned.columns()).values()) == snapshot.partitions.size_bytes.tolist()
    assert plan_difference(snapshot, NO_COLUMNS, RackPolicy()).topics == ()


def a_cluster_of(*rows: dict[str, Any]) -> ClusterSnapshot:
    """Brokers 1 to 4. A row: topic (0 or 1), partition, replicas; adding and removing replicas, size."""
    return ClusterSnapshot(
        brokers=tuple(Broker(BrokerId(one), RackId("ab"[one % 2])) for one in (1, 2, 3, 4)),
        topics=(Topic(TopicName("orders")), Topic(TopicName("payments"))),
        partitions=partition_columns(
            topic=[row.get("topic", 0) for row in rows],
            partition=[row["partition"] for row in rows],
            leader=[row["replicas"][0] for row in rows],
            replicas=[row["replicas"] for row in rows],
            isr=[row["replicas"] for row in rows],
            adding_replicas=[row.get("adding", []) for row in rows],
            removing_replicas=[row.get("removing", []) for row in rows],
            size_bytes=[row.get("size", 10) for row in rows],
        ),
    )


def entries(found: ReassignmentColumns) -> list[tuple[str, tuple[int, ...], tuple[int, ...]]]:
    return [(one.name, one.replicas, one.undo) for one in found]


def test_what_is_left_of_a_run_is_what_has_not_its_targets_or_still_moves() -> None:
    snapshot = a_cluster_of(
        {"partition": 0, "replicas": [1, 2]},
        {"partition": 1, "replicas": [1, 4]},
        {"partition": 2, "replicas": [2, 1, 3]},
        {"partition": 3, "replicas": [1, 4, 2], "adding": [4], "removing": [2]},
        {"partition": 4, "replicas": [1, 4, 2], "adding": [4]},
        {"partition": 5, "replicas": [1, 4, 2], "removing": [2]},
        {"topic": 1, "partition": 0, "replicas": [2, 1]},
    )
    planned = [
        PartitionReassignment("payments", 0, (1, 2), (3, 4)),
        PartitionReassignment("orders", 0, (1, 4, 3), (1, 2)),
        PartitionReassignment("orders", 1, (1, 4), (1, 2)),
        PartitionReassignment("orders", 2, (1, 2, 3), (1, 2, 3)),
        PartitionReassignment("orders", 3, (1, 4), (1, 2)),
        PartitionReassignment("orders", 4, (1, 4), ()),
        PartitionReassignment("orders", 5, (1, 4, 2), (1, 3)),
    ]
    left, positions = left_to_change(snapshot, planned, Direction.TARGETS)
    assert entries(left) == [
        # `undo` is where a partition is now, whatever the plan found; but of one that moves, what the plan found.
        ("payments-0", (1, 2), (2, 1)),
        ("orders-0", (1, 4, 3), (1, 2)),
        ("orders-2", (1, 2, 3), (2, 1, 3)),
        ("orders-3", (1, 4), (1, 2)),
        ("orders-4", (1, 4), (1, 4, 2)),
        ("orders-5", (1, 4, 2), (1, 3)),
    ]
    assert positions.tolist() == [0, 1, 3, 4, 5, 6]


def test_what_is_left_of_an_undo_is_what_has_not_its_originals() -> None:
    snapshot = a_cluster_of({"partition": 0, "replicas": [1, 2]}, {"partition": 1, "replicas": [1, 4]})
    planned = [PartitionReassignment("orders", number, (1, 4), (1, 2)) for number in (0, 1)]
    left, positions = left_to_change(snapshot, planned, Direction.ORIGINALS)
    assert entries(left) == [("orders-1", (1, 2), (1, 4))]
    assert positions.tolist() == [1]


def test_reassignments_toward_a_direction_end_there_and_start_at_the_other_end() -> None:
    planned = [PartitionReassignment("orders", 7, (1, 4), (1, 2)), PartitionReassignment("payments", 0, (3,), (2,))]
    assert list(columns_toward(planned, Direction.TARGETS)) == planned
    assert list(columns_toward(planned, Direction.ORIGINALS)) == [
        PartitionReassignment("orders", 7, (1, 2), (1, 4)),
        PartitionReassignment("payments", 0, (2,), (3,)),
    ]


def test_a_copy_of_an_empty_log_has_a_known_size_and_one_of_an_unknown_size_has_no_bytes() -> None:
    snapshot = a_cluster_of(
        {"partition": 0, "replicas": [1, 2], "size": 0},
        {"partition": 1, "replicas": [1, 2], "size": -1},
        {"partition": 2, "replicas": [1, 2], "size": 7},
    )
    moved = reassignment_columns(PartitionReassignment("orders", number, (3, 4)) for number in range(3))
    (topic,) = plan_difference(snapshot, moved, RackPolicy()).topics
    assert (topic.moves, topic.bytes, topic.unsized) == (6, 14, 2)
    brokers = plan_difference(snapshot, moved, RackPolicy()).brokers
    assert [(one.broker, one.bytes_in, one.bytes_out) for one in brokers] == [
        (1, 0, 7), (2, 0, 7), (3, 7, 0), (4, 7, 0),
    ]  # fmt: skip
    assert known_sizes(snapshot, moved) == {("orders", 0): 0, ("orders", 2): 7}
    gone = reassignment_columns(PartitionReassignment(topic, 2, (3, 4)) for topic in ("deleted", "orders"))
    assert known_sizes(snapshot, gone) == {("orders", 2): 7}


def test_partitions_that_end_less_safe_are_counted_and_described() -> None:
    snapshot = a_cluster_of(
        {"partition": 0, "replicas": [1, 2]}, {"partition": 1, "replicas": [1, 2]}, {"partition": 2, "replicas": [1, 2]}
    )

    def loss(*targets: tuple[int, ...]) -> SafetyLoss | None:
        moved = (PartitionReassignment("orders", number, target) for number, target in enumerate(targets))
        return plan_difference(snapshot, reassignment_columns(moved), RackPolicy()).safety_loss

    assert loss((3, 2), (1, 4)) is None
    assert loss((3, 2), (1, 3), (4, 2)) == SafetyLoss(
        2, "in 1 rack instead of 2; the loss of one rack would then take 2 offline"
    )


def test_where_a_file_does_not_say_what_it_replaces_it_is_what_the_snapshot_has() -> None:
    snapshot = a_cluster_of({"partition": 0, "replicas": [1, 2, 3]}, {"partition": 1, "replicas": [1, 2]})
    moves = reassignment_columns(
        [PartitionReassignment("orders", 0, (1, 3, 2)), PartitionReassignment("orders", 1, (4, 2), (3, 2))]
    )
    details = list(partition_differences(snapshot, moves, RackPolicy(), (1, 1)))
    assert [one.before for one in details] == [(1, 2, 3), (3, 2)]
    assert details[0].reason == "another order"
    brokers = plan_difference(snapshot, moves, RackPolicy()).brokers
    assert [(one.broker, one.rack, one.replicas, one.leaders) for one in brokers] == [
        (3, "b", (2, 1), (1, 0)), (4, "a", (0, 1), (0, 1)),
    ]  # fmt: skip


MIB = 2**20


def test_a_broker_that_gets_more_bytes_than_are_left_on_its_volumes_is_named() -> None:
    def lines(usable_bytes: int | None) -> list[str]:
        snapshot = of_one_topic({1: "a", 2: "b"}, [[1], [1]], more={"size_bytes": [3 * MIB, 2 * MIB]})
        first, second = snapshot.brokers
        snapshot = replace(snapshot, brokers=(first, replace(second, usable_bytes=usable_bytes)))
        columns = reassignment_columns(PartitionReassignment("orders", number, (2,), (1,)) for number in (0, 1))
        return list(full_disk_lines(snapshot, plan_difference(snapshot, columns, RackPolicy())))

    assert lines(None) == lines(5 * MIB) == []
    (line,) = lines(4 * MIB)
    assert line.startswith("broker 2: 5.0 MiB are copied to it, and 4.0 MiB are left on its volumes: ")
