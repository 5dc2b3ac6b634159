import numpy as np

from rackspan.audit import RackPolicy
from rackspan.reassign.optimizer.load_costs import FINE_ARCS_MAX, FINE_STEPS_MIN, load_costs, water_levels
from rackspan.reassign.problem import reassignment_problem
from rackspan.reassign.request import ReassignmentRequest
from tests.reassign.instances import cluster, instance


def test_the_water_stands_highest_in_the_rack_that_has_to_hold_most() -> None:
    # Three replicas on racks of 4, 4 and 3 brokers: each rack holds every partition once.
    now = reassignment_problem(instance("broker lost", 1_000), RackPolicy(), ReassignmentRequest())
    assert sorted(water_levels(now).tolist()) == [250, 250, 333]


def test_steps_rise_cover_every_load_and_are_fine_where_brokers_stand() -> None:
    now = reassignment_problem(instance("labelled", 1_000), RackPolicy(), ReassignmentRequest())
    steps = load_costs(now)
    for broker, load in enumerate(now.loads.tolist()):
        selected = steps.broker == broker
        assert (np.diff(steps.unit_cost[selected]) > 0).all()
        assert int(steps.capacity[selected].sum()) >= len(now.rows)
        edges = np.concatenate(([0], np.cumsum(steps.capacity[selected])))
        assert {load - 1, load, load + 1} <= set(edges.tolist())


def test_a_load_far_out_does_not_make_the_ladder_endless() -> None:
    now = reassignment_problem(
        cluster([[0]] * 50_000, dict.fromkeys(range(100), "a")), RackPolicy(), ReassignmentRequest()
    )
    assert len(load_costs(now).broker) < FINE_ARCS_MAX + 100 * 200


def test_steps_are_fine_around_the_level_of_each_brokers_rack_and_around_the_mean() -> None:
    now = reassignment_problem(instance("broker lost", 1_000), RackPolicy(), ReassignmentRequest())
    steps, levels = load_costs(now), water_levels(now).tolist()
    mean = 3_000 // 11
    for broker, code in enumerate(now.rack_map.rack_codes.tolist()):
        edges = {0, *np.cumsum(steps.capacity[steps.broker == broker]).tolist()}
        for centre in (levels[code], mean):
            assert set(range(centre - FINE_STEPS_MIN, centre + FINE_STEPS_MIN + 1)) <= edges
