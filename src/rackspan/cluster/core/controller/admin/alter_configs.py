"""IncrementalAlterConfigs and AlterConfigs: validated whole, then written, one resource after the other.

A changed threshold may change the ELR: it is computed again by the new value, in the same write, before
any leader can count by it.
"""

from collections import Counter
from collections.abc import Container, Iterable
from typing import Final

from rackspan.acks.config import ConfigVerdict, SetAt, judge_topic_config
from rackspan.cluster.core.admin_messages import AlterConfigResponse, AlterConfigs, AlterResource, ConfigOp
from rackspan.cluster.core.configs import (
    BROKER_CONFIGS,
    DEFAULT_BROKER,
    GROUP_CONFIGS,
    TOPIC_CONFIGS,
    ConfigDefinition,
    ConfigType,
    broker_resource,
)
from rackspan.cluster.core.controller.context import ControllerContext, judge_min_insync_racks
from rackspan.cluster.core.controller.partition_change import PartitionChange
from rackspan.cluster.core.controller.refusals import Refused
from rackspan.cluster.core.messages import Effect, Respond
from rackspan.cluster.core.metadata import THRESHOLD_KEYS, ConfigResource, ConfigSet, apply_records
from rackspan.kafka_bytes.config_resources import ConfigResourceType
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.topic import MIN_INSYNC_RACKS

SET, DELETE, APPEND, SUBTRACT = range(4)

THROTTLES: Final = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
NOT_THROTTLED: Final = "replication throttles are kept and described; this cluster delays no replication"


def alter_configs(context: ControllerContext, _now: int, message: AlterConfigs) -> list[Effect]:
    named = Counter((resource.resource_type, resource.name) for resource in message.resources)
    repeated = {resource for resource, count in named.items() if count > 1}
    responses = (_alter(context, resource, message, repeated) for resource in message.resources)
    return [Respond(message.correlation_id, tuple(responses))]


