from collections import Counter
from collections.abc import Sequence
from itertools import chain
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackspan.errors import (
    InvalidPartitions,
    InvalidReplicationFactor,
    PartialRacks,
    ReplicaPlacementException,
)
from rackspan.model import BrokerId, RackId, TopicName
from rackspan.placement import UsableBroker
from rackspan.placement.kafka.java_random import JavaRandom
from rackspan.placement.kafka.rack_alternated import (
    ROWS_AT_ONCE,
    RackAlternatedReplicaPlacer,
    add_partitions,
    assign_replicas,
    rack_alternated,
)
from tests.strategies import usable_brokers


def on_racks(*racks: str | None) -> list[UsableBroker]:
    return [
        UsableBroker(BrokerId(broker), None if rack is None else RackId(rack), False)
        for broker, rack in enumerate(racks)
    ]


KIP_36 = on_racks("rack1", "rack3", "rack3", "rack2", "rack2", "rack1")


def rows(
    brokers: Sequence[UsableBroker], partitions: int, replicas: int, start: int = 0, first: int = 0
) -> list[list[int]]:
    assigned: list[list[int]] = assign_replicas(brokers, partitions, replicas, None, start, first).replicas.tolist()
    return assigned


def plainly(
    brokers: Sequence[UsableBroker], partitions: int, replicas: int, start: int, first_partition: int
) -> list[list[int]]:
    """The loop of the text: candidates one after another, passed over one by one."""
    rack_of: dict[int, str | None] = {broker.id: broker.rack for broker in brokers}
    aware = None not in rack_of.values()
    order = rack_alternated(brokers) if aware else [broker.id for broker in brokers]
    count, racks, shift = len(order), len(set(rack_of.values())), start
    placed: list[list[int]] = []
    for partition in range(first_partition, first_partition + partitions):
        shift += partition > 0 and partition % count == 0
        leader = (partition + start) % count
        chosen: list[int] = [order[leader]]
        k = 0
        while len(chosen) < replicas:
            step = (shift * racks if aware else shift) + k
            candidate = order[(leader + 1 + step % (count - 1)) % count]
            used = {rack_of[broker] for broker in chosen}
            rack_taken = aware and rack_of[candidate] in used and len(used) < racks
            if not rack_taken and candidate not in chosen:
                chosen.append(candidate)
            k += 1
        placed.append(chosen)
    return placed


def test_the_list_of_the_text_alternates_racks() -> None:
    assert rack_alternated(KIP_36) == [0, 3, 1, 5, 4, 2]


def test_the_list_of_the_earlier_draft_is_the_same() -> None:
    assert rack_alternated(on_racks("rack1", "rack1", "rack2", "rack2", "rack3", "rack3")) == [0, 2, 4, 1, 3, 5]


def test_four_replicas_on_two_racks_leave_none_empty() -> None:
    brokers = on_racks("a", "b", "a", "b", "a")
    assert all({broker % 2 for broker in row} == {0, 1} for row in rows(brokers, 20, 4))


def test_exhausted_racks_are_passed_over_and_leave_a_tail() -> None:
    assert rack_alternated(on_racks("a", "b", "b", "b", "c")) == [0, 1, 4, 2, 3]


def test_racks_are_in_javas_order_of_names() -> None:
    assert rack_alternated(on_racks("\uff21", "𝄞", "a")) == [2, 1, 0]


def test_the_first_twelve_partitions_of_the_text() -> None:
    assert rows(KIP_36, 12, 3) == [
        [0, 3, 1],
        [3, 1, 5],
        [1, 5, 4],
        [5, 4, 2],
        [4, 2, 0],
        [2, 0, 3],
        [0, 4, 2],
        [3, 2, 0],
        [1, 0, 3],
        [5, 3, 1],
        [4, 1, 5],
        [2, 5, 4],
    ]


def test_a_used_rack_is_skipped_as_in_the_text() -> None:
    assert rows(on_racks("rack1", "rack2", "rack2"), 3, 2) == [[0, 1], [1, 0], [2, 0]]


def test_the_only_broker_of_a_rack_holds_three_of_six_replicas() -> None:
    """As in the text: broker 0 has three replicas, broker 1 two, broker 2 one, and each leads one partition."""
    assigned = rows(on_racks("rack1", "rack2", "rack2"), 3, 2)
    assert Counter(broker for row in assigned for broker in row) == {0: 3, 1: 2, 2: 1}
    assert sorted(row[0] for row in assigned) == [0, 1, 2]


def test_without_racks_brokers_are_taken_in_the_order_given() -> None:
    assert rows(list(reversed(on_racks(None, None, None))), 3, 2) == [[2, 1], [1, 0], [0, 2]]


@given(usable_brokers(), st.data())
def test_arrays_say_what_the_loop_of_the_text_says(brokers: tuple[UsableBroker, ...], data: st.DataObject) -> None:
    replicas = data.draw(st.integers(1, len(brokers)))
    start, first = data.draw(st.integers(0, 30)), data.draw(st.integers(0, 40))
    assert rows(brokers, 40, replicas, start, first) == plainly(brokers, 40, replicas, start, first)


def test_batches_meet_without_a_seam() -> None:
    partitions = ROWS_AT_ONCE + 50
    whole = rows(KIP_36, partitions, 3)
    assert whole[-100:] == plainly(KIP_36, partitions, 3, 0, 0)[-100:]


