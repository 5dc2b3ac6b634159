"""A synthetic fleet: clusters over weeks, with rack losses, reassignments and deploys, and faults of which the right advice is known.

Begin with synthetic_fleet(). Pure: equal seeds give equal fleets, and the state at any time is computed from the time, so that
readings may begin anywhere. Placement is the same rotation over brokers in every topic, so that loads are even and nothing is wrong
but what is planted.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from random import Random
from typing import Final, TypeAlias

import numpy as np

from rackspan.clients import ReplicaSelectors
from rackspan.model import (
    NO_BROKER,
    UNKNOWN_SIZE,
    Broker,
    BrokerId,
    ClusterSnapshot,
    Controller,
    RackId,
    Topic,
    TopicName,
    TopicPartition,
    columns,
)
from rackspan.model.group import GroupDescription, MemberDescription
from rackspan.traffic import ClusterLogs, ClusterReading
from rackspan.traffic.bill import MONTH_SECONDS
from rackspan.traffic.logs import UNKNOWN_OFFSET

RACKS: Final = (RackId("r1"), RackId("r2"), RackId("r3"))
BROKERS: Final = tuple(range(1, 7))
"""In the racks in turn: r1 has 1 and 4, r2 has 2 and 5, r3 has 3 and 6."""

RECORD_BYTES: Final = 1_000

START: Final = datetime(2026, 9, 7, tzinfo=UTC)
"""A Monday."""

_PERCENT_OF_HOURS: Final = (
    40,
    40,
    40,
    40,
    50,
    60,
    80,
    100,
    120,
    140,
    150,
    150,
    140,
    140,
    150,
    150,
    140,
    130,
    120,
    110,
    100,
    90,
    70,
    50,
)
"""What a topic receives in each hour of a day, of what it receives on average."""


class FleetFault(StrEnum):
    """A mistake that a cluster has all the time."""

    NO_CLIENT_RACK = "no-client-rack"
    """A group whose members name no rack."""
    NO_SELECTOR = "no-selector"
    """Brokers that send every reader to the leader."""
    STACKED = "stacked"
    """A topic with two of three replicas in one rack."""
    ONE_REPLICA = "one-replica"
    """A topic with one replica a partition."""
    FIVE_REPLICAS = "five-replicas"
    """A topic with five replicas a partition."""
    CROSSED = "crossed"
    """A group whose members read what is at home with the others."""


@dataclass(frozen=True, slots=True)
class PlantedFault:
    """A fault, and the kind of the advice that is right about it. `topic` and `group` are what it is about.

    `bytes_a_month` is what following the advice keeps in its rack at the average rate; None of a risk.
    """

    cluster: str
    fault: FleetFault
    kind: str
    topic: str
    group: str | None = None
    bytes_a_month: int | None = None


class Happening(StrEnum):
    """What passes by itself."""

    RACK_LOST = "rack-lost"
    """All brokers of a rack are down."""
    REASSIGNMENT = "reassignment"
    """A partition gets another replica in the place of one, until that is cancelled."""
    DEPLOY = "deploy"
    """A group's members are replaced by new ones, with other ids."""


@dataclass(frozen=True, slots=True)
class FleetEvent:
    """Something that happened from `since` until before `until`. `rack` of a lost one, `topic` of a reassignment, `group` of a deploy."""

    cluster: str
    happening: Happening
    since: datetime
    until: datetime
    rack: RackId | None = None
    topic: str | None = None
    group: str | None = None


@dataclass(frozen=True, slots=True)
class SyntheticTopic:
    """A topic whose partition p has replicas `offsets` brokers after broker p. Each partition receives so many records an hour on average."""

    name: str
    partitions: int
    offsets: tuple[int, ...]
    records_an_hour: int
    min_insync_replicas: int

    def replicas(self, partition: int) -> tuple[int, ...]:
        return tuple(BROKERS[(partition + offset) % len(BROKERS)] for offset in self.offsets)


@dataclass(frozen=True, slots=True)
class SyntheticGroup:
    """A group that reads one topic with a member in each rack: partition p is read `shift` racks after its leader's."""

    name: str
    topic: str
    shift: int = 0
    names_rack: bool = True


