import numpy as np

from rackspan.reassign.optimizer.replica_lists import compacted, led_by, with_changes

HELD = np.array([[0, 1, 2], [3, 4, -1]], dtype=np.int32)


def changed(leaving: list[list[bool]], row: list[int], broker: list[int]) -> list[list[int]]:
    after = with_changes(HELD, np.array(leaving), np.array(row, dtype=np.int64), np.array(broker))
    return [list(map(int, one)) for one in after]


def test_an_arrival_takes_the_first_place_that_is_free() -> None:
    assert changed([[True, False, False], [False, True, False]], [0, 1], [7, 8]) == [[7, 1, 2], [3, 8, -1]]


def test_arrivals_beyond_the_free_places_are_appended() -> None:
    nobody = [[False] * 3] * 2
    assert changed(nobody, [0, 1, 1], [7, 8, 9]) == [[0, 1, 2, 7], [3, 4, 8, 9]]


def test_what_leaves_without_an_arrival_closes_the_gap() -> None:
    assert changed([[True, False, False], [False] * 3], [], []) == [[1, 2], [3, 4]]


def test_padding_goes_to_the_right_and_no_further_than_needed() -> None:
    assert compacted(np.array([[-1, 5, -1, 6], [7, -1, -1, -1]], dtype=np.int32)).tolist() == [[5, 6], [7, -1]]


def test_a_new_leader_comes_first_and_the_others_keep_their_order() -> None:
    assert led_by(HELD, np.array([0]), np.array([2])).tolist() == [[2, 0, 1], [3, 4, -1]]


def test_long_lists_keep_their_order_too() -> None:
    """NumPy's own sort keeps the order of short rows only."""
    listed = np.arange(200, dtype=np.int32)[None, :]
    gaps = np.where(listed % 7 == 0, -1, listed).astype(np.int32)
    left = [broker for broker in range(200) if broker % 7]
    assert compacted(gaps).tolist() == [left]
    assert led_by(listed, np.array([0]), np.array([150])).tolist() == [
        [150, *(broker for broker in range(200) if broker != 150)]
    ]
