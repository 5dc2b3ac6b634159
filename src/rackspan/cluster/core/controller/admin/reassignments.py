"""AlterPartitionReassignments (KIP-455): start, replace or cancel the move of a partition to other brokers.

A reassignment lists old and new replicas together; when all that stay are in sync, partition_change.py ends it.
Source: Kafka's ReplicationControlManager, PartitionReassignmentReplicas and PartitionReassignmentRevert.
"""

from rackspan.cluster.core.admin_messages import AdminResponse, AlterPartitionReassignments, ReassignablePartition
from rackspan.cluster.core.controller.admin.new_assignments import assignment_complaint
from rackspan.cluster.core.controller.context import ControllerContext
from rackspan.cluster.core.controller.partition_change import PartitionChange
from rackspan.cluster.core.controller.refusals import Refused
from rackspan.cluster.core.messages import Effect, Respond
from rackspan.cluster.core.metadata import PartitionState
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import BrokerId, TopicPartition


def alter_reassignments(context: ControllerContext, _now: int, message: AlterPartitionReassignments) -> list[Effect]:
    responses = tuple(
        _alter(context, requested, message.allow_replication_factor_change) for requested in message.reassignments
    )
    return [Respond(message.correlation_id, responses)]


def _alter(context: ControllerContext, requested: ReassignablePartition, factor_may_change: bool) -> AdminResponse:
    try:
        state = _state(context, requested.partition)
        if requested.replicas is None:
            change = _cancelled(state)
        else:
            _check(context, state, requested.replicas, factor_may_change)
            change = _started(state, requested.replicas)
    except Refused as refused:
        return AdminResponse(requested.partition, refused.error, refused.message)
    record = context.change(requested.partition, state, change, context.conditions(requested.partition.topic))
    if record is not None:
        context.write(record)
    return AdminResponse(requested.partition, ErrorCode.NONE)


def _state(context: ControllerContext, partition: TopicPartition) -> PartitionState:
    state = context.image.partition(partition)
    if state is None:
        raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The topic or partition does not exist.")
    return state


def _check(
    context: ControllerContext, state: PartitionState, replicas: tuple[BrokerId, ...], factor_may_change: bool
) -> None:
    complaint = assignment_complaint(context, (replicas,))
    if complaint is not None:
        raise Refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, complaint)
    before = len(original_replicas(state))
    if not factor_may_change and len(replicas) != before:
        raise Refused(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"The replication factor is changed from {before} to {len(replicas)}",
        )


def original_replicas(state: PartitionState) -> tuple[BrokerId, ...]:
    """The replicas before the reassignment began, those being removed last. Their old order is lost, as in Kafka."""
    return tuple(broker for broker in state.replicas if broker not in state.adding)


def _started(state: PartitionState, target: tuple[BrokerId, ...]) -> PartitionChange:
    """The target's replicas in their order, then the removed ones.

    One that replaces another removes what that one was adding at its end, not at once. Where it adds or removes nothing
    of the present replicas, the list of the one that it replaces stays: a removed replica that it names is removed all the same.
    """
    adding = tuple(sorted(set(target) - set(state.replicas)))
    removing = tuple(sorted(set(state.replicas) - set(target)))
    return PartitionChange(replicas=(*target, *removing), adding=adding or None, removing=removing or None)


def _cancelled(state: PartitionState) -> PartitionChange:
    if not state.reassigning:
        raise Refused(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "No partition reassignment is in progress.")
    original = original_replicas(state)
    isr = tuple(member for member in state.isr if member in original)
    if not isr:
        raise Refused(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "The reassignment cannot be cancelled: none of the original replicas is in sync.",
        )
    return PartitionChange(isr=isr, replicas=original, adding=(), removing=())
