"""How many tasks each client may hold: as many as it does, or the remainder left to float (beyond Kafka)."""

from dataclasses import dataclass

import numpy as np

from rackspan.streams.active.client_flow import TaskLimits, grouped_flow
from rackspan.streams.active.optimum import Optimum, unmoved
from rackspan.streams.costs import OwnedTasks
from rackspan.streams.problem import Int64s


@dataclass(frozen=True, slots=True, eq=False)
class ClientQuotas:
    """Least and most tasks of each client, both (C,)."""

    least: Int64s
    most: Int64s


def as_held(tasks: OwnedTasks) -> ClientQuotas:
    """Kafka's rule: the number of tasks on each client never changes."""
    return ClientQuotas(tasks.held, tasks.held)


def floating(tasks: OwnedTasks, threads: Int64s) -> ClientQuotas:
    """Between floor and ceiling of a client's share by threads (C,), and never so narrow as to forbid what it holds.

    KIP-925 4.B.II names the fixed remainder as a drawback: which client takes the odd task is settled before costs are
    known. What clients hold stays allowed, so the answer is never dearer than with fixed quotas.
    """
    share, rest = np.divmod(len(tasks) * threads, int(threads.sum()))
    return ClientQuotas(np.minimum(tasks.held, share), np.maximum(tasks.held, share + (rest > 0)))


def min_traffic_within(tasks: OwnedTasks, quotas: ClientQuotas) -> Optimum:
    """min_traffic with quotas that are not what clients hold: clients stay in the problem, in one family."""
    if not len(tasks):
        return unmoved(tasks)
    one_family = np.zeros(len(tasks), dtype=np.int64)
    return grouped_flow(tasks, TaskLimits(one_family, quotas.most[None, :], quotas.least, quotas.most))
