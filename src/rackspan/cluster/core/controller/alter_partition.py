"""AlterPartition: a leader requests a change of the ISR (KIP-497, KIP-841, KIP-903)."""

from rackspan.cluster.core.controller.context import ControllerContext
from rackspan.cluster.core.controller.partition_change import PartitionChange
from rackspan.cluster.core.ids import NodeId
from rackspan.cluster.core.messages import (
    AlterPartition,
    AlterPartitionResponse,
    Effect,
    IsrChange,
    IsrChangeResponse,
    Send,
)
from rackspan.cluster.core.metadata import PartitionState
from rackspan.kafka_bytes.error_codes import ErrorCode


def alter_partition(context: ControllerContext, _now: int, source: NodeId, message: AlterPartition) -> list[Effect]:
    """Commit what may be committed. An attempt that is not newer than the last is dropped without a response."""
    session = context.sessions.get(message.broker)
    registered = context.image.brokers.get(message.broker)
    if session is None or registered is None or registered.broker_epoch != message.broker_epoch:
        stale = AlterPartitionResponse(message.broker_epoch, message.attempt, ErrorCode.STALE_BROKER_EPOCH)
        return [Send(source, stale)]
    if not context.rules.is_new_attempt(session.last_attempt, message):
        return []
    session.last_attempt = message.attempt
    responses = tuple(_alter_one(context, message, change) for change in message.changes)
    version = context.image.thresholds_version
    return [
        Send(source, AlterPartitionResponse(message.broker_epoch, message.attempt, ErrorCode.NONE, version, responses))
    ]


def _alter_one(context: ControllerContext, message: AlterPartition, change: IsrChange) -> IsrChangeResponse:
    topic = context.image.topics.get(change.partition.topic)
    state = context.image.partition(change.partition)
    if topic is None or state is None or topic.topic_id != change.topic_id:
        return IsrChangeResponse(change.partition, ErrorCode.UNKNOWN_TOPIC_ID)
    error = _error(context, message, change, state)
    if error is not ErrorCode.NONE:
        return IsrChangeResponse(change.partition, error)
    return _commit(context, change, state)


def _error(context: ControllerContext, message: AlterPartition, change: IsrChange, state: PartitionState) -> ErrorCode:
    members = [member for member, _ in change.isr]
    if change.leader_epoch != state.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH if change.leader_epoch < state.leader_epoch else ErrorCode.NOT_CONTROLLER
    if state.leader != message.broker or not set(members) <= set(state.replicas) or message.broker not in members:
        return ErrorCode.INVALID_REQUEST
    if not context.rules.is_current(state, change):
        return ErrorCode.INVALID_UPDATE_VERSION
    if not all(context.rules.may_join(context.image, member, epoch) for member, epoch in change.isr):
        return ErrorCode.INELIGIBLE_REPLICA
    return ErrorCode.NONE


def _commit(context: ControllerContext, change: IsrChange, state: PartitionState) -> IsrChangeResponse:
    isr = tuple(member for member, _ in change.isr)
    record = context.change(
        change.partition, state, PartitionChange(isr=isr), context.conditions(change.partition.topic)
    )
    after = state if record is None else record.state
    if record is not None:
        context.write(record)
    error = ErrorCode.NONE if after.leader_epoch == state.leader_epoch else ErrorCode.NEW_LEADER_ELECTED
    return IsrChangeResponse(change.partition, error, after.leader_epoch, after.partition_epoch, after.isr)
