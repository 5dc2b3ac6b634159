"""AlterPartition and registration, message by message: the pitfalls that whole runs meet once in thousands."""

from dataclasses import replace
from uuid import UUID

import pytest

from rackspan.cluster.core.admin_messages import AlterConfigs, AlterResource, ConfigOp
from rackspan.cluster.core.controller import ControllerRules
from rackspan.cluster.core.ids import NO_EPOCH
from rackspan.cluster.core.messages import (
    AlterPartition,
    AlterPartitionResponse,
    BrokerHeartbeat,
    BrokerHeartbeatResponse,
    BrokerRegistration,
    IsrChange,
    IsrChangeResponse,
    Send,
)
from rackspan.cluster.core.metadata import PartitionSet
from rackspan.cluster.core.settings import ClusterSettings
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import BrokerId, TopicPartition
from tests.cluster.core.brokers import ids
from tests.cluster.world import World

ORDERS = TopicPartition("orders", 0)
RACKS: dict[int, str | None] = {1: "a", 2: "b", 3: "c"}


def world(**changes: object) -> World:
    w = World(RACKS, ClusterSettings(**changes))  # type: ignore[arg-type]
    w.run(500)
    w.create("orders", [1, 2, 3])
    w.settle()
    return w


def change(w: World, *isr: int, **other: int) -> IsrChange:
    """The request that the leader would send now, except for `other`."""
    state, image = w.state(ORDERS), w.controller.image
    members = tuple((BrokerId(one), image.brokers[BrokerId(one)].broker_epoch) for one in isr)
    facts = {"leader_epoch": state.leader_epoch, "partition_epoch": state.partition_epoch} | other
    return IsrChange(ORDERS, image.topics["orders"].topic_id, **facts, isr=members)


def request(w: World, *changes: IsrChange, attempt: int = 1_000, source: int = 1) -> list[AlterPartitionResponse]:
    epoch = w.controller.image.brokers[BrokerId(source)].broker_epoch
    effects = w.controller.on_message(w.now, source, AlterPartition(BrokerId(source), epoch, attempt, changes))
    sent = [one.message for one in effects if isinstance(one, Send)]
    return [one for one in sent if isinstance(one, AlterPartitionResponse)]


def error_of(w: World, requested: IsrChange, source: int = 1) -> ErrorCode:
    (response,) = request(w, requested, source=source)
    return response.changes[0].error


def test_a_change_of_another_epoch_leader_or_member_is_refused_by_name() -> None:
    w = world()
    assert error_of(w, change(w, 1, 2, leader_epoch=1)) is ErrorCode.NOT_CONTROLLER
    w = world()
    assert error_of(w, change(w, 1, 2, leader_epoch=-1)) is ErrorCode.FENCED_LEADER_EPOCH
    w = world()
    assert error_of(w, change(w, 1, 2, partition_epoch=7)) is ErrorCode.INVALID_UPDATE_VERSION
    w = world()
    assert error_of(w, change(w, 1, 2), source=2) is ErrorCode.INVALID_REQUEST
    w = world()
    assert error_of(w, change(w, 2, 3)) is ErrorCode.INVALID_REQUEST
    w = world()
    w.controller.fence(w.now, BrokerId(3))
    assert error_of(w, change(w, 1, 2, 3)) is ErrorCode.INELIGIBLE_REPLICA


def test_a_member_that_is_another_process_by_now_does_not_join() -> None:
    w = world()
    w.kill(3)
    w.run(4_000)
    before = change(w, 1, 2, 3)
    w.start(3)
    w.cut.add((1, -1))
    w.run(400)
    assert w.isr(ORDERS) == {1, 2}
    assert not w.controller.image.brokers[BrokerId(3)].fenced
    assert error_of(w, before) is ErrorCode.INELIGIBLE_REPLICA


def test_an_attempt_that_is_not_newer_than_the_last_is_dropped() -> None:
    """The retry of a refused change, arriving late, would put in sync who is not."""
    w = world()
    assert request(w, change(w, 1, 2, partition_epoch=7), attempt=50)
    assert request(w, change(w, 1, 2), attempt=50) == []
    assert request(w, change(w, 1, 2), attempt=49) == []
    assert w.isr(ORDERS) == {1, 2, 3}
    assert request(w, change(w, 1, 2), attempt=51)
    assert w.isr(ORDERS) == {1, 2}


