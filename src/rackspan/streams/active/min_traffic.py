"""The min_traffic strategy, solved by a min-cost flow over racks instead of clients."""

import numpy as np

from rackspan.flow import Arcs, arcs, connect, solve, split
from rackspan.streams.active.optimum import Optimum, arrival_cost, proven, scale, unmoved
from rackspan.streams.active.task_groups import TaskGroups, distribute, group_rows, last_of_each, traffic_classes
from rackspan.streams.costs import OwnedTasks
from rackspan.streams.problem import Int32s, Int64s


def min_traffic(tasks: OwnedTasks) -> Optimum:
    """Give active tasks to clients so that the least data crosses racks (KIP-925 4.B.I; Kafka's min_traffic).

    Constraints: each task has one client; each client holds as many of these tasks as it did.
    Goals in order: the least sum of traffic and non-overlap costs; the fewest tasks moved.
    Method: rack collapse. A task that stays in its owner's rack can stay on its owner, and a task that arrives in a rack
    costs the same on every client there. So the cost of a task depends on its rack only, and one number for each rack
    replaces the clients' quotas. Tasks of equal traffic in one rack are interchangeable. The rest is a circulation over
    racks and traffic classes: leaving a rack refunds the traffic there, arriving in one costs traffic and non-overlap.
    Requires a non-overlap cost of 0 or more, which AssignmentConfigs checks.
    Bound: one min-cost flow over R racks and V distinct traffic vectors, at most 2 · R · V arcs for any number of clients.
    Source: the objective is Kafka's; the collapse and its proof are ours (docs/rack-collapse.md).
    Proven by tests/streams/active/test_min_traffic.py (all assignments tried) and, against Kafka's classes,
    tests/compat/test_streams.py; tests/streams/test_size.py counts the arcs.
    """
    if not len(tasks):
        return unmoved(tasks)
    classes = traffic_classes(tasks.traffic)
    held = group_rows(classes.of, tasks.client_rack[tasks.owner])
    bundles = _leaving(tasks, classes, held), _arriving(tasks, classes)
    nodes = tasks.traffic.shape[1] + len(classes.size)
    solution = solve(connect(np.zeros(nodes, dtype=np.int64), *bundles))
    leaving, arriving = split(solution.flow, *bundles)
    return proven(tasks, _decode(tasks, classes, held, leaving, arriving), solution)


def _leaving(tasks: OwnedTasks, classes: TaskGroups, held: TaskGroups) -> Arcs:
    """Rack -> class. Racks are the first nodes, classes follow."""
    rack = tasks.client_rack[tasks.owner[held.first]]
    refund = tasks.traffic[held.first, rack] * scale(tasks)
    return arcs(rack, tasks.traffic.shape[1] + classes.of[held.first], held.size, -refund)


def _arriving(tasks: OwnedTasks, classes: TaskGroups) -> Arcs:
    """Class -> rack."""
    racks = tasks.traffic.shape[1]
    price = arrival_cost(tasks, tasks.traffic[classes.first])
    classes_at = racks + np.arange(len(classes.size))[:, None]
    columns = np.broadcast_arrays(classes_at, np.arange(racks), classes.size[:, None], price)
    return arcs(*(column.ravel() for column in columns))


def _decode(tasks: OwnedTasks, classes: TaskGroups, held: TaskGroups, leaving: Int64s, arriving: Int64s) -> Int32s:
    """The client of each task: tasks that leave are distributed over racks by class, then over the vacancies of a rack."""
    leavers = last_of_each(held, leaving)
    joined_class, rack = np.divmod(np.arange(len(arriving)), tasks.traffic.shape[1])
    movers, arrived_in = distribute(leavers, classes.of[leavers], rack, arriving, joined_class)
    vacancies = np.bincount(tasks.owner[leavers], minlength=len(tasks.client_rack))
    movers, target = distribute(movers, arrived_in, np.arange(len(vacancies)), vacancies, tasks.client_rack)
    client = tasks.owner.copy()
    client[movers] = target
    return client
