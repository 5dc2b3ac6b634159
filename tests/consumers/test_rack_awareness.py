from rackspan.consumers import ConsumerGroup, GroupMember
from rackspan.consumers.group import MemberId
from rackspan.consumers.rebalance import members_without_local_replicas, reason_off, unknown_topics, without_racks
from rackspan.model import RackId
from rackspan.model.ids import TopicPartition

ORDERS = TopicPartition("orders", 0)
HERE = {ORDERS: frozenset({RackId("r1")})}


def member(name: str, rack: str | None, *topics: str, fault: str | None = None) -> GroupMember:
    return GroupMember(
        MemberId(name), frozenset(topics or ("orders",)), None if rack is None else RackId(rack), fault=fault
    )


def test_members_with_racks_and_one_replica_of_known_rack_are_enough() -> None:
    assert reason_off(ConsumerGroup((member("a", "r1"),), {**HERE, TopicPartition("orders", 1): frozenset()})) is None


def test_a_group_without_members_or_partitions_has_nothing_to_leave_out() -> None:
    assert reason_off(ConsumerGroup((), HERE)) is None
    assert reason_off(ConsumerGroup((member("a", "r1"),), {})) is None


def test_the_first_member_by_id_is_the_reason_so_that_it_stays_the_same() -> None:
    group = ConsumerGroup((member("c", None), member("b", None, fault="sent nothing"), member("a", "r1")), HERE)
    assert reason_off(group) == "consumer b sent nothing"


def test_without_racks_no_partition_crosses_racks() -> None:
    group = without_racks(ConsumerGroup((member("a", None),), HERE))
    assert not group.crosses_racks(ORDERS, group.members[0])


def test_a_member_without_local_replicas_is_found() -> None:
    assert [
        one.id for one in members_without_local_replicas(ConsumerGroup((member("a", "r1"), member("b", "r9")), HERE))
    ] == ["b"]


def test_topics_that_only_members_list_are_unknown() -> None:
    assert unknown_topics(ConsumerGroup((member("a", "r1", "orders", "typo"),), HERE)) == ("typo",)
