"""Registrations, heartbeats, fencing and controlled shutdown, message by message."""

from typing import Any

import pytest

from rackspan.cluster.core.admin_messages import AdminResponse, UnregisterBroker
from rackspan.cluster.core.controller import ControllerCore
from rackspan.cluster.core.ids import CLIENT, NO_EPOCH
from rackspan.cluster.core.messages import (
    BrokerHeartbeat,
    BrokerHeartbeatResponse,
    BrokerRegistration,
    BrokerRegistrationResponse,
)
from rackspan.cluster.core.metadata import BrokerImage
from rackspan.cluster.core.settings import ClusterSettings
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import BrokerId, RackId
from tests.cluster.core.brokers import ids
from tests.cluster.core.controller.requests import context_of, controller_with, responses, sent, state_of, warnings
from tests.cluster.core.controller.test_placement_vectors import register

RACKS = {1: "a", 2: "b", 3: "c"}
SESSION_MS = 3_000


def registration(
    controller: ControllerCore, number: int, incarnation: int, rack: str | None = "a", now: int = 0
) -> BrokerRegistrationResponse:
    broker = BrokerId(number)
    message = BrokerRegistration(broker, incarnation, None if rack is None else RackId(rack), "h", 9, NO_EPOCH)
    (response,) = sent(controller.on_message(now, broker, message))
    assert isinstance(response, BrokerRegistrationResponse)
    return response


def broker_image(controller: ControllerCore, number: int) -> BrokerImage:
    return controller.image.brokers[BrokerId(number)]


def heartbeat(controller: ControllerCore, number: int, offset: int, now: int = 0, **wants: bool) -> Any:
    broker = BrokerId(number)
    message = BrokerHeartbeat(broker, broker_image(controller, number).broker_epoch, offset, **wants)
    (response,) = sent(controller.on_message(now, broker, message))
    return response


def response_of(controller: ControllerCore, number: int, *, fenced: bool, end: bool = False) -> BrokerHeartbeatResponse:
    return BrokerHeartbeatResponse(broker_image(controller, number).broker_epoch, ErrorCode.NONE, fenced, end)


def test_a_registration_is_kept_and_its_epoch_is_its_offset_in_the_metadata() -> None:
    controller = controller_with(RACKS)
    offset = controller.image.offset
    assert registration(controller, 4, 7, "d") == BrokerRegistrationResponse(7, ErrorCode.NONE, offset)
    assert broker_image(controller, 4) == BrokerImage(BrokerId(4), offset, 7, RackId("d"), "h", 9, True, False)
    before = controller.image
    assert registration(controller, 4, 7, "d") == BrokerRegistrationResponse(7, ErrorCode.NONE, offset), "again"
    assert registration(controller, 4, 6, "d") == BrokerRegistrationResponse(
        6, ErrorCode.DUPLICATE_BROKER_REGISTRATION, NO_EPOCH
    )
    assert controller.image is before
    assert registration(controller, 4, 8, "e") == BrokerRegistrationResponse(8, ErrorCode.NONE, offset + 1)


def test_a_broker_without_the_rack_that_its_value_requires_is_refused_with_the_reason() -> None:
    controller = controller_with(RACKS, settings=ClusterSettings(min_insync_racks=2))
    before = controller.image
    assert registration(controller, 4, 7, None) == BrokerRegistrationResponse(
        7,
        ErrorCode.INVALID_REGISTRATION,
        NO_EPOCH,
        "min.insync.racks 2: this broker has no broker.rack; set it, or leave the value at 1",
    )
    assert controller.image is before


def test_a_fenced_broker_is_unfenced_once_it_has_applied_its_registration_and_wants_to_be() -> None:
    controller = controller_with(RACKS)
    epoch = registration(controller, 4, 7).broker_epoch
    assert heartbeat(controller, 4, epoch) == response_of(controller, 4, fenced=True)
    assert heartbeat(controller, 4, epoch + 1, want_fence=True) == response_of(controller, 4, fenced=True)
    assert heartbeat(controller, 4, epoch + 1) == response_of(controller, 4, fenced=False)
    before = controller.image
    assert heartbeat(controller, 4, epoch + 1) == response_of(controller, 4, fenced=False)
    assert controller.image is before, "nothing changes by a heartbeat alone"


@pytest.mark.parametrize(("number", "epoch"), [(9, 0), (1, 77)])
def test_a_heartbeat_of_no_registration_or_another_one_is_stale(number: int, epoch: int) -> None:
    controller = controller_with(RACKS)
    effects = controller.on_message(0, number, BrokerHeartbeat(BrokerId(number), epoch, 5))
    assert sent(effects) == [BrokerHeartbeatResponse(epoch, ErrorCode.STALE_BROKER_EPOCH, False, False)]


