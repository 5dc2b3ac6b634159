"""The balance_subtopology strategy: least traffic, with every sub-topology spread over the clients."""

import numpy as np

from rackspan.streams.active.client_flow import TaskLimits, grouped_flow
from rackspan.streams.active.optimum import Optimum, unmoved
from rackspan.streams.active.quotas import ClientQuotas, as_held
from rackspan.streams.costs import OwnedTasks
from rackspan.streams.problem import Int64s


def balance_subtopology(tasks: OwnedTasks, quotas: ClientQuotas | None = None) -> Optimum:
    """Give active tasks to clients so that the least data crosses racks and no client gets too much of one sub-topology.

    Constraints: each task has one client; each client holds as many of these tasks as it did (or as `quotas` allows), and
    at most ceiling(C[i] / n · S[j]) tasks of sub-topology j, for its C[i] of all n tasks and the S[j] tasks of j among them.
    Always feasible: C[i] / n of every task on client i is a fractional answer, and with whole limits there is a whole one.
    Goals in order: the least sum of traffic and non-overlap costs; the fewest tasks moved.
    Method and bound: see grouped_flow. Source: KIP-925 4.B.II, limits as Kafka's code rounds them.
    """
    if not len(tasks):
        return unmoved(tasks)
    allowed = quotas or as_held(tasks)
    values, family = np.unique(tasks.subtopology, return_inverse=True)
    sizes = np.bincount(family, minlength=len(values))
    cap = subtopology_limits(allowed.most, len(tasks), sizes)
    return grouped_flow(tasks, TaskLimits(family.astype(np.int64), cap, allowed.least, allowed.most))


def subtopology_limits(held: Int64s, total: int, sizes: Int64s) -> Int64s:
    """Most tasks of each sub-topology on each client. Shape (S, C).

    In doubles and from left to right, as Kafka evaluates it: a quotient that is not exact can raise a limit by one, and
    equal limits are what makes equal costs.
    """
    return np.ceil((held * 1.0 / total)[None, :] * sizes[:, None]).astype(np.int64)
