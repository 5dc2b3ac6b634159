"""What groups would read with other settings, beside plain loops over random clusters."""

from collections import Counter
from random import Random

import numpy as np
import pytest

from rackspan.clients import group_reads
from rackspan.model.group import GroupKind
from rackspan.model.ids import RackId
from rackspan.traffic import consume_flows
from rackspan.traffic.what_if import reading_at_home, reading_best_assigned
from tests.clients.worlds import World, random_world
from tests.traffic.volumes import volumes_of

BYTES = 6_000_000
"""In each partition; a multiple of the numbers of racks and readers, so that equal parts are whole."""


def across(world: World, changed: object) -> Counter[str]:
    """Bytes across racks by topic."""
    snapshot = world.snapshot()
    volumes = volumes_of(snapshot, np.full(len(world.placed), BYTES, np.int64))
    sums = Counter[str]()
    for flow in consume_flows(snapshot, volumes, [changed]):  # type: ignore[list-item]
        if flow.link.crosses:
            sums[flow.link.topic] += flow.size_bytes or 0
    return sums


def racks_of(world: World) -> list[RackId]:
    return sorted({RackId(rack) for rack in world.racks.values() if rack})


def meant(rack: str, racks: list[RackId]) -> str:
    """The one misspelt name of these worlds."""
    return "r1" if rack == "R1" and "r1" in racks else rack


@pytest.mark.slow
def test_300_random_groups_read_from_their_own_rack_whatever_is_in_sync_there() -> None:
    rng = Random(392)
    for _ in range(300):
        world = random_world(rng)
        world.kind = GroupKind.CLASSIC
        racks = racks_of(world)
        reads = group_reads(world.group(), world.snapshot(), world.selectors)
        # Members that share a partition read equal parts, one without a rack an equal part in each.
        readers = Counter[tuple[str, int]]()
        for member, rack in world.declared.items():
            for read in world.reads[member]:
                readers[read] += 1 if rack else len(racks)
        expected = Counter[str]()
        for member, rack in world.declared.items():
            for read in world.reads[member]:
                leader, _, in_sync = world.placed[read]
                near = {world.racks.get(broker) for broker in in_sync}
                for place in [meant(rack, racks)] if rack else racks:
                    home = world.racks.get(leader)
                    if place not in near and home and home != place:
                        expected[read[0]] += BYTES // readers[read]
        found = across(world, reading_at_home(reads, world.snapshot()))
        assert all(abs(found[topic] - expected[topic]) <= 20 for topic in found | expected)


def test_share_groups_read_from_leaders_whatever_is_set() -> None:
    rng = Random(932)
    world = random_world(rng)
    world.kind = GroupKind.SHARE
    reads = group_reads(world.group(), world.snapshot(), world.selectors)
    assert reading_at_home(reads, world.snapshot()) == reads
    assert reading_best_assigned(reads) == reads


@pytest.mark.slow
def test_the_best_assignment_reads_each_partition_once_and_no_more_across_racks() -> None:
    rng = Random(881)
    changed = 0
    for _ in range(200):
        world = random_world(rng)
        world.kind = GroupKind.CLASSIC
        racks = racks_of(world)
        for member in world.declared:
            world.declared[member] = rng.choice(racks) if racks else None
        reads = group_reads(world.group(), world.snapshot(), world.selectors)
        once = Counter(read.partition for member in reads.members for read in member.reads)
        if not racks or not once or max(once.values()) > 1 or reads.across_at_best is None:
            continue
        best = reading_best_assigned(reads)
        assert Counter(read.partition for member in best.members for read in member.reads) == once
        crossing = sum(member.rack not in read.replicas for member in best.members for read in member.reads)
        assert crossing == reads.across_at_best
        changed += best != reads
    assert changed
