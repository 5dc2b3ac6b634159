"""Reading a plan that is to be carried out: rackspan's own with its steps, or any reassignment file.

The file's `partitions` are what Kafka's tool would execute, so they and the steps must say the same.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from rackspan.errors import InvalidReassignment
from rackspan.plan.json_format import reassignment_object, reassignment_of, sound
from rackspan.plan.written import PartitionMove, TopicPartition, WrittenPlan, WrittenStep
from rackspan.reassign import ListedPartition

UNSTEPPED: Final = 1_000
"""Partitions in a step of a file that has no steps: in_steps' own cap, since sizes and risks are not known here."""

UNSTEPPED_REASON = "in the order of the file"


def read_plan(text: str | bytes) -> WrittenPlan:
    """Errors: InvalidReassignment, in the words of Kafka's tool where it has words."""
    return plan_of(reassignment_object(text))


def plan_of(top: dict[str, Any]) -> WrittenPlan:
    """The plan that a parsed file says. Errors: as read_plan."""
    listed = sound(reassignment_of(top)).partitions
    for entry in listed:
        _refuse_log_dirs(entry)
    steps = tuple(_steps(_list(top, "steps", "the plan"))) or tuple(_unstepped(listed))
    plan = WrittenPlan(_cluster_id(top), _topic_ids(top), steps)
    _refuse_other_steps(plan, {(entry.topic, entry.partition): entry.replicas for entry in listed})
    return plan


def plan_as_read(plan: WrittenPlan) -> dict[str, Any]:
    """The document that `read_plan` reads as this plan, undo included."""
    return {
        "partitions": [
            {"topic": move.topic, "partition": move.partition, "replicas": list(move.replicas)} for move in plan.moves()
        ],
        "cluster_id": plan.cluster_id,
        "topic_ids": dict(plan.topic_ids),
        "steps": [
            {"step": step.number, "reason": step.reason, "partitions": [_move_document(move) for move in step.moves]}
            for step in plan.steps
        ],
    }


def _move_document(move: PartitionMove) -> dict[str, Any]:
    return {
        "topic": move.topic,
        "partition": move.partition,
        "replicas": list(move.replicas),
        "undo": list(move.undo),
    }


def _refuse_log_dirs(entry: ListedPartition) -> None:
    named = [log_dir for log_dir in entry.log_dirs or () if log_dir != "any"]
    if named:
        raise InvalidReassignment(
            f'{entry.name}: log directory {named[0]} is named; rackspan moves between brokers alone, write "any"'
        )


def _unstepped(listed: Sequence[ListedPartition]) -> Iterator[WrittenStep]:
    moves = [PartitionMove(entry.topic, entry.partition, entry.replicas) for entry in listed]
    for number, start in enumerate(range(0, len(moves), UNSTEPPED), start=1):
        yield WrittenStep(number, UNSTEPPED_REASON, tuple(moves[start : start + UNSTEPPED]))


def _steps(items: Sequence[Any]) -> Iterator[WrittenStep]:
    for number, item in enumerate(items, start=1):
        where = f"step {number}"
        entries = _list(_object(item, where), "partitions", where)
        yield WrittenStep(number, str(item.get("reason", "")), tuple(_move(one, where) for one in entries))


def _move(item: object, where: str) -> PartitionMove:
    entry = _object(item, where)
    topic, partition, replicas = entry.get("topic"), entry.get("partition"), entry.get("replicas")
    undo = entry.get("undo", [])
    if not isinstance(topic, str) or type(partition) is not int or not _are_ids(replicas):
        raise InvalidReassignment(f"{where}: an entry lacks topic, partition or replicas; write the plan anew")
    if not _are_ids(undo) or len(set(undo)) < len(undo):
        raise InvalidReassignment(f"{where}: undo of {topic}-{partition} is no replica list; write the plan anew")
    return PartitionMove(topic, partition, tuple(replicas or ()), tuple(undo))


def _are_ids(value: object) -> bool:
    return isinstance(value, list) and all(type(one) is int and one >= 0 for one in value)


def _refuse_other_steps(plan: WrittenPlan, listed: Mapping[TopicPartition, tuple[int, ...]]) -> None:
    stepped: set[TopicPartition] = set()
    for move in plan.moves():
        if move.place in stepped:
            raise InvalidReassignment(f"{move.name} is in two steps; write the plan anew")
        stepped.add(move.place)
        if listed.get(move.place) != move.replicas:
            raise InvalidReassignment(
                f"{move.name}: partitions and steps name different replicas; change both, or leave out the steps"
            )
    for topic, partition in listed:
        if (topic, partition) not in stepped:
            raise InvalidReassignment(f"{topic}-{partition} is in no step; add it to one, or leave out the steps")


def _cluster_id(top: Mapping[str, Any]) -> str | None:
    value = top.get("cluster_id")
    if value is not None and not isinstance(value, str):
        raise InvalidReassignment(f"cluster_id is {json.dumps(value)}, not a string; write the plan anew")
    return value


def _topic_ids(top: Mapping[str, Any]) -> dict[str, str]:
    value = _object(top.get("topic_ids", {}), "topic_ids")
    if not all(isinstance(one, str) for one in value.values()):
        raise InvalidReassignment("topic_ids holds something that is no string; write the plan anew")
    return dict(value)


def _object(value: object, where: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise InvalidReassignment(f"{where} is not an object; write the plan anew")
    return value


def _list(holder: Mapping[str, Any], key: str, where: str) -> list[Any]:
    value = holder.get(key, [])
    if not isinstance(value, list):
        raise InvalidReassignment(f"{where}: {key} is not a list; write the plan anew")
    return value
