"""The optimum of a set of active tasks, and the check of a decoded assignment against its proof."""

from dataclasses import dataclass

import numpy as np

from rackspan.errors import UnprovenResult
from rackspan.flow import CertifiedFlow
from rackspan.streams.costs import OwnedTasks
from rackspan.streams.problem import Int32s, Int64s


@dataclass(frozen=True, slots=True, eq=False)
class Optimum:
    """`client` (n,) is the new client of each task. No assignment within the constraints costs less than `lower_bound`."""

    client: Int32s
    cost: int
    lower_bound: int
    moved: int


def scale(tasks: OwnedTasks) -> int:
    """A factor for costs, so that one unit of cost outweighs the moves of all tasks: the fewest moves then break ties."""
    return len(tasks) + 1


def stay_cost(tasks: OwnedTasks) -> int:
    """The scaled cost if every task stays on its owner."""
    return tasks.cost(tasks.owner) * scale(tasks)


def arrival_cost(tasks: OwnedTasks, traffic: Int64s) -> Int64s:
    """The scaled cost of a task that leaves its owner, for its `traffic` in the rack where it arrives."""
    return (traffic + tasks.non_overlap) * scale(tasks) + 1


def proven(tasks: OwnedTasks, client: Int32s, solution: CertifiedFlow) -> Optimum:
    """Check that a decoded assignment costs what its certified flow costs. Errors: UnprovenResult."""
    bound = stay_cost(tasks) + solution.certificate.lower_bound
    cost, moved = tasks.cost(client), int(np.count_nonzero(client != tasks.owner))
    if cost * scale(tasks) + moved != bound:
        raise UnprovenResult(f"an assignment of cost {cost} does not match its proof; report this as a bug")
    return Optimum(client, cost, lower_bound=bound // scale(tasks), moved=moved)


def unmoved(tasks: OwnedTasks) -> Optimum:
    """The optimum of a set without tasks, or of tasks that each cost the same on every client: all stay.

    `lower_bound` is then that of every assignment: the limits of balance_subtopology are not checked, and may not be met.
    """
    cost = tasks.cost(tasks.owner)
    return Optimum(tasks.owner, cost, lower_bound=cost, moved=0)
