"""Brokers are distributed to racks in turn, and the quorum is where it was requested."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackspan.errors import UsageError
from rackspan.kafka_process.topology import KafkaNode, distribute_nodes

RACKS = ("r1", "r2", "r3")


def test_six_brokers_in_three_racks_with_a_voter_in_each() -> None:
    nodes = distribute_nodes(RACKS, 6)
    assert [(node.id, node.rack) for node in nodes] == [
        (1, "r1"),
        (2, "r2"),
        (3, "r3"),
        (4, "r1"),
        (5, "r2"),
        (6, "r3"),
    ]
    assert [node.id for node in nodes if node.is_controller] == [1, 2, 3]
    assert [node.roles for node in nodes[2:4]] == ["broker,controller", "broker"]


@pytest.mark.parametrize(("brokers", "voters"), [(1, [1]), (2, [1]), (3, [1, 2, 3]), (4, [1, 2, 3])])
def test_three_brokers_vote_and_one_where_there_are_fewer(brokers: int, voters: list[int]) -> None:
    nodes = distribute_nodes(["r1"], brokers, None)
    assert [node.id for node in nodes if node.is_controller] == voters


def test_controllers_may_stand_apart() -> None:
    assert distribute_nodes(("r1",), 1, {101: "r2"}) == (
        KafkaNode(1, "r1", True, False),
        KafkaNode(101, "r2", False, True),
    )


def test_a_broker_named_as_controller_is_combined_in_its_own_rack() -> None:
    assert distribute_nodes(RACKS, 2, {2: None}) == (KafkaNode(1, "r1", True, False), KafkaNode(2, "r2", True, True))


@given(st.lists(st.sampled_from(["r1", "r2", None]), min_size=1, max_size=5), st.integers(1, 30))
def test_racks_hold_as_many_brokers_as_their_turns_give(racks: list[str | None], brokers: int) -> None:
    nodes = distribute_nodes(racks, brokers)
    assert [node.rack for node in nodes] == [racks[index % len(racks)] for index in range(brokers)]
    assert sum(node.is_controller for node in nodes) % 2 == 1


@pytest.mark.parametrize(("racks", "brokers", "controllers"), [(RACKS, 0, None), ((), 1, None), (RACKS, 1, {})])
def test_what_cannot_be_a_cluster_is_refused(
    racks: tuple[str, ...], brokers: int, controllers: dict[int, str | None] | None
) -> None:
    with pytest.raises(UsageError):
        distribute_nodes(racks, brokers, controllers)