def test_a_response_has_the_version_of_the_thresholds_it_was_counted_by() -> None:
    w = world()
    op = ConfigOp("min.insync.racks", 0, "2")
    w.admin(lambda correlation_id: AlterConfigs(correlation_id, (AlterResource(2, "orders", (op,)),)))
    (response,) = request(w, change(w, 1, 2))
    assert response.thresholds_version == w.controller.image.offset - 1
    assert w.state(ORDERS).elr == ()


def test_a_leader_does_not_apply_a_response_counted_by_newer_thresholds() -> None:
    w = world(replica_lag_time_max_ms=400)
    w.isolate(3)
    w.produce(1, ORDERS)
    w.cut.add((1, -1))
    w.run(1_500)
    leader, epoch = w.broker(1).leaders[ORDERS], w.broker(1).broker_epoch
    assert leader.isr.pending == (1, 2)
    attempt = w.broker(1)._leaderships._isrs._requests.attempt
    described = IsrChangeResponse(ORDERS, ErrorCode.NONE, 0, leader.isr.partition_epoch + 1, (BrokerId(1), BrokerId(2)))
    ahead = w.broker(1).image.thresholds_version + 1
    response = AlterPartitionResponse(epoch, attempt, ErrorCode.NONE, ahead, (described,))
    w.broker(1).on_message(w.now, -1, response)
    assert leader.isr.committed == (1, 2, 3)
    assert leader.log.high_watermark == 0


@pytest.mark.parametrize("error", [ErrorCode.INVALID_UPDATE_VERSION, ErrorCode.FENCED_LEADER_EPOCH])
def test_a_refused_joiner_goes_on_to_hold_the_watermark_until_the_image_speaks(error: ErrorCode) -> None:
    w = world()
    w.kill(3)
    w.run(4_000)
    w.start(3)
    leader = w.broker(1).leaders[ORDERS]
    w.run_until(lambda: leader.isr.pending is not None)
    w.cut |= {(-1, 1), (1, -1)}
    attempt = w.broker(1)._leaderships._isrs._requests.attempt
    refused = AlterPartitionResponse(
        w.broker(1).broker_epoch, attempt, ErrorCode.NONE, 0, (IsrChangeResponse(ORDERS, error),)
    )
    w.broker(1).on_message(w.now, -1, refused)
    assert leader.isr.maximal == (1, 2, 3)
    dead = AlterPartitionResponse(
        w.broker(1).broker_epoch,
        attempt,
        ErrorCode.NONE,
        0,
        (IsrChangeResponse(ORDERS, ErrorCode.INELIGIBLE_REPLICA),),
    )
    w.broker(1).on_message(w.now, -1, dead)
    assert leader.isr.maximal == (1, 2, 3), "a response counts once"


# Registration.


def register(w: World, broker: int, incarnation: int, previous: int = NO_EPOCH) -> None:
    w.controller.on_message(
        w.now, broker, BrokerRegistration(BrokerId(broker), incarnation, None, "127.0.0.1", 1, previous)
    )


def test_registering_again_fences_then_leaves_the_isr_then_elects() -> None:
    """Within its old session, and without the sweep: never elected again in the same epoch with an empty memory."""
    w = world()
    epoch = w.state(ORDERS).leader_epoch
    register(w, 1, 99)
    state = w.state(ORDERS)
    assert (state.leader, state.leader_epoch, state.isr) == (2, epoch + 1, (2, 3))
    assert w.controller.image.brokers[BrokerId(1)].fenced


