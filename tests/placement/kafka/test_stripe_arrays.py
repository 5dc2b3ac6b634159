import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rackspan.model import BrokerId, RackId
from rackspan.placement import UsableBroker
from rackspan.placement.kafka import stripe_arrays
from rackspan.placement.kafka.java_random import JavaRandom
from rackspan.placement.kafka.rack_stripes import rack_stripes
from rackspan.placement.kafka.stripe_arrays import place_in_stripes
from tests.strategies import usable_brokers


@given(usable_brokers(fenced=True), st.integers(1, 150), st.integers(0, 2**40), st.data())
def test_arrays_place_and_draw_what_the_loop_does(
    brokers: tuple[UsableBroker, ...], partitions: int, seed: int, data: st.DataObject
) -> None:
    assume(not all(broker.fenced for broker in brokers))
    replicas = data.draw(st.integers(1, len(brokers)))
    array_rng, loop_rng = JavaRandom(seed), JavaRandom(seed)
    arrays, loop = rack_stripes(brokers, array_rng), rack_stripes(brokers, loop_rng)
    assume(arrays.lists_restart_after_shuffle)
    placed = place_in_stripes(arrays, partitions, replicas)
    assert placed.tolist() == [loop.next_partition(replicas) for _ in range(partitions)]
    assert array_rng.state == loop_rng.state


@pytest.mark.parametrize("live", range(6, 15))
@pytest.mark.parametrize("fenced", [0, 1, 2])
def test_rounds_that_end_anywhere_within_a_cycle_of_racks_place_what_the_loop_does(live: int, fenced: int) -> None:
    """A round has as many partitions as live brokers, and a cycle as many as racks."""
    brokers = [UsableBroker(BrokerId(one), RackId("abc"[one % 3]), one >= live) for one in range(live + fenced)]
    arrays, loop = rack_stripes(brokers, JavaRandom(live)), rack_stripes(brokers, JavaRandom(live))
    assert arrays.lists_restart_after_shuffle
    placed = place_in_stripes(arrays, 200, 4).tolist()
    assert placed == [loop.next_partition(4) for _ in range(200)]


def test_blocks_of_rounds_meet_without_a_seam(monkeypatch: pytest.MonkeyPatch) -> None:
    brokers = [UsableBroker(BrokerId(broker), RackId("abc"[broker % 3]), broker > 9) for broker in range(12)]
    whole = place_in_stripes(rack_stripes(brokers, JavaRandom(3)), 1000, 5).tolist()
    monkeypatch.setattr(stripe_arrays, "ELEMENTS_AT_ONCE", 40)
    monkeypatch.setattr(stripe_arrays, "CELLS_AT_ONCE", 1)
    assert place_in_stripes(rack_stripes(brokers, JavaRandom(3)), 1000, 5).tolist() == whole
