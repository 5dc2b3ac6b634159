from rackspan.consumers import ConsumerGroup, GroupMember
from rackspan.consumers.group import MemberId, owners
from rackspan.model.ids import TopicPartition

ORDERS = TopicPartition("orders", 0)
READERS = frozenset({"orders"})


def member(name: str, epoch: int, topics: frozenset[str] = READERS) -> GroupMember:
    return GroupMember(MemberId(name), topics, owned=frozenset({ORDERS}), epoch=epoch)


def owner(*members: GroupMember) -> MemberId | None:
    return owners(ConsumerGroup(members, {ORDERS: frozenset()})).get(ORDERS)


def test_the_newest_claim_wins() -> None:
    assert owner(member("a", 4), member("b", 5), member("c", -1)) == "b"


def test_a_claim_without_epoch_counts_where_it_is_the_only_one() -> None:
    assert owner(member("a", -1)) == "a"


def test_two_claims_of_one_epoch_cancel_each_other_and_an_older_one_stays_outdated() -> None:
    assert owner(member("a", 5), member("b", 5), member("c", 4)) is None


def test_a_member_that_left_a_topic_owns_nothing_of_it() -> None:
    assert owner(member("a", 5, frozenset({"clicks"})), member("b", 4)) == "b"


def test_a_partition_that_is_gone_has_no_owner() -> None:
    assert owners(ConsumerGroup((member("a", 5),), {})) == {}