@dataclass(frozen=True, slots=True)
class SyntheticCluster:
    """One cluster: its topics and groups do not change, but for `events`."""

    name: str
    topics: tuple[SyntheticTopic, ...]
    groups: tuple[SyntheticGroup, ...]
    selector: ReplicaSelectors
    events: tuple[FleetEvent, ...]
    faults: tuple[PlantedFault, ...]

    def reading(self, at: datetime, period_seconds: float = 3600.0) -> ClusterReading:
        """The cluster at a time after START, as a collector of such a period reads it."""
        down = {broker for broker in BROKERS if _rack_of(broker) in self._lost(at)}
        rows = [
            _Row(topic, partition, frozenset(down), self._moved_part(topic, partition, at))
            for topic, partition in self._every()
        ]
        snapshot = self._snapshot(at, down, rows)
        width = snapshot.partitions.replicas.shape[1]
        sizes = [[*row.sizes(at), *[UNKNOWN_SIZE] * (width - len(row.replicas))] for row in rows]
        ends = [_records(row.topic, at) if row.leader != NO_BROKER else UNKNOWN_OFFSET for row in rows]
        committed = {
            group.name: {
                TopicPartition(topic.name, partition): _records(topic, at)
                for topic in self.topics
                if topic.name == group.topic
                for partition in range(topic.partitions)
            }
            for group in self.groups
        }
        logs = ClusterLogs(snapshot, at, np.array(ends, np.int64), np.array(sizes, np.int64), committed)
        return ClusterReading(
            logs,
            tuple(self._group(group, at) for group in self.groups),
            dict.fromkeys(BROKERS, self.selector),
            period_seconds=period_seconds,
        )

    def _snapshot(self, at: datetime, down: Collection[int], rows: Sequence["_Row"]) -> ClusterSnapshot:
        return ClusterSnapshot(
            brokers=tuple(Broker(BrokerId(broker), _rack_of(broker), fenced=broker in down) for broker in BROKERS),
            topics=tuple(
                Topic(TopicName(topic.name), config={"min.insync.replicas": str(topic.min_insync_replicas)})
                for topic in self.topics
            ),
            partitions=columns(
                topic=[self.topics.index(row.topic) for row in rows],
                partition=[row.partition for row in rows],
                leader=[row.leader for row in rows],
                replicas=[row.replicas for row in rows],
                isr=[row.in_sync for row in rows],
                adding_replicas=[row.adding for row in rows],
                removing_replicas=[row.removing for row in rows],
                size_bytes=[_records(row.topic, at) * RECORD_BYTES for row in rows],
            ),
            cluster_id=self.name,
            taken_at=at,
            controllers=tuple(
                Controller(BrokerId(101 + number), rack, voter=True) for number, rack in enumerate(RACKS)
            ),
        )

    def _every(self) -> Iterator[tuple[SyntheticTopic, int]]:
        for topic in self.topics:
            for partition in range(topic.partitions):
                yield topic, partition

    def _lost(self, at: datetime) -> set[RackId | None]:
        return {event.rack for event in self._under_way(Happening.RACK_LOST, at)}

    def _moved_part(self, topic: SyntheticTopic, partition: int, at: datetime) -> float | None:
        """How much of the first partition of a topic is copied, while it is being reassigned."""
        for event in self._under_way(Happening.REASSIGNMENT, at):
            if event.topic == topic.name and partition == 0:
                return (at - event.since) / (event.until - event.since)
        return None

    def _under_way(self, happening: Happening, at: datetime) -> Iterator[FleetEvent]:
        return (event for event in self.events if event.happening is happening and event.since <= at < event.until)

    def _group(self, group: SyntheticGroup, at: datetime) -> GroupDescription:
        """While it is deployed it has no members: they leave, and come back as others."""
        deploys = [event for event in self.events if event.happening is Happening.DEPLOY and event.group == group.name]
        generation = sum(event.until <= at for event in deploys)
        away = any(event.since <= at < event.until for event in deploys)
        (topic,) = (topic for topic in self.topics if topic.name == group.topic)
        members = () if away else tuple(_members(group, topic, generation))
        return GroupDescription(group.name, "Empty" if away else "Stable", "consumer", "roundrobin", members)


@dataclass(frozen=True, slots=True)
class SyntheticFleet:
    """Clusters over so many days from START on."""

    clusters: tuple[SyntheticCluster, ...]
    days: int

    @property
    def faults(self) -> tuple[PlantedFault, ...]:
        return tuple(fault for cluster in self.clusters for fault in cluster.faults)

    @property
    def end(self) -> datetime:
        return START + timedelta(days=self.days)

    def readings(self, period: timedelta = timedelta(hours=1)) -> Iterator[ClusterReading]:
        """Every cluster each period, in the order of time."""
        at = START
        while at <= self.end:
            for cluster in self.clusters:
                yield cluster.reading(at, period.total_seconds())
            at += period


