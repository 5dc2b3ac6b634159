"""Registrations of brokers: heartbeats, sessions, fencing, controlled shutdown.

A broker's epoch is the offset of its registration in the metadata. It is fenced until it has applied that registration,
when its session runs out, and when it has shut down.
"""

from rackspan.acks.config import SetAt
from rackspan.cluster.core.admin_messages import AdminResponse, UnregisterBroker
from rackspan.cluster.core.controller.context import ControllerContext, Session, judge_min_insync_racks
from rackspan.cluster.core.controller.elections import elect_where_leaderless, leave_isr
from rackspan.cluster.core.ids import NO_EPOCH, NodeId
from rackspan.cluster.core.messages import (
    BrokerHeartbeat,
    BrokerHeartbeatResponse,
    BrokerRegistration,
    BrokerRegistrationResponse,
    Effect,
    Respond,
    Send,
)
from rackspan.cluster.core.metadata import BrokerChanged, BrokerImage, BrokerRegistered, BrokerUnregistered
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import BrokerId


def register(context: ControllerContext, now: int, source: NodeId, message: BrokerRegistration) -> list[Effect]:
    """Register a broker that has started, or repeat a response that was lost."""
    before = context.image.brokers.get(message.broker)
    if before is not None and before.incarnation == message.incarnation:
        return [Send(source, BrokerRegistrationResponse(message.incarnation, ErrorCode.NONE, before.broker_epoch))]
    if before is not None and _is_older(before, message):
        return [
            Send(
                source,
                BrokerRegistrationResponse(message.incarnation, ErrorCode.DUPLICATE_BROKER_REGISTRATION, NO_EPOCH),
            )
        ]
    verdict = judge_min_insync_racks(context, context.image, SetAt.BROKER_START, message.broker, message.rack)
    if verdict.error is not None:
        return [
            Send(
                source,
                BrokerRegistrationResponse(
                    message.incarnation, ErrorCode.INVALID_REGISTRATION, NO_EPOCH, verdict.error
                ),
            )
        ]
    _replace_registration(context, now, before, message)
    epoch = context.image.brokers[message.broker].broker_epoch
    return [Send(source, BrokerRegistrationResponse(message.incarnation, ErrorCode.NONE, epoch))]


def _is_older(before: BrokerImage, message: BrokerRegistration) -> bool:
    """Whether the registration is of an older process of the broker: a delayed one must not replace a newer."""
    return message.incarnation < before.incarnation


def _replace_registration(
    context: ControllerContext, now: int, before: BrokerImage | None, message: BrokerRegistration
) -> None:
    """Fence first, then leave every ISR, then register.

    In another order a broker whose session has run out, but which is not fenced yet, would be elected again in the same
    epoch and without the state of its old process.
    """
    if before is not None:
        _fence(context, before, in_controlled_shutdown=before.in_controlled_shutdown)
        leave_isr(context, message.broker, uncleanly=not context.rules.shut_down_cleanly(before, message))
    epoch = context.image.offset
    context.write(
        BrokerRegistered(message.broker, epoch, message.incarnation, message.rack, message.host, message.port)
    )
    context.sessions[message.broker] = Session(epoch, now)


def heartbeat(context: ControllerContext, now: int, source: NodeId, message: BrokerHeartbeat) -> list[Effect]:
    """Keep the session. Unfence a broker that has caught up with the metadata; begin or end its controlled shutdown."""
    registered = context.image.brokers.get(message.broker)
    session = context.sessions.get(message.broker)
    if registered is None or session is None or registered.broker_epoch != message.broker_epoch:
        return [Send(source, BrokerHeartbeatResponse(message.broker_epoch, ErrorCode.STALE_BROKER_EPOCH))]
    session.last_heartbeat_ms = now
    session.metadata_offset = max(session.metadata_offset, message.metadata_offset)
    if message.want_shut_down:
        _begin_shutdown(context, registered, session)
    elif registered.fenced and not message.want_fence and message.metadata_offset > registered.broker_epoch:
        _unfence(context, registered)
    return [Send(source, _heartbeat_response(context, message, session))]


def _heartbeat_response(
    context: ControllerContext, message: BrokerHeartbeat, session: Session
) -> BrokerHeartbeatResponse:
    registered = context.image.brokers[message.broker]
    may_end = message.want_shut_down and _all_have_applied_shutdown(context, session)
    if may_end and not registered.fenced:
        _fence(context, registered, in_controlled_shutdown=True)
    return BrokerHeartbeatResponse(message.broker_epoch, ErrorCode.NONE, registered.fenced or may_end, may_end)


def _begin_shutdown(context: ControllerContext, broker: BrokerImage, session: Session) -> None:
    if session.shutting_down_since is not None:
        return
    context.write(BrokerChanged(broker.id, broker.broker_epoch, broker.fenced, in_controlled_shutdown=True))
    leave_isr(context, broker.id, uncleanly=False)
    session.shutting_down_since = context.image.offset


def _all_have_applied_shutdown(context: ControllerContext, session: Session) -> bool:
    """Whether every unfenced broker has applied that this one leads nothing."""
    since = session.shutting_down_since
    unfenced = [other for other, image in context.image.brokers.items() if not image.fenced]
    return since is not None and all(
        context.sessions[other].metadata_offset >= since for other in unfenced if other in context.sessions
    )


def _unfence(context: ControllerContext, broker: BrokerImage) -> None:
    context.write(BrokerChanged(broker.id, broker.broker_epoch, fenced=False, in_controlled_shutdown=False))
    elect_where_leaderless(context, broker.id)
    _warn_of_racks(context, broker)


def _warn_of_racks(context: ControllerContext, broker: BrokerImage) -> None:
    """Once per start, and when the broker begins to serve: brokers that start together are all registered by then."""
    session = context.sessions[broker.id]
    if not session.warned_of_racks:
        session.warned_of_racks = True
        verdict = judge_min_insync_racks(context, context.image, SetAt.BROKER_START, broker.id, broker.rack)
        context.warnings.extend(f"broker {broker.id}: {warning}" for warning in verdict.warnings)


def _fence(context: ControllerContext, broker: BrokerImage, in_controlled_shutdown: bool) -> None:
    if not broker.fenced:
        context.write(BrokerChanged(broker.id, broker.broker_epoch, True, in_controlled_shutdown))


def fence(context: ControllerContext, broker: BrokerId) -> None:
    """Fence a broker at once, as when its session runs out."""
    registered = context.image.brokers.get(broker)
    if registered is None or registered.fenced:
        return
    _fence(context, registered, registered.in_controlled_shutdown)
    leave_isr(context, broker, uncleanly=False)


def fence_expired(context: ControllerContext, now: int) -> None:
    """Fence brokers without a heartbeat for the time of a session."""
    limit = now - context.settings.session_timeout_ms
    for broker, session in list(context.sessions.items()):
        if session.last_heartbeat_ms < limit:
            fence(context, broker)


def unregister(context: ControllerContext, _now: int, message: UnregisterBroker) -> list[Effect]:
    """Remove the registration of a broker that is gone for good (KIP-185). Its replicas stay where they are."""
    registered = context.image.brokers.get(message.broker)
    if registered is None:
        response = AdminResponse(
            message.broker, ErrorCode.BROKER_ID_NOT_REGISTERED, f"Broker {message.broker} not found"
        )
    else:
        fence(context, message.broker)
        context.write(BrokerUnregistered(message.broker, registered.broker_epoch))
        context.sessions.pop(message.broker, None)
        response = AdminResponse(message.broker, ErrorCode.NONE)
    return [Respond(message.correlation_id, (response,))]
