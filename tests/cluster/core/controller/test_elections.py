"""ElectLeaders and the restoring of preferred leaders: which response each partition gets, and when."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from rackspan.cluster.core.admin_messages import AdminResponse, ElectLeaders
from rackspan.cluster.core.controller import ControllerCore
from rackspan.cluster.core.metadata import NO_LEADER
from rackspan.cluster.core.settings import ClusterSettings
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import BrokerId, TopicPartition
from tests.cluster.core.brokers import ids
from tests.cluster.core.controller.requests import ORDERS, context_of, controller_with, put, responses, state_of

RACKS = {1: "a", 2: "b", 3: "c"}
SECOND = TopicPartition("orders", 1)


def led_by(controller: ControllerCore, leader: int, isr: Sequence[int], partition: TopicPartition = ORDERS) -> None:
    put(controller, replace(state_of(controller, partition), leader=BrokerId(leader), isr=ids(*isr)), partition)


def elect(controller: ControllerCore, *partitions: TopicPartition, unclean: bool = False) -> list[AdminResponse]:
    return list(responses(controller, ElectLeaders(1, partitions or None, unclean)))


def test_each_listed_partition_gets_a_response_and_one_that_is_listed_twice_gets_one() -> None:
    controller = controller_with(RACKS, [1, 2], [2, 3])
    led_by(controller, 2, [1, 2])
    nowhere = TopicPartition("orders", 7)
    assert elect(controller, SECOND, ORDERS, nowhere, ORDERS) == [
        AdminResponse(SECOND, ErrorCode.ELECTION_NOT_NEEDED),
        AdminResponse(ORDERS, ErrorCode.NONE),
        AdminResponse(nowhere, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition {nowhere}"),
    ]
    assert state_of(controller).leader == 1


def test_without_a_list_only_the_partitions_that_needed_an_election_are_in_the_response() -> None:
    controller = controller_with(RACKS, [1, 2], [2, 3])
    led_by(controller, 2, [1, 2])
    assert elect(controller) == [AdminResponse(ORDERS, ErrorCode.NONE)]
    assert elect(controller) == []


def test_a_preferred_leader_out_of_the_isr_is_not_available_and_nothing_changes() -> None:
    controller = controller_with(RACKS, [1, 2])
    led_by(controller, 2, [2])
    before = controller.image
    assert elect(controller, ORDERS) == [AdminResponse(ORDERS, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE)]
    led_by(controller, NO_LEADER, [])
    assert elect(controller, ORDERS) == [AdminResponse(ORDERS, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE)]
    assert controller.image.offset == before.offset + 1


@pytest.mark.parametrize(
    ("fenced", "error", "leader"),
    [((1,), ErrorCode.NONE, 2), ((1, 2), ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, NO_LEADER)],
)
def test_an_unclean_election_takes_the_first_that_is_alive_where_there_is_one(
    fenced: Sequence[int], error: ErrorCode, leader: int
) -> None:
    controller = controller_with(RACKS, [1, 2])
    for one in fenced:
        controller.fence(0, BrokerId(one))
    led_by(controller, NO_LEADER, [])
    assert elect(controller, ORDERS, unclean=True) == [AdminResponse(ORDERS, error)]
    assert state_of(controller).leader == leader


def test_an_unclean_election_is_not_needed_where_there_is_a_leader_even_another_than_the_preferred() -> None:
    controller = controller_with(RACKS, [1, 2])
    led_by(controller, 2, [1, 2])
    assert elect(controller, ORDERS, unclean=True) == [AdminResponse(ORDERS, ErrorCode.ELECTION_NOT_NEEDED)]


def test_preferred_leaders_are_restored_at_the_interval_and_only_if_the_cluster_is_configured_so() -> None:
    settings = ClusterSettings(auto_leader_rebalance=True, leader_imbalance_check_interval_ms=500)
    controller = controller_with(RACKS, [1, 2], [2, 3], settings=settings)
    controller.on_tick(100)
    offset = controller.image.offset
    led_by(controller, 2, [1, 2])
    controller.on_tick(599)
    assert state_of(controller).leader == 2
    controller.on_tick(600)
    assert state_of(controller).leader == 1
    assert controller.image.offset == offset + 2, "the other partition has its preferred leader"
    never = controller_with(RACKS, [1, 2])
    led_by(never, 2, [1, 2])
    never.on_tick(2_000)
    assert (state_of(never).leader, context_of(never).next_rebalance) == (2, 0)


@pytest.mark.parametrize("allowed", [True, False])
def test_a_leader_that_leaves_is_replaced_uncleanly_where_the_topic_allows_it(allowed: bool) -> None:
    controller = controller_with(RACKS, [1, 2], settings=ClusterSettings(unclean_leader_election=allowed))
    led_by(controller, 1, [1])
    controller.fence(0, BrokerId(1))
    after = state_of(controller)
    assert (after.leader, after.isr, after.elr) == ((2, ids(2), ()) if allowed else (NO_LEADER, (), ids(1)))


def test_a_preferred_election_keeps_the_isr() -> None:
    controller = controller_with(RACKS, [1, 2, 3])
    led_by(controller, 2, [1, 2])
    elect(controller, ORDERS)
    after = state_of(controller)
    assert (after.leader, after.isr, after.elr, after.replicas) == (1, ids(1, 2), (), ids(1, 2, 3))
