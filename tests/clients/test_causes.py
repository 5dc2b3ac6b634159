"""Each cause planted alone is found, and nothing else; in random groups what plain loops find."""

from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from rackspan.clients import ClientFinding, ReplicaSelectors, find_causes, group_reads
from rackspan.clients.likely_rack import likely_rack
from rackspan.model import RackId
from rackspan.model.client_networks import ClientNetworks
from rackspan.model.group import GroupKind
from tests.clients.worlds import World, random_world, streams_group

NETWORKS = ClientNetworks({"10.0.1.0/24": "r1", "10.0.2.0/24": "r2", "10.0.3.0/24": "r3"})


def sound() -> World:
    """Three racks, every partition in each of them, three members that each read from their own."""
    reads = {f"m{at}": [("orders", at - 1), ("orders", at + 2)] for at in (1, 2, 3)}
    return World(
        {1: "r1", 2: "r2", 3: "r3"},
        {("orders", at): (at % 3 + 1, [1, 2, 3], [1, 2, 3]) for at in range(6)},
        dict.fromkeys((1, 2, 3), ReplicaSelectors.RACK_AWARE),
        # The leaders of each member's partitions are in other racks: only follower fetching brings them home.
        declared={"m1": "r2", "m2": "r3", "m3": "r1"},
        reads=reads,
        hosts={"m1": "10.0.2.1", "m2": "10.0.3.1", "m3": "10.0.1.1"},
    )


def found(world: World, networks: ClientNetworks | None = NETWORKS) -> list[ClientFinding]:
    snapshot = world.snapshot()
    return find_causes(group_reads(world.group(), snapshot, world.selectors, networks), snapshot)


def only(world: World) -> ClientFinding:
    (finding,) = found(world)
    return finding


def test_nothing_is_found_where_every_member_reads_in_its_rack() -> None:
    assert found(sound()) == []


def test_a_finding_says_who_reads_what_why_and_what_to_do() -> None:
    world = sound()
    world.declared = {"m2": None, "m1": None, "m3": "r1"}
    assert only(world) == ClientFinding(
        "no-client-rack",
        "shop",
        ("m2", "m1"),
        ("orders",),
        4,
        "2 of 3 members without client.rack: each partition is read from its leader, wherever that is",
        "set client.rack=r2 of client-m1, client.rack=r3 of client-m2 and restart",
    )
    world = sound()
    world.declared["m1"], world.older = None, {"m1"}
    assert (only(world).reason, only(world).remedy) == (
        "1 of 3 members with a client that reports no rack to its group: what it sends with fetches is not known",
        "set client.rack=r2 where it is not, or use a client that reports it (Java's from Kafka 3.4; rackspan's in_rack)",
    )
    world = sound()
    world.declared["m1"] = "r3"
    assert (only(world).reason, only(world).remedy) == (
        "1 of 3 members with the client.rack of another place: client-m1 names 'r3', is in 'r2'",
        "set client.rack=r2 and restart",
    )
    world = sound()
    world.placed |= {("orders", at): (at % 3 + 1, [1, 2, 3], [at % 3 + 1]) for at in (5, 4, 3, 1)}
    assert (only(world).reason, only(world).remedy) == (
        "the replica in the readers' rack is not in sync: orders-1, orders-3, orders-4 and 1 more",
        "see rackspan audit: a broker may be down or slow",
    )


def test_racks_that_no_broker_has_are_listed_in_order_with_those_that_are_meant_or_there() -> None:
    world = sound()
    world.declared |= {"m1": "zz", "m2": "R-9", "m3": "R-2"}
    (finding,) = found(world, None)
    assert (finding.reason, finding.remedy) == (
        "3 of 3 members with a client.rack that no broker has: 'R-2', 'R-9', 'zz'",
        "correct client.rack and restart: 'R-2' is probably 'r2'",
    )
    world.declared["m1"], world.racks = "R-1", dict(world.racks) | {4: "r4", 5: "r5"}
    world.declared |= {"m4": "R-5", "m5": "R-4"}
    world.reads |= {"m4": [("orders", 0)], "m5": [("orders", 0)]}
    world.declared["m2"] = "R-3"
    finding = found(world, None)[0]
    assert (finding.reason, finding.remedy) == (
        "5 of 5 members with a client.rack that no broker has: 'R-1', 'R-2', 'R-3' and 2 more",
        "correct client.rack and restart: 'R-1' is probably 'r1'; 'R-2' is probably 'r2'; 'R-3' is probably 'r3'",
    )
    del world.hosts["m1"]
    assert found(world)[0].remedy == finding.remedy, "the address of some is not known"
    world = sound()
    world.declared |= {"m1": "zz", "m2": "qq"}
    (finding,) = found(world, None)
    assert (finding.reason, finding.remedy) == (
        "2 of 3 members with a client.rack that no broker has: 'qq', 'zz'",
        "correct client.rack and restart: the brokers' racks are 'r1', 'r2', 'r3'",
    )


