"""DescribeQuorum: the length of the metadata log, and each registered broker's place in it."""

from rackspan.cluster.core.admin_messages import DescribeQuorum, DescribeQuorumResponse, Observer, UnregisterBroker
from rackspan.model.ids import BrokerId
from tests.cluster.core.controller.requests import controller_with, responses
from tests.cluster.core.controller.test_placement_vectors import register


def test_each_broker_has_the_offset_and_the_time_of_its_last_heartbeat() -> None:
    controller = controller_with({2: "b", 1: "a", 4: "d"})
    register(controller, 3, "c", fenced=True)
    responses(controller, UnregisterBroker(1, BrokerId(4)))
    reported = {one: controller.image.brokers[BrokerId(one)].broker_epoch + 1 for one in (1, 2)}
    described = responses(controller, DescribeQuorum(7), now=90)
    assert described == DescribeQuorumResponse(
        controller.image.offset,
        90,
        (Observer(BrokerId(1), reported[1], 0), Observer(BrokerId(2), reported[2], 0), Observer(BrokerId(3), -1, 0)),
    )
