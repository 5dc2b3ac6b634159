"""Advice about one group, word for word: six partitions in three racks, of which it reads what `declared` and `reads` say."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from rackspan.advice import Advice, MeasuredTraffic
from rackspan.advice.measured import Terms
from rackspan.advice.of_groups import (
    ReadingGroup,
    _at_home,
    _by_strategy,
    _restored,
    _through_gateways,
    group_savings,
)
from rackspan.clients import ClientFinding, ReplicaSelectors, find_causes, group_reads
from rackspan.model import TopicPartition
from rackspan.model.client_networks import ClientNetworks
from rackspan.model.group import GroupDescription, GroupKind
from rackspan.streams.live import CapturedGroup
from rackspan.streams.problem import TaskId
from tests.advice.test_savings import GIB, a_month, world
from tests.clients.worlds import World, streams_group
from tests.traffic.volumes import volumes_of

SELECTOR = "set replica.selector.class=org.apache.kafka.common.replica.RackAwareReplicaSelector on every broker, and restart them in turn"
RACK_AWARE, LEADER = ReplicaSelectors.RACK_AWARE, ReplicaSelectors.LEADER


def measured(
    places: World,
    described: GroupDescription | None = None,
    *,
    through: Sequence[str] = (),
    networks: ClientNetworks | None = None,
) -> MeasuredTraffic:
    snapshot = places.snapshot()
    volumes = volumes_of(snapshot, np.full(len(places.placed), GIB, np.int64))
    reads = group_reads(described or places.group(), snapshot, places.selectors, networks)
    return MeasuredTraffic(snapshot, volumes, [reads], {}, 1.0, places.selectors, through_gateway=frozenset(through))


def advised(traffic: MeasuredTraffic, least: int = 1) -> tuple[list[Advice], ReadingGroup]:
    (reads,) = traffic.reads
    groups = [ReadingGroup(reads, traffic.selectors)]
    found, (group,) = group_savings(traffic, groups, 0, find_causes(reads, traffic.snapshot), Terms(1.0, None, least))
    return found, group


def words(advice: Advice) -> tuple[str, ...]:
    return advice.kind, advice.reason, advice.command, advice.cost, advice.undo


def test_a_client_rack_is_set_and_brokers_are_restarted_that_select_no_replicas_by_rack() -> None:
    places = world(3, {"a": None, "b": "r1"}, {"a": [0, 1, 2], "b": [3, 4, 5]}, LEADER)
    found, group = advised(measured(places))
    assert [words(each) for each in found] == [
        (
            "read-in-rack",
            "1 of 2 members without client.rack: each partition is read from its leader, wherever that is; "
            "client.rack is set and has no effect on 2 partitions: brokers direct every reader to the leader",
            f"set client.rack to the rack of each member and restart; {SELECTOR}",
            "a restart of 1 member and of each of 6 brokers, once for all groups",
            "take the settings back and restart",
        )
    ]
    assert (found[0].group, found[0].topic, found[0].bytes_a_month) == ("shop", None, a_month(4))
    assert group.selectors == dict.fromkeys(range(1, 7), RACK_AWARE)
    assert [member.member.rack for member in group.reads.members] == ["r1", "r2", "r3", "r1"]


def test_brokers_that_direct_a_member_to_a_leader_in_its_own_rack_are_not_restarted() -> None:
    """The third member reads two partitions from brokers that select by rack, and names none."""
    places = world(3, {"a": "r1", "b": None}, {"a": [0, 3], "b": [1]}, LEADER)
    places.selectors[2] = RACK_AWARE
    found, _ = advised(measured(places))
    assert [(each.kind, each.command, each.cost) for each in found] == [
        ("read-in-rack", "set client.rack to the rack of each member and restart", "a restart of 1 member")
    ]


def test_brokers_that_are_not_restarted_direct_readers_to_leaders_after_any_assignment() -> None:
    """Member b would be assigned partition 0, which has a replica in its rack, and read it from broker 1 all the same."""
    places = World(
        {1: "r1", 2: "r2", 3: "r3"},
        {("t", at): (held[0], held, held) for at, held in enumerate(([1, 2], [3, 1], [3, 2], [1]))},
        {1: LEADER, 2: RACK_AWARE, 3: RACK_AWARE},
        declared={"a": "r1", "b": None},
        reads={"a": [("t", 0), ("t", 3)], "b": [("t", 1), ("t", 2)]},
        hosts={"a": "10.1.0.1", "b": "10.2.0.1"},
    )
    networks = ClientNetworks({"10.1.0.0/16": "r1", "10.2.0.0/16": "r2"})
    found, group = advised(measured(places, networks=networks))
    assert [(each.kind, each.cost, each.bytes_a_month) for each in found] == [
        ("read-in-rack", "a restart of 1 member", a_month(1))
    ]
    assert group.selectors[1] is LEADER


def test_brokers_alone_are_restarted_where_every_member_names_its_rack() -> None:
    found, _ = advised(measured(world(3, {"a": "r1"}, {"a": range(6)}, LEADER)))
    assert [(each.command, each.cost) for each in found] == [
        (SELECTOR, "a restart of each of 6 brokers, once for all groups")
    ]


def test_a_cause_that_is_no_more_costs_no_restart() -> None:
    """The findings are of settings, and the reads of what was measured since."""
    traffic = measured(world(3, {"a": "r1"}, {"a": [0, 3]}, RACK_AWARE))
    cause = ClientFinding("no-replica-selector", "shop", ("a",), ("t",), 1, "why", "what")
    found = _at_home(traffic, ReadingGroup(traffic.reads[0], traffic.selectors), [cause])
    assert found is not None
    assert (found[0].reason, found[0].command, found[0].cost) == ("why", "", "")


@pytest.mark.parametrize("cause", ["no-replica-in-rack", "follower-behind", "share-group", "assignment"])
def test_causes_that_no_setting_of_a_client_removes_are_left_to_others(cause: str) -> None:
    traffic = measured(world(3, {"a": "r1"}, {"a": range(6)}, RACK_AWARE), through=["client-a"])
    group = ReadingGroup(traffic.reads[0], traffic.selectors)
    found = [ClientFinding(cause, "shop", ("a",), ("t",), 1, "why", "what")]
    assert _at_home(traffic, group, found) is None
    assert _through_gateways(traffic, group, found) is None
    assert _at_home(traffic, group, []) is None


def test_a_gateway_before_members_that_report_no_rack_and_brokers_that_select_by_rack() -> None:
    places = world(3, {"a": None, "b": None, "c": "r1"}, {"a": [0, 1], "b": [2, 3], "c": [4, 5]}, LEADER)
    places.older = {"a", "b"}
    found, group = advised(measured(places))
    assert [words(each) for each in found if each.kind == "gateway-rack"] == [
        (
            "gateway-rack",
            "2 of 3 members with a client that reports no rack",
            "set [readers] rack in the file of each gateway to the rack of the members that read through it",
            "a gateway in each rack before 2 members, with its bootstrap.servers",
            "take [readers] back, and SIGHUP",
        )
    ]
    # The first advice restarts the brokers, for the member that names its rack.
    assert [each.kind for each in found] == ["read-in-rack", "gateway-rack"]
    assert {each.group for each in found} == {"shop"}
    assert [member.member.member_id for member in group.reads.members] == [*"aaa", *"bbb", "c"]
    places.declared["c"], places.older = None, {"a", "b", "c"}
    (only,) = advised(measured(places, through=["client-c"]))[0]
    assert words(only) == (
        "gateway-rack",
        "3 of 3 members with a client that reports no rack",
        f"set [readers] rack in the file of each gateway to the rack of the members that read through it; {SELECTOR}",
        "a gateway in each rack before 2 members, with its bootstrap.servers; a restart of each of 6 brokers, once for all groups",
        "take [readers] back, and SIGHUP",
    )


@pytest.mark.parametrize("declared", ["R1", "r2"])
def test_a_gateway_replaces_the_client_rack_of_members_that_name_none_of_the_racks_or_another(declared: str) -> None:
    places = world(3, {"a": declared, "b": "r1"}, {"a": range(6), "b": []}, RACK_AWARE)
    places.hosts = {"a": "10.0.0.7", "b": "10.0.0.8"}
    networks = ClientNetworks({"10.0.0.0/24": "r1"})
    (found,) = advised(measured(places, through=["client-a", "client-b"], networks=networks))[0]
    assert words(found) == (
        "gateway-rack",
        "1 of 2 members read through a gateway that writes no rack into fetches",
        "set [readers] rack in the file of each gateway to the rack of the members that read through it"
        " and replace.client.rack = true",
        "SIGHUP to the gateways, no restart",
        "take [readers] back, and SIGHUP",
    )
    # Without a gateway its own setting is corrected.
    (found,) = advised(measured(places, networks=networks))[0]
    assert (found.kind, found.cost) == ("read-in-rack", "a restart of 1 member")


def test_another_assignor_is_advised_where_it_reads_more_at_home() -> None:
    crossed = world(1, {"a": "r1", "b": "r2"}, {"a": [1, 2, 4], "b": [0, 3, 5]}, RACK_AWARE)
    found, group = advised(measured(crossed))
    assert [words(each) for each in found] == [
        (
            "assignor",
            "the assignment of range leaves 6 without a replica in their reader's rack; as balanced, another leaves 2",
            "use an assignor that looks at racks in every member: rackspan's in_rack in Python, Java's range or sticky",
            "a restart of 2 members",
            "take the settings back and restart",
        )
    ]
    assert (found[0].group, found[0].bytes_a_month) == ("shop", a_month(4))
    assert {
        (member.member.member_id, read.partition.partition, read.served_from)
        for member in group.reads.members
        for read in member.reads
        if read.partition.partition in (0, 1, 3, 4)
    } == {("a", 0, "r1"), ("b", 1, "r2"), ("a", 3, "r1"), ("b", 4, "r2")}
    # That of Kafka Streams moves whole tasks.
    crossed.protocol = "stream"
    assert advised(measured(crossed))[0] == []


def test_advice_below_what_is_required_leaves_the_group_as_it_reads() -> None:
    crossed = world(1, {"a": "r1", "b": "r2"}, {"a": [1, 2, 4], "b": [0, 3, 5]}, RACK_AWARE)
    traffic = measured(crossed)
    found, group = advised(traffic, a_month(4) + 1)
    assert (found, group.reads, group.selectors) == ([], traffic.reads[0], traffic.selectors)


def crossed_streams() -> World:
    """Each process runs the two tasks whose partitions are in the other's rack."""
    placed: Any = {("t", at): (at // 2 + 1, [at // 2 + 1], [at // 2 + 1]) for at in range(4)}
    return World(
        {1: "r1", 2: "r2"},
        placed,
        dict.fromkeys((1, 2), RACK_AWARE),
        kind=GroupKind.STREAMS,
        declared={"a": "r1", "b": "r2"},
        reads={"a": [("t", 2), ("t", 3)], "b": [("t", 0), ("t", 1)]},
    )


def test_a_strategy_of_kafka_streams_moves_whole_tasks() -> None:
    places = crossed_streams()
    traffic = measured(places, streams_group(places, ("log",)))
    found, group = advised(traffic)
    assert [words(each) for each in found] == [
        (
            "strategy",
            "4 tasks of 4 would run elsewhere under min_traffic (KIP-925), as balanced",
            "set group.protocol=classic (brokers look at no racks, KIP-1071) and rack.aware.assignment.strategy=min_traffic and "
            "restart; see rackspan streams audit --group shop",
            "a restart of 2 processes; state of unknown size is restored once",
            "take the settings back and restart",
        )
    ]
    assert (found[0].group, found[0].topic, found[0].bytes_a_month) == ("shop", None, a_month(4))
    assert {
        (member.member.member_id, read.partition.partition, read.served_from)
        for member in group.reads.members
        for read in member.reads
    } == {("a", 0, "r1"), ("a", 1, "r1"), ("b", 2, "r2"), ("b", 3, "r2")}


def test_no_strategy_is_advised_to_groups_of_unknown_racks_partitions_or_tasks() -> None:
    places = crossed_streams()
    described = streams_group(places, ("log",))
    traffic = measured(places, described)
    group = ReadingGroup(traffic.reads[0], traffic.selectors)
    assert _by_strategy(traffic, group, []) is not None
    # A rebalance is under way.
    moving = replace(group, reads=replace(group.reads, group=replace(described, state="Reconciling")))
    assert _by_strategy(traffic, moving, []) is None
    # It is no group of Kafka Streams.
    classic = replace(group, reads=replace(group.reads, group=replace(described, kind=GroupKind.CLASSIC)))
    assert _by_strategy(traffic, classic, []) is None
    # A member stands for two racks, or for one that is not known.
    a, b = group.reads.members
    assert _by_strategy(traffic, replace(group, reads=replace(group.reads, members=(a, a, b))), []) is None
    nowhere = replace(b, member=replace(b.member, rack=None))
    assert _by_strategy(traffic, replace(group, reads=replace(group.reads, members=(a, nowhere))), []) is None
    # A partition that its task reads and the member does not.
    less = replace(a, reads=a.reads[:1])
    assert _by_strategy(traffic, replace(group, reads=replace(group.reads, members=(less, b))), []) is None
    # Two members of one client id.
    twin = replace(b, member=replace(b.member, client_id=a.member.client_id))
    assert _by_strategy(traffic, replace(group, reads=replace(group.reads, members=(a, twin))), []) is None
    # A broker of an unknown rack.
    places.racks[2] = None
    assert _by_strategy(measured(places, described), group, []) is None


def test_state_that_moves_is_as_large_as_the_changelogs_of_all_tasks_that_move() -> None:
    snapshot = World({1: "r1"}, {("log", at): (1, [1], [1]) for at in range(3)}, {}).snapshot()
    sized = replace(snapshot, partitions=replace(snapshot.partitions, size_bytes=np.array([1024, 2048, -1])))
    tasks = [
        {"id": "0_0", "stateful": True, "changelog": ["log:0", "log:1"]},
        {"id": "0_1", "stateful": True, "changelog": ["log:1"]},
        {"id": "0_2", "stateful": True, "changelog": ["log:2"]},
        {"id": "0_3", "stateful": True, "changelog": ["gone:0"]},
        {"id": "0_4", "stateful": True, "changelog": ["log:3"]},
    ]
    document: Any = {"tasks": tasks}

    def restored(*moved: str) -> str:
        return _restored(sized, CapturedGroup(document, ()), {TaskId(task) for task in moved})

    assert restored("0_1") == "2.0 KiB"
    # The changelog that both have counts once.
    assert restored("0_0", "0_1") == "3.0 KiB"
    assert restored("0_2") == restored("0_0", "0_3") == restored("0_4") == "unknown size"
    assert restored() == "no task"


def test_a_group_is_known_by_its_id() -> None:
    traffic = measured(world(3, {"a": "r1"}, {"a": [0]}, RACK_AWARE))
    assert ReadingGroup(traffic.reads[0], {}).id == "shop"
    assert traffic.reads[0].members[0].reads[0].partition == TopicPartition("t", 0)
