"""How many tasks each client may hold: as many as now, or floor to ceiling of its share (beyond Kafka)."""

from dataclasses import dataclass

import numpy as np

from rackspan.streams.active.client_flow import TaskLimits, solve_client_flow
from rackspan.streams.active.optimum import Optimum, unmoved
from rackspan.streams.costs import OwnedTasks
from rackspan.streams.problem import Int64s


@dataclass(frozen=True, slots=True, eq=False)
class ClientQuotas:
    """Least and most tasks of each client, both (C,)."""

    least: Int64s
    most: Int64s


def as_held(tasks: OwnedTasks) -> ClientQuotas:
    """Kafka's rule: the number of tasks on each client stays the same."""
    return ClientQuotas(tasks.held, tasks.held)


def floating(tasks: OwnedTasks, threads: Int64s) -> ClientQuotas:
    """Floor to ceiling of each client's share by `threads` (C,), extended to the number of tasks it holds now.

    KIP-925 4.B.II calls fixed quotas a drawback: they decide which client has one task more before costs are considered. The
    present number stays allowed, so the optimum never costs more than with fixed quotas.
    """
    share, rest = np.divmod(len(tasks) * threads, int(threads.sum()))
    return ClientQuotas(np.minimum(tasks.held, share), np.maximum(tasks.held, share + (rest > 0)))


def min_traffic_within(tasks: OwnedTasks, quotas: ClientQuotas) -> Optimum:
    """min_traffic with quotas other than as_held. They differ between clients, so clients stay nodes; all tasks are one family."""
    if not len(tasks):
        return unmoved(tasks)
    one_family = np.zeros(len(tasks), dtype=np.int64)
    return solve_client_flow(tasks, TaskLimits(one_family, quotas.most[None, :], quotas.least, quotas.most))
