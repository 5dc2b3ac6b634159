"""What groups would read with other settings, beside plain loops over random clusters."""

from collections import Counter
from dataclasses import replace
from random import Random

import numpy as np
import pytest

from rackspan.clients import GroupReads, ReplicaSelectors, group_reads
from rackspan.clients.measured import TopicBytes
from rackspan.model import UNKNOWN_SIZE, TopicPartition
from rackspan.model.client_networks import ClientNetworks
from rackspan.model.group import GroupKind
from rackspan.model.ids import RackId
from rackspan.streams.live import StreamsGroup
from rackspan.streams.live.streams_group import StreamProcess, StreamThread
from rackspan.streams.problem import ProcessId, TaskId
from rackspan.traffic import Basis, CountedFlow, TrafficFlow, TrafficPath, consume_flows
from rackspan.traffic.flows import Link
from rackspan.traffic.what_if import (
    produced_with_leaders_of,
    reading_as_measured,
    reading_at_home,
    reading_best_assigned,
    reading_by_tasks,
    selecting_by_rack,
)
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


def by_member(reads: GroupReads) -> dict[str, list[tuple[str, int]]]:
    return {
        member.member.member_id: [(read.partition.topic, read.partition.partition) for read in member.reads]
        for member in reads.members
    }


def crossed_world() -> World:
    """Each member reads the partition whose one replica is in the other's rack."""
    return World(
        {1: "r1", 2: "r2"},
        {("t", 0): (1, [1], [1]), ("t", 1): (2, [2], [2])},
        dict.fromkeys((1, 2), ReplicaSelectors.LEADER),
        declared={"a": "r1", "b": "r2"},
        reads={"a": [("t", 1)], "b": [("t", 0)]},
    )


def reads_in(world: World) -> GroupReads:
    return group_reads(world.group(), world.snapshot(), world.selectors)


def test_the_best_assignment_gives_each_member_what_is_in_its_rack() -> None:
    reads = reads_in(crossed_world())
    assert by_member(reading_best_assigned(reads)) == {"a": [("t", 0)], "b": [("t", 1)]}
    # A subscription that the member states counts; one that nobody states is to all that the group reads.
    elsewhere = replace(reads.members[0], member=replace(reads.members[0].member, topics=frozenset({"u"})))
    assert by_member(reading_best_assigned(replace(reads, members=(elsewhere, reads.members[1])))) == {
        "a": [],
        "b": [("t", 0), ("t", 1)],
    }


@pytest.mark.parametrize("kind", [GroupKind.SHARE, GroupKind.STREAMS])
def test_groups_whose_partitions_are_not_assigned_one_by_one_have_no_best_assignment(kind: GroupKind) -> None:
    world = crossed_world()
    world.kind = kind
    reads = reads_in(world)
    assert reading_best_assigned(reads) is reads


def test_a_group_with_a_member_of_unknown_rack_has_no_best_assignment() -> None:
    world = crossed_world()
    world.declared["b"] = None
    reads = reads_in(world)
    assert reading_best_assigned(reads) is reads


def test_members_that_are_named_read_at_home_and_the_others_as_before_those_brokers() -> None:
    """Partition 0 is in both racks and partition 1 in r1 alone; broker 3 has no rack."""
    world = World(
        {1: "r1", 2: "r2", 3: None},
        {("t", 0): (1, [1, 2], [1, 2]), ("t", 1): (1, [1], [1])},
        dict.fromkeys((1, 2, 3), ReplicaSelectors.LEADER),
        declared={"a": None, "b": None},
        reads={"a": [("t", 0), ("t", 1)], "b": [("t", 0)]},
    )
    reads = reads_in(world)
    both, one, nobody = (reading_at_home(reads, world.snapshot(), members) for members in (None, {"a"}, ()))
    assert [
        (member.member.member_id, member.rack, [read.served_from for read in member.reads]) for member in both.members
    ] == [
        ("a", "r1", ["r1", "r1"]),
        ("a", "r2", ["r2", "r1"]),
        ("b", "r1", ["r1"]),
        ("b", "r2", ["r2"]),
    ]
    assert [(member.located, member.member.rack) for member in both.members] == [("r1", "r1"), ("r2", "r2")] * 2
    assert [(member.member.member_id, member.rack) for member in one.members] == [("a", "r1"), ("a", "r2"), ("b", None)]
    assert [(member.member.member_id, member.rack) for member in nobody.members] == [("a", None), ("b", None)]
    assert {read.selector for member in nobody.members for read in member.reads} == {ReplicaSelectors.RACK_AWARE}
    assert selecting_by_rack(world.snapshot()) == dict.fromkeys((1, 2, 3), ReplicaSelectors.RACK_AWARE)


def test_a_member_in_a_cluster_without_racks_stays_as_it_is() -> None:
    world = World(
        {1: None},
        {("t", 0): (1, [1], [1])},
        {1: ReplicaSelectors.RACK_AWARE},
        declared={"a": None},
        reads={"a": [("t", 0)]},
    )
    reads = reads_in(world)
    assert reading_at_home(reads, world.snapshot()) == reads