@dataclass(frozen=True, slots=True)
class _Row:
    """One partition while these brokers are down. `moved_part` of it is copied to another broker, None if it is not reassigned."""

    topic: SyntheticTopic
    partition: int
    down: frozenset[int]
    moved_part: float | None

    @property
    def adding(self) -> tuple[int, ...]:
        """The other broker in the rack of the last replica."""
        if self.moved_part is None:
            return ()
        last = self.topic.replicas(self.partition)[-1]
        return (BROKERS[(last - 1 + len(RACKS)) % len(BROKERS)],)

    @property
    def removing(self) -> tuple[int, ...]:
        return () if self.moved_part is None else self.topic.replicas(self.partition)[-1:]

    @property
    def replicas(self) -> tuple[int, ...]:
        return (*self.topic.replicas(self.partition), *self.adding)

    @property
    def in_sync(self) -> tuple[int, ...]:
        """The last one stays in the ISR when all are down."""
        own = self.topic.replicas(self.partition)
        return tuple(broker for broker in own if broker not in self.down) or own[:1]

    @property
    def leader(self) -> int:
        return NO_BROKER if self.in_sync[0] in self.down else self.in_sync[0]

    def sizes(self, at: datetime) -> list[int]:
        whole = _records(self.topic, at) * RECORD_BYTES
        copied = round(whole * (self.moved_part or 0))
        return [
            UNKNOWN_SIZE if broker in self.down else copied if broker in self.adding else whole
            for broker in self.replicas
        ]


def synthetic_fleet(seed: int, *, clusters: int = 5, days: int = 14, partitions: int = 12) -> SyntheticFleet:
    """A fleet with every fault in some cluster but the first, which has none.

    `clusters`: 3 at least. `partitions` a topic: a multiple of the brokers, so that loads are even. The last day has no event, so that
    at the end only what is planted is wrong.
    """
    rng = Random(seed)
    every = rng.sample(list(FleetFault), len(FleetFault))
    while not _is_clear(planted := [[], *(every[number :: clusters - 1] for number in range(clusters - 1))]):
        every = rng.sample(every, len(every))
    return SyntheticFleet(
        tuple(_cluster(f"cluster-{number}", faults, days, partitions, rng) for number, faults in enumerate(planted, 1)),
        days,
    )


def _is_clear(planted: Sequence[Sequence[FleetFault]]) -> bool:
    """Brokers that send everyone to leaders would add to what the other faults of groups cost."""
    of_groups = {FleetFault.CROSSED, FleetFault.NO_CLIENT_RACK}
    return not any(FleetFault.NO_SELECTOR in faults and of_groups.intersection(faults) for faults in planted)


def _cluster(name: str, faults: Sequence[FleetFault], days: int, partitions: int, rng: Random) -> SyntheticCluster:
    topics = [SyntheticTopic(topic, partitions, (0, 1, 2), _rate(rng), 2) for topic in ("orders", "payments")]
    groups = [SyntheticGroup("billing", "orders"), SyntheticGroup("reports", "payments")]
    found = []
    for fault in faults:
        topic, group, planted = _PLANTED[fault](name, SyntheticTopic("clicks", partitions, (0, 1, 2), _rate(rng), 2))
        topics.append(replace(topic, name=planted.topic))
        groups += [] if group is None else [group]
        found.append(planted)
    return SyntheticCluster(
        name,
        tuple(sorted(topics, key=lambda topic: topic.name)),
        tuple(groups),
        ReplicaSelectors.LEADER if FleetFault.NO_SELECTOR in faults else ReplicaSelectors.RACK_AWARE,
        tuple(_events(name, topics, groups, days, rng)),
        tuple(found),
    )


def _rate(rng: Random) -> int:
    """Records an hour and partition, whole in every hour."""
    return rng.randint(100, 400) * 100


_Planted: TypeAlias = tuple[SyntheticTopic, SyntheticGroup | None, PlantedFault]


def _no_client_rack(cluster: str, topic: SyntheticTopic) -> _Planted:
    """Members that may be anywhere read two thirds of it across racks."""
    group = SyntheticGroup("search", "searches", names_rack=False)
    fault = PlantedFault(
        cluster, FleetFault.NO_CLIENT_RACK, "read-in-rack", group.topic, group.name, _a_month(topic) * 2 // 3
    )
    return topic, group, fault


def _no_selector(cluster: str, topic: SyntheticTopic) -> _Planted:
    """Each partition is led in another rack than its reader's, in which it has a replica."""
    group = SyntheticGroup("audit", "audits", shift=1)
    return (
        topic,
        group,
        PlantedFault(cluster, FleetFault.NO_SELECTOR, "read-in-rack", group.topic, group.name, _a_month(topic)),
    )


