"""How brokers count in racks, and what is counted of replicas in them."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackspan.errors import UsageError
from rackspan.model import Broker, BrokerId, RackId, UnrackedPolicy, rack_map
from rackspan.model.racks import (
    counts_descending,
    distinct_racks,
    even_shares,
    even_spread,
    forcing_value,
    left_without_fullest,
)

CODES = st.integers(-1, 4)


@st.composite
def code_rows(draw: st.DrawFn) -> list[list[int]]:
    width = draw(st.integers(0, 5))
    return draw(st.lists(st.lists(CODES, min_size=width, max_size=width), min_size=1, max_size=6))


@given(code_rows())
def test_counting_rows_at_once_is_counting_each(rows: list[list[int]]) -> None:
    codes = np.array(rows, dtype=np.int32)
    each = [sorted((row.count(code) for code in set(row) - {-1}), reverse=True) for row in rows]
    assert [[count for count in row if count] for row in counts_descending(codes).tolist()] == each
    assert distinct_racks(codes).tolist() == [len(counts) for counts in each]


@given(st.lists(st.integers(1, 3), min_size=1, max_size=4), st.integers(1, 4))
def test_the_forcing_value_is_one_more_than_the_fullest_racks_hold(held: list[int], k: int) -> None:
    counts = np.array([sorted(held, reverse=True)], dtype=np.int64)
    members = [rack for rack, count in enumerate(held) for _ in range(count)]
    too_few = [
        sum(chosen)
        for chosen in product((0, 1), repeat=len(members))
        if len({rack for rack, one in zip(members, chosen, strict=True) if one}) < k
    ]
    assert forcing_value(counts, k).tolist() == [max(too_few) + 1]


def test_five_replicas_as_2_2_1_need_min_insync_replicas_3_for_two_racks() -> None:
    assert forcing_value(np.array([[2, 2, 1, 0, 0]]), 2).tolist() == [3]


@given(st.lists(st.integers(0, 4), min_size=1, max_size=4), st.integers(1, 8))
def test_an_even_spread_has_the_least_squares_of_all(sizes: list[int], factor: int) -> None:
    wanted = min(factor, sum(sizes))
    possible = [counts for counts in product(*(range(size + 1) for size in sizes)) if sum(counts) == wanted]
    best = min(possible, key=lambda counts: sum(count * count for count in counts))
    assert even_spread(sizes, factor) == tuple(sorted(best, reverse=True))


BROKERS = [Broker(BrokerId(3), RackId("b")), Broker(BrokerId(1)), Broker(BrokerId(2)), Broker(BrokerId(9), RackId("a"))]


@pytest.mark.parametrize(
    ("policy", "racks"),
    [
        (UnrackedPolicy.SHARED, ["", "", "b", "a"]),
        (UnrackedPolicy.OWN, ["(broker 1)", "(broker 2)", "b", "a"]),
        (UnrackedPolicy.IGNORE, [None, None, "b", "a"]),
    ],
)
def test_rackless_brokers_count_as_the_policy_says(policy: UnrackedPolicy, racks: list[str | None]) -> None:
    counted = rack_map(BROKERS, policy)
    assert [None if code < 0 else counted.racks[code] for code in counted.rack_codes.tolist()] == racks


def test_the_error_policy_names_the_rackless_brokers() -> None:
    with pytest.raises(UsageError, match="brokers without a rack: 1, 2;"):
        rack_map(BROKERS, UnrackedPolicy.ERROR)


@pytest.mark.parametrize("largest", [9, 2_000_000])
def test_padding_and_unlisted_brokers_have_no_rack_whatever_the_ids(largest: int) -> None:
    counted = rack_map([Broker(BrokerId(0), RackId("a")), Broker(BrokerId(largest), RackId("b"))])
    ids = np.array([[-1, 0, 1], [largest, largest + 1, 2**31 - 1]], dtype=np.int32)
    assert counted.codes(ids).tolist() == [[-1, 0, -1], [1, -1, -1]]


def test_racks_have_sizes_and_their_brokers_names() -> None:
    counted = rack_map([*BROKERS, Broker(BrokerId(4), RackId("a"))], UnrackedPolicy.IGNORE)
    assert (counted.racks, counted.sizes.tolist()) == (("a", "b"), [2, 1])
    assert counted.rack_of == {3: "b", 4: "a", 9: "a"}
    assert counted.names([1, -1, 0, 1]) == ("a", "b")


@given(st.lists(st.lists(st.integers(0, 10), min_size=4, max_size=4), max_size=6))
def test_a_rows_replicas_in_each_rack_are_counted(ids: list[list[int]]) -> None:
    """Brokers 3 and 5 are in b, 9 in a, 1 counts in none; the others are not listed."""
    known = rack_map([*BROKERS[:2], BROKERS[3], Broker(BrokerId(5), RackId("b"))], UnrackedPolicy.IGNORE)
    counted = known.counts_at(known.broker_index(np.array(ids, dtype=np.int32).reshape(len(ids), 4)))
    assert counted.tolist() == [[row.count(9), row.count(3) + row.count(5)] for row in ids]


def test_the_policies_have_the_names_of_the_option() -> None:
    assert [policy.value for policy in UnrackedPolicy] == ["shared", "own", "error", "ignore"]


def test_where_no_broker_counts_in_a_rack_there_are_no_sizes() -> None:
    counted = rack_map([Broker(BrokerId(1)), Broker(BrokerId(2))], UnrackedPolicy.IGNORE)
    assert (counted.racks, counted.sizes.tolist(), counted.rack_of) == ((), [], {})


def test_names_of_racks_come_in_their_order_whatever_that_of_the_codes() -> None:
    counted = rack_map([Broker(BrokerId(number), RackId(f"r{number}")) for number in range(9)])
    assert counted.names([8, -1, 1, 8]) == ("r1", "r8")


def test_what_stands_outside_the_fullest_rack_is_left_without_it() -> None:
    counts = np.array([[3, 2, 1], [2, 2, 0], [3, 0, 0], [0, 0, 0]])
    assert left_without_fullest(counts).tolist() == [3, 2, 0, 0]
    assert left_without_fullest(np.zeros((2, 0), dtype=np.int64)).tolist() == [0, 0]


def test_a_map_of_no_brokers_finds_none() -> None:
    counted = rack_map([])
    assert counted.broker_index(np.array([[0, -1, 5]], dtype=np.int32)).tolist() == [[-1, -1, -1]]
    assert counted.sizes.tolist() == []


@pytest.mark.parametrize("largest", [1, 1_000_000, 1_000_001])
def test_a_brokers_position_is_found_by_table_and_by_search_alike(largest: int) -> None:
    counted = rack_map([Broker(BrokerId(0)), Broker(BrokerId(largest))])
    ids = np.array([0, largest, largest - 1 or 7, -1, 2**31 - 1], dtype=np.int32)
    assert counted.broker_index(ids).tolist() == [0, 1, -1, -1, -1]


@given(st.lists(st.integers(0, 4), min_size=1, max_size=4), st.integers(1, 8))
def test_even_shares_admit_the_even_spreads_and_no_other(sizes: list[int], factor: int) -> None:
    """By enumeration: every way to hold as many replicas as fit whose counts are those of `even_spread`."""
    wanted = min(factor, sum(sizes))
    best = even_spread(sizes, factor)
    possible = [counts for counts in product(*(range(size + 1) for size in sizes)) if sum(counts) == wanted]
    even = [counts for counts in possible if tuple(sorted(counts, reverse=True)) == best]
    fewest, most = even_shares(np.array(sizes), factor)
    assert fewest.tolist() == [min(counts[rack] for counts in even) for rack in range(len(sizes))]
    assert most.tolist() == [max(counts[rack] for counts in even) for rack in range(len(sizes))]


def test_brokers_of_any_id_are_found_without_a_table_as_large_as_the_largest() -> None:
    largest = 2**31 - 1
    for ids in ([1, 7, 1_000_000], [1, 7, 1_000_001], [1, 7, largest]):
        found = rack_map([Broker(BrokerId(one), RackId(f"r{one}")) for one in ids])
        wanted = np.array([[ids[2], -1, 7], [6, 1, largest - 1]], dtype=np.int32)
        assert found.broker_index(wanted).tolist() == [[2, -1, 1], [-1, 0, -1]]
        assert (found._index_by_id is not None) == (ids[2] == 1_000_000)
