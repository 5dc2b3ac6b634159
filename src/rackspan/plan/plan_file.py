"""Plans as files: rackspan's own with steps and cost, and any file of kafka-reassign-partitions.

The document of a plan is a reassignment file that kafka-reassign-partitions accepts as it is: it reads `version` and
`partitions` and ignores the rest. So they and the steps must agree.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Annotated, ClassVar, Final, Literal, TypeAlias, TypedDict

import msgspec
from msgspec import Meta, Struct

from rackspan.documents import AtLeastOne, Count, InvalidDocument, RangeDocument, convert
from rackspan.errors import InvalidReassignment
from rackspan.model.ids import INT32_MAX, TopicPartition
from rackspan.plan.reassignment_file import VERSION, TargetDocument, reassignment_of, reassignment_text, sound
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
from rackspan.reassign.document import ANY_LOG_DIR

UNSTEPPED: Final = 1_000
"""Partitions in a step of a file that has no steps: order_steps' own limit, since sizes and risks are not known here."""

WRITE_AGAIN: Final = "write the plan again"

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


class AccountDocument(CostDocument):
    left_out: list[str]
    leaderless: Annotated[Count, Meta(description="Partitions without a leader whose replicas need not move.")]
    infeasible: list[ConflictDocument]


class PlanDocument(AccountDocument):
    """A plan with its cost, as it is planned. A plan that was read may lack the cost."""

    version: Literal[1]
    partitions: list[TargetDocument]
    cluster_id: str | None
    moves: Annotated[Count, Meta(description="Replicas copied.")]
    topic_ids: Annotated[dict[str, str], Meta(description="Topic to its id.")]
    steps: list[StepDocument]


_BrokerId: TypeAlias = Annotated[int, Meta(ge=0, le=INT32_MAX)]


class _Entry(Struct):
    SHOWN: ClassVar[str] = "{topic}-{partition}"

    topic: str
    partition: int
    replicas: list[_BrokerId]
    undo: list[_BrokerId] = []


class _Step(Struct):
    """A step of a file. Its bytes are not known if they are no whole number."""

    SHOWN: ClassVar[str] = "step {step}"

    partitions: list[_Entry] = []
    reason: str = ""
    bytes: object = None


class _Plan(Struct):
    """What a file of another tool lacks. The steps of such a file are cut from its partitions."""

    steps: list[_Step] = []
    cluster_id: str | None = None
    topic_ids: dict[str, str] = {}


def plan_document(plan: ReassignmentPlan) -> dict[str, object]:
    """A plan, its cost, its proof and its steps (docs/formats.md). Each step lists its partitions with what undoes it.

    `read_plan` reads the same plan from it.
    """
    entries, cost = _entries(plan), plan.cost
    return {
        "version": VERSION,
        "partitions": sorted(_targets(entries), key=itemgetter("topic", "partition")),
        "cluster_id": plan.cluster_id,
        "moves": plan.moves,
        **({} if cost is None else _cost_document(cost)),
        "topic_ids": dict(plan.topic_ids),
        **({} if cost is None else {"left_out": list(cost.left_out), "leaderless": cost.leaderless}),
        "steps": [_step_document(step, listed) for step, listed in zip(plan.steps, entries, strict=True)],
        **({} if cost is None else {"infeasible": [_conflict_document(conflict) for conflict in cost.infeasible]}),
    }


def journal_document(plan: ReassignmentPlan) -> dict[str, object]:
    """What a run has to record of a plan: everything but its cost and its bytes."""
    entries = _entries(plan)
    return {
        "partitions": _targets(entries),
        "cluster_id": plan.cluster_id,
        "topic_ids": dict(plan.topic_ids),
        "steps": [
            {"step": step.number, "reason": step.reason, "partitions": listed}
            for step, listed in zip(plan.steps, entries, strict=True)
        ],
    }


def _entries(plan: ReassignmentPlan) -> list[list[EntryDocument]]:
    """Those of each step. A million partitions are read from their columns once."""
    return [[_entry_document(entry) for entry in step.columns] for step in plan.steps]


def _targets(entries: Iterable[Sequence[EntryDocument]]) -> list[TargetDocument]:
    return [
        {"topic": entry["topic"], "partition": entry["partition"], "replicas": entry["replicas"]}
        for listed in entries
        for entry in listed
    ]


