from collections import Counter
from dataclasses import replace
from fractions import Fraction
from random import Random

import numpy as np
import pytest

from rackspan.clients import ReplicaSelectors, group_reads
from rackspan.model import NO_BROKER, RackId, Topic, TopicName, TopicPartition
from rackspan.model.client_networks import ClientNetworks
from rackspan.model.group import GroupKind
from rackspan.model.partitions import UNKNOWN_SIZE, Int64s, padded_lists
from rackspan.traffic import (
    Basis,
    GroupProgress,
    TrafficFlow,
    TrafficPath,
    consume_flows,
    produce_flows,
    replication_flows,
)
from rackspan.traffic.flows import FlowSums, Link
from tests.clients.worlds import World, random_world, served_from
from tests.traffic.volumes import volumes_of

Sums = Counter[tuple[str | None, ...]]


def by_racks(flows: tuple[TrafficFlow, ...]) -> Sums:
    sums = Sums()
    for flow in flows:
        assert flow.size_bytes is not None
        sums[flow.link.path, flow.link.topic, flow.link.source_rack, flow.link.destination_rack] += flow.size_bytes
    return sums


def random_bytes(world: World, rng: Random) -> Int64s:
    return np.array([rng.randrange(1, 10**12) for _ in world.placed], np.int64)


def racks_of(world: World) -> list[str]:
    return sorted({rack for rack in world.racks.values() if rack})


