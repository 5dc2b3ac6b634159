"""Excluded brokers: no placer is offered one, and what that would cost the spread over racks is refused."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rackspan.errors import UsageError
from rackspan.model.racks import even_spread
from rackspan.placement import UsableBroker
from rackspan.placement.exclusion import Exclusion
from rackspan.placement.generate import generate
from rackspan.placement.kafka.java_random import JavaRandom
from rackspan.placement.new_partitions import PlacerChoice, more_partitions, new_topic
from tests.placement.scenarios_of_load import cluster
from tests.placement.snapshots import snapshot_of

PLACERS = ("balanced", "rack-alternated", "striped")


def choice(placer: str, *excluded: int, allow: bool = False) -> PlacerChoice:
    return PlacerChoice(placer, exclusion=Exclusion(frozenset(excluded), allow))


@pytest.mark.parametrize("placer", PLACERS)
def test_no_placer_puts_anything_on_an_excluded_broker(placer: str) -> None:
    brokers = cluster([2, 2, 2])
    snapshot = snapshot_of(brokers, np.array([[0, 1, 2]] * 3, dtype=np.int32))
    made = new_topic(snapshot, "new", 30, 3, choice(placer, 0, 4), JavaRandom(1)).assignment.replicas
    added = more_partitions(snapshot, "placed", 30, choice(placer, 0, 4), JavaRandom(1)).assignment.replicas
    again = generate(snapshot, ["placed"], range(6), choice(placer, 0, 4), JavaRandom(1))
    for rows in (made, added, np.array([one.proposed for one in again])):
        assert set(rows.ravel().tolist()) == {1, 2, 3, 5}
        assert all(len({broker % 3 for broker in row}) == 3 for row in rows.tolist())


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=8), st.sets(st.integers(0, 7)), st.integers(1, 4))
def test_what_is_not_refused_is_spread_as_well_as_with_every_broker(
    racks: list[str], excluded: set[int], factor: int
) -> None:
    brokers = tuple(UsableBroker(index, rack, False) for index, rack in enumerate(racks))  # type: ignore[arg-type]
    assume(factor <= len(brokers) and excluded & set(range(len(racks))))
    snapshot = snapshot_of(brokers, np.array([[0]], dtype=np.int32))
    best = even_spread([racks.count(rack) for rack in sorted(set(racks))], factor)
    left = [rack for index, rack in enumerate(racks) if index not in excluded]
    possible = len(left) >= factor and (
        [one for one in even_spread([left.count(rack) for rack in sorted(set(left))], factor) if one]
        == [one for one in best if one]
    )
    try:
        rows = new_topic(snapshot, "new", 5, factor, choice("balanced", *excluded), JavaRandom(0)).assignment.replicas
    except UsageError:
        assert not possible
        return
    assert possible
    assert not excluded & set(rows.ravel().tolist())


def test_a_spread_that_would_be_lost_is_described_and_has_to_be_allowed() -> None:
    brokers = cluster([2, 2, 1])
    snapshot = snapshot_of(brokers, np.array([[0]], dtype=np.int32))
    with pytest.raises(UsageError) as refused:
        new_topic(snapshot, "new", 3, 3, choice("balanced", 2), JavaRandom(0))
    assert str(refused.value) == (
        "with brokers 2 excluded, the replicas of a partition would be 2+1 over racks, not 1+1+1; "
        "exclude fewer, add brokers to those racks, or accept it with --allow-fewer-racks"
    )
    allowed = new_topic(snapshot, "new", 3, 3, choice("balanced", 2, allow=True), JavaRandom(0))
    assert set(allowed.assignment.replicas.ravel().tolist()) == {0, 1, 3, 4}


def test_too_few_brokers_are_named_with_what_is_excluded() -> None:
    brokers = cluster([1, 1, 1])
    snapshot = snapshot_of(brokers, np.array([[0]], dtype=np.int32))
    with pytest.raises(
        UsageError, match=r"^replication factor 3: 2 brokers left without the excluded 1; exclude fewer"
    ):
        new_topic(snapshot, "new", 3, 3, choice("balanced", 1), JavaRandom(0))
    with pytest.raises(UsageError, match=r"^every broker is excluded, and one at least has to hold the replicas"):
        new_topic(snapshot, "new", 3, 3, choice("balanced", 0, 1, 2), JavaRandom(0))


def test_fewer_racks_are_allowed_for_an_exclusion_alone() -> None:
    with pytest.raises(UsageError, match="--allow-fewer-racks: no broker is excluded"):
        Exclusion(frozenset(), allow_fewer_racks=True)