def _stacked(cluster: str, topic: SyntheticTopic) -> _Planted:
    fault = PlantedFault(cluster, FleetFault.STACKED, "accepts-writes-after-rack-loss", "stacked")
    return replace(topic, offsets=(0, 3, 1)), None, fault


def _one_replica(cluster: str, topic: SyntheticTopic) -> _Planted:
    fault = PlantedFault(cluster, FleetFault.ONE_REPLICA, "survives-rack-loss", "sessions")
    return replace(topic, offsets=(0,), min_insync_replicas=1), None, fault


def _five_replicas(cluster: str, topic: SyntheticTopic) -> _Planted:
    """Three of five replicas are in other racks than the leader, of three only two."""
    fault = PlantedFault(cluster, FleetFault.FIVE_REPLICAS, "lower-factor", "archive", None, _a_month(topic))
    return replace(topic, offsets=(0, 1, 2, 3, 4)), None, fault


def _crossed(cluster: str, topic: SyntheticTopic) -> _Planted:
    """Two replicas, and the reader in the third rack; another assignment has each at home."""
    group = SyntheticGroup("matching", "matches", shift=2)
    fault = PlantedFault(cluster, FleetFault.CROSSED, "assignor", group.topic, group.name, _a_month(topic))
    return replace(topic, offsets=(0, 1), min_insync_replicas=1), group, fault


_PLANTED: Final[Mapping[FleetFault, Callable[[str, SyntheticTopic], _Planted]]] = {
    FleetFault.NO_CLIENT_RACK: _no_client_rack,
    FleetFault.NO_SELECTOR: _no_selector,
    FleetFault.STACKED: _stacked,
    FleetFault.ONE_REPLICA: _one_replica,
    FleetFault.FIVE_REPLICAS: _five_replicas,
    FleetFault.CROSSED: _crossed,
}


def _a_month(topic: SyntheticTopic) -> int:
    return topic.partitions * topic.records_an_hour * RECORD_BYTES * MONTH_SECONDS // 3600


def _events(
    cluster: str, topics: Sequence[SyntheticTopic], groups: Sequence[SyntheticGroup], days: int, rng: Random
) -> Iterator[FleetEvent]:
    """On most days one of each may happen, at hours of their own, so that none overlaps another."""
    for day in range(days - 1):
        midnight = START + timedelta(days=day)
        if rng.random() < 0.2:
            since = midnight + timedelta(hours=2, minutes=rng.randrange(60))
            yield FleetEvent(
                cluster,
                Happening.RACK_LOST,
                since,
                since + timedelta(minutes=rng.randint(5, 180)),
                rack=rng.choice(RACKS),
            )
        if rng.random() < 0.3:
            since = midnight + timedelta(hours=9, minutes=rng.randrange(60))
            until = since + timedelta(minutes=rng.randint(30, 240))
            of_several = [topic.name for topic in topics if 1 < len(topic.offsets) < len(BROKERS) - 1]
            yield FleetEvent(cluster, Happening.REASSIGNMENT, since, until, topic=rng.choice(of_several))
        if rng.random() < 0.5:
            since = midnight + timedelta(hours=15, minutes=rng.randrange(60))
            until = since + timedelta(minutes=rng.randint(1, 10))
            yield FleetEvent(cluster, Happening.DEPLOY, since, until, group=rng.choice(groups).name)


def _members(group: SyntheticGroup, topic: SyntheticTopic, generation: int) -> Iterator[MemberDescription]:
    for number, rack in enumerate(RACKS):
        yield MemberDescription(
            f"{group.name}-{number}-{generation}",
            f"{group.name}-{number}",
            host=f"10.0.{number}.1",
            rack=rack if group.names_rack else None,
            topics=frozenset({topic.name}),
            partitions=tuple(
                TopicPartition(topic.name, partition)
                for partition in range(topic.partitions)
                if (partition + group.shift) % len(RACKS) == number
            ),
        )


def _rack_of(broker: int) -> RackId:
    return RACKS[(broker - 1) % len(RACKS)]


def _records(topic: SyntheticTopic, at: datetime) -> int:
    """What each partition has received since START, more by day than by night."""
    hours, rest = divmod(at - START, timedelta(hours=1))
    days, hour = divmod(hours, 24)
    percent = days * sum(_PERCENT_OF_HOURS) + sum(_PERCENT_OF_HOURS[:hour])
    part = rest / timedelta(hours=1) * _PERCENT_OF_HOURS[hour]
    return topic.records_an_hour * percent // 100 + int(topic.records_an_hour * part / 100)
