"""What create and extend propose; the judges are Kafka's own rule for added partitions, and audit."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackspan.audit import RackPolicy, audit
from rackspan.errors import PartialRacks, UsageError
from rackspan.model import BrokerId, ClusterSnapshot, RackId, columns
from rackspan.placement import UsableBroker
from rackspan.placement.balanced.settings import (
    LEADERS_CONFIG,
    REPLICAS_CONFIG,
    TOPIC_LEADERS_CONFIG,
    TOPIC_REPLICAS_CONFIG,
)
from rackspan.placement.kafka.java_random import JavaRandom
from rackspan.placement.kafka.rack_alternated import START_INDEX_CONFIG, add_partitions
from rackspan.placement.new_partitions import PlacerChoice, more_partitions, new_topic
from rackspan.placement.spec_format import PARTITIONS_MAX
from tests.placement.snapshots import snapshot_of


def brokers_in(*racks: str | None) -> tuple[UsableBroker, ...]:
    return tuple(
        UsableBroker(BrokerId(i), None if rack is None else RackId(rack), False) for i, rack in enumerate(racks)
    )


@given(st.lists(st.sampled_from("abc"), min_size=3, max_size=9), st.integers(1, 9), st.integers(1, 30), st.data())
def test_rack_alternated_goes_on_as_adminutils_does(
    racks: list[str], existing: int, more: int, data: st.DataObject
) -> None:
    brokers = brokers_in(*racks)
    rows = data.draw(st.lists(st.permutations(range(len(racks))), min_size=existing, max_size=existing))
    standing = {partition: row[:2] for partition, row in enumerate(rows)}
    snapshot = snapshot_of(brokers, np.array(list(standing.values()), dtype=np.int32))
    proposal = more_partitions(snapshot, "placed", existing + more, PlacerChoice("rack-alternated"), JavaRandom(0))
    kafkas = add_partitions("placed", standing, existing + more, brokers)  # type: ignore[arg-type]
    assert proposal.assignment.replicas.tolist() == kafkas.replicas.tolist()
    assert (proposal.start_partition, proposal.total) == (existing, existing + more)


@given(st.lists(st.sampled_from("abc"), min_size=3, max_size=9), st.integers(1, 30), st.integers(1, 3), st.integers())
def test_balanced_keeps_the_cluster_clean(racks: list[str], partitions: int, factor: int, seed: int) -> None:
    brokers = brokers_in(*racks)
    snapshot = snapshot_of(brokers, np.array([[0]], dtype=np.int32))
    proposal = new_topic(snapshot, "new", partitions, factor, PlacerChoice(), JavaRandom(seed))
    judged = audit(snapshot_of(brokers, proposal.assignment.replicas), RackPolicy())
    assert [one for one in judged.findings if one.constraint == "rack-spread"] == []


@pytest.mark.parametrize("placer", ["balanced", "rack-alternated", "striped"])
def test_the_tool_refuses_partial_racks_whatever_the_placer(placer: str) -> None:
    snapshot = snapshot_of(brokers_in("a", "b", None), np.array([[0]], dtype=np.int32))
    with pytest.raises(PartialRacks, match="Not all brokers have rack information"):
        new_topic(snapshot, "new", 1, 1, PlacerChoice(placer), JavaRandom(0))
    ignoring = new_topic(snapshot, "new", 3, 3, PlacerChoice(placer, ignore_racks=True), JavaRandom(0))
    assert ignoring.by_rack is False
    assert all(broker.rack is None for broker in ignoring.brokers)


@pytest.mark.parametrize("placer", ["balanced", "rack-alternated", "striped"])
@pytest.mark.parametrize("racks", ["aaabbb", "aaabb-"])
def test_with_racks_ignored_the_placement_is_that_of_brokers_without_racks(placer: str, racks: str) -> None:
    """Both with all and with partial racks, where placing by the racks would give another placement."""
    nowhere = np.array([[0]], dtype=np.int32)
    rack_of = [None if rack == "-" else rack for rack in racks]
    snapshot = snapshot_of(brokers_in(*rack_of), nowhere)
    ignoring = new_topic(snapshot, "new", 12, 2, PlacerChoice(placer, ignore_racks=True), JavaRandom(0))
    without = new_topic(
        snapshot_of(brokers_in(*[None] * 6), nowhere), "new", 12, 2, PlacerChoice(placer), JavaRandom(0)
    )
    assert ignoring.assignment.replicas.tolist() == without.assignment.replicas.tolist()
    by_rack = new_topic(snapshot_of(brokers_in(*"aaabbb"), nowhere), "new", 12, 2, PlacerChoice(placer), JavaRandom(0))
    assert all(len({"aaabbb"[broker] for broker in row}) == 2 for row in by_rack.assignment.replicas.tolist())
    assert any(len({"aaabbb"[broker] for broker in row}) == 1 for row in ignoring.assignment.replicas.tolist())


def test_names_that_are_equal_in_metrics_are_refused() -> None:
    snapshot = snapshot_of(brokers_in("a"), np.array([[0]], dtype=np.int32))
    assert new_topic(snapshot, "place.d", 1, 1, PlacerChoice(), JavaRandom(0)).topic == "place.d"
    dotted = snapshot_of(brokers_in("a"), np.array([[0]], dtype=np.int32))
    object.__setattr__(dotted.topics[0], "name", "a.b")
    with pytest.raises(UsageError, match=r"^topic 'a_b' collides with existing topic 'a\.b'; choose another name$"):
        new_topic(dotted, "a_b", 1, 1, PlacerChoice(), JavaRandom(0))


THREE = brokers_in("a", "b", "c")


def placed_on(*replicas: list[int]) -> ClusterSnapshot:
    return snapshot_of(THREE, np.array(replicas, dtype=np.int32))


def test_partitions_are_added_after_the_greatest_id_even_where_some_are_missing() -> None:
    snapshot = placed_on([0, 1], [1, 2], [2, 0])
    gap = replace(snapshot, partitions=snapshot.partitions.take(np.array([True, False, True])))
    proposal = more_partitions(gap, "placed", 5, PlacerChoice(), JavaRandom(0))
    assert (proposal.start_partition, len(proposal.assignment), proposal.total) == (3, 2, 5)
    with pytest.raises(UsageError, match="has 3 partitions, and Kafka removes none; name a number above 3"):
        more_partitions(gap, "placed", 2, PlacerChoice(), JavaRandom(0))
    assert len(more_partitions(gap, "placed", 3, PlacerChoice(), JavaRandom(0)).assignment) == 0
    headless = replace(snapshot, partitions=snapshot.partitions.take(np.array([False, True, True])))
    with pytest.raises(UsageError, match="partition 0 is missing"):
        more_partitions(headless, "placed", 5, PlacerChoice(), JavaRandom(0))


def test_a_config_that_is_given_goes_before_the_loads_of_the_snapshot() -> None:
    """Broker 0 leads all and broker 2 nothing, by the snapshot; the configs have it the other way round."""
    snapshot = placed_on(*[[0, 1]] * 6)
    by_loads = new_topic(snapshot, "new", 1, 1, PlacerChoice(), JavaRandom(0))
    assert by_loads.assignment.replicas.tolist() == [[2]]
    others = {LEADERS_CONFIG: "0:0,1:6,2:6", REPLICAS_CONFIG: "0:0,1:6,2:6"}
    by_configs = new_topic(snapshot, "new", 1, 1, PlacerChoice(configs=others), JavaRandom(0))
    assert by_configs.assignment.replicas.tolist() == [[0]]
    of_topic = {TOPIC_LEADERS_CONFIG: "0:0,1:6,2:6", TOPIC_REPLICAS_CONFIG: "0:0,1:6,2:6"}
    extended = more_partitions(snapshot, "placed", 7, PlacerChoice(configs={**others, **of_topic}), JavaRandom(0))
    assert extended.assignment.replicas[0, 0] == 0
    start = PlacerChoice("rack-alternated", configs={START_INDEX_CONFIG: "2"})
    assert more_partitions(snapshot, "placed", 7, start, JavaRandom(0)).assignment.replicas[0, 0] == 2


def test_partitions_are_not_added_to_a_topic_that_is_being_reassigned_or_is_not_there() -> None:
    snapshot = placed_on([0, 1], [1, 2])
    moving = replace(
        snapshot,
        partitions=columns(
            topic=[0, 0],
            partition=[0, 1],
            leader=[0, 1],
            replicas=[[0, 1], [1, 2, 0]],
            isr=[[0, 1], [1, 2]],
            adding_replicas=[[], [0]],
            removing_replicas=[[], []],
        ),
    )
    with pytest.raises(UsageError, match="partition 1 is being reassigned; run again when it is done"):
        more_partitions(moving, "placed", 3, PlacerChoice(), JavaRandom(0))
    empty = replace(moving, partitions=moving.partitions.take(np.zeros(2, dtype=np.bool_)))
    with pytest.raises(
        UsageError, match=r"topic 'placed' has no partitions: it is being created or deleted; look again"
    ):
        more_partitions(empty, "placed", 3, PlacerChoice(), JavaRandom(0))
    with pytest.raises(UsageError, match="topic 'other' does not exist as expected"):
        more_partitions(snapshot, "other", 3, PlacerChoice(), JavaRandom(0))
    with pytest.raises(UsageError, match="topic 'placed' already exists"):
        new_topic(snapshot, "placed", 1, 1, PlacerChoice(), JavaRandom(0))
    too_many = PARTITIONS_MAX + 1
    with pytest.raises(UsageError, match=f"{too_many} partitions: at most {PARTITIONS_MAX} are placed at a time"):
        new_topic(snapshot, "new", too_many, 1, PlacerChoice(), JavaRandom(0))
    with pytest.raises(UsageError, match=f"{too_many} partitions: at most {PARTITIONS_MAX} are placed at a time"):
        more_partitions(snapshot, "placed", too_many, PlacerChoice(), JavaRandom(0))
