"""The first spread that does, held against every way to fill the racks."""

from collections.abc import Callable, Iterator
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from rackspan.acks.spreads import better_spreads

RACK_SIZES = st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple)


def every_filling(rack_sizes: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Every number of replicas in each rack, fullest rack first, empty ones left out."""
    for counts in product(*(range(size + 1) for size in rack_sizes)):
        if any(counts):
            yield tuple(sorted((count for count in counts if count), reverse=True))


def evenest(rack_sizes: tuple[int, ...], replication_factor: int) -> tuple[int, ...]:
    """The filling with the least sum of squares."""
    same = (counts for counts in every_filling(rack_sizes) if sum(counts) == replication_factor)
    return min(same, key=lambda counts: sum(count**2 for count in counts))


def least(counts: tuple[int, ...], k: int) -> int:
    return sum(counts[: k - 1]) + 1


def fewest(rack_sizes: tuple[int, ...], at_least: int, fits: Callable[[tuple[int, ...]], bool]) -> int | None:
    return min((sum(c) for c in every_filling(rack_sizes) if sum(c) >= at_least and fits(c)), default=None)


@given(RACK_SIZES, st.integers(2, 4), st.integers(1, 8))
def test_each_first_spread_has_the_fewest_replicas_that_do(rack_sizes: tuple[int, ...], k: int, now: int) -> None:
    found = better_spreads(rack_sizes, k, now)
    now = min(now, sum(rack_sizes))
    upwards = [one for one in found if one.replication_factor >= now]

    def first(name: str) -> int | None:
        return min((one.replication_factor for one in upwards if getattr(one, name)), default=None)

    assert first("possible") == fewest(rack_sizes, now, lambda c: least(c, k) <= sum(c))
    assert first("survives_broker") == fewest(rack_sizes, now, lambda c: least(c, k) <= sum(c) - 1)
    survives_rack = fewest(rack_sizes, now, lambda c: least(c, k) <= sum(c) - c[0])
    assert first("survives_rack") == survives_rack
    smaller = [one for one in found if one.replication_factor < now]
    assert len(smaller) <= (survives_rack is None)
    if survives_rack is None:
        anywhere = fewest(rack_sizes, 1, lambda c: least(c, k) <= sum(c) - c[0])
        assert bool(smaller) == (anywhere is not None)
        assert all(one.survives_rack for one in smaller)
        even = [evenest(rack_sizes, factor) for factor in range(1, now)]
        nearest = max((sum(c) for c in even if least(c, k) <= sum(c) - c[0]), default=None)
        assert nearest in [one.replication_factor for one in smaller] or nearest is None


@given(RACK_SIZES, st.integers(2, 4), st.integers(1, 8))
def test_every_spread_fits_the_racks(rack_sizes: tuple[int, ...], k: int, now: int) -> None:
    fillings = set(every_filling(rack_sizes))
    for one in better_spreads(rack_sizes, k, now):
        assert one.counts in fillings
        assert one.least == least(one.counts, k)


def test_where_more_replicas_only_crowd_a_rack_the_nearest_smaller_spread_that_survives_one_is_the_last() -> None:
    found = better_spreads((9, 1, 1), 2, 7)
    assert [one.counts for one in found] == [(5, 1, 1), (1, 1, 1)]
    assert [one.counts for one in better_spreads((9, 2, 2), 2, 8)] == [(4, 2, 2), (3, 2, 2)]
