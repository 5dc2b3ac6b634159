"""Active tasks as a flow that keeps clients: for limits that a rack alone cannot tell."""

from dataclasses import dataclass

import numpy as np

from rackspan.flow import Arcs, arcs, connect, solve, split
from rackspan.streams.active.optimum import Optimum, arrival_cost, proven, scale
from rackspan.streams.active.task_groups import TaskGroups, deal, group_rows, last_of_each, traffic_classes
from rackspan.streams.costs import OwnedTasks
from rackspan.streams.problem import Int32s, Int64s


@dataclass(frozen=True, slots=True, eq=False)
class TaskLimits:
    """How many tasks a client may hold. `family` (n,) code of each task's family, 0 … S − 1; `cap` (S, C) tasks of one
    family on one client; `least` and `most` (C,) tasks on one client in all."""

    family: Int64s
    cap: Int64s
    least: Int64s
    most: Int64s


@dataclass(frozen=True, slots=True, eq=False)
class _Layout:
    """Node numbers: one place for each (family, client), then clients, classes, pools for each (family, rack), the float."""

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
    def places(self) -> int:
        return self.limits.cap.size

    @property
    def first_class(self) -> int:
        return self.places + self.clients

    @property
    def first_pool(self) -> int:
        return self.first_class + len(self.classes.size)

    @property
    def float_node(self) -> int:
        return self.first_pool + len(self.limits.cap) * self.racks

    @property
    def place_client(self) -> Int64s:
        return np.arange(self.places) % self.clients

    @property
    def place_pool(self) -> Int64s:
        family = np.arange(self.places) // self.clients
        return family * self.racks + self.tasks.client_rack[self.place_client]


def grouped_flow(tasks: OwnedTasks, limits: TaskLimits) -> Optimum:
    """Give active tasks to clients within `limits`, at least cost.

    Constraints: each task has one client; a client holds at most cap[family, client] tasks of a family and least to most
    in all. Goals in order: the least sum of traffic and non-overlap costs; the fewest tasks moved.
    Method: tasks alike in family, traffic and owner form a group. Every client starts with what it holds, at a place for
    each family. A group's tasks may leave their place, which refunds their traffic, join the pool of their family in some
    rack, which pays traffic and non-overlap, and from there fill any place of that rack. A task is never led back to its
    owner, because that circle has a positive cost: the model prices every assignment that can be optimal exactly.
    Bound: one min-cost flow of G + V · R + 2 · S · C arcs for G groups, V classes, S families, instead of T · C.
    Source: KIP-925 4.B.II; the grouping is ours.
    """
    classes = traffic_classes(tasks.traffic, limits.family)
    layout = _Layout(tasks, limits, classes, group_rows(classes.of, tasks.owner))
    bundles = (_leaving(layout), _joining(layout), _filling(layout), _counting(layout), _floating(layout))
    answer = solve(connect(_supply(layout), *bundles))
    leaving, joining, filling, _, _ = split(answer.flow, *bundles)
    return proven(tasks, _decode(layout, leaving, joining, filling), answer)


def _leaving(layout: _Layout) -> Arcs:
    """Place -> class: tasks of a group that leave their owner."""
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
    """Class -> pool: to one of the racks, within the family."""
    classes, racks = layout.classes, layout.racks
    pool = layout.limits.family[classes.first][:, None] * racks + np.arange(racks)
    return arcs(
        tail=np.repeat(layout.first_class + np.arange(len(classes.size)), racks),
        head=layout.first_pool + pool.ravel(),
        capacity=np.repeat(classes.size, racks),
        unit_cost=arrival_cost(layout.tasks, layout.tasks.traffic[classes.first].ravel()),
    )


def _filling(layout: _Layout) -> Arcs:
    """Pool -> place: to any client of the rack."""
    places = np.arange(layout.places)
    return arcs(layout.first_pool + layout.place_pool, places, layout.limits.cap.ravel(), 0)


def _counting(layout: _Layout) -> Arcs:
    """Place -> client: what a client holds of a family."""
    places = np.arange(layout.places)
    return arcs(places, layout.places + layout.place_client, layout.limits.cap.ravel(), 0)


def _floating(layout: _Layout) -> Arcs:
    """Client -> float: what a client holds above its least."""
    clients = layout.places + np.arange(layout.clients)
    return arcs(clients, layout.float_node, layout.limits.most - layout.limits.least, 0)


def _supply(layout: _Layout) -> Int64s:
    tasks, limits = layout.tasks, layout.limits
    supply = np.zeros(layout.float_node + 1, dtype=np.int64)
    supply[: layout.places] = np.bincount(limits.family * layout.clients + tasks.owner, minlength=layout.places)
    supply[layout.places : layout.first_class] = -limits.least
    supply[layout.float_node] = int(limits.least.sum()) - len(tasks)
    return supply


def _decode(layout: _Layout, leaving: Int64s, joining: Int64s, filling: Int64s) -> Int32s:
    """Tasks that leave, dealt to pools by class, then to the places that each pool fills."""
    classes, racks = layout.classes, layout.racks
    leavers = last_of_each(layout.held, leaving)
    joined_class, rack = np.divmod(np.arange(len(joining)), racks)
    pools = layout.limits.family[classes.first][joined_class] * racks + rack
    movers, pool = deal(leavers, classes.of[leavers], pools, joining, joined_class)
    movers, target = deal(movers, pool, layout.place_client, filling, layout.place_pool)
    client = layout.tasks.owner.copy()
    client[movers] = target
    return client