def test_topics_with_too_few_replicas_and_with_enough_are_two_commands() -> None:
    world = sound()
    world.racks[4], world.selectors[4] = "r1", ReplicaSelectors.RACK_AWARE
    world.placed = {read: (1, [1, 3], [1, 3]) for read in world.placed}
    for topic in ("pay.v2", "bills", "carts", "adds"):
        world.placed[topic, 0] = (1, [1, 3, 4], [1, 3, 4])
        world.reads["m1"].append((topic, 0))
    finding, assignment = found(world)
    assert finding.topics == assignment.topics == ("adds", "bills", "carts", "orders", "pay.v2")
    assert finding.reason == "6 partitions read in r2 without a replica there; with one in each rack none would be"
    assert finding.remedy == (
        "rackspan reassign plan --topic 'orders' --replication-factor 3 && "
        r"rackspan reassign plan --topic 'adds|bills|carts|pay\.v2'"
    )
    assert (assignment.partitions, assignment.reason) == (
        3,
        "the assignment of range leaves 6 without a replica in their reader's rack; as balanced, another leaves 3",
    )
    assert found(replace(world, protocol=""))[1].reason.startswith("the assignment of the group leaves 6 without")


@pytest.mark.parametrize(("count", "noun"), [(2, "2 partitions"), (1, "1 partition")])
def test_brokers_without_a_selector_are_one_cause_for_all_partitions(count: int, noun: str) -> None:
    world = sound()
    world.selectors[1] = ReplicaSelectors.LEADER
    world.reads["m1"] = world.reads["m1"][:count]
    assert (only(world).reason, only(world).remedy) == (
        f"client.rack is set and has no effect on {noun}: brokers direct every reader to the leader",
        "set replica.selector.class=org.apache.kafka.common.replica.RackAwareReplicaSelector on every broker, and "
        "restart them in turn",
    )


def test_a_member_without_a_rack_gets_the_rack_it_is_in() -> None:
    world = sound()
    world.declared["m1"] = None
    finding = only(world)
    assert (finding.cause, finding.members, finding.partitions) == ("no-client-rack", ("m1",), 2)
    assert finding.remedy == "set client.rack=r2 and restart"


def test_where_nobody_says_where_a_member_is_the_remedy_names_no_rack() -> None:
    world = sound()
    world.declared["m1"] = None
    (finding,) = found(world, None)
    assert finding.remedy == "set client.rack to the rack of each member and restart"


def test_an_older_client_is_not_accused_of_what_it_cannot_report() -> None:
    world = sound()
    world.declared["m1"], world.older = None, {"m1"}
    assert only(world).cause == "rack-not-reported"


def test_a_rack_that_no_broker_has_is_named_with_the_likely_one() -> None:
    world = sound()
    world.declared["m1"] = "R-2"
    (finding,) = found(world, None)
    assert (finding.cause, finding.members) == ("unknown-client-rack", ("m1",))
    assert finding.remedy == "correct client.rack and restart: 'R-2' is probably 'r2'"
    assert only(world).remedy == "set client.rack=r2 and restart", "by the member's address"


def test_a_rack_that_the_member_is_not_in_is_found_by_its_address() -> None:
    world = sound()
    world.declared["m1"] = "r3"
    finding = only(world)
    assert finding.cause == "wrong-client-rack"
    assert "client-m1 names 'r3', is in 'r2'" in finding.reason


def test_a_partition_without_a_replica_in_the_readers_rack_gets_one() -> None:
    world = sound()
    world.placed = {read: (1, [1, 3], [1, 3]) for read in world.placed}
    finding = only(world)
    assert (finding.cause, finding.partitions, finding.topics) == ("no-replica-in-rack", 2, ("orders",))
    assert finding.remedy == "rackspan reassign plan --topic 'orders' --replication-factor 3"