def test_a_member_whose_address_is_elsewhere_than_its_client_rack_says_names_where_it_is() -> None:
    world = crossed_world()
    world.hosts = {"a": "10.0.0.7"}
    networks = ClientNetworks({"10.0.0.0/24": "r2"})
    reads = group_reads(world.group(), world.snapshot(), world.selectors, networks)
    home = reading_at_home(reads, world.snapshot())
    assert [member.member.rack for member in home.members] == ["r2", "r2"]


def thread(client: str, process: int, active: dict[str, list[tuple[str, int]]]) -> StreamThread:
    tasks = {TaskId(task): frozenset(TopicPartition(*read) for read in reads) for task, reads in active.items()}
    return StreamThread(f"client-{client}", None, True, ProcessId(f"p{process}"), {}, frozenset(), tasks, {})


def streams_world() -> tuple[GroupReads, StreamsGroup]:
    """Process 1 has two threads. Each task reads a partition of both topics, but 1_0 one of `u` alone."""
    world = World(
        {1: "r1", 2: "r2"},
        {(topic, at): (1, [1], [1]) for topic in "tu" for at in range(2)} | {("v", 0): (1, [1], [1])},
        dict.fromkeys((1, 2), ReplicaSelectors.LEADER),
        declared={"a": "r1", "b": "r1", "c": "r2"},
        reads={"a": [("t", 0), ("u", 0)], "b": [("t", 1), ("u", 1)], "c": [("v", 0)]},
    )
    first = StreamProcess(
        ProcessId("p1"),
        (
            thread("a", 1, {"0_0": [("t", 0), ("u", 0)]}),
            thread("b", 1, {"0_1": [("t", 1), ("u", 1)]}),
        ),
    )
    second = StreamProcess(ProcessId("p2"), (thread("c", 2, {"1_0": [("v", 0)]}),))
    return reads_in(world), StreamsGroup("shop", (first, second))


def processes(**tasks: int) -> dict[TaskId, ProcessId]:
    return {TaskId(task.removeprefix("task_")): ProcessId(f"p{process}") for task, process in tasks.items()}


def test_the_partitions_of_a_task_are_read_by_the_first_member_of_its_process() -> None:
    reads, running = streams_world()
    placed = processes(task_0_0=2, task_0_1=1, task_1_0=1)
    found = reading_by_tasks(reads, running, placed)
    assert found is not None
    assert by_member(found) == {"a": [("t", 1), ("u", 1), ("v", 0)], "b": [], "c": [("t", 0), ("u", 0)]}
    assert found.group == reads.group


def test_tasks_and_members_that_are_not_those_of_the_group_say_nothing() -> None:
    reads, running = streams_world()
    placed = processes(task_0_0=1, task_0_1=1, task_1_0=2)
    assert reading_by_tasks(reads, running, placed) is not None
    # A task that is nowhere, a member that is not described, two members of one client id, and a client of another name.
    assert reading_by_tasks(reads, running, processes(task_0_0=1, task_0_1=1)) is None
    assert reading_by_tasks(replace(reads, members=reads.members[:2]), running, placed) is None
    a, b, c = reads.members
    twin = replace(b, member=replace(b.member, client_id="client-a"))
    assert reading_by_tasks(replace(reads, members=(a, twin, c)), running, placed) is None
    other = replace(c, member=replace(c.member, client_id="other"))
    assert reading_by_tasks(replace(reads, members=(a, b, other)), running, placed) is None
    # The second thread of a process need not be a member.
    other = replace(b, member=replace(b.member, client_id="other"))
    assert reading_by_tasks(replace(reads, members=(a, other, c)), running, placed) is not None


def measured_world() -> World:
    """Member `a` declares no rack and reads both topics from their leaders in rack r1."""
    return World(
        {1: "r1", 2: "r2"},
        {("t", 0): (1, [1, 2], [1, 2]), ("u", 0): (1, [1, 2], [1])},
        dict.fromkeys((1, 2), ReplicaSelectors.LEADER),
        declared={"a": None, "b": "r1"},
        reads={"a": [("t", 0), ("u", 0)], "b": []},
    )


IN_RACK, ACROSS = TopicBytes(9, 0, 0), TopicBytes(8, 1, 0)


