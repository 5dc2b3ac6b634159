"""The cost of an assignment: partitions read across racks, and tasks that leave their client (KIP-925, 4.B).

Active tasks are priced by their source partitions alone and standby tasks by their changelogs, as Kafka's code does it
(KIP-925 itself would price all partitions of a task).
"""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import numpy as np

from rackspan.errors import UsageError
from rackspan.flow import MAX_SCALED_COST
from rackspan.streams.problem import Costs, Int32s, Int64s, PartitionLists, PartitionRacks, Problem


@dataclass(frozen=True, slots=True, eq=False)
class OwnedTasks:
    """A set of active tasks, the client that holds each, and the cost of each in every rack.

    `owner` (n,) client; `traffic` (n, R) number of partitions read across racks from there, times the traffic cost;
    `subtopology` (n,) codes; `client_rack` (C,) codes, none of them −1; `non_overlap` is the cost of a task that leaves its
    owner.
    """

    owner: Int32s
    traffic: Int64s
    subtopology: Int32s
    client_rack: Int32s
    non_overlap: int

    def __len__(self) -> int:
        return len(self.owner)

    @property
    def held(self) -> Int64s:
        """The number of these tasks on each client: the quota that optimisation keeps. Shape (C,)."""
        return np.bincount(self.owner, minlength=len(self.client_rack))

    def cost(self, client: Int32s) -> int:
        """Total cost of task t on `client[t]` for all t, as Kafka reports it."""
        crossing = self.traffic[np.arange(len(self)), self.client_rack[client]]
        return int(crossing.sum()) + self.non_overlap * int(np.count_nonzero(client != self.owner))


def cross_rack(lists: PartitionLists, partitions: PartitionRacks) -> Int64s:
    """The weight of each task's partitions that have no replica in each rack. Shape (T, R)."""
    absent = np.where(partitions.in_rack, 0, partitions.weight[:, None])
    # Differences of running sums, not reduceat: a task without partitions costs nothing instead of its neighbour's.
    running = np.zeros((len(lists.partition) + 1, absent.shape[1]), dtype=np.int64)
    np.cumsum(absent[lists.partition], axis=0, out=running[1:])
    return np.asarray(running[lists.offset[1:]] - running[lists.offset[:-1]])


def priced(crossing: Int64s, costs: Costs, tasks: int) -> Int64s:
    """`crossing` (T, R) times the traffic cost. Errors: UsageError where the sum over `tasks` tasks could exceed 64 bits."""
    highest = int(crossing.max(initial=0)) * costs.traffic + costs.non_overlap
    if (highest + 1) * (tasks + 1) >= MAX_SCALED_COST:
        raise UsageError(
            f"a task can cost {highest}, too much for an exact sum over {tasks} tasks; lower the costs, or give partition_weights in a larger unit"
        )
    return crossing * costs.traffic


def owned_tasks(problem: Problem, members: Int32s, owner: Int32s, costs: Costs) -> OwnedTasks:
    """The tasks `members` of a problem with rack awareness on, task t on client `owner[t]`."""
    crossing = cross_rack(problem.tasks.source, problem.partitions)
    return OwnedTasks(
        owner=owner[members],
        traffic=priced(crossing[members], costs, len(members)),
        subtopology=problem.tasks.subtopology[members],
        client_rack=problem.client_rack,
        non_overlap=costs.non_overlap,
    )


def crossings(crossing: Int64s, client_rack: Int32s, held: Sequence[AbstractSet[int]]) -> int:
    """Sum of `crossing` (T, R) over the tasks that each client holds."""
    return sum(int(crossing[sorted(tasks), client_rack[client]].sum()) for client, tasks in enumerate(held) if tasks)


def equal_cost(problem: Problem) -> bool:
    """Whether every task costs the same in all racks, so that rack awareness has nothing to optimise (KIP-925, section 6)."""
    crossing = cross_rack(problem.tasks.source, problem.partitions)
    return crossing.shape[1] < 2 or bool((crossing == crossing[:, :1]).all())
