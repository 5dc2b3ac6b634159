"""Advice about one topic, word for word: six brokers in three racks, a GiB written to each partition in a month."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from rackspan.advice import Advice, MeasuredTraffic
from rackspan.advice.measured import Terms
from rackspan.advice.of_groups import ReadingGroup
from rackspan.advice.of_topics import (
    PassingTopic,
    _leaders_in_racks,
    copied,
    only_topics,
    passing_topics,
    plan_in_full,
    replicas_copied,
    topic_savings,
)
from rackspan.advice.savings import savings
from rackspan.audit import RackPolicy
from rackspan.audit.policy import Survive
from rackspan.clients import ReplicaSelectors, group_reads
from rackspan.model import NO_BROKER, UNKNOWN_SIZE, Broker, BrokerId, ClusterSnapshot, RackId, TopicPartition
from rackspan.model.partitions import padded_lists
from rackspan.reassign import ReassignmentRequest
from rackspan.traffic import Basis, TrafficFlow, TrafficPath, Volumes
from rackspan.traffic.bill import MONTH_SECONDS
from rackspan.traffic.flows import Link
from tests.advice.test_savings import GIB
from tests.clients.worlds import World
from tests.traffic.volumes import volumes_of

BROKERS = range(1, 7)
UNDO = "rackspan reassign undo, with the journal of the run"


def rack(broker: int) -> str:
    return f"r{(broker - 1) % 3 + 1}"


def world(
    placed: Mapping[tuple[str, int], Sequence[int]],
    declared: Mapping[str, str | None] | None = None,
    in_sync: Sequence[int] = BROKERS,
) -> World:
    """The first of the replicas leads; each member reads all."""
    readers = dict(declared or {})
    return World(
        {broker: rack(broker) for broker in BROKERS},
        {row: (held[0], [*held], [broker for broker in held if broker in in_sync]) for row, held in placed.items()},
        dict.fromkeys(BROKERS, ReplicaSelectors.RACK_AWARE),
        declared=readers,
        reads={member: list(placed) for member in readers},
    )


def written(snapshot: ClusterSnapshot, source: str, size: int = GIB) -> list[TrafficFlow]:
    """Producers write to every partition from one rack."""
    rows = snapshot.partitions
    return [
        TrafficFlow(
            Link(
                TrafficPath.PRODUCE,
                str(snapshot.topics[topic].name),
                None,
                RackId(source),
                RackId(rack(leader)),
                Basis.MEASURED,
                "counted",
            ),
            size,
        )
        for topic, leader in zip(rows.topic.tolist(), rows.leader.tolist(), strict=True)
        if leader != NO_BROKER
    ]


def measured(
    places: World, *, groups: int = 1, source: str | None = None, snapshot: ClusterSnapshot | None = None
) -> MeasuredTraffic:
    snapshot = snapshot or places.snapshot()
    volumes = volumes_of(snapshot, np.full(len(snapshot.partitions), GIB, np.int64))
    reads = [group_reads(places.group(), snapshot, places.selectors)] * groups if places.declared else []
    produced = written(snapshot, source) if source else []
    return MeasuredTraffic(snapshot, volumes, reads, {}, MONTH_SECONDS, places.selectors, produced)


def passing(traffic: MeasuredTraffic, policy: RackPolicy = RackPolicy(), least: int = 0) -> list[PassingTopic]:
    groups = [ReadingGroup(reads, traffic.selectors) for reads in traffic.reads]
    return list(passing_topics(traffic, policy, groups, Terms(MONTH_SECONDS, None, least)))


def advised(traffic: MeasuredTraffic, policy: RackPolicy = RackPolicy()) -> tuple[list[Advice], PassingTopic]:
    (topic,) = passing(traffic, policy)
    return topic_savings(topic, Terms(MONTH_SECONDS, None, 1))


def words(advice: Advice) -> tuple[str, ...]:
    return advice.kind, advice.reason, advice.command, advice.cost, advice.undo


@pytest.mark.slow
def test_a_replica_is_placed_in_each_rack_in_which_a_topic_is_read() -> None:
    traffic = measured(world({("a.b", 0): [1], ("a.b", 1): [4]}, {"m": "r2"}), groups=4)
    found, topic = advised(traffic)
    assert [words(each) for each in found] == [
        (
            "replica-in-rack",
            "a.b is read in racks that have no replica of it",
            r"rackspan reassign plan --topic 'a\.b' --replication-factor 3",
            "4 replicas copied once, of unknown size",
            UNDO,
        )
    ]
    # Each group reads two partitions at home, and two copies of each cross racks.
    assert (found[0].topic, found[0].group, found[0].bytes_a_month) == ("a.b", None, (8 - 4) * GIB)
    assert topic.is_in_every_rack
    assert {read.served_from for group in topic.groups for each in group.reads.members for read in each.reads} == {"r2"}


@pytest.mark.slow
def test_replicas_enough_are_only_spread_over_the_racks() -> None:
    traffic = measured(world({("t", 0): [1, 4, 2]}, {"m": "r3"}), groups=4)
    found, _ = advised(traffic, RackPolicy(survive=Survive.BROKER))
    assert [words(each) for each in found][:1] == [
        (
            "replica-in-rack",
            "t is read in racks that have no replica of it",
            "rackspan reassign plan --topic 't'",
            "1 replica copied once, of unknown size",
            UNDO,
        )
    ]


@pytest.mark.parametrize("declared", [None, "r9", "r1"])
def test_members_of_no_rack_of_the_cluster_or_with_a_replica_require_none(declared: str | None) -> None:
    traffic = measured(world({("t", 0): [1], ("t", 1): [1]}, {"m": declared}), groups=9, source="r2")
    assert [each.kind for each in advised(traffic)[0]] == []


@pytest.mark.slow
def test_leaders_are_held_in_the_racks_in_which_a_topic_is_written() -> None:
    traffic = measured(
        world({("t", at): held for at, held in enumerate([[1, 2, 3], [5, 4, 6], [2, 3, 4]])}), source="r2"
    )
    found, topic = advised(traffic)
    # The third is led there already.
    assert [words(each) for each in found] == [
        (
            "leaders-in-racks",
            "t is written or read from leaders mostly in r2",
            'set leader.racks = ["r2"] in [topics."t"] of rackspan.toml; rackspan reassign plan --leaders --topic \'t\'',
            "nothing is copied; 1 leader of 3 move, and brokers there serve what they lead",
            f"take leader.racks back; {UNDO}",
        )
    ]
    assert (found[0].topic, found[0].bytes_a_month) == ("t", GIB)
    assert topic.snapshot.partitions.leader.tolist() == [2, 5, 2]
    assert topic.policy.topic_leader_racks == {"t": ("r2",)}
    assert sum(flow.size_bytes or 0 for flow in topic.produced) == 3 * GIB


@pytest.mark.slow
def test_leaders_are_held_in_two_racks_where_not_every_partition_is_in_the_first() -> None:
    """Written from r2, read in r3 by one group: a partition without a replica in r2 is led in r3."""
    placed = {("t", 0): [1, 2], ("t", 1): [1, 3], ("t", 2): [1, 2]}
    places = world(placed, {"m": "r3"})
    places.selectors = dict.fromkeys(BROKERS, ReplicaSelectors.LEADER)
    traffic = measured(places, source="r2")
    (found,) = [each for each in advised(traffic)[0] if each.kind == "leaders-in-racks"]
    assert found.command.startswith('set leader.racks = ["r2", "r3"] in [topics."t"] of rackspan.toml; ')
    assert found.cost.startswith("nothing is copied; 3 leaders of 3 move")


@pytest.mark.slow
def test_leaders_stay_where_an_operator_lists_racks_where_nothing_is_saved_and_where_nobody_writes_or_reads() -> None:
    everywhere = world({("t", at): [1, 2, 3] for at in range(2)})
    listed = RackPolicy(topic_leader_racks={"t": (RackId("r1"),)})
    assert advised(measured(everywhere, source="r2"), listed)[0] == []
    (topic,) = passing(measured(everywhere, source="r2"))
    assert [found.command.partition(" in ")[0] for found, _ in _leaders_in_racks(topic)] == [
        'set leader.racks = ["r2"]'
    ]
    # They are where most is written, or the topic has one copy, or nothing is known of who writes and reads.
    (at_best,) = passing(measured(everywhere, source="r1"))
    (of_one_copy,) = passing(measured(world({("t", 0): [1]}), source="r2"))
    (of_nobody,) = passing(measured(everywhere))
    for each in (at_best, of_one_copy, of_nobody):
        assert list(_leaders_in_racks(each)) == []
    # As much is written from the first rack as from the one in which it is led.
    traffic = measured(world({("t", 0): [2, 1, 3]}), source="r2")
    (even,) = passing(replace(traffic, produced=[*traffic.produced, *written(traffic.snapshot, "r1")]))
    assert list(_leaders_in_racks(even)) == []
    # Racks are not known.
    brokers = tuple(replace(broker, rack=None) for broker in topic.snapshot.brokers)
    unracked = replace(topic, snapshot=replace(topic.snapshot, brokers=brokers))
    assert (list(_leaders_in_racks(unracked)), unracked.racks) == ([], [])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("survive", "in_sync", "factors", "flag"),
    [
        (Survive.BROKER, 1, [2], " --allow-fewer-racks"),
        (Survive.NONE, 2, [3], " --allow-fewer-racks"),
        (Survive.RACK, 2, [3], ""),
        (Survive.RACK, 3, [], ""),
    ],
)
def test_a_topic_keeps_no_more_replicas_than_its_policy_requires(
    survive: Survive, in_sync: int, factors: list[int], flag: str
) -> None:
    places = world({("t", 0): [1, 2, 3, 5], ("t", 1): [2, 3, 1, 6]})
    places.config = {"min.insync.replicas": str(in_sync)}
    found = [each for each in advised(measured(places), RackPolicy(survive=survive))[0] if each.kind == "lower-factor"]
    assert [words(each) for each in found] == [
        (
            "lower-factor",
            f"t has 4 replicas; the policy asks for no more than {factor} keep",
            f"rackspan reassign plan --topic 't' --replication-factor {factor}{flag}",
            "nothing is copied",
            f"{UNDO}, which copies the replicas again",
        )
        for factor in factors
    ]
    assert {each.topic for each in found} <= {"t"}


def test_two_copies_are_kept_and_a_topic_whose_minimum_is_not_known_keeps_all() -> None:
    two, nowhere = world({("t", 0): [1, 2]}), world({("t", 0): [1, 2, 3]})
    nowhere.config = {}
    for places in (two, nowhere):
        assert advised(measured(places), RackPolicy(survive=Survive.NONE))[0] == []


def test_what_a_plan_copies_is_described_in_words() -> None:
    assert replicas_copied(0, 5, 1) == "nothing is copied"
    assert replicas_copied(1, 2048, 0) == "1 replica copied once, 2.0 KiB"
    assert replicas_copied(1234, 0, 0) == "1,234 replicas copied once, 0"
    assert replicas_copied(2, 2048, 1) == "2 replicas copied once, of unknown size"
    snapshot = world({("t", 0): [1], ("t", 1): [2]}).snapshot()
    sized = replace(snapshot, partitions=replace(snapshot.partitions, size_bytes=np.array([1024, 3072])))
    found = plan_in_full(sized, RackPolicy(), ReassignmentRequest(topics="t", replication_factor=2))
    assert found is not None
    assert copied(found) == "2 replicas copied once, 4.0 KiB"


@pytest.mark.parametrize(
    "request_of_it",
    [
        # As it is; more replicas than brokers; a topic that is not there; a partition without a leader.
        ReassignmentRequest(topics="t", leaders=True),
        ReassignmentRequest(topics="t", replication_factor=7),
        ReassignmentRequest(topics="other", replication_factor=2),
        ReassignmentRequest(topics="u", replication_factor=2),
    ],
)
def test_a_plan_that_changes_nothing_or_is_refused_in_part_is_none(request_of_it: ReassignmentRequest) -> None:
    places = world({("t", 0): [1, 2, 3], ("u", 0): [1], ("u", 1): [9]})
    places.placed["u", 1] = (NO_BROKER, [9], [9])
    assert plan_in_full(places.snapshot(), RackPolicy(), request_of_it) is None


@pytest.mark.slow
def test_what_the_audit_finds_fault_with_afterwards_is_not_advised() -> None:
    """Two replicas of which two have to be in sync stop writes when a rack is lost; the planner may use fewer racks."""
    places = world({("t", 0): [1, 2, 3]})
    places.config = {"min.insync.replicas": "2"}
    (topic,) = passing(measured(places, source="r1"), RackPolicy(survive=Survive.RACK))
    request = ReassignmentRequest(topics="t", replication_factor=2, allow_fewer_racks=True)
    assert plan_in_full(topic.snapshot, topic.policy, request) is not None
    assert topic.planned(request) is None
    found = topic.planned(request, RackPolicy(survive=Survive.NONE))
    assert found is not None
    assert found[1].factors == (2, 2)
    assert found[1].policy.survive is Survive.NONE


def test_a_topic_is_led_in_the_first_rack_of_a_list_with_a_replica_in_sync() -> None:
    (topic,) = passing(
        measured(world({("t", 0): [1, 2, 3], ("t", 1): [4, 6], ("t", 2): [3, 5, 6]}, in_sync=[1, 2, 4, 3, 6]))
    )

    def led_in(*racks: str) -> list[int]:
        led = topic.led_in([RackId(each) for each in racks])
        return [int(leader) for leader in led.snapshot.partitions.leader]

    assert led_in("r2") == [2, 4, 3]
    assert led_in("r3") == [3, 6, 3]
    assert led_in("r2", "r3") == [2, 6, 3]
    assert led_in("r1", "r3") == [1, 4, 3]
    assert led_in() == topic.snapshot.partitions.leader.tolist() == [1, 4, 3]


def test_the_least_and_most_replicas_racks_and_whether_each_partition_is_in_all_of_them() -> None:
    (topic,) = passing(measured(world({("t", 0): [1, 2, 3, 4], ("t", 1): [1, 2]}), source="r2"))
    assert (topic.factors, topic.racks, topic.is_in_every_rack) == ((2, 4), ["r1", "r2", "r3"], False)
    (topic,) = passing(measured(world({("t", 0): [1, 2, 3, 4], ("t", 1): [4, 5, 6]}), source="r2"))
    assert (topic.factors, topic.is_in_every_rack) == ((3, 4), True)
    assert topic.name == topic.pattern == "t"
    # In order, once each, and without that of a broker that has none.
    racks = [None, *"hgfedcbah"]
    brokers = (Broker(BrokerId(at), RackId(each) if each else None) for at, each in enumerate(racks, 1))
    assert replace(topic, snapshot=replace(topic.snapshot, brokers=tuple(brokers))).racks == [*"abcdefgh"]


def test_some_topics_of_a_snapshot_are_numbered_anew() -> None:
    snapshot = world({("a", 0): [1], ("b", 0): [2], ("b", 1): [3], ("c", 0): [4], ("d", 0): [5]}).snapshot()
    part = only_topics(snapshot, {"b", "d", "other"})
    assert [topic.name for topic in part.topics] == ["b", "d"]
    assert part.partitions.topic.tolist() == [0, 0, 1]
    assert part.partitions.partition.tolist() == [0, 1, 0]
    assert part.partitions.leader.tolist() == [2, 3, 5]
    assert part.brokers == snapshot.brokers


def test_topics_that_are_not_advised_on_are_passed_over_and_those_behind_them_are_not() -> None:
    """Internal, of unknown bytes in one partition, of no bytes, and being reassigned."""
    names = ["internal", "unknown", "nothing", "moving", "once", "twice"]
    order = sorted(names)
    places = world({(name, at): [1, 2] for name in names for at in range(2)})
    snapshot = places.snapshot()
    rows = snapshot.partitions
    adding = [
        [2] if order[topic] == "moving" and at else [] for topic, at in zip(rows.topic, rows.partition, strict=True)
    ]
    snapshot = replace(
        snapshot,
        topics=tuple(replace(topic, internal=topic.name == "internal") for topic in snapshot.topics),
        partitions=replace(rows, adding_replicas=padded_lists(adding)),
    )
    bytes_in = [
        {"unknown": UNKNOWN_SIZE if at else 5, "nothing": 0}.get(order[topic], GIB)
        for topic, at in zip(rows.topic, rows.partition, strict=True)
    ]
    traffic = replace(
        measured(places, source="r1", snapshot=snapshot), volumes=volumes_of(snapshot, np.array(bytes_in, np.int64))
    )
    assert [topic.name for topic in passing(traffic)] == ["once", "twice"]
    # Each has its own bytes and producers.
    (last,) = [topic for topic in passing(traffic) if topic.name == "twice"]
    assert last.volumes.bytes_in.tolist() == [GIB, GIB]
    assert [flow.link.topic for flow in last.produced] == ["twice", "twice"]
    assert last.snapshot.partitions.replicas.tolist() == [[1, 2], [1, 2]]
    assert last.cluster is snapshot
    assert last.groups == ()


def test_each_topic_has_the_members_that_read_it_with_what_they_read_of_it() -> None:
    places = world({("a", 0): [1, 2], ("a", 1): [1, 2], ("b", 0): [1, 2]}, {"m": "r3", "n": "r3"})
    places.reads = {"m": [("a", 0), ("b", 0)], "n": [("a", 1)]}
    a, b = passing(measured(places))
    assert [
        [
            (member.member.member_id, [read.partition for read in member.reads])
            for member in topic.groups[0].reads.members
        ]
        for topic in (a, b)
    ] == [
        [("m", [TopicPartition("a", 0)]), ("n", [TopicPartition("a", 1)])],
        [("m", [TopicPartition("b", 0)])],
    ]


@pytest.mark.slow
def test_a_topic_is_planned_where_those_before_it_left_the_cluster() -> None:
    """Two topics of one replica each, read in r2 by many groups: the second finds the copies of the first."""
    places = world({("a", 0): [1], ("b", 0): [1]}, {"m": "r2"})
    found = list(savings(measured(places, groups=9), (), RackPolicy(), None, 1))
    assert [(each.kind, each.topic, each.bytes_a_month) for each in found] == [
        ("replica-in-rack", "a", 7 * GIB),
        ("replica-in-rack", "b", 7 * GIB),
    ]


def test_a_topic_has_its_own_rows_of_every_column_of_the_volumes() -> None:
    traffic = measured(world({("a", 0): [1, 2], ("b", 0): [1, 2], ("b", 1): [1, 2]}), source="r1")
    rows = np.arange(3, dtype=np.int64)
    volumes = Volumes(
        10 + rows,
        rows % 2 == 0,
        20 + rows,
        np.array([30.0, 31.0, 32.0]),
        np.stack([40 + rows, 50 + rows], axis=1),
        np.stack([rows == 0, rows == 1], axis=1),
        np.stack([rows == 1, rows == 2], axis=1),
    )
    _, found = (topic.volumes for topic in passing(replace(traffic, volumes=volumes)))
    assert found.bytes_in.tolist() == [11, 12]
    assert found.guessed.tolist() == [False, True]
    assert found.records.tolist() == [21, 22]
    assert found.record_bytes.tolist() == [31.0, 32.0]
    assert found.copied.tolist() == [[41, 51], [42, 52]]
    assert found.from_own_log.tolist() == [[False, True], [False, False]]
    assert found.added.tolist() == [[True, False], [False, True]]
