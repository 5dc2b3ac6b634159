"""Task assignment: a problem document in, an assignment document out, as `rackspan streams assign` writes it."""

from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Annotated, NotRequired, TypedDict

import numpy as np
from msgspec import Meta

from rackspan.documents import Amount, Count
from rackspan.streams.active import Optimum
from rackspan.streams.assignors import assignor_named
from rackspan.streams.costs import cross_rack, crossings, equal_cost, owned_tasks
from rackspan.streams.formats import from_document
from rackspan.streams.problem import KAFKA, STATELESS_COSTS, Beyond, Options, PartitionLists, Problem
from rackspan.streams.rack_awareness import (
    RackAwareness,
    changelogs_known,
    judge_rack_awareness,
    rack_warnings,
    sources_known,
    tag_warnings,
)
from rackspan.streams.task_assignment import AssignorOutput, TaskAssignment

Clock = Callable[[], float]


class TaskCosts(TypedDict):
    stateful: Amount | None
    stateless: Amount | None
    standby: NotRequired[Amount]


class CrossRackDocument(TypedDict):
    active: Count | None
    standby: Count | None


class ProofDocument(TypedDict):
    lower_bound: Annotated[
        Amount,
        Meta(
            description="No assignment within the strategy's limits costs less; with the note equal-cost, none at all."
        ),
    ]
    moved: Count


class CertificateDocument(TypedDict):
    stateful: ProofDocument | None
    stateless: ProofDocument | None


class ClientTasks(TypedDict):
    active: list[str]
    standby: list[str]


class AssignmentDocument(TypedDict):
    """An assignment of tasks to clients, its cost and the proof that none costs less."""

    enabled: bool
    reason: str | None
    note: str | None
    warnings: list[str]
    cost: TaskCosts
    cross_rack: Annotated[
        CrossRackDocument, Meta(description="Partitions without a replica in the rack of their client.")
    ]
    certificate: CertificateDocument
    probing_rebalance: bool
    seconds: Annotated[Amount, Meta(description="Of the optimisation only.")]
    assignment: Annotated[dict[str, ClientTasks], Meta(description="Process id to task ids.")]


def assign(document: object, assignor: str, options: Options = KAFKA, clock: Clock = float) -> AssignmentDocument:
    """Assign the tasks of a problem document. `clock` returns seconds; without one, the document's `seconds` is 0.0.

    Errors: InvalidProblem, UsageError; one line each.
    """
    problem = from_document(document, weighted=Beyond.PARTITION_WEIGHTS in options)
    return assign_problem(problem, assignor, options, clock)


def assign_problem(
    problem: Problem, assignor: str, options: Options = KAFKA, clock: Clock = float
) -> AssignmentDocument:
    """Assign the tasks of a problem in memory. `seconds` covers optimising and proving, not reading."""
    assign_tasks = assignor_named(assignor)
    started = clock()
    awareness = judge_rack_awareness(problem)
    output = assign_tasks(problem, awareness, options)
    document = assignment_document(problem, awareness, output, clock() - started)
    document["warnings"] += _without_effect(problem, awareness, assignor, options)
    return document


def _without_effect(problem: Problem, awareness: RackAwareness, assignor: str, options: Options) -> Iterator[str]:
    """A warning of each option that changes nothing in this assignment, with the reason."""
    for option in sorted(options.beyond - {Beyond.PARTITION_WEIGHTS}):
        why = awareness.reason
        if option is Beyond.RACK_SPREAD_STANDBYS:
            why = _why_standbys_are_not_spread(problem, awareness, assignor)
        if why is not None:
            yield f"option {option} has no effect: {why}"


def _why_standbys_are_not_spread(problem: Problem, awareness: RackAwareness, assignor: str) -> str | None:
    """None where they are: without rack awareness too, by the assignor high-availability."""
    if assignor == "sticky":
        return "the assignor sticky places standbys by load alone"
    if problem.configs.rack_aware_assignment_tags:
        return "standbys are placed by rack.aware.assignment.tags"
    without = next((client.process_id for client in problem.clients if client.rack is None), None)
    if without is not None:
        return f"client {without} has no client.rack; set it on every consumer"
    return awareness.reason if assignor == "optimize" else None


def assignment_document(
    problem: Problem, awareness: RackAwareness, output: AssignorOutput, seconds: float
) -> AssignmentDocument:
    """The assignment document, keys in a fixed order."""
    return {
        "enabled": awareness.enabled,
        "reason": awareness.reason,
        "note": "equal-cost" if awareness.enabled and equal_cost(problem) else None,
        "warnings": [
            *problem.warnings,
            *rack_warnings(problem),
            *tag_warnings(problem, output.tags_followed),
            *_missing_standbys(problem, output),
        ],
        "cost": _cost(problem, output),
        "cross_rack": _cross_rack(problem, output.assignment),
        "certificate": {"stateful": _proof(output.stateful), "stateless": _proof(output.stateless)},
        "probing_rebalance": output.probing_rebalance,
        "seconds": seconds,
        "assignment": _assignment(problem, output.assignment),
    }


def _missing_standbys(problem: Problem, output: AssignorOutput) -> list[str]:
    required = problem.configs.num_standbys
    return [
        f"task {problem.tasks.ids[task]}: {missing} of {required} standbys found no client; start more instances"
        for task, missing in output.missing_standbys
    ]


def _proof(optimum: Optimum | None) -> ProofDocument | None:
    return None if optimum is None else {"lower_bound": optimum.lower_bound, "moved": optimum.moved}


def _cost(problem: Problem, output: AssignorOutput) -> TaskCosts:
    """Kafka's cost of each kind of tasks: of the optimum, or of the assignment as it is if not optimised. None: no price."""
    cost: TaskCosts = {
        "stateful": output.stateful.cost if output.stateful else _running_cost(problem, output, stateful=True),
        "stateless": output.stateless.cost if output.stateless else _running_cost(problem, output, stateful=False),
    }
    return cost if output.standby_cost is None else {**cost, "standby": output.standby_cost}


def _running_cost(problem: Problem, output: AssignorOutput, stateful: bool) -> int | None:
    if not sources_known(problem):
        return None
    members = problem.stateful if stateful else problem.stateless
    costs = problem.configs.costs(output.default_costs) if stateful else STATELESS_COSTS
    owner = output.assignment.owner(len(problem.tasks))
    tasks = owned_tasks(problem, members, owner, costs)
    return tasks.cost(tasks.owner)


def _cross_rack(problem: Problem, assignment: TaskAssignment) -> CrossRackDocument:
    return {
        "active": _count(problem, problem.tasks.source, assignment.active) if sources_known(problem) else None,
        "standby": _count(problem, problem.tasks.changelog, assignment.standby) if changelogs_known(problem) else None,
    }


def _count(problem: Problem, lists: PartitionLists, held: Sequence[AbstractSet[int]]) -> int:
    """The number of partitions read across racks, whatever their weights."""
    partitions = replace(problem.partitions, weight=np.ones_like(problem.partitions.weight))
    return crossings(cross_rack(lists, partitions), problem.client_rack, held)


def _assignment(problem: Problem, assignment: TaskAssignment) -> dict[str, ClientTasks]:
    ids = problem.tasks.ids
    return {
        client.process_id: {
            "active": [ids[task] for task in sorted(active)],
            "standby": [ids[task] for task in sorted(standby)],
        }
        for client, active, standby in zip(problem.clients, assignment.active, assignment.standby, strict=True)
    }
