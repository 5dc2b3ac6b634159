from rackspan.model.ids import RackId
from rackspan.streams.assignors.thread_balance import active, balance_over_threads
from rackspan.streams.client_state import ClientState
from rackspan.streams.problem import Client, ProcessId


def clients(*threads: int) -> list[ClientState]:
    return [
        ClientState(at, Client(ProcessId(f"00000000-0000-0000-0000-{at:012d}"), (RackId("r"),), count))
        for at, count in enumerate(threads)
    ]


def test_tasks_follow_the_threads() -> None:
    states = clients(1, 2, 3)
    for task in range(6):
        states[task % 3].active.add(task)
    balance_over_threads(states, active)
    assert [len(state.active) for state in states] == [1, 2, 3]


def test_the_lowest_tasks_move_first() -> None:
    states = clients(1, 1)
    states[0].active.update(range(4))
    balance_over_threads(states, active)
    assert states[1].active == {0, 1}


def test_the_lowest_task_moves_first_in_whatever_order_a_set_has_them() -> None:
    states = clients(1, 1)
    states[0].active.update({8, 1})
    balance_over_threads(states, active)
    assert (states[0].active, states[1].active) == ({8}, {1})


def test_a_task_that_the_target_has_in_another_role_stays() -> None:
    states = clients(1, 3)
    states[0].active.update({0, 1})
    states[1].standby.add(0)
    balance_over_threads(states, active)
    assert (states[0].active, states[1].active) == ({0}, {1})


def test_a_pair_that_may_not_exchange_does_not() -> None:
    states = clients(1, 1)
    states[0].active.update(range(4))
    balance_over_threads(states, active, lambda _source, _target: False)
    assert len(states[0].active) == 4


def test_a_single_move_that_helps_is_made_and_the_next_round_goes_on_from_it() -> None:
    """Four tasks on one of three clients: one moves to each of the others, and then one more to the lesser of them."""
    states = clients(1, 1, 1)
    states[0].active.update(range(5))
    balance_over_threads(states, active)
    assert sorted(len(state.active) for state in states) == [1, 2, 2]


def test_a_client_that_received_tasks_passes_them_on() -> None:
    """The first may give nothing to the last, which gets its task from the second."""
    states = clients(1, 1, 1)
    states[0].active.update(range(6))
    balance_over_threads(states, active, lambda source, target: (source.index, target.index) != (0, 2))
    assert [len(state.active) for state in states] == [3, 2, 1]


def test_a_client_passes_on_in_the_next_round_what_it_received_after_its_turn() -> None:
    """The last may give nothing to the first, which gets its tasks from the second, a round later."""
    states = clients(1, 1, 1)
    states[2].active.update(range(6))
    balance_over_threads(states, active, lambda source, target: (source.index, target.index) != (2, 0))
    assert [len(state.active) for state in states] == [1, 2, 3]


def test_a_move_that_would_only_turn_the_difference_round_is_not_made() -> None:
    states = clients(1, 1)
    states[0].active.update({0, 1})
    states[1].active.add(2)
    balance_over_threads(states, active)
    assert [len(state.active) for state in states] == [2, 1]
