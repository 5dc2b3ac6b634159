"""The work table and its queue; the first four tests are Kafka's ConstrainedPrioritySetTest (facts 263-266)."""

import pytest

from rackspan.errors import InvalidProblem
from rackspan.model.ids import RackId
from rackspan.streams.client_state import ClientState, LeastLoaded, owners
from rackspan.streams.problem import Client, ProcessId


def client(index: int, tasks: int = 0, threads: int = 1) -> ClientState:
    process = ProcessId(f"00000000-0000-0000-0000-{index:012d}")
    return ClientState(index, Client(process, (RackId("r"),), threads), set(range(tasks)))


def load(state: ClientState) -> float:
    return state.load


def test_the_least_loaded_client_comes_first() -> None:
    first, second, third = client(1, tasks=3), client(2, tasks=2), client(3, tasks=1)
    queue = LeastLoaded([first, second, third], load)
    assert [queue.poll() for _ in range(4)] == [third, second, first, None]


def test_a_client_offered_twice_comes_once() -> None:
    one = client(1)
    queue = LeastLoaded([one, one], load)
    assert [queue.poll(), queue.poll()] == [one, None]


def test_poll_returns_accepted_clients_only() -> None:
    one, two = client(1), client(2)
    queue = LeastLoaded([one, two], load)
    assert [queue.poll(lambda state: state is one) for _ in range(2)] == [one, None]


def test_refused_clients_stay_in_the_queue() -> None:
    one, two = client(1), client(2)
    queue = LeastLoaded([one, two], load)
    assert [queue.poll(lambda state: state is one) for _ in range(2)] == [one, None]
    assert [queue.poll(), queue.poll()] == [two, None]


def test_offering_again_is_an_update() -> None:
    one, two = client(1), client(2, tasks=1)
    queue = LeastLoaded([one, two], load)
    one.standby.update({7, 8})
    queue.offer(one)
    assert [queue.poll(), queue.poll()] == [two, one]


def test_load_counts_both_roles_by_threads() -> None:
    busy = client(1, tasks=2, threads=4)
    busy.standby.add(9)
    assert (busy.load, busy.active_load) == (0.75, 0.5)


def test_taking_from_an_empty_queue_is_a_lookup_error() -> None:
    with pytest.raises(LookupError):
        LeastLoaded([], load).take()


def test_a_task_that_no_client_has_is_owned_by_none() -> None:
    states = [client(0, tasks=1), client(1)]
    states[1].active = {2}
    assert owners(states, 4).tolist() == [0, -1, 1, -1]


def test_a_client_that_just_joined_held_nothing_before() -> None:
    joined = client(0).client
    assert (joined.prev_active, joined.prev_standby) == (frozenset(), frozenset())


def test_a_client_has_a_rack_where_its_consumers_agree_on_one() -> None:
    process = ProcessId("00000000-0000-0000-0000-000000000001")
    r1, r2 = RackId("r1"), RackId("r2")
    racks = [(r1,), (r1, r1), (r1, r2), (r1, None), (None,), ()]
    assert [Client(process, each, 1).rack for each in racks] == ["r1", "r1", None, None, None, None]


def test_a_client_without_a_thread_is_refused() -> None:
    with pytest.raises(InvalidProblem) as refused:
        client(1, threads=0)
    assert str(refused.value) == "client 00000000-0000-0000-0000-000000000001: threads is 0; a client has at least one"
