"""The balance_subtopology strategy: least traffic, with the tasks of every sub-topology spread over the clients."""

import numpy as np

from rackspan.streams.active.client_flow import TaskLimits, solve_client_flow
from rackspan.streams.active.optimum import Optimum, unmoved
from rackspan.streams.active.quotas import ClientQuotas, as_held
from rackspan.streams.costs import OwnedTasks
from rackspan.streams.problem import Int64s


def balance_subtopology(tasks: OwnedTasks, quotas: ClientQuotas | None = None) -> Optimum:
    """Give active tasks to clients so that the least data crosses racks and no client gets too much of one sub-topology.

    Constraints: each task has one client; each client holds as many of these tasks as it did (or as `quotas` allows), and
    at most ceiling(C[i] / n · S[j]) tasks of sub-topology j, for its C[i] of all n tasks and the S[j] tasks of j among them.
    Always feasible: C[i] / n of every task on client i is a fractional assignment within the limits, and since the limits are
    integers there is an integral one too.
    Goals in order: the least sum of traffic and non-overlap costs; the fewest tasks moved.
    Method and bound: see solve_client_flow. Source: KIP-925 4.B.II, limits as Kafka's code rounds them.
    Proven by tests/streams/active/test_balance_subtopology.py and, against Kafka's classes, tests/compat/test_streams.py.
    """
    if not len(tasks):
        return unmoved(tasks)
    allowed = quotas or as_held(tasks)
    values, family = np.unique(tasks.subtopology, return_inverse=True)
    sizes = np.bincount(family, minlength=len(values))
    cap = subtopology_limits(allowed.most, len(tasks), sizes)
    return solve_client_flow(tasks, TaskLimits(family.astype(np.int64), cap, allowed.least, allowed.most))


def subtopology_limits(held: Int64s, total: int, sizes: Int64s) -> Int64s:
    """The greatest number of tasks of each sub-topology on each client. Shape (S, C).

    Evaluated in doubles and from left to right, as in Kafka: rounding can raise a limit by one, and only equal limits give
    equal costs.
    """
    return np.ceil((held * 1.0 / total)[None, :] * sizes[:, None]).astype(np.int64)