def parts(size: int, count: int) -> list[int]:
    return [size * (index + 1) // count - size * index // count for index in range(count)]


@pytest.mark.slow
def test_500_random_clusters_replicate_what_plain_loops_say() -> None:
    rng = Random(36)
    for _ in range(500):
        world = random_world(rng)
        bytes_in = random_bytes(world, rng)
        expected = Sums()
        for row, size in zip(sorted(world.placed), bytes_in.tolist(), strict=True):
            leader, replicas, _ = world.placed[row]
            for replica in replicas:
                if replica != leader:
                    ends = world.racks.get(leader) or None, world.racks.get(replica) or None
                    expected["replicate", row[0], *ends] += size
        assert by_racks(replication_flows(world.snapshot(), volumes_of(world.snapshot(), bytes_in))) == expected


@pytest.mark.slow
def test_500_random_clusters_receive_each_produced_byte_once_and_equally_from_every_rack() -> None:
    rng = Random(37)
    for _ in range(500):
        world = random_world(rng)
        bytes_in = random_bytes(world, rng)
        received = Counter[tuple[str, str | None]]()
        for row, size in zip(sorted(world.placed), bytes_in.tolist(), strict=True):
            received[row[0], world.racks.get(world.placed[row][0]) or None] += size
        expected = Sums()
        for (topic, rack), size in received.items():
            sources: list[str | None] = [*racks_of(world)] or [None]
            for source, part in zip(sources, parts(size, len(sources)), strict=True):
                expected["produce", topic, source, rack] += part
        flows = produce_flows(world.snapshot(), volumes_of(world.snapshot(), bytes_in))
        assert by_racks(flows) == expected
        assert {flow.link.basis for flow in flows} <= {Basis.ESTIMATED}


@pytest.mark.slow
def test_500_random_groups_consume_what_plain_loops_say() -> None:
    rng = Random(392)
    for _ in range(500):
        world = random_world(rng)
        bytes_in = random_bytes(world, rng)
        sizes = dict(zip(sorted(world.placed), bytes_in.tolist(), strict=True))
        readers = Counter(read for reads in world.reads.values() for read in reads)
        expected, nth = Sums(), Counter[tuple[str, int]]()
        for member, rack in world.declared.items():
            for read in world.reads[member]:
                served = served_from(world, member, read) or None
                follower = served is not None and served != world.racks.get(world.placed[read][0])
                part = parts(sizes[read], readers[read])[nth[read]]
                nth[read] += 1
                # The one misspelt name of these worlds.
                meant = "r1" if rack == "R1" and "r1" in racks_of(world) else rack
                there: list[str | None] = [meant] if meant else [*racks_of(world)] or [None]
                for destination, share in zip(there, parts(part, len(there)), strict=True):
                    expected["follower-fetch" if follower else "consume", read[0], served, destination] += share
        snapshot = world.snapshot()
        reads = group_reads(world.group(), snapshot, world.selectors)
        assert by_racks(consume_flows(snapshot, volumes_of(snapshot, bytes_in), [reads])) == expected


def two_racks() -> World:
    return World(
        {1: "r1", 2: "r2"},
        {("t", 0): (1, [1, 2], [1, 2]), ("t", 1): (1, [1, 2], [1, 2])},
        dict.fromkeys((1, 2), ReplicaSelectors.LEADER),
        declared={"a": "r2", "b": None},
        reads={"a": [("t", 0)], "b": [("t", 1)]},
    )


def test_bytes_that_are_not_known_are_a_row_beside_those_that_are() -> None:
    flows = replication_flows(
        two_racks().snapshot(), volumes_of(two_racks().snapshot(), np.array([7, UNKNOWN_SIZE], np.int64))
    )
    assert [flow.size_bytes for flow in flows] == [7, None]


def test_a_member_without_a_rack_is_an_estimate_and_a_member_with_one_is_derived() -> None:
    world = two_racks()
    reads = group_reads(world.group(), world.snapshot(), world.selectors)
    flows = consume_flows(world.snapshot(), volumes_of(world.snapshot(), np.array([8, 8], np.int64)), [reads])
    assert {(flow.link.destination_rack, flow.size_bytes, flow.link.basis) for flow in flows} == {
        ("r2", 8, Basis.DERIVED),
        ("r1", 4, Basis.ESTIMATED),
        ("r2", 4, Basis.ESTIMATED),
    }
    assert all("spread uniformly" in flow.link.assumption for flow in flows if flow.link.basis is Basis.ESTIMATED)


def test_the_parts_that_members_of_a_share_group_read_are_estimates() -> None:
    world = two_racks()
    world.kind, world.declared, world.reads = (
        GroupKind.SHARE,
        {"a": "r1", "b": "r2"},
        {"a": [("t", 0)], "b": [("t", 0)]},
    )
    reads = group_reads(world.group(), world.snapshot(), world.selectors)
    flows = consume_flows(world.snapshot(), volumes_of(world.snapshot(), np.array([8, 8], np.int64)), [reads])
    assert [(flow.size_bytes, flow.link.basis) for flow in flows] == [(4, Basis.ESTIMATED)] * 2


def test_what_a_reassignment_copied_is_unknown_and_no_part_of_replication() -> None:
    snapshot = two_racks().snapshot()
    rows = replace(snapshot.partitions, adding_replicas=padded_lists([[2], []]))
    flows = replication_flows(
        replace(snapshot, partitions=rows),
        volumes_of(replace(snapshot, partitions=rows), np.array([7, 9], np.int64)),
    )
    assert [(flow.link.path, flow.size_bytes) for flow in flows] == [
        (TrafficPath.REASSIGN, None),
        (TrafficPath.REPLICATE, 9),
    ]


def test_parts_of_a_byte_count_add_up_to_it() -> None:
    flows = produce_flows(two_racks().snapshot(), volumes_of(two_racks().snapshot(), np.array([7, 6], np.int64)))
    assert sum(Fraction(flow.size_bytes or 0) for flow in flows) == 13


def test_a_sum_of_bytes_is_exact_and_has_a_row_for_what_is_not_known() -> None:
    """Two partitions of more bytes than a floating-point number counts one by one."""
    world = two_racks()
    world.placed["t", 2] = world.placed["t", 0]
    flows = replication_flows(
        world.snapshot(), volumes_of(world.snapshot(), np.array([2**53, UNKNOWN_SIZE, 1], np.int64))
    )
    assert [flow.size_bytes for flow in flows] == [2**53 + 1, None]


def test_internal_topics_are_written_in_the_racks_of_their_leaders() -> None:
    world = World({1: "r1", 2: "r2"}, {("t", 0): (1, [1], [1]), ("t", 1): (NO_BROKER, [2], [2])}, {})
    snapshot = replace(world.snapshot(), topics=(Topic(TopicName("t"), internal=True),))
    flows = produce_flows(snapshot, volumes_of(snapshot, np.array([7, 9], np.int64)))
    leads = "internal topics are written by the brokers that lead them"
    assert flows == (
        TrafficFlow(Link(TrafficPath.PRODUCE, "t", None, None, None, Basis.DERIVED, leads), 9),
        TrafficFlow(Link(TrafficPath.PRODUCE, "t", None, RackId("r1"), RackId("r1"), Basis.DERIVED, leads), 7),
    )


def test_flows_of_producers_and_replicas_state_what_is_assumed_of_them() -> None:
    snapshot = two_racks().snapshot()
    volumes = volumes_of(snapshot, np.array([8, 8], np.int64))
    assert {flow.link.assumption for flow in produce_flows(snapshot, volumes)} == {
        "producers are spread uniformly over the racks of brokers"
    }
    assert {flow.link.assumption for flow in replication_flows(snapshot, volumes)} == {
        "each replica copied all that its leader received"
    }
    guessed = replace(volumes, guessed=np.array([True, True]))
    assert {flow.link.assumption for flow in replication_flows(snapshot, guessed)} == {
        "each replica copied all that its leader received; records are as large as those of the topic's other partitions"
    }
    own = replace(guessed, from_own_log=np.ones((2, 2), np.bool_))
    assert {(flow.link.basis, flow.link.assumption) for flow in replication_flows(snapshot, own)} == {
        ("derived", "the replica's log grew by as much")
    }


ONCE = "the group read each record once"
ANYWHERE = f"{ONCE}, from members that are spread uniformly over the racks of brokers"
BY_RECORDS = "records are as large as those of the topic's other partitions"
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def assumed(
    world: World, progress: GroupProgress, guessed: tuple[bool, bool] = (False, False)
) -> list[tuple[str | None, int | None, str, str]]:
    """Rack, bytes, basis and assumption of what is read of 8 bytes in t-0 and 80 in t-1."""
    snapshot = world.snapshot()
    volumes = replace(volumes_of(snapshot, np.array([8, 80], np.int64)), guessed=np.array(guessed))
    reads = group_reads(world.group(), snapshot, world.selectors)
    return [
        (flow.link.destination_rack, flow.size_bytes, str(flow.link.basis), flow.link.assumption)
        for flow in consume_flows(snapshot, volumes, [reads], progress)
    ]


def test_a_group_read_what_it_committed_of_a_partition_and_each_record_of_the_others() -> None:
    assert assumed(two_racks(), {"shop": {T0: 5}}) == [
        ("r1", 40, "estimated", ANYWHERE),
        ("r2", 40, "estimated", ANYWHERE),
        ("r2", 5, "derived", "the group read what it committed"),
    ]
    committed_anywhere = (
        "the group read what it committed, from members that are spread uniformly over the racks of brokers"
    )
    assert assumed(two_racks(), {"shop": {T1: 4}, "other": {T0: 1}}) == [
        ("r1", 2, "estimated", committed_anywhere),
        ("r2", 8, "derived", ONCE),
        ("r2", 2, "estimated", committed_anywhere),
    ]
    assert (None, "the group read what it committed") in [
        row[1::2] for row in assumed(two_racks(), {"shop": {T0: None}})
    ]


def test_what_is_read_of_bytes_that_follow_from_records_is_an_estimate() -> None:
    assert assumed(two_racks(), {}, (True, False)) == [
        ("r1", 40, "estimated", ANYWHERE),
        ("r2", 40, "estimated", ANYWHERE),
        ("r2", 8, "estimated", f"{ONCE}; {BY_RECORDS}"),
    ]


def test_members_that_share_a_partition_read_equal_parts_of_it() -> None:
    world = two_racks()
    world.kind, world.declared = GroupKind.SHARE, {"a": "r1", "b": "r2", "c": "r2"}
    world.reads = {"a": [("t", 0)], "b": [("t", 0)], "c": [("t", 0)]}
    shared = f"{ONCE}, and members that share a partition read equal parts of it"
    assert assumed(world, {}) == [("r1", 2, "estimated", shared), ("r2", 6, "estimated", shared)]


def test_a_rack_that_no_broker_has_means_the_one_most_like_it_unless_an_address_says_where_it_is() -> None:
    world = two_racks()
    world.declared = {"a": "R2", "b": "elsewhere"}
    meant = f"{ONCE}; a client.rack that no broker has means the rack most like it"
    assert assumed(world, {}) == [("elsewhere", 80, "derived", ONCE), ("r2", 8, "estimated", meant)]
    world.hosts = {"a": "10.0.0.7"}
    snapshot = world.snapshot()
    reads = group_reads(world.group(), snapshot, world.selectors, ClientNetworks({"10.0.0.0/24": "R2"}))
    flows = consume_flows(snapshot, volumes_of(snapshot, np.array([8, 80], np.int64)), [reads])
    assert {flow.link.destination_rack for flow in flows} == {"R2", "elsewhere"}


def test_flows_are_in_the_order_of_path_topic_group_racks_and_assumption_and_unknown_bytes_come_last() -> None:
    """Names of capitals come before all others, so that an empty one has to come first."""

    def link(path: TrafficPath, topic: str, group: str | None, source: str | None, to: str | None, why: str) -> Link:
        ends = RackId(source) if source else None, RackId(to) if to else None
        return Link(path, topic, group, *ends, Basis.DERIVED, why)

    consume, produce = TrafficPath.CONSUME, TrafficPath.PRODUCE
    ordered = [
        link(consume, "B", None, "B", "B", "B"),
        link(consume, "B", "A", None, "B", "B"),
        link(consume, "B", "A", "A", None, "B"),
        link(consume, "B", "A", "A", "A", "B"),
        link(consume, "B", "A", "A", "B", "A"),
        link(consume, "B", "A", "A", "B", "B"),
        link(consume, "B", "A", "B", "A", "A"),
        link(consume, "B", "B", "A", "A", "A"),
        link(consume, "C", "A", "A", "A", "A"),
        link(produce, "A", None, "A", "A", "A"),
    ]
    for rng in map(Random, range(5)):
        sums = FlowSums()
        for each in rng.sample(ordered, len(ordered)):
            for size in rng.sample([1, None, 2, None], 4):
                sums.add(each, size)
        sums.add(link(consume, "A", None, None, None, "A"), 0)
        assert sums.sorted() == tuple(TrafficFlow(each, size) for each in ordered for size in (3, None))


@pytest.mark.parametrize(
    ("source", "destination", "crosses"),
    [("a", "b", True), ("a", "a", False), (None, "a", None), ("a", None, None), (None, None, None)],
)
def test_whether_bytes_cross_racks_is_not_known_if_a_rack_is_not(
    source: str | None, destination: str | None, crosses: bool | None
) -> None:
    ends = RackId(source) if source else None, RackId(destination) if destination else None
    assert Link(TrafficPath.PRODUCE, "t", None, *ends, Basis.DERIVED, "").crosses is crosses


def test_paths_and_bases_are_named_as_in_documents_and_price_files() -> None:
    assert [*TrafficPath] == ["produce", "replicate", "consume", "follower-fetch", "restore", "reassign"]
    assert [*Basis] == ["measured", "derived", "derived-lower-bound", "estimated"]
