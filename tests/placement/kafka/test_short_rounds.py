from random import Random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rackspan.model import BrokerId, RackId
from rackspan.placement import UsableBroker
from rackspan.placement.kafka import short_rounds, stripe_arrays
from rackspan.placement.kafka.java_random import JavaRandom
from rackspan.placement.kafka.rack_stripes import RackStripes, rack_stripes
from rackspan.placement.kafka.short_rounds import place_in_short_rounds


@st.composite
def few_brokers(draw: st.DrawFn) -> tuple[UsableBroker, ...]:
    """More than one live broker, and fewer than twice the racks."""
    racks = draw(st.lists(st.integers(0, 7), min_size=2, max_size=12))
    fenced = draw(st.lists(st.booleans(), min_size=len(racks), max_size=len(racks)))
    live = fenced.count(False)
    assume(1 < live < 2 * len(set(racks)))
    return tuple(
        UsableBroker(BrokerId(number), RackId(f"r{rack}"), is_fenced)
        for number, (rack, is_fenced) in enumerate(zip(racks, fenced, strict=True))
    )


def by_loop_and_by_arrays(
    brokers: tuple[UsableBroker, ...], partitions: int, replicas: int, seed: int
) -> tuple[list[list[int]], list[list[int]]]:
    """The replicas of each partition by Kafka's loop and by arrays, which have drawn the same random numbers."""
    array_rng, loop_rng = JavaRandom(seed), JavaRandom(seed)
    placed = place_in_short_rounds(rack_stripes(brokers, array_rng), partitions, replicas)
    loop = rack_stripes(brokers, loop_rng)
    rows = [list(loop.next_partition(replicas)) for _ in range(partitions)]
    assert array_rng.state == loop_rng.state
    return rows, placed.tolist()


@given(few_brokers(), st.integers(1, 150), st.integers(0, 2**40), st.data())
def test_arrays_place_and_draw_what_the_loop_does(
    brokers: tuple[UsableBroker, ...], partitions: int, seed: int, data: st.DataObject
) -> None:
    replicas = data.draw(st.integers(1, len(brokers)))
    rows, placed = by_loop_and_by_arrays(brokers, partitions, replicas, seed)
    assert placed == rows


def on_racks(*sizes: int, fenced: frozenset[int] = frozenset()) -> tuple[UsableBroker, ...]:
    racks = [rack for rack, size in enumerate(sizes) for _ in range(size)]
    return tuple(UsableBroker(BrokerId(one), RackId(f"r{rack}"), one in fenced) for one, rack in enumerate(racks))


MANY = [on_racks(*[1] * 12), on_racks(2, 2, 1, 1), on_racks(3, 1, 1, fenced=frozenset({0, 4}))]


@pytest.mark.parametrize("brokers", MANY)
def test_a_thousand_shuffles_and_blocks_of_rounds_change_nothing(
    brokers: tuple[UsableBroker, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stripe_arrays, "ELEMENTS_AT_ONCE", 20_000)
    rows, placed = by_loop_and_by_arrays(brokers, 5_000, 3, Random(7).getrandbits(40))
    assert placed == rows


@pytest.mark.parametrize("brokers", MANY)
def test_rounds_settle_without_the_loop(brokers: tuple[UsableBroker, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    stripes = rack_stripes(brokers, JavaRandom(11))
    monkeypatch.setattr(RackStripes, "next_partition", None)
    assert len(place_in_short_rounds(stripes, 300, 2)) == 300


@pytest.mark.parametrize("brokers", MANY)
@pytest.mark.parametrize("passes", [0, 1])
def test_rounds_that_do_not_settle_are_left_to_the_loop(
    brokers: tuple[UsableBroker, ...], passes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stripe_arrays, "ELEMENTS_AT_ONCE", 2_000)
    monkeypatch.setattr(short_rounds, "PASSES_MAX", passes)
    rows, placed = by_loop_and_by_arrays(brokers, 300, 2, 11)
    assert placed == rows
