"""What an optimiser of active tasks answers, and the check that it says what its proof says."""

from dataclasses import dataclass

import numpy as np

from rackspan.errors import UnprovenResponse
from rackspan.flow import CertifiedFlow
from rackspan.streams.costs import OwnedTasks
from rackspan.streams.problem import Int32s, Int64s


@dataclass(frozen=True, slots=True, eq=False)
class Optimum:
    """`client` (n,) holds each task now. No assignment within the constraints costs less than `lower_bound`."""

    client: Int32s
    cost: int
    lower_bound: int
    moved: int


def scale(tasks: OwnedTasks) -> int:
    """Factor that makes one unit of cost weigh more than moving every task: fewest moves then break ties."""
    return len(tasks) + 1


def stay_cost(tasks: OwnedTasks) -> int:
    """What it costs when nobody moves, scaled."""
    return tasks.cost(tasks.owner) * scale(tasks)


def arrival_cost(tasks: OwnedTasks, traffic: Int64s) -> Int64s:
    """Scaled cost of a task that left its owner, by what reading costs where it arrives."""
    return (traffic + tasks.non_overlap) * scale(tasks) + 1


def proven(tasks: OwnedTasks, client: Int32s, answer: CertifiedFlow) -> Optimum:
    """Hold a decoded assignment against its certified flow, price by price. Errors: UnprovenResponse."""
    bound = stay_cost(tasks) + answer.certificate.lower_bound
    cost, moved = tasks.cost(client), int(np.count_nonzero(client != tasks.owner))
    if cost * scale(tasks) + moved != bound:
        raise UnprovenResponse(f"an assignment of cost {cost} does not match its proof; report this as a bug")
    return Optimum(client, cost, lower_bound=bound // scale(tasks), moved=moved)


def unmoved(tasks: OwnedTasks) -> Optimum:
    """No task, no cost."""
    return Optimum(tasks.owner, 0, 0, 0)
