"""Detours to where the state is, and the one budget of warm-ups. Parity with Kafka: tests/compat/test_streams.py."""

from rackspan.model.ids import RackId
from rackspan.streams.assignors.lags import TaskLags
from rackspan.streams.assignors.movements import Movements
from rackspan.streams.client_state import ClientState
from rackspan.streams.problem import LATEST, Client, ProcessId


def clients(*active: set[int]) -> list[ClientState]:
    return [
        ClientState(at, Client(ProcessId(f"00000000-0000-0000-0000-{at:012d}"), (RackId("r"),), 1), tasks)
        for at, tasks in enumerate(active)
    ]


def test_the_owner_keeps_running_while_the_intended_client_warms_up() -> None:
    states = clients({0}, set())
    movements = Movements(states, TaskLags({0: {1: LATEST}}, 2, 0), warmups_left=1)
    assert movements.move_active_tasks() == 1
    assert (states[0].active, states[0].standby, states[1].active) == (set(), {0}, {0})


def test_without_budget_the_task_moves_and_leaves_no_warm_up() -> None:
    states = clients({0, 1}, set())
    movements = Movements(states, TaskLags({0: {1: LATEST}, 1: {1: LATEST}}, 2, 0), warmups_left=1)
    assert movements.move_active_tasks() == 2
    assert (states[0].standby, states[1].active) == ({0}, {0, 1})


def test_a_caught_up_standby_swaps_roles_without_a_warm_up() -> None:
    states = clients({0}, set(), set())
    states[2].standby.add(0)
    movements = Movements(states, TaskLags({0: {1: LATEST, 2: 0}}, 3, 0), warmups_left=1)
    assert movements.move_active_tasks() == 1
    assert (states[2].active, states[0].standby, movements.warmups_left) == ({0}, {0}, 1)


def test_a_task_stays_where_no_client_has_less_lag() -> None:
    states = clients({0}, set())
    assert Movements(states, TaskLags({}, 2, 0), warmups_left=2).move_active_tasks() == 0


def test_a_warm_up_just_made_is_not_moved_again_as_a_standby() -> None:
    states = clients({0}, set(), set())
    movements = Movements(states, TaskLags({0: {1: LATEST, 2: 0}}, 3, 0), warmups_left=1)
    movements.move_active_tasks()
    assert movements.move_standby_tasks() == 0
