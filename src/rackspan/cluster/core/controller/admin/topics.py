"""CreateTopics and DeleteTopics."""

from collections import Counter
from uuid import UUID

from rackspan.acks.config import judge_topic_config
from rackspan.cluster.core.admin_messages import (
    AdminResponse,
    CreateTopicResponse,
    CreateTopics,
    DeleteTopics,
    NewTopic,
)
from rackspan.cluster.core.configs import TOPIC_CONFIGS, topic_resource
from rackspan.cluster.core.controller.admin.new_assignments import assignment_complaint, first_state, placed
from rackspan.cluster.core.controller.context import ControllerContext
from rackspan.cluster.core.controller.refusals import Refused, not_replicated, placement_refusals
from rackspan.cluster.core.messages import Effect, Respond
from rackspan.cluster.core.metadata import ConfigSet, PartitionSet, PartitionState, Record, TopicCreated, TopicDeleted
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model import MIN_INSYNC_RACKS, TOPIC_NAME_RULE, BrokerId, TopicPartition

_Assignments = tuple[tuple[BrokerId, ...], ...]


def create_topics(context: ControllerContext, _now: int, message: CreateTopics) -> list[Effect]:
    """Create each topic, or respond with its error. A refused topic does not stop the others."""
    count = Counter(topic.name for topic in message.topics)
    # One response a name: a name that is there twice is refused once.
    topics = {topic.name: topic for topic in message.topics}
    responses = tuple(
        _refused(topic, ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
        if count[name] > 1
        else _create(context, topic, message)
        for name, topic in topics.items()
    )
    return [Respond(message.correlation_id, responses)]


def _create(context: ControllerContext, topic: NewTopic, message: CreateTopics) -> CreateTopicResponse:
    try:
        _check_name(context, topic.name)
        warnings = _check_configs(context, topic)
        assignments = _assignments(context, topic, message.automatic)
        states = [_first_state(context, topic, replicas) for replicas in assignments]
    except Refused as refused:
        return _refused(topic, refused.error, refused.message)
    topic_id = UUID(int=context.rng.getrandbits(128), version=4)
    if not message.validate_only:
        context.write_all(_records(topic, topic_id, states))
        context.warnings.extend(f"topic {topic.name}: {warning}" for warning in warnings)
    return CreateTopicResponse(
        topic.name, ErrorCode.NONE, None, topic_id, len(assignments), len(assignments[0]), tuple(warnings)
    )


def _refused(topic: NewTopic, error: ErrorCode, message: str) -> CreateTopicResponse:
    return CreateTopicResponse(topic.name, error, message)


def _records(topic: NewTopic, topic_id: UUID, states: list[PartitionState]) -> list[Record]:
    resource = topic_resource(topic.name)
    configs = [ConfigSet(resource, key, value) for key, value in topic.configs.items() if value is not None]
    partitions = [PartitionSet(TopicPartition(topic.name, index), state) for index, state in enumerate(states)]
    return [TopicCreated(topic.name, topic_id), *configs, *partitions]


def _check_name(context: ControllerContext, name: str) -> None:
    if not TOPIC_NAME_RULE.fullmatch(name):
        raise Refused(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"Topic name is invalid: '{name}' is not 1 to 249 of the characters a-z, A-Z, 0-9, '.', '_' and '-'",
        )
    if name in context.image.topics:
        raise Refused(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    _check_collision(context, name)


def _check_collision(context: ControllerContext, name: str) -> None:
    """Refuse a name that differs from another only in dots and underscores: in metric names they are the same."""
    if "." not in name and "_" not in name:
        return
    same = (other for other in context.image.topics if other.replace(".", "_") == name.replace(".", "_"))
    for other in same:
        raise Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic '{name}' collides with existing topic: {other}")


def _check_configs(context: ControllerContext, topic: NewTopic) -> list[str]:
    """Check the configs; the warnings about accepted values."""
    warnings: list[str] = []
    for key, value in topic.configs.items():
        definition = TOPIC_CONFIGS.get(key)
        if definition is None:
            raise Refused(ErrorCode.INVALID_CONFIG, f"Unknown topic config name: {key}")
        complaint = None if value is None else definition.complaint(value)
        if key == MIN_INSYNC_RACKS and value is not None:
            verdict = judge_topic_config(value, context.image.model_brokers())
            complaint, warnings = verdict.error, [*warnings, *verdict.warnings]
        if complaint is not None:
            raise Refused(ErrorCode.INVALID_CONFIG, complaint)
    return warnings


def _assignments(context: ControllerContext, topic: NewTopic, automatic: bool) -> _Assignments:
    if topic.assignments:
        return _manual(context, topic)
    partitions = context.settings.num_partitions if topic.partitions == -1 else topic.partitions
    factor = context.settings.default_replication_factor if topic.replication_factor == -1 else topic.replication_factor
    if partitions <= 0:
        raise Refused(ErrorCode.INVALID_PARTITIONS, "Number of partitions must be larger than 0.")
    if factor <= 0:
        raise Refused(ErrorCode.INVALID_REPLICATION_FACTOR, "Replication factor must be larger than 0.")
    with placement_refusals(factor):
        return placed(context, 0, partitions, factor, automatic)


def _manual(context: ControllerContext, topic: NewTopic) -> _Assignments:
    if topic.partitions != -1 or topic.replication_factor != -1:
        raise Refused(
            ErrorCode.INVALID_REQUEST,
            "A manual partition assignment was specified, but numPartitions or replicationFactor was not set to -1.",
        )
    if sorted(topic.assignments) != list(range(len(topic.assignments))):
        raise Refused(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, "partitions should be a consecutive 0-based integer sequence"
        )
    assignments = tuple(topic.assignments[index] for index in range(len(topic.assignments)))
    complaint = assignment_complaint(context, assignments)
    if complaint is not None:
        raise Refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, complaint)
    return assignments


def _first_state(context: ControllerContext, topic: NewTopic, replicas: tuple[BrokerId, ...]) -> PartitionState:
    state = first_state(context, replicas)
    if state is None and not topic.assignments:
        raise not_replicated(len(replicas), "All brokers are currently fenced or in controlled shutdown.")
    if state is None:
        raise Refused(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"All brokers specified in the manual partition assignment {list(replicas)} are fenced or in controlled shutdown.",
        )
    return state


def delete_topics(context: ControllerContext, _now: int, message: DeleteTopics) -> list[Effect]:
    return [Respond(message.correlation_id, tuple(_delete(context, topic) for topic in message.topics))]


def _delete(context: ControllerContext, requested: str | UUID) -> AdminResponse:
    name = requested if isinstance(requested, str) else context.image.topic_names.get(requested)
    topic = None if name is None else context.image.topics.get(name)
    if topic is None:
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if isinstance(requested, str) else ErrorCode.UNKNOWN_TOPIC_ID
        return AdminResponse(requested, unknown, "This server does not host this topic-partition.")
    context.write(TopicDeleted(topic.name, topic.topic_id))
    return CreateTopicResponse(topic.name, ErrorCode.NONE, topic_id=topic.topic_id)