def test_the_last_of_the_isr_that_registers_again_without_its_mark_is_not_electable() -> None:
    w = world()
    for broker in (2, 3):
        w.controller.fence(w.now, BrokerId(broker))
    before = w.controller.image.brokers[BrokerId(1)].broker_epoch
    register(w, 1, 99, previous=before)
    with_mark = w.state(ORDERS)
    assert (with_mark.leader, with_mark.isr, with_mark.elr) == (-1, (), (1,))
    register(w, 1, 100)
    without = w.state(ORDERS)
    assert (without.leader, without.isr, without.elr) == (-1, (), ())
    assert dict(without.left_isr).keys() == {1, 2, 3}


def test_an_older_process_does_not_push_out_a_newer_one() -> None:
    w = world()
    register(w, 1, 99)
    newer = w.controller.image.brokers[BrokerId(1)]
    register(w, 1, 98)
    assert w.controller.image.brokers[BrokerId(1)] == newer


def test_a_heartbeat_of_another_registration_is_refused() -> None:
    w = world()
    effects = w.controller.on_message(w.now, 1, BrokerHeartbeat(BrokerId(1), 77, 5))
    responses = [one.message for one in effects if isinstance(one, Send)]
    assert responses == [BrokerHeartbeatResponse(77, ErrorCode.STALE_BROKER_EPOCH)]


def test_rules_can_be_replaced_one_by_one() -> None:
    class Anything(ControllerRules):
        def is_current(self, *_arguments: object) -> bool:
            return True

    w = World(RACKS, controller_rules=Anything())
    w.run(500)
    w.create("orders", [1, 2, 3])
    w.settle()
    assert error_of(w, change(w, 1, 2, partition_epoch=7)) is ErrorCode.NONE


def test_the_response_has_the_state_that_was_committed_whether_it_changed_or_not() -> None:
    w = world()
    before = w.state(ORDERS)
    (response,) = request(w, change(w, 1, 2, 3))
    assert response == AlterPartitionResponse(
        w.controller.image.brokers[BrokerId(1)].broker_epoch,
        1_000,
        ErrorCode.NONE,
        w.controller.image.thresholds_version,
        (IsrChangeResponse(ORDERS, ErrorCode.NONE, 0, before.partition_epoch, before.isr),),
    )
    assert w.state(ORDERS) is before
    (response,) = request(w, change(w, 1, 3), attempt=1_001)
    assert response.changes == (
        IsrChangeResponse(ORDERS, ErrorCode.NONE, 0, before.partition_epoch + 1, w.state(ORDERS).isr),
    )
    assert w.isr(ORDERS) == {1, 3}


def test_a_request_of_an_unknown_broker_or_another_process_is_stale_and_of_a_deleted_topic_unknown() -> None:
    w = world()
    for broker, epoch in ((9, 0), (1, 77)):
        effects = w.controller.on_message(0, broker, AlterPartition(BrokerId(broker), epoch, 5, (change(w, 1, 2),)))
        assert [one.message for one in effects if isinstance(one, Send)] == [
            AlterPartitionResponse(epoch, 5, ErrorCode.STALE_BROKER_EPOCH, 0, ())
        ]
    good = change(w, 1, 2)
    elsewhere = TopicPartition("orders", 7)
    strangers = (replace(good, topic_id=UUID(int=9)), replace(good, partition=elsewhere))
    (response,) = request(w, *strangers)
    assert response.changes == (
        IsrChangeResponse(ORDERS, ErrorCode.UNKNOWN_TOPIC_ID, -1, -1, ()),
        IsrChangeResponse(elsewhere, ErrorCode.UNKNOWN_TOPIC_ID, -1, -1, ()),
    )
    assert w.isr(ORDERS) == {1, 2, 3}


def test_a_leader_whose_change_ends_a_reassignment_that_removes_it_gets_the_error_for_a_new_leader() -> None:
    w = world()
    state = replace(w.state(ORDERS), replicas=ids(2, 3, 1), isr=ids(1, 2), adding=ids(3), removing=ids(1))
    w.controller._context.write(PartitionSet(ORDERS, state))
    (response,) = request(w, change(w, 1, 2, 3))
    assert response.changes == (
        IsrChangeResponse(
            ORDERS, ErrorCode.NEW_LEADER_ELECTED, state.leader_epoch + 1, state.partition_epoch + 1, ids(2, 3)
        ),
    )
