import numpy as np
from hypothesis import given

from rackspan.streams.active.min_traffic import min_traffic
from rackspan.streams.costs import OwnedTasks
from tests.streams.owned import best, every_assignment, keeps_quotas, owned, owned_sets


def test_the_two_tasks_of_the_proposal_get_the_assignment_of_cost_two() -> None:
    """t1 costs 3 and 1, t2 costs 1 and 2: as dealt that is 5, exchanged it is 2 (KIP-925 4.A.I)."""
    tasks = owned(owner=[0, 1], traffic=[[3, 1], [1, 2]], client_rack=[0, 1])
    optimum = min_traffic(tasks)
    assert tasks.cost(tasks.owner) == 5
    assert (optimum.cost, optimum.client.tolist()) == (2, [1, 0])


@given(owned_sets())
def test_no_assignment_is_cheaper_and_none_as_cheap_moves_fewer(tasks: OwnedTasks) -> None:
    optimum = min_traffic(tasks)
    allowed = (client for client in every_assignment(tasks) if keeps_quotas(tasks, client))
    assert (optimum.cost, optimum.moved) == best(tasks, allowed)
    assert optimum.lower_bound == optimum.cost == tasks.cost(optimum.client)


@given(owned_sets())
def test_every_client_keeps_its_number_of_tasks_and_the_cost_never_rises(tasks: OwnedTasks) -> None:
    optimum = min_traffic(tasks)
    assert keeps_quotas(tasks, optimum.client)
    assert optimum.cost <= tasks.cost(tasks.owner)


@given(owned_sets())
def test_an_optimum_stays_where_it_is(tasks: OwnedTasks) -> None:
    settled = OwnedTasks(
        min_traffic(tasks).client, tasks.traffic, tasks.subtopology, tasks.client_rack, tasks.non_overlap
    )
    assert min_traffic(settled).moved == 0


def test_without_traffic_cost_no_task_moves() -> None:
    tasks = owned(owner=[0, 1, 1], traffic=[[0, 0]] * 3, client_rack=[0, 1])
    assert min_traffic(tasks).moved == 0


def test_no_tasks_cost_nothing() -> None:
    none = OwnedTasks(
        np.zeros(0, np.int32), np.zeros((0, 2), np.int64), np.zeros(0, np.int32), np.array([0, 1], np.int32), 1
    )
    assert (min_traffic(none).cost, min_traffic(none).moved) == (0, 0)
