"""Choosing leaders among given replicas: as many as wanted wherever replica sets, or an exchange, allow it."""

import numpy as np

from rackspan.placement.balanced.broker_table import broker_table
from rackspan.placement.balanced.leader_choice import choose_leaders
from rackspan.placement.balanced.settings import BalancedSettings
from tests.placement.scenarios_of_load import cluster


def test_a_leader_is_handed_on_along_a_chain() -> None:
    """Broker 2 leads only if broker 1 gives way, and broker 1 then leads only if broker 0 does."""
    fleet = broker_table(cluster([3]), True, BalancedSettings())
    columns = np.array([[0, 0, 1], [1, 1, 2]], dtype=np.int32)
    ordered, reached = choose_leaders(fleet, columns, np.array([1, 1, 1]))
    assert reached
    assert sorted(ordered[0].tolist()) == [0, 1, 2]
    assert np.array_equal(np.sort(ordered, axis=0), columns)


def test_brokers_of_a_rack_change_places_where_the_sets_do_not_allow_it() -> None:
    """Brokers 0 and 1 share every partition, so do 2 and 3; three leaders for the first pair need one of the others'."""
    fleet = broker_table(cluster([4]), True, BalancedSettings())
    columns = np.array([[0, 0, 2, 2], [1, 1, 3, 3]], dtype=np.int32)
    ordered, reached = choose_leaders(fleet, columns, np.array([2, 1, 1, 0]))
    assert reached
    assert np.bincount(ordered[0], minlength=4).tolist() == [2, 1, 1, 0]
    assert np.bincount(ordered.reshape(-1)).tolist() == [2, 2, 2, 2]
    assert (ordered[0] != ordered[1]).all()


def test_an_impossible_target_is_reported() -> None:
    fleet = broker_table(cluster([1, 1]), True, BalancedSettings())
    columns = np.array([[0, 0], [1, 1]], dtype=np.int32)
    assert choose_leaders(fleet, columns, np.array([1, 1]))[1]
    assert not choose_leaders(fleet, np.array([[0, 0]], dtype=np.int32), np.array([1, 1]))[1]
