"""Random clusters and groups as plain dictionaries, and what their members read, by plain loops."""

from dataclasses import dataclass, field, replace
from itertools import product
from random import Random

from rackspan.clients import ReplicaSelectors
from rackspan.model import Broker, BrokerId, ClusterSnapshot, RackId, Topic, TopicName
from rackspan.model.group import GroupDescription, GroupKind, MemberDescription, StreamsMember, SubtopologyTopics
from rackspan.model.ids import TopicPartition
from rackspan.model.partitions import columns

TopicAndPartition = tuple[str, int]


@dataclass
class World:
    """`placed` has leader, replicas and ISR of each partition; `reads` the partitions of each member."""

    racks: dict[int, str | None]
    placed: dict[TopicAndPartition, tuple[int, list[int], list[int]]]
    selectors: dict[int, ReplicaSelectors]
    kind: GroupKind = GroupKind.CLASSIC
    declared: dict[str, str | None] = field(default_factory=dict)
    reads: dict[str, list[TopicAndPartition]] = field(default_factory=dict)
    hosts: dict[str, str] = field(default_factory=dict)
    older: set[str] = field(default_factory=set)
    """Members whose protocol has no field for a rack."""

    protocol: str = "range"
    config: dict[str, str] = field(default_factory=lambda: {"min.insync.replicas": "1"})
    """Of every topic."""

    def snapshot(self) -> ClusterSnapshot:
        names = sorted({topic for topic, _ in self.placed})
        rows = sorted(self.placed)
        return ClusterSnapshot(
            brokers=tuple(
                Broker(BrokerId(broker), RackId(rack) if rack else None) for broker, rack in self.racks.items()
            ),
            topics=tuple(Topic(TopicName(name), config=self.config) for name in names),
            partitions=columns(
                topic=[names.index(topic) for topic, _ in rows],
                partition=[partition for _, partition in rows],
                replicas=[self.placed[row][1] for row in rows],
                isr=[self.placed[row][2] for row in rows],
                leader=[self.placed[row][0] for row in rows],
            ),
        )

    def group(self) -> GroupDescription:
        return GroupDescription(
            "shop",
            "Stable",
            "consumer",
            self.protocol,
            tuple(
                MemberDescription(
                    name,
                    f"client-{name}",
                    host=self.hosts.get(name, ""),
                    rack=RackId(rack) if rack else None,
                    declares_rack=name not in self.older,
                    partitions=tuple(TopicPartition(*read) for read in self.reads[name]),
                )
                for name, rack in self.declared.items()
            ),
            kind=self.kind,
        )


def served_from(world: World, member: str, read: TopicAndPartition) -> str | None:
    """KIP-392's rules, once more: the rack of the replica that serves the member; None if nobody can say."""
    leader, _, in_sync = world.placed[read]
    named = None if world.kind is GroupKind.SHARE else world.declared[member]
    selector = world.selectors.get(leader, ReplicaSelectors.UNKNOWN)
    home = world.racks.get(leader)
    if named is None or named == home:
        return home
    if selector is ReplicaSelectors.LEADER:
        return home
    if selector is not ReplicaSelectors.RACK_AWARE:
        return None
    for broker in in_sync:
        if world.racks[broker] == named:
            return named
    return home


def least_across(world: World) -> int:
    """Every balanced assignment tried: all members subscribe to all topics. Few partitions and members only."""
    partitions = sorted({read for reads in world.reads.values() for read in reads})
    members = sorted(world.declared)
    best = len(partitions)
    for owners in product(members, repeat=len(partitions)):
        counts = [owners.count(member) for member in members]
        if max(counts) - min(counts) <= 1:
            crossing = 0
            for partition, owner in zip(partitions, owners, strict=True):
                racks = {world.racks[broker] for broker in world.placed[partition][1]}
                crossing += world.declared[owner] not in racks
            best = min(best, crossing)
    return best


def streams_group(world: World, changelogs: tuple[str, ...] = ()) -> GroupDescription:
    """As of the streams protocol: each member is a process, whose tasks are the partitions of topic `t` that it reads."""
    group = world.group()
    members = tuple(
        replace(
            member,
            partitions=(),
            streams=StreamsMember(
                f"00000000-0000-0000-0000-00000000000{at}",
                {},
                {"0": tuple(partition for _, partition in world.reads[member.member_id])},
                {},
                {},
            ),
        )
        for at, member in enumerate(group.members)
    )
    topology = {"0": SubtopologyTopics(("t",), changelogs)}
    return replace(group, kind=GroupKind.STREAMS, topology=topology, members=members)


def random_world(rng: Random) -> World:
    racks = {broker: f"r{rng.randint(1, 3)}" for broker in range(1, rng.randint(2, 7))}
    if rng.random() < 0.2:
        racks[rng.choice(list(racks))] = None  # type: ignore[assignment]  # a broker without a rack
    placed = {}
    for topic in ("orders", "pay")[: rng.randint(1, 2)]:
        for partition in range(rng.randint(1, 4)):
            replicas = rng.sample(list(racks), rng.randint(1, min(3, len(racks))))
            in_sync = rng.sample(replicas, rng.randint(1, len(replicas)))
            leader = rng.choice(in_sync) if rng.random() < 0.9 else -1
            placed[topic, partition] = (leader, replicas, in_sync)
    members = [f"m{at}" for at in range(rng.randint(1, 3))]
    world = World(
        dict(racks),
        placed,
        {broker: rng.choice(list(ReplicaSelectors)) for broker in racks if rng.random() < 0.95},
        rng.choice([GroupKind.CLASSIC, GroupKind.CONSUMER, GroupKind.SHARE]),
        declared={member: rng.choice(["r1", "r2", "r3", "r3", "R1", None]) for member in members},
        reads={member: [] for member in members},
        older={member for member in members if rng.random() < 0.1},
    )
    for member in world.older:
        world.declared[member] = None
    for read in placed:
        for member in rng.sample(members, rng.randint(1, len(members)) if world.kind is GroupKind.SHARE else 1):
            world.reads[member].append(read)
    return world
