from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackspan.consumers import ConsumerGroup, GroupMember
from rackspan.consumers.group import MemberId
from rackspan.consumers.rebalance import RebalanceDecision, decide_rebalance
from rackspan.errors import InvalidProblem
from rackspan.model import RackId
from rackspan.model.ids import TopicPartition
from tests.consumers.groups import groups

R1, R2 = RackId("r1"), RackId("r2")
ORDERS = frozenset({"orders"})
RACKS = {TopicPartition("orders", one): frozenset({R1 if one % 2 else R2}) for one in range(4)}


def member(name: str, rack: RackId | None, *owned: int, epoch: int = 1, still_reads: bool = False) -> GroupMember:
    partitions = frozenset(TopicPartition("orders", one) for one in owned)
    return GroupMember(MemberId(name), ORDERS, rack, partitions, epoch, still_reads)


def numbers(decision: RebalanceDecision) -> dict[str, list[int]]:
    return {name: [partition.partition for partition in partitions] for name, partitions in decision.assigned.items()}


def test_each_member_reads_the_partitions_in_its_rack() -> None:
    decision = decide_rebalance(ConsumerGroup((member("a", R1), member("b", R2)), RACKS), 5)
    assert numbers(decision) == {"a": [1, 3], "b": [0, 2]}
    assert (decision.off_reason, decision.target.cross_rack, decision.withheld) == (None, 0, frozenset())


def test_a_member_without_rack_switches_racks_off_and_nothing_moves() -> None:
    before = (member("a", R1, 0, 1), member("b", None, 2, 3))
    decision = decide_rebalance(ConsumerGroup(before, RACKS), 5)
    assert decision.off_reason == "consumer b has no client.rack"
    assert numbers(decision) == {"a": [0, 1], "b": [2, 3]}


def test_a_member_that_cannot_be_read_switches_racks_off() -> None:
    strange = replace(member("b", R2), fault="sent user data of version 2, and version 1 is known here")
    decision = decide_rebalance(ConsumerGroup((member("a", R1), strange), RACKS), 5)
    assert decision.off_reason == "consumer b sent user data of version 2, and version 1 is known here"
    assert sorted(map(len, decision.assigned.values())) == [2, 2]


def test_brokers_without_racks_switch_racks_off() -> None:
    decision = decide_rebalance(ConsumerGroup((member("a", R1), member("b", R2)), dict.fromkeys(RACKS, frozenset())), 5)
    assert decision.off_reason == "no partition has a replica on a broker with broker.rack"


def test_a_partition_without_known_rack_costs_the_same_everywhere_and_the_others_count() -> None:
    racks = {**RACKS, TopicPartition("orders", 0): frozenset[RackId]()}
    decision = decide_rebalance(ConsumerGroup((member("a", R1), member("b", R2)), racks), 5)
    assert (decision.off_reason, decision.target.cross_rack, numbers(decision)["a"]) == (None, 1, [1, 3])


def test_a_member_in_a_rack_without_replicas_takes_its_share_and_the_others_stay_local() -> None:
    decision = decide_rebalance(ConsumerGroup((member("a", R1), member("b", R2), member("c", RackId("r9"))), RACKS), 5)
    assert (decision.off_reason, decision.target.cross_rack) == (None, 1)


def test_an_empty_group_and_a_group_without_partitions_are_assigned_nothing() -> None:
    assert decide_rebalance(ConsumerGroup((), RACKS), 5).assigned == {}
    assert decide_rebalance(ConsumerGroup((member("a", R1),), {}), 5).assigned == {"a": ()}
    assert decide_rebalance(ConsumerGroup((replace(member("a", R1), topics=frozenset()),), RACKS), 5).assigned == {
        "a": ()
    }


def test_more_members_than_partitions_leave_members_of_other_racks_idle() -> None:
    racks = {TopicPartition("orders", 0): frozenset({R2})}
    assert numbers(decide_rebalance(ConsumerGroup((member("a", R1), member("b", R2)), racks), 5)) == {"a": [], "b": [0]}