@pytest.mark.parametrize(
    ("of_topics", "destinations", "rack", "served_from"),
    [
        ({"t": IN_RACK, "u": IN_RACK}, ["r2"], "r2", ["r2", "r1"]),
        ({"t": IN_RACK}, ["r2"], "r2", ["r2", "r1"]),
        ({"t": IN_RACK, "u": ACROSS}, ["r2"], None, ["r1", "r1"]),
        ({"t": IN_RACK}, ["r1", "r2"], None, ["r1", "r1"]),
        ({}, ["r2"], None, ["r1", "r1"]),
    ],
)
def test_a_member_whose_bytes_came_from_one_rack_reads_as_if_it_named_that_rack(
    of_topics: dict[str, TopicBytes], destinations: list[str], rack: str | None, served_from: list[str]
) -> None:
    world = measured_world()
    reads = group_reads(world.group(), world.snapshot(), world.selectors)
    counted = {CountedFlow(TrafficPath.FOLLOWER_FETCH, "t", "client-a", "r2", to): 9 for to in destinations}
    others = {
        CountedFlow(TrafficPath.PRODUCE, "t", "client-a", "r1", "r9"): 9,
        CountedFlow(TrafficPath.CONSUME, "t", "client-b", "r1", "r9"): 9,
        CountedFlow(TrafficPath.CONSUME, "t", "client-a", "r1", "r9"): 0,
    }
    measured = {("a", topic): found for topic, found in of_topics.items()}
    a, b = reading_as_measured(reads, measured, counted | others).members
    assert (a.member.rack, [read.served_from for read in a.reads]) == (rack, served_from)
    assert b == reads.members[1]


def test_producers_write_to_the_racks_of_the_new_leaders_each_topic_by_its_bytes() -> None:
    before = World({1: "r1", 2: "r2"}, {(topic, at): (1, [1, 2], [1, 2]) for topic in "tu" for at in range(3)}, {})
    moved_to_2 = dict.fromkeys([("t", 1), ("t", 2), ("u", 0)], (2, [2, 1], [1, 2]))
    after = replace(before, placed={**before.placed, **moved_to_2})

    def link(topic: str, source: str, destination: str) -> Link:
        ends = RackId(source), RackId(destination)
        return Link(TrafficPath.PRODUCE, topic, None, *ends, Basis.ESTIMATED, "spread")

    produced = [
        TrafficFlow(link("t", "r1", "r1"), 100),
        TrafficFlow(link("t", "r2", "r1"), 7),
        TrafficFlow(link("t", "r2", "r2"), 5),
        TrafficFlow(link("u", "r2", "r1"), 30),
        TrafficFlow(link("t", "r9", "r1"), None),
    ]
    bytes_in = np.array([10, 20, 40, UNKNOWN_SIZE, 1, 1], np.int64)
    moved = produced_with_leaders_of(produced, bytes_in, before.snapshot(), after.snapshot())
    ends = ((flow.link.topic, flow.link.source_rack, flow.link.destination_rack, flow.size_bytes) for flow in moved)
    assert sorted(ends, key=str) == [
        ("t", "r1", "r1", 14),
        ("t", "r1", "r2", 86),
        ("t", "r2", "r1", 1),
        ("t", "r2", "r2", 5),
        ("t", "r2", "r2", 6),
        ("t", "r9", "r1", None),
        ("u", "r2", "r1", 30),
    ]


def test_rounding_and_racks_that_are_not_known_are_those_of_the_order_of_racks() -> None:
    """Partition 0 is led in r2 afterwards, partition 1 in r1 as before, and partition 2 by nobody."""
    before = World({1: "r1", 2: "r2"}, {("t", at): (1, [1, 2], [1, 2]) for at in range(3)}, {})
    after = replace(
        before, placed={("t", 0): (2, [1, 2], [2]), ("t", 1): (1, [1, 2], [1]), ("t", 2): (-1, [1, 2], [2])}
    )
    ends = RackId("r2"), RackId("r1")
    produced = [TrafficFlow(Link(TrafficPath.PRODUCE, "t", None, *ends, Basis.ESTIMATED, "spread"), 5)]

    def moved(*bytes_in: int) -> list[tuple[str | None, int | None]]:
        sizes = np.array(bytes_in, np.int64)
        flows = produced_with_leaders_of(produced, sizes, before.snapshot(), after.snapshot())
        return [(flow.link.destination_rack, flow.size_bytes) for flow in flows]

    # Thirds of 5 end at 1, 3 and 5.
    assert moved(1, 1, 1) == [("r1", 1), ("r2", 2), (None, 2)]
    assert moved(1, 1, 0) == [("r1", 2), ("r2", 3)]
    assert moved(0, 1, 0) == [("r1", 5)]
    # Bytes of which none are known to have been written stay where they are.
    assert moved(0, UNKNOWN_SIZE, 0) == [("r1", 5)]


def test_what_was_written_to_a_topic_or_rack_that_leads_nothing_stays_as_it_is() -> None:
    world = World({1: "r1", 2: "r2"}, {("t", 0): (1, [1, 2], [1, 2])}, {})
    after = replace(world, placed={("t", 0): (2, [1, 2], [1, 2])})
    produced = [
        TrafficFlow(Link(TrafficPath.PRODUCE, topic, None, RackId("r1"), RackId(rack), Basis.ESTIMATED, "x"), 5)
        for topic, rack in (("other", "r1"), ("t", "r9"))
    ]
    sizes = np.array([1], np.int64)
    assert list(produced_with_leaders_of(produced, sizes, world.snapshot(), after.snapshot())) == produced