@given(usable_brokers(racked=True), st.data())
def test_every_rack_holds_a_replica_or_no_two_share_one(brokers: tuple[UsableBroker, ...], data: st.DataObject) -> None:
    replicas = data.draw(st.integers(1, len(brokers)))
    rack_of = {broker.id: broker.rack for broker in brokers}
    racks = len(set(rack_of.values()))
    assigned = assign_replicas(brokers, 50, replicas, JavaRandom(data.draw(st.integers(0, 99))))
    for partition in assigned:
        assert len({rack_of[broker] for broker in partition.replicas}) == min(replicas, racks)
        assert len(set(partition.replicas)) == replicas


@given(usable_brokers(), st.integers(1, 3), st.data())
def test_partitions_in_multiples_of_brokers_give_equal_leaders(
    brokers: tuple[UsableBroker, ...], times: int, data: st.DataObject
) -> None:
    replicas = data.draw(st.integers(1, len(brokers)))
    assigned = rows(brokers, times * len(brokers), replicas, data.draw(st.integers(0, 9)))
    assert set(Counter(row[0] for row in assigned).values()) == {times}


@given(st.integers(1, 4), st.integers(1, 4), st.integers(1, 3), st.integers(0, 9), st.data())
def test_equal_racks_give_equal_replicas(racks: int, size: int, times: int, start: int, data: st.DataObject) -> None:
    brokers = on_racks(*[f"r{broker % racks}" for broker in range(racks * size)])
    replicas = data.draw(st.integers(1, len(brokers)))
    held = Counter(chain.from_iterable(rows(brokers, times * len(brokers), replicas, start)))
    assert set(held.values()) == {times * replicas}


def test_start_and_shift_are_two_draws_of_the_rng_in_this_order() -> None:
    rng = JavaRandom(42)
    assert (rng.next_int(6), rng.next_int(6)) == (2, 3)
    # The list is 0 3 1 5 4 2. Led from place 2; the follower is sought 3 racks * 3 = 9 = 4 (mod 5) places after place 3.
    assert assign_replicas(KIP_36, 1, 2, JavaRandom(42))[0].replicas == (1, 3)


@pytest.mark.parametrize(
    ("brokers", "partitions", "replicas", "kind", "line"),
    [
        (on_racks("a", None), 0, 0, InvalidPartitions, "Number of partitions must be larger than 0."),
        (on_racks("a", None), 1, 0, InvalidReplicationFactor, "Replication factor must be larger than 0."),
        (
            on_racks("a", None),
            1,
            3,
            InvalidReplicationFactor,
            "Replication factor: 3 larger than available brokers: 2.",
        ),
        (
            on_racks("a", None),
            1,
            2,
            PartialRacks,
            "Not all brokers have rack information for replica rack aware assignment.",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_kafkas_order_and_words(
    brokers: list[UsableBroker], partitions: int, replicas: int, kind: type[Exception], line: str
) -> None:
    with pytest.raises(kind) as refusal:
        assign_replicas(brokers, partitions, replicas, JavaRandom(1))
    assert str(refusal.value) == line


def test_partitions_are_added_from_the_place_of_the_first_leader() -> None:
    brokers = on_racks(None, None, None, None)
    added = add_partitions(TopicName("orders"), {0: [1, 2]}, 3, brokers)
    assert added.replicas.tolist() == [[2, 0], [3, 1]]


def test_a_first_leader_beyond_every_broker_starts_at_the_first() -> None:
    assert add_partitions(TopicName("orders"), {0: [9]}, 3, on_racks("a", "b")).replicas.tolist() == [[1], [0]]


@pytest.mark.parametrize(
    ("existing", "total", "line"),
    [
        (
            {0: [1], 1: [0]},
            2,
            "The number of partitions for a topic can only be increased. Topic orders currently has 2 partitions, 2 would not be an increase.",
        ),
        (
            {1: [0]},
            2,
            "Unexpected existing replica assignment for topic 'orders', partition id 0 is missing. Assignment: {1: [0]}",
        ),
    ],
)
def test_partitions_that_cannot_be_added_are_refused(existing: dict[int, list[int]], total: int, line: str) -> None:
    with pytest.raises(ReplicaPlacementException) as refusal:
        add_partitions(TopicName("orders"), existing, total, on_racks("a", "b"))
    assert str(refusal.value) == line


def test_a_fenced_broker_is_given_nothing() -> None:
    brokers = [UsableBroker(BrokerId(b), RackId("ab"[b % 2]), b == 2) for b in range(4)]
    placed = RackAlternatedReplicaPlacer(Random(1)).place(0, 40, 2, brokers)
    assert set(np.unique(placed.replicas).tolist()) == {0, 1, 3}


def test_a_safe_placer_forgets_racks_that_only_some_brokers_have() -> None:
    placer = RackAlternatedReplicaPlacer(Random(1))
    placer.configure({"replica.placer.rack.aware": "safe", "replica.placer.start.index": "0"})
    assert placer.place(0, 3, 2, on_racks("a", "a", None)).replicas.tolist() == [[0, 1], [1, 2], [2, 0]]


@pytest.mark.parametrize(
    ("configs", "line"),
    [
        (
            {"replica.placer.rack.aware": "off"},
            "replica.placer.rack.aware is 'off', expected enforced, safe or disabled; fix the config",
        ),
        (
            {"replica.placer.start.index": "-1"},
            "replica.placer.start.index is '-1', expected a whole number of 0 to 2147483647; fix the config",
        ),
    ],
)
def test_a_config_that_says_nothing_is_refused(configs: dict[str, str], line: str) -> None:
    with pytest.raises(ReplicaPlacementException) as refusal:
        RackAlternatedReplicaPlacer(Random(1)).configure(configs)
    assert str(refusal.value) == line
