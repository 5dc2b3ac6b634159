"""`leader.racks` in an audit: who leads elsewhere, who may lead instead, and lists that are refused."""

import pytest

from rackspan.audit import RackPolicy, audit, snapshot_batch
from rackspan.audit.leader_racks import leader_choices
from rackspan.errors import UsageError
from rackspan.model import ClusterSnapshot, RackId
from tests.snapshots import of_one_topic

IN_RACK_A = {"orders": (RackId("a"),)}


def three_racks(replicas: list[list[int]], fenced: tuple[int, ...] = ()) -> ClusterSnapshot:
    """Brokers 1 and 4 in rack a, 2 and 5 in b, 3 and 6 in c."""
    racks = {broker: "abc"[(broker - 1) % 3] for broker in range(1, 7)}
    return of_one_topic(racks, replicas, config={"min.insync.replicas": "2"}, fenced=fenced)


def test_leaders_that_are_elsewhere_are_not_uneven_too_since_an_ordinary_plan_leaves_them() -> None:
    snapshot = three_racks([[2, 1, 3], [5, 4, 6]] * 20)
    policy = RackPolicy(topic_leader_racks=IN_RACK_A)
    found = {finding.constraint: finding.reason for finding in audit(snapshot, policy).findings}
    assert found == {"leader-racks": "40 preferred leaders not in rack a: partitions 0,1,2,3,4,5,6,7,8,9 and 30 more"}


@pytest.mark.parametrize(
    ("replicas", "fenced", "excluded", "choices"),
    [
        ([2, 1, 4], (), set(), [False, True, True]),
        ([2, 1, 4], (1,), set(), [False, False, True]),
        ([2, 1, 4], (), {1}, [False, False, True]),
        ([1, 2, 4], (), {1}, [True, False, True]),
        ([2, 3, 5], (), set(), [True, True, True]),
        ([2, 3, 5], (), {3}, [True, False, True]),
    ],
)
def test_leaders_may_be_those_of_the_required_rack_that_take_new_leaders_or_all_where_it_has_none(
    replicas: list[int], fenced: tuple[int, ...], excluded: set[int], choices: list[bool]
) -> None:
    policy = RackPolicy(topic_leader_racks=IN_RACK_A, excluded_brokers=frozenset(excluded))
    rows, able = leader_choices(snapshot_batch(three_racks([replicas], fenced), policy))
    assert (rows.tolist(), able.tolist()) == ([0], [choices])


def test_a_partition_with_a_replica_on_a_broker_that_is_not_listed_is_left_out() -> None:
    rows, able = leader_choices(
        snapshot_batch(three_racks([[9, 1, 2], [2, 1, 3]]), RackPolicy(topic_leader_racks=IN_RACK_A))
    )
    assert (rows.tolist(), able.tolist()) == ([1], [[False, True, False]])


@pytest.mark.parametrize("racks", [(), ("a", "a")])
def test_a_list_without_racks_or_with_one_twice_is_refused(racks: tuple[str, ...]) -> None:
    with pytest.raises(UsageError, match=r"topic 'orders': leader\.racks is .*; name at least one rack, and each once"):
        RackPolicy(topic_leader_racks={"orders": tuple(map(RackId, racks))})
