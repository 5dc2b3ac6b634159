"""Plans as files: rackspan's own with steps and cost, and any file of kafka-reassign-partitions.

The document of a plan is a reassignment file that kafka-reassign-partitions accepts as it is: it reads `version` and
`partitions` and ignores the rest. So they and the steps must agree.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Annotated, Any, Final, Literal, TypedDict

from msgspec import Meta

from rackspan.documents import AtLeastOne, Count, RangeDocument
from rackspan.errors import InvalidReassignment
from rackspan.model.ids import TopicPartition
from rackspan.plan.reassignment_file import VERSION, TargetDocument, reassignment_object, reassignment_of, sound
from rackspan.reassign import (
    Balance,
    Conflict,
    ListedPartition,
    LoadRange,
    PartitionReassignment,
    PlanCost,
    ReassignmentPlan,
    Step,
)

UNSTEPPED: Final = 1_000
"""Partitions in a step of a file that has no steps: order_steps' own limit, since sizes and risks are not known here."""

UNSTEPPED_REASON = "in the order of the file"


class EntryDocument(TargetDocument):
    undo: Annotated[list[int], Meta(description="The replicas before.")]


class StepDocument(TypedDict):
    step: AtLeastOne
    reason: str
    moves: Count
    bytes: Count
    partitions: list[EntryDocument]


class BalanceDocument(TypedDict):
    replicas_per_broker: RangeDocument
    leaders_per_broker: RangeDocument


class ConflictDocument(TypedDict):
    reason: str
    remedy: str
    partitions: Count
    refused: Annotated[bool, Meta(description="A flag would allow it.")]


class CostDocument(TypedDict):
    lower_bound: Annotated[Count, Meta(description="No plan has fewer moves.")]
    gap_reason: Annotated[str | None, Meta(description="Why moves is above lower_bound; null if it is not.")]
    bytes: Count
    moves_of_unknown_size: Count
    before: BalanceDocument
    after: BalanceDocument
    replicas_bound: Count


class PlanDocument(CostDocument):
    """A plan with its cost, as it is planned. A plan that was read may lack the cost."""

    version: Literal[1]
    partitions: list[TargetDocument]
    cluster_id: str | None
    moves: Annotated[Count, Meta(description="Replicas copied.")]
    topic_ids: Annotated[dict[str, str], Meta(description="Topic to its id.")]
    left_out: list[str]
    leaderless: Annotated[Count, Meta(description="Partitions without a leader whose replicas need not move.")]
    steps: list[StepDocument]
    infeasible: list[ConflictDocument]


def plan_document(plan: ReassignmentPlan) -> dict[str, Any]:
    """A plan, its cost, its proof and its steps (docs/formats.md). Each step lists its partitions with what undoes it.

    `read_plan` reads the same plan from it.
    """
    steps = [_step_document(step) for step in plan.steps]
    listed = [_target_document(entry) for step in steps for entry in step["partitions"]]
    cost = plan.cost
    return {
        "version": VERSION,
        "partitions": sorted(listed, key=itemgetter("topic", "partition")),
        "cluster_id": plan.cluster_id,
        "moves": plan.moves,
        **({} if cost is None else _cost_document(cost)),
        "topic_ids": dict(plan.topic_ids),
        **({} if cost is None else {"left_out": list(cost.left_out), "leaderless": cost.leaderless}),
        "steps": steps,
        **({} if cost is None else {"infeasible": [_conflict_document(conflict) for conflict in cost.infeasible]}),
    }


def journal_document(plan: ReassignmentPlan) -> dict[str, Any]:
    """What a run has to record of a plan: everything but its cost and its bytes."""
    steps: list[dict[str, Any]] = [
        {"step": step.number, "reason": step.reason, "partitions": [_entry_document(column) for column in step.columns]}
        for step in plan.steps
    ]
    return {
        "partitions": [_target_document(entry) for step in steps for entry in step["partitions"]],
        "cluster_id": plan.cluster_id,
        "topic_ids": dict(plan.topic_ids),
        "steps": steps,
    }


def _step_document(step: Step) -> dict[str, Any]:
    return {
        "step": step.number,
        "reason": step.reason,
        "moves": step.moves,
        **({} if step.bytes is None else {"bytes": step.bytes}),
        "partitions": [_entry_document(column) for column in step.columns],
    }


def _entry_document(one: PartitionReassignment) -> EntryDocument:
    return {
        "topic": one.topic,
        "partition": one.partition,
        "replicas": list(one.replicas),
        "undo": list(one.undo),
    }


def _target_document(entry: EntryDocument) -> TargetDocument:
    return {"topic": entry["topic"], "partition": entry["partition"], "replicas": entry["replicas"]}


def _cost_document(cost: PlanCost) -> CostDocument:
    return {
        "lower_bound": cost.lower_bound,
        "gap_reason": cost.gap_reason,
        "bytes": cost.bytes,
        "moves_of_unknown_size": cost.unsized_moves,
        "before": _balance_document(cost.before),
        "after": _balance_document(cost.after),
        "replicas_bound": cost.replicas_bound,
    }


def _balance_document(balance: Balance) -> BalanceDocument:
    return {
        "replicas_per_broker": {"min": balance.replicas.fewest, "max": balance.replicas.most},
        "leaders_per_broker": {"min": balance.leaders.fewest, "max": balance.leaders.most},
    }


def _conflict_document(conflict: Conflict) -> ConflictDocument:
    return {
        "reason": conflict.reason,
        "remedy": conflict.remedy,
        "partitions": conflict.partitions,
        "refused": conflict.refused,
    }


