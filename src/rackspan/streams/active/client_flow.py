"""Active tasks assigned by a min-cost flow with nodes for clients, for limits that differ between clients of a rack."""

from dataclasses import dataclass

import numpy as np

from rackspan.flow import Arcs, arcs, connect, solve, split
from rackspan.streams.active.optimum import Optimum, arrival_cost, proven, scale
from rackspan.streams.active.task_groups import TaskGroups, distribute, group_rows, last_of_each, traffic_classes
from rackspan.streams.costs import OwnedTasks
from rackspan.streams.problem import Int32s, Int64s


@dataclass(frozen=True, slots=True, eq=False)
class TaskLimits:
    """How many tasks a client may hold.

    `family` (n,) code of each task's family (its sub-topology), 0 … S − 1; `cap` (S, C) greatest number of tasks of one
    family on one client; `least` and `most` (C,) number of all tasks on one client.
    """

    family: Int64s
    cap: Int64s
    least: Int64s
    most: Int64s


@dataclass(frozen=True, slots=True, eq=False)
class _Layout:
    """Node numbers: a slot for each (family, client), then clients, classes, a pool for each (family, rack), and the sink."""

    tasks: OwnedTasks
    limits: TaskLimits
    classes: TaskGroups
    held: TaskGroups

    @property
    def clients(self) -> int:
        return len(self.tasks.client_rack)

    @property
    def racks(self) -> int:
        return int(self.tasks.traffic.shape[1])

    @property
    def slots(self) -> int:
        return self.limits.cap.size

    @property
    def first_class(self) -> int:
        return self.slots + self.clients

    @property
    def first_pool(self) -> int:
        return self.first_class + len(self.classes.size)

    @property
    def sink(self) -> int:
        return self.first_pool + len(self.limits.cap) * self.racks

    @property
    def slot_client(self) -> Int64s:
        return np.arange(self.slots) % self.clients

    @property
    def slot_pool(self) -> Int64s:
        family = np.arange(self.slots) // self.clients
        return family * self.racks + self.tasks.client_rack[self.slot_client]


def solve_client_flow(tasks: OwnedTasks, limits: TaskLimits) -> Optimum:
    """Give active tasks to clients within `limits`, at least cost.

    Constraints: each task has one client; a client holds at most cap[family, client] tasks of a family and least to most
    in all. Goals in order: the least sum of traffic and non-overlap costs; the fewest tasks moved.
    Method: tasks of equal family, traffic and owner form a group. Every client starts with the tasks it holds, in one slot
    for each family. The tasks of a group may leave their slot, which refunds their traffic, join the pool of their family in
    some rack, which costs traffic and non-overlap, and from there fill any slot of that rack. No optimal flow leads a task
    back to its owner, because that cycle has a positive cost; so every assignment that can be optimal has its exact price.
    Bound: one min-cost flow of G + V · R + 2 · S · C arcs for G groups, V classes, S families, instead of T · C.
    Source: KIP-925 4.B.II; the grouping is ours. tests/streams/test_size.py counts the arcs.
    """
    classes = traffic_classes(tasks.traffic, limits.family)
    layout = _Layout(tasks, limits, classes, group_rows(classes.of, tasks.owner))
    bundles = (_leaving(layout), _joining(layout), _filling(layout), _counting(layout), _above_least(layout))
    solution = solve(connect(_supply(layout), *bundles))
    leaving, joining, filling, _, _ = split(solution.flow, *bundles)
    return proven(tasks, _decode(layout, leaving, joining, filling), solution)


def _leaving(layout: _Layout) -> Arcs:
    """Slot -> class: tasks of a group that leave their owner."""
    tasks, held = layout.tasks, layout.held
    owner = tasks.owner[held.first]
    refund = tasks.traffic[held.first, tasks.client_rack[owner]] * scale(tasks)
    return arcs(
        tail=layout.limits.family[held.first] * layout.clients + owner,
        head=layout.first_class + layout.classes.of[held.first],
        capacity=held.size,
        unit_cost=-refund,
    )


def _joining(layout: _Layout) -> Arcs:
    """Class -> pool: tasks that arrive in one of the racks, within the family."""
    classes, racks = layout.classes, layout.racks
    pool = layout.limits.family[classes.first][:, None] * racks + np.arange(racks)
    return arcs(
        tail=np.repeat(layout.first_class + np.arange(len(classes.size)), racks),
        head=layout.first_pool + pool.ravel(),
        capacity=np.repeat(classes.size, racks),
        unit_cost=arrival_cost(layout.tasks, layout.tasks.traffic[classes.first].ravel()),
    )


def _filling(layout: _Layout) -> Arcs:
    """Pool -> slot: tasks for any client of the rack."""
    slots = np.arange(layout.slots)
    return arcs(layout.first_pool + layout.slot_pool, slots, layout.limits.cap.ravel(), 0)


def _counting(layout: _Layout) -> Arcs:
    """Slot -> client: the tasks of a family on a client."""
    slots = np.arange(layout.slots)
    return arcs(slots, layout.slots + layout.slot_client, layout.limits.cap.ravel(), 0)


def _above_least(layout: _Layout) -> Arcs:
    """Client -> sink: the tasks that a client holds above its least."""
    clients = layout.slots + np.arange(layout.clients)
    return arcs(clients, layout.sink, layout.limits.most - layout.limits.least, 0)


def _supply(layout: _Layout) -> Int64s:
    tasks, limits = layout.tasks, layout.limits
    supply = np.zeros(layout.sink + 1, dtype=np.int64)
    supply[: layout.slots] = np.bincount(limits.family * layout.clients + tasks.owner, minlength=layout.slots)
    supply[layout.slots : layout.first_class] = -limits.least
    supply[layout.sink] = int(limits.least.sum()) - len(tasks)
    return supply


def _decode(layout: _Layout, leaving: Int64s, joining: Int64s, filling: Int64s) -> Int32s:
    """The client of each task: tasks that leave are distributed over pools by class, then over the slots that a pool fills."""
    classes, racks = layout.classes, layout.racks
    leavers = last_of_each(layout.held, leaving)
    joined_class, rack = np.divmod(np.arange(len(joining)), racks)
    pools = layout.limits.family[classes.first][joined_class] * racks + rack
    movers, pool = distribute(leavers, classes.of[leavers], pools, joining, joined_class)
    movers, target = distribute(movers, pool, layout.slot_client, filling, layout.slot_pool)
    client = layout.tasks.owner.copy()
    client[movers] = target
    return client
