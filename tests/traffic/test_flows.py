from collections import Counter
from dataclasses import replace
from fractions import Fraction
from random import Random

import numpy as np
import pytest

from rackspan.clients import ReplicaSelectors, group_reads
from rackspan.model.group import GroupKind
from rackspan.model.partitions import UNKNOWN_SIZE, Int64s, padded_lists
from rackspan.traffic import Basis, TrafficFlow, TrafficPath, consume_flows, produce_flows, replication_flows
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