def test_a_topic_with_replicas_enough_is_spread_and_never_made_smaller() -> None:
    world = sound()
    world.racks |= {4: "r1", 5: "r1"}
    world.selectors |= dict.fromkeys((4, 5), ReplicaSelectors.RACK_AWARE)
    world.placed = {read: (1, [1, 3, 4, 5], [1, 3, 4, 5]) for read in world.placed}
    assert only(world).remedy == "rackspan reassign plan --topic 'orders'"


def test_brokers_that_direct_readers_to_leaders_are_found() -> None:
    world = sound()
    world.selectors[1] = ReplicaSelectors.LEADER
    finding = only(world)
    assert (finding.cause, finding.members, finding.partitions) == ("no-replica-selector", ("m1",), 2)


def test_a_replica_that_is_not_in_sync_is_found() -> None:
    world = sound()
    world.placed["orders", 3] = (1, [1, 2, 3], [1, 3])
    finding = only(world)
    assert (finding.cause, finding.partitions) == ("follower-behind", 1)
    assert "orders-3" in finding.reason


def test_a_selector_of_the_users_own_is_neither_praised_nor_blamed() -> None:
    world = sound()
    world.selectors = dict.fromkeys((1, 2, 3), ReplicaSelectors.OTHER)
    snapshot = world.snapshot()
    reads = group_reads(world.group(), snapshot, world.selectors, NETWORKS)
    assert (find_causes(reads, snapshot), reads.across) == ([], None)


def test_a_share_group_never_gets_client_rack_as_a_remedy() -> None:
    world = replace(sound(), kind=GroupKind.SHARE, declared=dict.fromkeys(("m1", "m2", "m3"), None))
    finding = only(world)
    assert (finding.cause, finding.partitions) == ("share-group", 6)
    assert finding.reason == (
        "members of a share group read from leaders only, whatever client.rack says: 6 reads across racks"
    )
    assert finding.remedy == ("lead these topics in the rack where most members are, or run the members in fewer racks")


def test_a_member_of_a_share_group_that_is_near_the_leader_or_nowhere_has_nothing_to_find() -> None:
    world = replace(sound(), kind=GroupKind.SHARE)
    world.declared |= {"m1": "r1", "m2": None}
    (finding,) = found(world, None)
    assert (finding.members, finding.partitions) == (("m3",), 2)
    world.reads["m3"] = world.reads["m3"][:1]
    (finding,) = found(world, None)
    assert finding.reason.endswith("whatever client.rack says: 1 read across racks")


def test_no_other_assignment_is_advised_to_share_groups_and_to_streams_groups() -> None:
    """Each partition in one rack, and read in another. In a share group a partition has many readers, and a streams
    group's tasks move whole."""
    placed = {("t", at): (at % 3 + 1, [at % 3 + 1], [at % 3 + 1]) for at in range(6)}
    reads = {f"m{at}": [("t", at - 1), ("t", at + 2)] for at in (1, 2, 3)}
    world = replace(sound(), placed=placed, reads=reads, kind=GroupKind.SHARE)
    assert [one.cause for one in found(world)] == ["share-group"]
    snapshot = world.snapshot()
    streams = group_reads(streams_group(world), snapshot, world.selectors, NETWORKS)
    assert [one.cause for one in find_causes(streams, snapshot)] == ["no-replica-in-rack"]


@pytest.mark.parametrize(("kind", "remedy"), [(GroupKind.CLASSIC, "in_rack"), (GroupKind.CONSUMER, "KIP-848")])
def test_an_assignment_that_could_read_less_across_racks_is_found(kind: GroupKind, remedy: str) -> None:
    """Each partition in one rack, and assigned to a member of another."""
    world = replace(sound(), kind=kind)
    for at in range(6):
        world.placed["orders", at] = (at % 3 + 1, [at % 3 + 1], [at % 3 + 1])
    local, assignment = found(world)
    assert local.cause == "no-replica-in-rack"
    assert local.reason == (
        "6 partitions read in r1, r2, r3 without a replica there; with one in each rack none would be"
    )
    assert (assignment.cause, assignment.partitions) == ("assignment", 6)
    assert remedy in assignment.remedy
    assert assignment.reason == (
        "the assignment of range leaves 6 without a replica in their reader's rack; as balanced, another leaves 0"
    )


def test_a_cluster_of_one_rack_has_nothing_to_find() -> None:
    world = sound()
    world.racks = dict.fromkeys(world.racks, "r1")
    world.declared = dict.fromkeys(world.declared, None)
    assert found(world) == []


