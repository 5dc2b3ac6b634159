"""Exchanges between two clients. Parity with Kafka: test_kafka_vectors.py and tests/compat/test_streams.py."""

import numpy as np

from rackspan.model.ids import RackId
from rackspan.streams.client_state import ClientState
from rackspan.streams.problem import Client, ProcessId
from rackspan.streams.standby.exchange import StandbyCosts, exchange_standby_tasks


def two_clients(traffic: list[list[int]], non_overlap: int) -> tuple[list[ClientState], StandbyCosts]:
    """Task 0 on the first client in rack 0, task 1 on the second in rack 1."""
    states = [
        ClientState(at, Client(ProcessId(f"00000000-0000-0000-0000-{at:012d}"), (RackId(f"r{at}"),), 1), set(), {at})
        for at in (0, 1)
    ]
    return states, StandbyCosts(np.array(traffic, dtype=np.int64), np.array([0, 1], dtype=np.int32), non_overlap)


def test_two_standbys_are_swapped_where_both_together_gain() -> None:
    states, costs = two_clients([[10, 0], [10, 10]], non_overlap=1)
    assert exchange_standby_tasks(states, costs, lambda *_: True) == 10
    assert [state.standby for state in states] == [{1}, {0}]


def test_standbys_of_equal_cost_stay() -> None:
    """What one saves the other pays."""
    states, costs = two_clients([[10, 0], [10, 0]], non_overlap=0)
    assert exchange_standby_tasks(states, costs, lambda *_: True) == 10
    assert [state.standby for state in states] == [{0}, {1}]


def test_a_refused_move_stays() -> None:
    states, costs = two_clients([[10, 0], [0, 0]], non_overlap=0)
    assert exchange_standby_tasks(states, costs, lambda *_: False) == 10


def test_a_standby_that_came_in_an_exchange_moves_on_in_the_next_round() -> None:
    """Task 2 costs 10, 0 and 20 on the clients in turn: it is on the last, and its first exchange is with the first."""
    states = [
        ClientState(at, Client(ProcessId(f"00000000-0000-0000-0000-{at:012d}"), (RackId(f"r{at}"),), 1), set(), {at})
        for at in range(3)
    ]
    traffic = np.array([[0, 0, 0], [0, 0, 0], [10, 0, 20]], dtype=np.int64)
    costs = StandbyCosts(traffic, np.array([0, 1, 2], dtype=np.int32), non_overlap=0)
    assert exchange_standby_tasks(states, costs, lambda *_: True) == 0
    assert [state.standby for state in states] == [{1}, {2}, {0}]
