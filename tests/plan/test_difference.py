"""What a plan changes, against plain loops over the partitions."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from rackspan.audit import RackPolicy
from rackspan.audit.loads import BELIEVED_BYTES_MAX
from rackspan.model import ClusterSnapshot
from rackspan.plan.difference import known_sizes, partition_differences, plan_difference
from rackspan.reassign import ReassignmentRequest, plan, reassignment_columns, snapshot_after
from tests.reassign import brute_force
from tests.reassign.instances import cluster
from tests.strategies import policies, snapshots

NO_COLUMNS = reassignment_columns(())


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
    assert sum(one.moves for one in found.topics) == planned.moves
    assert sum(one.changed for one in found.topics) == len(planned)
    survivals = [brute_force.survival(one, policy) for one in (snapshot, then)]
    worse = sum(not after >= before for before, after in zip(*survivals, strict=True))
    assert (0 if found.safety_loss is None else found.safety_loss.partitions) == worse


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
            "3 replicas stand on 2 racks (a: 1,4; c: 3); 3 racks would hold them as 1+1+1",
        ),
    }


def test_sizes_are_known_where_the_snapshot_has_them() -> None:
    snapshot = cluster([[1, 2]], {1: "a", 2: "b", 3: "a"})
    planned = plan(snapshot, request=ReassignmentRequest(drain=frozenset({1})))
    assert list(known_sizes(snapshot, planned.columns()).values()) == snapshot.partitions.size_bytes.tolist()
    assert plan_difference(snapshot, NO_COLUMNS, RackPolicy()).topics == ()