def _step_document(step: Step, entries: Sequence[EntryDocument]) -> dict[str, object]:
    return {
        "step": step.number,
        "reason": step.reason,
        "moves": step.moves,
        **({} if step.bytes is None else {"bytes": step.bytes}),
        "partitions": entries,
    }


def _entry_document(entry: PartitionReassignment) -> EntryDocument:
    return {
        "topic": entry.topic,
        "partition": entry.partition,
        "replicas": list(entry.replicas),
        "undo": list(entry.undo),
    }


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
    return plan_of(reassignment_text(text).top)


def plan_of(top: dict[str, object]) -> ReassignmentPlan:
    """The plan of a parsed file. Errors: as read_plan."""
    listed = sound(reassignment_of(top)).partitions
    for entry in listed:
        _refuse_log_dirs(entry)
    try:
        given = convert(top, _Plan, "plan", WRITE_AGAIN)
    except InvalidDocument as error:
        raise InvalidReassignment(str(error)) from None
    steps = tuple(_steps(given.steps)) or tuple(_unstepped(listed))
    plan = ReassignmentPlan(given.cluster_id, given.topic_ids, steps, _cost(top))
    _refuse_other_steps(plan, {TopicPartition(entry.topic, entry.partition): entry.replicas for entry in listed})
    return plan


def _refuse_log_dirs(entry: ListedPartition) -> None:
    named = entry.named_log_dirs
    if named:
        raise InvalidReassignment(
            f'{entry.name}: log directory {named[0]} is named; rackspan moves between brokers alone, write "{ANY_LOG_DIR}"'
        )


def _unstepped(listed: Sequence[ListedPartition]) -> Iterator[Step]:
    partitions = [PartitionReassignment(entry.topic, entry.partition, entry.replicas) for entry in listed]
    for number, start in enumerate(range(0, len(partitions), UNSTEPPED), start=1):
        yield Step.of(number, UNSTEPPED_REASON, partitions[start : start + UNSTEPPED])


def _steps(given: Sequence[_Step]) -> Iterator[Step]:
    for number, step in enumerate(given, start=1):
        for entry in step.partitions:
            if len(set(entry.undo)) < len(entry.undo):
                raise InvalidReassignment(f"{entry.topic}-{entry.partition}: undo names a broker twice; {WRITE_AGAIN}")
        partitions = [
            PartitionReassignment(entry.topic, entry.partition, tuple(entry.replicas), tuple(entry.undo))
            for entry in step.partitions
        ]
        yield Step.of(number, step.reason, partitions, step.bytes if type(step.bytes) is int else None)


def _refuse_other_steps(plan: ReassignmentPlan, listed: Mapping[TopicPartition, tuple[int, ...]]) -> None:
    stepped: set[TopicPartition] = set()
    for partition in plan.partitions():
        if partition.topic_partition in stepped:
            raise InvalidReassignment(f"{partition.name} is in two steps; {WRITE_AGAIN}")
        stepped.add(partition.topic_partition)
        if listed.get(partition.topic_partition) != partition.replicas:
            raise InvalidReassignment(
                f"{partition.name}: partitions and steps name different replicas; change both, or leave out the steps"
            )
    for topic_partition in listed:
        if topic_partition not in stepped:
            raise InvalidReassignment(f"{topic_partition} is in no step; add it to one, or leave out the steps")


def _cost(top: Mapping[str, object]) -> PlanCost | None:
    """None if the file does not state it in full: a run needs none of it."""
    try:
        cost = msgspec.convert(top, AccountDocument)
    except msgspec.ValidationError:
        return None
    return PlanCost(
        lower_bound=cost["lower_bound"],
        gap_reason=cost["gap_reason"],
        bytes=cost["bytes"],
        unsized_moves=cost["moves_of_unknown_size"],
        before=_balance(cost["before"]),
        after=_balance(cost["after"]),
        replicas_bound=cost["replicas_bound"],
        left_out=tuple(cost["left_out"]),
        infeasible=tuple(Conflict(**conflict) for conflict in cost["infeasible"]),
        leaderless=cost["leaderless"],
    )


def _balance(document: BalanceDocument) -> Balance:
    ranges = (document["replicas_per_broker"], document["leaders_per_broker"])
    return Balance(*(LoadRange(counts["min"], counts["max"]) for counts in ranges))
