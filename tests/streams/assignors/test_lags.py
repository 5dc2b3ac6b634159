"""Who is caught up, and who comes first by lag."""

from rackspan.streams.assignors.lags import NEVER_ASSIGNED, TaskLags
from rackspan.streams.problem import ALL_CAUGHT_UP, LATEST, UNKNOWN


def lags(known: dict[int, int], acceptable: int = 100, clients: int = 6) -> TaskLags:
    return TaskLags({0: known}, clients, acceptable)


def test_running_tasks_and_small_lags_are_caught_up_unknown_ones_are_not() -> None:
    some = lags({0: LATEST, 1: 100, 2: 101, 3: UNKNOWN})
    assert [some.caught_up(0, client) for client in range(5)] == [True, True, False, False, False]
    assert some.caught_up_clients(0) == [0, 1]


def test_with_the_largest_acceptable_lag_every_client_is_caught_up() -> None:
    assert lags({}, acceptable=ALL_CAUGHT_UP).caught_up_clients(0) == [0, 1, 2, 3, 4, 5]


def test_clients_that_never_had_the_task_come_last_in_their_own_order() -> None:
    some = lags({5: 0, 2: 7})
    assert list(some.ranked_before(0, 4)) == [5, 2, 0, 1, 3]
    assert some.lag(0, 4) == NEVER_ASSIGNED


def test_an_unknown_lag_ranks_before_a_running_task_as_in_kafka() -> None:
    some = lags({0: LATEST, 1: UNKNOWN})
    assert some.least(0) == UNKNOWN
    assert list(some.ranked_before(0, 0)) == [1]
