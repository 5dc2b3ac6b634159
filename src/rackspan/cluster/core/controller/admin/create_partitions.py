"""CreatePartitions: raises a topic's number of partitions."""

from rackspan.cluster.core.admin_messages import AdminResponse, CreatePartitions, MorePartitions
from rackspan.cluster.core.controller.admin.new_assignments import assignment_complaint, first_state, placed
from rackspan.cluster.core.controller.context import ControllerContext
from rackspan.cluster.core.controller.refusals import Refused, placement_refusals
from rackspan.cluster.core.messages import Effect, Respond
from rackspan.cluster.core.metadata import PartitionSet, TopicImage
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import BrokerId, TopicPartition


def create_partitions(context: ControllerContext, _now: int, message: CreatePartitions) -> list[Effect]:
    return [
        Respond(message.correlation_id, tuple(_grow(context, topic, message.validate_only) for topic in message.topics))
    ]


def _grow(context: ControllerContext, requested: MorePartitions, validate_only: bool) -> AdminResponse:
    try:
        topic = _topic(context, requested)
        records = _records(context, topic, _assignments(context, topic, requested))
    except Refused as refused:
        return AdminResponse(requested.topic, refused.error, refused.message)
    if not validate_only:
        context.write_all(records)
    return AdminResponse(requested.topic, ErrorCode.NONE)


def _topic(context: ControllerContext, requested: MorePartitions) -> TopicImage:
    topic = context.image.topics.get(requested.topic)
    if topic is None:
        raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.")
    now = len(topic.partitions)
    if any(state.reassigning for state in topic.partitions):
        raise Refused(ErrorCode.REASSIGNMENT_IN_PROGRESS, f"A partition of {requested.topic} is being reassigned.")
    if requested.total <= now:
        fewer = (
            f"The topic {requested.topic} currently has {now} partition(s); {requested.total} would not be an increase."
        )
        same = f"Topic already has {now} partition(s)."
        raise Refused(ErrorCode.INVALID_PARTITIONS, same if requested.total == now else fewer)
    return topic


def _assignments(
    context: ControllerContext, topic: TopicImage, requested: MorePartitions
) -> tuple[tuple[BrokerId, ...], ...]:
    new = requested.total - len(topic.partitions)
    factor = len(topic.partitions[0].replicas)
    if requested.assignments is None:
        with placement_refusals(factor):
            return placed(context, len(topic.partitions), new, factor, automatic=False)
    complaint = assignment_complaint(context, requested.assignments)
    if len(requested.assignments) != new:
        complaint = f"Attempted to add {new} additional partition(s), but only {len(requested.assignments)} assignment(s) were specified."
    elif complaint is None and len(requested.assignments[0]) != factor:
        complaint = f"The manual partition assignment has {len(requested.assignments[0])} replica(s) where the topic has {factor}."
    if complaint is not None:
        raise Refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, complaint)
    return requested.assignments


def _records(
    context: ControllerContext, topic: TopicImage, assignments: tuple[tuple[BrokerId, ...], ...]
) -> list[PartitionSet]:
    records: list[PartitionSet] = []
    for index, replicas in enumerate(assignments, len(topic.partitions)):
        state = first_state(context, replicas)
        if state is None:
            raise Refused(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"All brokers of the assignment {list(replicas)} are fenced or in controlled shutdown.",
            )
        records.append(PartitionSet(TopicPartition(topic.name, index), state))
    return records