def test_a_member_listed_twice_is_refused() -> None:
    with pytest.raises(InvalidProblem, match="member 'a' is listed twice"):
        ConsumerGroup((member("a", R1), member("a", R2)), RACKS)


def test_a_partition_that_another_member_still_reads_is_withheld() -> None:
    holding = member("a", R1, 0, 1, 2, 3, still_reads=True)
    decision = decide_rebalance(ConsumerGroup((holding, member("b", R2, epoch=-1)), RACKS), 5)
    assert numbers(decision) == {"a": [1, 3], "b": []}
    assert {partition.partition for partition in decision.withheld} == {0, 2}
    assert decision.target.moved == 2


def test_partitions_revoked_before_joining_are_not_withheld() -> None:
    decision = decide_rebalance(ConsumerGroup((member("a", R1, 0, 1, 2, 3), member("b", R2, epoch=-1)), RACKS), 5)
    assert numbers(decision) == {"a": [1, 3], "b": [0, 2]}


def test_a_partition_with_an_outdated_reader_is_not_withheld() -> None:
    old = member("a", R1, 0, epoch=1, still_reads=True)
    new = member("b", R2, 0, 2, epoch=2, still_reads=True)
    assert decide_rebalance(ConsumerGroup((old, new), RACKS), 5).withheld == frozenset()


def test_a_partition_read_by_two_members_of_one_epoch_is_withheld() -> None:
    members = (member("a", R1, 0, 1, still_reads=True), member("b", R2, 0, 2, still_reads=True))
    assert {partition.partition for partition in decide_rebalance(ConsumerGroup(members, RACKS), 5).withheld} == {0}


def test_epochs_rise_even_where_the_clock_does_not() -> None:
    assert decide_rebalance(ConsumerGroup((member("a", R1, epoch=900),), RACKS), 5).epoch == 901
    assert decide_rebalance(ConsumerGroup((member("a", R1, epoch=3),), RACKS), 5).epoch == 5


@given(groups(members=5, partitions=12), st.lists(st.booleans(), min_size=5, max_size=5))
def test_eager_and_cooperative_members_settle_and_no_two_read_one_partition(
    group: ConsumerGroup, cooperative: list[bool]
) -> None:
    """Rebalance until no partition is withheld: a member that loses a partition rejoins. At most one more round is needed."""
    modes = {m.id: mode for m, mode in zip(sorted(group.members, key=lambda m: m.id), cooperative, strict=False)}
    members = tuple(replace(m, owned=frozenset(), epoch=-1) for m in group.members[1:])
    members = _after_rebalance(ConsumerGroup(members, group.racks), modes)
    joined = (*members, *(replace(m, owned=frozenset(), epoch=-1) for m in group.members[:1]))
    first = decide_rebalance(ConsumerGroup(joined, group.racks), 0)
    _refuse_two_readers(joined, first)
    settled = _after_rebalance(ConsumerGroup(joined, group.racks), modes)
    second = decide_rebalance(ConsumerGroup(settled, group.racks), 0)
    assert second.withheld == frozenset()
    assert second.target.cross_rack == first.target.cross_rack
    assert second.assigned == {m: tuple(sorted(partitions)) for m, partitions in second.target.partitions.items()}


def _after_rebalance(group: ConsumerGroup, modes: dict[MemberId, bool]) -> tuple[GroupMember, ...]:
    decision = decide_rebalance(group, 0)
    return tuple(
        replace(m, owned=frozenset(decision.assigned[m.id]), epoch=decision.epoch, still_reads=modes[m.id])
        for m in group.members
    )


def _refuse_two_readers(members: tuple[GroupMember, ...], decision: RebalanceDecision) -> None:
    for m in members:
        others = frozenset().union(*(decision.assigned[other.id] for other in members if other != m))
        assert not (m.still_reads and m.owned & others)