def _alter(
    context: ControllerContext, alteration: AlterResource, message: AlterConfigs, repeated: Container[tuple[int, str]]
) -> AlterConfigResponse:
    try:
        if (alteration.resource_type, alteration.name) in repeated:
            raise Refused(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
        resource = _resource(context, alteration)
        values, warnings = _values(context, resource, alteration.ops)
        if message.replace:
            values = dict.fromkeys(context.image.config_of(resource)) | values
        if resource.type is ConfigResourceType.BROKER and MIN_INSYNC_RACKS in values:
            warnings.extend(_rack_warnings(context, resource, values[MIN_INSYNC_RACKS]))
    except Refused as refused:
        return AlterConfigResponse(alteration, refused.error, refused.message)
    if not message.validate_only:
        _write(context, resource, values)
        if any(values.get(key) is not None for key in THROTTLES):
            context.warn_once(NOT_THROTTLED)
        context.warnings.extend(warnings)
    return AlterConfigResponse(alteration, ErrorCode.NONE, None, tuple(warnings))


def _write(context: ControllerContext, resource: ConfigResource, values: dict[str, str | None]) -> None:
    before = context.image.config_of(resource)
    changed = {key: value for key, value in values.items() if before.get(key) != value}
    context.write_all(ConfigSet(resource, key, value) for key, value in changed.items())
    if THRESHOLD_KEYS & set(changed):
        _update_elrs(context)


def _update_elrs(context: ControllerContext) -> None:
    """Compute each ELR again. An empty ISR meets no threshold and keeps its ELR, or no replica could ever lead."""
    records = [
        context.change(partition, state, PartitionChange(), context.conditions(partition.topic))
        for partition, state in context.partitions()
        if state.elr
    ]
    context.write_all(record for record in records if record is not None)


def _resource(context: ControllerContext, alteration: AlterResource) -> ConfigResource:
    if alteration.resource_type == ConfigResourceType.TOPIC:
        if alteration.name not in context.image.topics:
            raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{alteration.name}' does not exist.")
        return ConfigResource(ConfigResourceType.TOPIC, alteration.name)
    if alteration.resource_type == ConfigResourceType.BROKER:
        if alteration.name and not (alteration.name.isdecimal() and int(alteration.name) in context.image.brokers):
            raise Refused(ErrorCode.INVALID_REQUEST, f"No broker {alteration.name} is registered.")
        return ConfigResource(ConfigResourceType.BROKER, alteration.name)
    if alteration.resource_type == ConfigResourceType.GROUP:
        if not alteration.name:
            raise Refused(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")
        return ConfigResource(ConfigResourceType.GROUP, alteration.name)
    raise Refused(ErrorCode.INVALID_REQUEST, f"Unsupported resource type {alteration.resource_type}.")


def _values(
    context: ControllerContext, resource: ConfigResource, ops: Iterable[ConfigOp]
) -> tuple[dict[str, str | None], list[str]]:
    """The value of each key afterwards, None where it is deleted, and warnings about accepted values."""
    values: dict[str, str | None] = {}
    warnings: list[str] = []
    for op in ops:
        definition = _definition(resource, op.key)
        if op.key in values:
            raise Refused(ErrorCode.INVALID_REQUEST, f"Error due to duplicate config keys: {op.key}")
        value = values[op.key] = _new_value(context, resource, definition, op)
        if value is not None:
            warnings.extend(_warnings(context, resource, definition, value))
    return values, warnings


def _definition(resource: ConfigResource, key: str) -> ConfigDefinition:
    if resource.type is ConfigResourceType.TOPIC:
        if key not in TOPIC_CONFIGS:
            raise Refused(ErrorCode.INVALID_CONFIG, f"Unknown topic config name: {key}")
        return TOPIC_CONFIGS[key]
    if resource.type is ConfigResourceType.GROUP:
        if key not in GROUP_CONFIGS:
            raise Refused(ErrorCode.INVALID_CONFIG, f"Unknown group config name: {key}")
        return GROUP_CONFIGS[key]
    definition = BROKER_CONFIGS.get(key)
    if definition is None or definition.read_only:
        raise Refused(ErrorCode.INVALID_REQUEST, f"Cannot update these configs dynamically: {key}")
    if definition.per_broker and resource == DEFAULT_BROKER:
        raise Refused(
            ErrorCode.INVALID_REQUEST,
            f"Cannot update these configs at default cluster level, per-broker configs must be specified: {key}",
        )
    return definition


def _new_value(
    context: ControllerContext, resource: ConfigResource, definition: ConfigDefinition, op: ConfigOp
) -> str | None:
    if op.op == DELETE:
        return None
    if op.value is None:
        raise Refused(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {op.key}")
    if op.op == SET:
        return op.value
    if op.op not in (APPEND, SUBTRACT) or definition.type is not ConfigType.LIST:
        raise Refused(ErrorCode.INVALID_CONFIG, f"Can't {_OP_WORDS.get(op.op, 'alter')} to key {op.key}: it is no list")
    before = context.image.config_of(resource).get(op.key, definition.default) or ""
    return _items_after(before, op)


_OP_WORDS = {APPEND: "append", SUBTRACT: "subtract"}


def _items_after(before: str, op: ConfigOp) -> str:
    """The list after an APPEND or SUBTRACT.

    Blanks count here: Kafka's ConfigurationControlManager compares items as they are written, unlike its ConfigDef
    (`parse_config_list`).
    """
    items = [item for item in before.split(",") if item]
    given = [item for item in (op.value or "").split(",") if item]
    if op.op == APPEND:
        return ",".join(dict.fromkeys([*items, *given]))
    return ",".join(item for item in items if item not in given)


def _warnings(
    context: ControllerContext, resource: ConfigResource, definition: ConfigDefinition, value: str
) -> tuple[str, ...]:
    """The warnings about a value. Errors: Refused with INVALID_CONFIG; then no config of the resource changes."""
    if definition.key == MIN_INSYNC_RACKS and resource.type is ConfigResourceType.TOPIC:
        return _accepted([judge_topic_config(value, context.image.model_brokers())])
    complaint = definition.complaint(value)
    if complaint is not None:
        raise Refused(ErrorCode.INVALID_CONFIG, complaint)
    return ()


def _rack_warnings(context: ControllerContext, resource: ConfigResource, value: str | None) -> tuple[str, ...]:
    """Whether each broker may run by the value that then applies to it, also if that is another's because this is deleted."""
    after = apply_records(context.image, [ConfigSet(resource, MIN_INSYNC_RACKS, value)])
    return _accepted(
        judge_min_insync_racks(context, after, SetAt.BROKER_DYNAMIC, broker.id, broker.rack)
        for broker in after.model_brokers()
        if resource in (DEFAULT_BROKER, broker_resource(broker.id))
    )


def _accepted(verdicts: Iterable[ConfigVerdict]) -> tuple[str, ...]:
    """The warnings, each once. Errors: Refused with the first verdict that is no acceptance."""
    judged = tuple(verdicts)
    error = next((verdict.error for verdict in judged if verdict.error), None)
    if error is not None:
        raise Refused(ErrorCode.INVALID_CONFIG, error)
    return tuple(dict.fromkeys(warning for verdict in judged for warning in verdict.warnings))