@pytest.mark.parametrize(("racks", "warned"), [({1: "a", 2: "a"}, True), ({1: "a", 2: "b"}, False)])
def test_a_broker_that_begins_to_serve_is_warned_once_a_start_of_a_value_above_the_racks(
    racks: dict[int, str | None], warned: bool
) -> None:
    controller = controller_with({}, settings=ClusterSettings(min_insync_racks=2))
    for number, rack in racks.items():
        register(controller, number, rack, fenced=True)
    epoch = broker_image(controller, 2).broker_epoch
    unfence = BrokerHeartbeat(BrokerId(2), epoch, epoch + 1)
    line = "broker 2: min.insync.racks 2: the cluster has 1 rack; acks=all is refused until it has more"
    assert warnings(controller.on_message(0, 2, unfence)) == [line] * warned
    controller.fence(0, BrokerId(2))
    assert warnings(controller.on_message(0, 2, unfence)) == []


def test_a_session_ends_after_its_timeout_without_a_heartbeat_and_not_at_it() -> None:
    controller = controller_with(RACKS, [1, 2], settings=ClusterSettings(session_timeout_ms=SESSION_MS))
    heartbeat(controller, 2, 99, now=1)
    heartbeat(controller, 3, 99, now=5)
    controller.on_tick(SESSION_MS)
    assert [broker_image(controller, one).fenced for one in (1, 2, 3)] == [False, False, False]
    controller.on_tick(SESSION_MS + 1)
    assert [broker_image(controller, one).fenced for one in (1, 2, 3)] == [True, False, False]
    assert (state_of(controller).leader, state_of(controller).isr) == (2, ids(2))
    before = controller.image
    controller.on_tick(SESSION_MS + 1)
    assert controller.image is before, "a fenced broker is not fenced again"


def test_a_broker_that_is_fenced_or_unknown_cannot_be_fenced() -> None:
    controller = controller_with(RACKS)
    controller.fence(0, BrokerId(1))
    before = controller.image
    controller.fence(0, BrokerId(1))
    controller.fence(0, BrokerId(9))
    assert controller.image is before


def test_a_shutdown_ends_once_every_unfenced_broker_has_applied_that_it_leads_nothing() -> None:
    controller = controller_with({**RACKS, 4: "d"}, [1, 2, 3], [2, 1, 3])
    controller.fence(0, BrokerId(4))
    assert heartbeat(controller, 1, 0, want_shut_down=True) == response_of(controller, 1, fenced=False)
    assert (state_of(controller).leader, state_of(controller).isr) == (2, ids(2, 3))
    image = broker_image(controller, 1)
    assert (image.fenced, image.in_controlled_shutdown) == (False, True)
    begun = controller.image.offset
    for number in (1, 2):
        heartbeat(controller, number, begun, want_shut_down=number == 1)
    heartbeat(controller, 3, begun - 1)
    assert heartbeat(controller, 1, begun, want_shut_down=True) == response_of(controller, 1, fenced=False)
    assert controller.image.offset == begun, "it begins once"
    heartbeat(controller, 3, begun)
    heartbeat(controller, 3, 0)
    assert heartbeat(controller, 1, begun, want_shut_down=True) == response_of(controller, 1, fenced=True, end=True)
    assert (broker_image(controller, 1).fenced, broker_image(controller, 1).in_controlled_shutdown) == (True, True)
    assert heartbeat(controller, 1, begun, want_shut_down=True).should_shut_down, "a response that was lost is repeated"


def test_only_a_heartbeat_that_wants_to_shut_down_may_end_the_broker() -> None:
    controller = controller_with({1: "a"})
    heartbeat(controller, 1, 0, want_shut_down=True)
    assert heartbeat(controller, 1, controller.image.offset) == response_of(controller, 1, fenced=False)


def test_an_unregistered_broker_has_left_every_isr_and_has_no_session() -> None:
    controller = controller_with(RACKS, [1, 2])
    request = UnregisterBroker(1, BrokerId(1))
    assert responses(controller, request) == (AdminResponse(BrokerId(1), ErrorCode.NONE),)
    assert BrokerId(1) not in controller.image.brokers
    assert BrokerId(1) not in context_of(controller).sessions
    assert (state_of(controller).leader, state_of(controller).isr, state_of(controller).replicas) == (
        2,
        ids(2),
        ids(1, 2),
    )
    assert responses(controller, request) == (
        AdminResponse(BrokerId(1), ErrorCode.BROKER_ID_NOT_REGISTERED, "Broker 1 not found"),
    )
    assert controller.on_message(0, CLIENT, BrokerRegistrationResponse(1, ErrorCode.NONE, 1)) == []
