"""A broker's session with the controller, message by message."""

import pytest

from rackspan.cluster.core.broker.lifecycle import BrokerIdentity, Lifecycle, Phase
from rackspan.cluster.core.ids import NO_EPOCH
from rackspan.cluster.core.messages import (
    BrokerHeartbeat,
    BrokerHeartbeatResponse,
    BrokerRegistration,
    BrokerRegistrationResponse,
)
from rackspan.cluster.core.settings import ClusterSettings
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import BrokerId, RackId

ME = BrokerIdentity(BrokerId(1), incarnation=4, rack=RackId("a"), host="h", port=9)
SETTINGS = ClusterSettings()


def registered(broker_epoch: int = 70) -> Lifecycle:
    one = Lifecycle(ME, previous_broker_epoch=60)
    list(one.due(0, 5, SETTINGS))
    assert one.registered(BrokerRegistrationResponse(4, ErrorCode.NONE, broker_epoch))
    return one


def heartbeat(one: Lifecycle, **fields: object) -> bool:
    values: dict[str, object] = {
        "broker_epoch": 70,
        "error": ErrorCode.NONE,
        "fenced": False,
        "should_shut_down": False,
    }
    return one.heartbeat_response(BrokerHeartbeatResponse(**(values | fields)))  # type: ignore[arg-type]


def test_a_broker_registers_again_until_it_gets_a_response() -> None:
    one = Lifecycle(ME, previous_broker_epoch=60)
    wanted = [BrokerRegistration(BrokerId(1), 4, RackId("a"), "h", 9, 60)]
    assert list(one.due(0, 5, SETTINGS)) == wanted
    assert list(one.due(SETTINGS.registration_retry_ms - 1, 5, SETTINGS)) == []
    assert list(one.due(SETTINGS.registration_retry_ms, 5, SETTINGS)) == wanted


def test_a_registered_broker_sends_a_heartbeat_at_once_and_then_at_its_interval() -> None:
    one = registered()
    assert (one.phase, one.broker_epoch, one.fenced) == (Phase.RUNNING, 70, True)
    assert list(one.due(0, 8, SETTINGS)) == [BrokerHeartbeat(BrokerId(1), 70, 8, want_shut_down=False)]
    assert list(one.due(SETTINGS.heartbeat_interval_ms - 1, 8, SETTINGS)) == []
    assert len(list(one.due(SETTINGS.heartbeat_interval_ms, 8, SETTINGS))) == 1


def test_a_registration_of_another_process_or_a_second_time_is_not_taken() -> None:
    one = Lifecycle(ME, previous_broker_epoch=60)
    assert not one.registered(BrokerRegistrationResponse(3, ErrorCode.NONE, 70))
    assert (one.phase, one.broker_epoch) == (Phase.REGISTERING, NO_EPOCH)
    again = registered()
    assert not again.registered(BrokerRegistrationResponse(4, ErrorCode.NONE, 71))
    assert again.broker_epoch == 70


def test_a_refused_broker_sends_nothing_more() -> None:
    one = Lifecycle(ME, previous_broker_epoch=60)
    assert not one.registered(BrokerRegistrationResponse(4, ErrorCode.INVALID_CONFIG, NO_EPOCH))
    assert (one.phase, list(one.due(99_000, 5, SETTINGS))) == (Phase.REFUSED, [])


def test_a_heartbeats_response_fences_and_unfences_this_process_alone() -> None:
    one = registered()
    assert not heartbeat(one, fenced=True)
    assert one.fenced
    heartbeat(one)
    assert not one.fenced
    heartbeat(one, fenced=True, broker_epoch=69)
    assert not one.fenced


def test_a_stale_epoch_makes_it_register_again_at_once() -> None:
    one = registered()
    list(one.due(0, 5, SETTINGS))
    assert not heartbeat(one, error=ErrorCode.STALE_BROKER_EPOCH)
    assert one.phase is Phase.REGISTERING
    assert [type(message) for message in one.due(0, 5, SETTINGS)] == [BrokerRegistration]


def test_a_controlled_shutdown_ends_when_the_controller_allows_it() -> None:
    one = registered()
    assert not heartbeat(one, should_shut_down=True), "nobody wants to shut down"
    list(one.due(0, 5, SETTINGS))
    one.shut_down()
    assert list(one.due(0, 5, SETTINGS)) == [BrokerHeartbeat(BrokerId(1), 70, 5, want_shut_down=True)]
    assert not heartbeat(one)
    assert one.phase is Phase.SHUTTING_DOWN
    assert heartbeat(one, should_shut_down=True)
    assert (one.phase, list(one.due(99_000, 5, SETTINGS))) == (Phase.STOPPED, [])


@pytest.mark.parametrize("phase", [Phase.REGISTERING, Phase.STOPPED, Phase.REFUSED])
def test_only_a_running_broker_begins_a_controlled_shutdown(phase: Phase) -> None:
    one = Lifecycle(ME, 60, phase=phase)
    one.shut_down()
    assert one.phase is phase