def expected(world: World) -> Counter[str]:
    """Causes by plain loops over dictionaries: how many reads each has."""
    racks = {rack for rack in world.racks.values() if rack}
    causes: Counter[str] = Counter()
    for member, reads in world.reads.items():
        declared = world.declared[member]
        for read in reads:
            leader, replicas, in_sync = world.placed[read]
            home = world.racks.get(leader)
            selector = world.selectors.get(leader, ReplicaSelectors.UNKNOWN)
            if len(racks) < 2:
                continue
            if world.kind is GroupKind.SHARE:
                causes["share-group"] += declared is not None and home != declared
            elif declared is None:
                causes["rack-not-reported" if member in world.older else "no-client-rack"] += 1
            elif declared not in racks:
                causes["unknown-client-rack"] += 1
            elif home == declared:
                continue
            elif declared not in {world.racks[broker] for broker in replicas}:
                causes["no-replica-in-rack"] += 1
            elif selector is ReplicaSelectors.LEADER:
                causes["no-replica-selector"] += 1
            elif selector is ReplicaSelectors.RACK_AWARE:
                causes["follower-behind"] += declared not in {world.racks[broker] for broker in in_sync}
    return +causes


@pytest.mark.slow
def test_500_random_groups_have_the_causes_that_plain_loops_find() -> None:
    rng = Random(1123)
    causes_met: Counter[str] = Counter()
    for _ in range(500):
        world = random_world(rng)
        causes = Counter({one.cause: one.partitions for one in found(world, None) if one.cause != "assignment"})
        assert causes == expected(world)
        causes_met += causes
    assert len(causes_met) == 7, "every cause but the one by address"


@pytest.mark.parametrize(
    ("declared", "racks", "meant"),
    [
        ("R1", ["r1", "r2"], "r1"),
        (" r1 ", ["r1", "r2"], "r1"),
        ("r_1", ["r-1", "r-2"], "r-1"),
        ("1a", ["eu-west-1a", "eu-west-1b"], "eu-west-1a"),
        ("eu-west-1a", ["1a", "1b"], "1a"),
        ("us-east-1a", ["use1-az1", "euw1-az1"], "use1-az1"),
        ("us-east-1a", ["use1-az1", "use1-az2"], None),
        ("ap-southeast-2c", ["apse2-az3"], "apse2-az3"),
        ("eu-central-1b", ["euc1-az2", "euw1-az2"], "euc1-az2"),
        ("eu-wset-1a", ["eu-west-1a", "ap-south-1a"], "eu-west-1a"),
        ("r3", ["r1", "r2"], None),
        ("us-east-1a", ["us-east-1b", "eu-west-1a"], None),
        ("use1-az2", ["use1-az1", "euw1-az1"], None),
        ("us-central1-a", ["us-central1-b", "asia-east1-a"], None),
        ("westeurope-1", ["westeurope-2", "northeurope-1"], None),
        ("rack4", ["rack1", "zone-b"], None),
        ("use1-az1", ["us-east-1a", "us-west-2a"], "us-east-1a"),
        ("11", ["1", "2"], None),
        ("1", ["az11", "az2"], None),
        ("1", ["az1", "az11"], "az1"),
        ("", ["r1"], None),
        ("west-1a", ["eu-west-1a", "eu-west-1b"], "eu-west-1a"),
        ("zone-1", ["aws-eu-zone-1", "aws-eu-zone-2"], "aws-eu-zone-1"),
        ("aws-eu-zone-1", ["zone-1", "zone-2"], "zone-1"),
        ("ap-northeast-1a", ["apne1-az4"], "apne1-az4"),
        ("ap-northeast-1a", ["apse1-az4"], None),
        ("us-west-2b", ["usw2-az1", "use2-az1"], "usw2-az1"),
        ("ap-south-1a", ["aps1-az1", "apse1-az1"], "aps1-az1"),
        ("af-south-1a", ["afs1-az1"], "afs1-az1"),
        ("eu-north-1c", ["eun1-az3"], "eun1-az3"),
        ("ca-central-1a", ["cac1-az1"], "cac1-az1"),
    ],
)
def test_a_misspelt_rack_means_the_only_one_it_can(declared: str, racks: list[str], meant: str | None) -> None:
    assert likely_rack(declared, [RackId(rack) for rack in racks]) == meant
