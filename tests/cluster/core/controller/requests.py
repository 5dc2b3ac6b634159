"""A controller with registered brokers, and requests to it: responses, messages to brokers and warnings."""

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from rackspan.cluster.core.admin_messages import AdminRequest
from rackspan.cluster.core.controller import ControllerCore
from rackspan.cluster.core.controller.context import ControllerContext
from rackspan.cluster.core.ids import CLIENT
from rackspan.cluster.core.messages import Effect, Respond, Send, Warned
from rackspan.cluster.core.metadata import PartitionSet, PartitionState
from rackspan.cluster.core.settings import ClusterSettings
from rackspan.model.ids import TopicPartition
from tests.cluster.core.controller.test_placement_vectors import by_hand, register

ORDERS = TopicPartition("orders", 0)


def controller_with(
    racks: Mapping[int, str | None], *replicas: Sequence[int], settings: ClusterSettings | None = None, **more: Any
) -> ControllerCore:
    """The brokers, active in their racks, and the topic orders with these replicas, if any are given."""
    controller = ControllerCore(settings or ClusterSettings(), Random(7), **more)
    for number, rack in racks.items():
        register(controller, number, rack)
    if replicas:
        by_hand(controller, "orders", *replicas)
    return controller


def context_of(controller: ControllerCore) -> ControllerContext:
    return controller._context


def responses(controller: ControllerCore, request: AdminRequest, now: int = 0) -> Any:
    """The one response to a client's request."""
    (response,) = [one.response for one in controller.on_message(now, CLIENT, request) if isinstance(one, Respond)]
    return response


def warnings(effects: Sequence[Effect]) -> list[str]:
    return [one.message for one in effects if isinstance(one, Warned)]


def sent(effects: Sequence[Effect]) -> list[Any]:
    return [one.message for one in effects if isinstance(one, Send)]


def state_of(controller: ControllerCore, partition: TopicPartition = ORDERS) -> PartitionState:
    state = controller.image.partition(partition)
    assert state is not None
    return state


def put(controller: ControllerCore, state: PartitionState, partition: TopicPartition = ORDERS) -> None:
    """Write a partition's state as if it had come about."""
    context_of(controller).write(PartitionSet(partition, state))
