"""The min_traffic strategy, solved on racks alone: clients disappear from the problem."""

import numpy as np

from rackspan.flow import network, solve
from rackspan.streams.costs import OwnedTasks
from rackspan.streams.grouping import Groups, deal, group_rows, last_of_each, traffic_classes
from rackspan.streams.optimum import Optimum, arrival_cost, proven, scale, unmoved
from rackspan.streams.problem import Int32s, Int64s


def min_traffic(tasks: OwnedTasks) -> Optimum:
    """Give active tasks to clients so that the least data crosses racks (KIP-925 4.B.I; Kafka's min_traffic).

    Constraints: each task has one client; each client holds as many of these tasks as it did.
    Goals in order: the least sum of traffic and non-overlap costs; the fewest tasks moved.
    Method: rack collapse. A task that stays in its owner's rack may stay on its owner, and any vacancy of a rack serves an
    arriving task as well as any other, so the cost of a task depends on its rack only: the clients' quotas collapse into
    one number for each rack. Tasks of equal traffic in one rack are interchangeable. What is left is a circulation over
    racks and traffic classes: leaving a rack refunds its traffic, arriving in one pays traffic and non-overlap.
    Needs a non-overlap cost that is not negative; configs see to that.
    Bound: one min-cost flow over R racks and V distinct traffic vectors, at most 2 · R · V arcs, whatever the clients.
    Source: the objective is Kafka's; the collapse and its proof are ours (docs/kips.md).
    """
    if not len(tasks):
        return unmoved(tasks)
    rack = tasks.client_rack[tasks.owner]
    classes = traffic_classes(tasks.traffic)
    held = group_rows(classes.of, rack)
    racks = tasks.traffic.shape[1]
    leave_traffic = tasks.traffic[held.first, rack[held.first]]
    arrive_traffic = tasks.traffic[classes.first].ravel()
    # Nodes: racks, then classes. Arcs: rack -> class for tasks that leave, class -> rack for tasks that arrive.
    class_nodes = racks + np.arange(len(classes.size))
    answer = solve(
        network(
            tail=np.concatenate([rack[held.first], np.repeat(class_nodes, racks)]),
            head=np.concatenate([class_nodes[classes.of[held.first]], np.tile(np.arange(racks), len(class_nodes))]),
            capacity=np.concatenate([held.size, np.repeat(classes.size, racks)]),
            unit_cost=np.concatenate([-leave_traffic * scale(tasks), arrival_cost(tasks, arrive_traffic)]),
            supply=np.zeros(racks + len(class_nodes), dtype=np.int64),
        )
    )
    leaving, arriving = answer.flow[: len(held.size)], answer.flow[len(held.size) :]
    return proven(tasks, _decode(tasks, classes, held, leaving, arriving), answer)


def _decode(tasks: OwnedTasks, classes: Groups, held: Groups, leaving: Int64s, arriving: Int64s) -> Int32s:
    """Tasks that leave, dealt to racks by class, then to the vacancies they left behind."""
    racks = tasks.traffic.shape[1]
    leavers = last_of_each(held, leaving)
    lines = np.arange(len(arriving))
    movers, rack = deal(leavers, classes.of[leavers], lines % racks, arriving, lines // racks)
    vacancies = np.bincount(tasks.owner[leavers], minlength=len(tasks.client_rack))
    movers, target = deal(movers, rack, np.arange(len(vacancies)), vacancies, tasks.client_rack.astype(np.int64))
    client = tasks.owner.copy()
    client[movers] = target
    return client