def read_plan(text: str | bytes) -> ReassignmentPlan:
    """A plan that rackspan wrote, or any reassignment file, to be executed.

    Errors: InvalidReassignment, in the words of Kafka's tool where it has words.
    """
    return plan_of(reassignment_object(text))


def plan_of(top: dict[str, Any]) -> ReassignmentPlan:
    """The plan of a parsed file. Errors: as read_plan."""
    listed = sound(reassignment_of(top)).partitions
    for entry in listed:
        _refuse_log_dirs(entry)
    steps = tuple(_steps(_list(top, "steps", "the plan"))) or tuple(_unstepped(listed))
    plan = ReassignmentPlan(_cluster_id(top), _topic_ids(top), steps, _cost(top))
    _refuse_other_steps(plan, {TopicPartition(entry.topic, entry.partition): entry.replicas for entry in listed})
    return plan


def _refuse_log_dirs(entry: ListedPartition) -> None:
    named = [log_dir for log_dir in entry.log_dirs or () if log_dir != "any"]
    if named:
        raise InvalidReassignment(
            f'{entry.name}: log directory {named[0]} is named; rackspan moves between brokers alone, write "any"'
        )


def _unstepped(listed: Sequence[ListedPartition]) -> Iterator[Step]:
    partitions = [PartitionReassignment(entry.topic, entry.partition, entry.replicas) for entry in listed]
    for number, start in enumerate(range(0, len(partitions), UNSTEPPED), start=1):
        yield Step.of(number, UNSTEPPED_REASON, partitions[start : start + UNSTEPPED])


def _steps(items: Sequence[Any]) -> Iterator[Step]:
    for number, item in enumerate(items, start=1):
        where = f"step {number}"
        entries = _list(_object(item, where), "partitions", where)
        size = item.get("bytes")
        partitions = [_reassignment(entry, where) for entry in entries]
        yield Step.of(number, str(item.get("reason", "")), partitions, size if type(size) is int else None)


def _reassignment(item: object, where: str) -> PartitionReassignment:
    entry = _object(item, where)
    topic, partition, replicas = entry.get("topic"), entry.get("partition"), entry.get("replicas")
    undo = entry.get("undo", [])
    if not isinstance(topic, str) or type(partition) is not int or not _are_ids(replicas):
        raise InvalidReassignment(f"{where}: an entry lacks topic, partition or replicas; write the plan again")
    if not _are_ids(undo) or len(set(undo)) < len(undo):
        raise InvalidReassignment(f"{where}: undo of {topic}-{partition} is not a replica list; write the plan again")
    return PartitionReassignment(topic, partition, tuple(replicas or ()), tuple(undo))


def _are_ids(value: object) -> bool:
    return isinstance(value, list) and all(type(broker) is int and broker >= 0 for broker in value)


def _refuse_other_steps(plan: ReassignmentPlan, listed: Mapping[TopicPartition, tuple[int, ...]]) -> None:
    stepped: set[TopicPartition] = set()
    for partition in plan.partitions():
        if partition.topic_partition in stepped:
            raise InvalidReassignment(f"{partition.name} is in two steps; write the plan again")
        stepped.add(partition.topic_partition)
        if listed.get(partition.topic_partition) != partition.replicas:
            raise InvalidReassignment(
                f"{partition.name}: partitions and steps name different replicas; change both, or leave out the steps"
            )
    for topic_partition in listed:
        if topic_partition not in stepped:
            raise InvalidReassignment(f"{topic_partition} is in no step; add it to one, or leave out the steps")


def _cluster_id(top: Mapping[str, Any]) -> str | None:
    value = top.get("cluster_id")
    if value is not None and not isinstance(value, str):
        raise InvalidReassignment(f"cluster_id is {json.dumps(value)}, not a string; write the plan again")
    return value


def _topic_ids(top: Mapping[str, Any]) -> dict[str, str]:
    value = _object(top.get("topic_ids", {}), "topic_ids")
    if not all(isinstance(one, str) for one in value.values()):
        raise InvalidReassignment("topic_ids holds something that is not a string; write the plan again")
    return dict(value)


def _cost(top: Mapping[str, Any]) -> PlanCost | None:
    """None where the file does not state it in full: a run needs none of it."""
    try:
        return PlanCost(
            lower_bound=int(top["lower_bound"]),
            gap_reason=None if top["gap_reason"] is None else str(top["gap_reason"]),
            bytes=int(top["bytes"]),
            unsized_moves=int(top["moves_of_unknown_size"]),
            before=_balance(top["before"]),
            after=_balance(top["after"]),
            replicas_bound=int(top["replicas_bound"]),
            left_out=tuple(map(str, top["left_out"])),
            infeasible=tuple(
                Conflict(str(one["reason"]), str(one["remedy"]), int(one["partitions"]), bool(one.get("refused")))
                for one in top["infeasible"]
            ),
            leaderless=int(top.get("leaderless", 0)),
        )
    except (KeyError, TypeError, ValueError, OverflowError):
        return None


def _balance(document: Mapping[str, Any]) -> Balance:
    ranges = (document["replicas_per_broker"], document["leaders_per_broker"])
    return Balance(*(LoadRange(int(one["min"]), int(one["max"])) for one in ranges))


def _object(value: object, where: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise InvalidReassignment(f"{where} is not an object; write the plan again")
    return value


def _list(holder: Mapping[str, Any], key: str, where: str) -> list[Any]:
    value = holder.get(key, [])
    if not isinstance(value, list):
        raise InvalidReassignment(f"{where}: {key} is not a list; write the plan again")
    return value
