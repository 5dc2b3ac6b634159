"""The figures of java.util.Random and HashMap here were printed by a JDK 17; tests/compat holds more of them."""

from itertools import chain
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackspan.model import RackId
from rackspan.placement.kafka.java_random import (
    JavaRandom,
    Lcg64,
    hash_map_order,
    java_rng,
    shuffle_permutations,
    utf16,
)

seeds = st.integers(-(2**63), 2**63 - 1)
bounds = st.lists(st.one_of(st.integers(1, 1000), st.integers(1, 2**31 - 1)), max_size=70)


def test_java_random_draws_what_java_draws() -> None:
    rng = JavaRandom(42)
    assert [rng.next_int(100) for _ in range(5)] == [30, 63, 48, 84, 70]


@given(seeds, bounds, st.sampled_from([JavaRandom, Lcg64]))
def test_many_draws_at_once_are_the_same_draws(seed: int, bounds: list[int], kind: type[JavaRandom | Lcg64]) -> None:
    at_once, in_turn = kind(seed), kind(seed)
    assert at_once.next_ints(np.array(bounds, dtype=np.int64)).tolist() == [in_turn.next_int(bound) for bound in bounds]
    assert at_once.state == in_turn.state


def test_draws_that_java_rejects_are_rejected_in_an_array_too() -> None:
    # With a bound just above 2^30 nearly every second draw is unfair.
    bounds = [2**30 + 1] * 1000
    at_once, in_turn = JavaRandom(7), JavaRandom(7)
    assert at_once.next_ints(np.array(bounds)).tolist() == [in_turn.next_int(bound) for bound in bounds]


def test_a_bound_below_one_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="bound 0: a draw needs a bound of at least 1"):
        JavaRandom(1).next_int(0)


@given(seeds, st.lists(st.integers(0, 9), min_size=1, max_size=4).filter(any), st.integers(0, 5))
def test_shuffles_at_once_are_swaps_in_turn(seed: int, sizes: list[int], shuffles: int) -> None:
    rng, bounds = JavaRandom(seed), [list(range(size, 1, -1)) for size in sizes]
    draws = [[[rng.next_int(bound) for bound in of_list] for of_list in bounds] for _ in range(shuffles)]
    expected = []
    for row in draws:
        items: list[int] = []
        for size, of_list in zip(sizes, row, strict=True):
            part = list(range(len(items), len(items) + size))
            for bound, other in zip(range(size, 1, -1), of_list, strict=True):
                part[bound - 1], part[other] = part[other], part[bound - 1]
            items += part
        expected.append(items)
    flat = np.array([list(chain.from_iterable(row)) for row in draws], dtype=np.int64).reshape(
        shuffles, sum(map(len, bounds))
    )
    assert shuffle_permutations(sizes, flat).tolist() == expected


def test_python_rng_gives_java_rng_that_repeat() -> None:
    first, second = java_rng(Random(3)), java_rng(Random(3))
    assert [first.next_int(1000) for _ in range(9)] == [second.next_int(1000) for _ in range(9)]


def test_names_that_share_a_bucket_keep_their_order_of_arrival() -> None:
    assert hash_map_order([RackId("BB"), RackId("Aa"), None]) == ["BB", "Aa", None]


@pytest.mark.parametrize(
    ("names", "order"),
    [
        (13, [9, 7, 8, 5, 6, 3, 4, 1, 2, 0, 12, 10, 11]),
        (
            30,
            [
                29,
                27,
                28,
                25,
                26,
                23,
                24,
                21,
                22,
                20,
                9,
                7,
                8,
                5,
                6,
                3,
                4,
                1,
                2,
                0,
                18,
                19,
                16,
                17,
                14,
                15,
                12,
                13,
                10,
                11,
            ],
        ),
    ],
)
def test_a_table_that_grew_has_the_order_of_java_17(names: int, order: list[int]) -> None:
    """As java.util.HashMap printed it: a 13th name doubles the table, and a 25th again."""
    assert hash_map_order([RackId(f"zone-{number}") for number in range(names)]) == [f"zone-{at}" for at in order]


def test_javas_string_order_is_by_code_unit_with_no_rack_first() -> None:
    # A supplementary character is two surrogates, which are smaller than U+FF21.
    assert sorted(["\uff21", "𝄞", None, "a"], key=utf16) == [None, "a", "𝄞", "\uff21"]
