"""The size of the networks that are solved, counted: it determines how the time grows with the number of tasks."""

from random import Random

import numpy as np
import pytest

from rackspan.flow import CertifiedFlow, solve
from rackspan.flow.network import FlowNetwork
from rackspan.streams.active import balance_subtopology, client_flow, min_traffic
from rackspan.streams.costs import OwnedTasks
from tests.streams.owned import owned

RACKS, SUBTOPOLOGIES = 3, 10
SIZES = ((600, 60), (2_400, 120), (9_600, 240))


def group(tasks: int, clients: int, sources: int = 3) -> OwnedTasks:
    """Tasks assigned round-robin, each with 0 to `sources` partitions across racks in each rack."""
    rng = Random(tasks)
    return owned(
        owner=[task % clients for task in range(tasks)],
        traffic=[[10 * rng.randint(0, sources) for _ in range(RACKS)] for _ in range(tasks)],
        client_rack=[client % RACKS for client in range(clients)],
        non_overlap=1,
        subtopology=[task % SUBTOPOLOGIES for task in range(tasks)],
    )


@pytest.fixture
def arcs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of arcs of each network that is solved."""
    sizes: list[int] = []

    def solve_and_count(network: FlowNetwork) -> CertifiedFlow:
        sizes.append(len(network.tail))
        return solve(network)

    monkeypatch.setattr(min_traffic, "solve", solve_and_count)
    monkeypatch.setattr(client_flow, "solve", solve_and_count)
    return sizes


def test_min_traffic_solves_a_network_of_racks_however_many_tasks_and_clients(arcs: list[int]) -> None:
    for tasks, clients in SIZES:
        min_traffic.min_traffic(group(tasks, clients))
    classes = 4**RACKS
    assert max(arcs) == 2 * RACKS * classes


def test_more_source_partitions_per_task_are_more_classes_and_never_more_than_tasks(arcs: list[int]) -> None:
    for sources in (1, 3, 6, 12):
        tasks = group(2_400, 120, sources)
        min_traffic.min_traffic(tasks)
        assert arcs[-1] <= 2 * RACKS * min(len(tasks), len(np.unique(tasks.traffic, axis=0)))
    assert arcs == sorted(arcs)


def test_balanced_sub_topologies_are_more_arcs_yet_far_from_tasks_times_clients(arcs: list[int]) -> None:
    for tasks, clients in SIZES:
        owned_tasks = group(tasks, clients)
        min_traffic.min_traffic(owned_tasks)
        balance_subtopology.balance_subtopology(owned_tasks)
        fewer, more = arcs[-2:]
        assert fewer < more
        # Each task leaves at most once; classes of a sub-topology join racks; slots and clients are counted once each.
        assert more <= tasks + SUBTOPOLOGIES * 4**RACKS * RACKS + 2 * SUBTOPOLOGIES * clients + clients
        assert more < tasks * clients / 4
