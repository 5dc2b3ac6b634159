"""Random histories of readings: logs that grow, retention, topics created again, groups that commit, gateways that restart."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from random import Random
from uuid import UUID

import numpy as np

from rackspan.clients import ReplicaSelectors
from rackspan.model import Broker, BrokerId, ClusterSnapshot, Controller, RackId, Topic, TopicName, columns
from rackspan.model.group import GroupDescription, GroupKind, MemberDescription, StreamsMember, SubtopologyTopics
from rackspan.model.ids import TopicPartition
from rackspan.pipeline.landing.bases import Bases
from rackspan.pipeline.landing.store import store_all
from rackspan.pipeline.warehouse import Warehouse
from rackspan.traffic import ClusterLogs, ClusterReading, CountedFlow, TrafficPath
from tests.pipeline.examples import NOON

TOPICS = ("orders", "pay")
PARTITIONS = 3


@dataclass
class _Log:
    start: int = 0
    end: int = 0
    size_bytes: int = 0


def history(
    rng: Random, count: int, cluster_id: str = "one", period: float = 600.0, record_bytes: int = 100
) -> list[ClusterReading]:
    """So many readings of one cluster, in order of time; now and then some are missing."""
    brokers = tuple(Broker(BrokerId(one), RackId(f"r{1 + one % 3}")) for one in range(1, 5))
    logs = {(topic, partition): _Log() for topic in TOPICS for partition in range(PARTITIONS)}
    placed = {key: rng.sample(range(1, 5), 3) for key in logs}
    topic_ids = dict.fromkeys(TOPICS, 0)
    committed: dict[TopicPartition, int] = {}
    counted, gateway_restarts = 0, 0
    at, found = NOON + timedelta(seconds=rng.randrange(3600)), []
    for _ in range(count):
        at += timedelta(seconds=period * rng.choice([0.5, 1, 1, 1, 1, 2, 2, 20]), microseconds=rng.randrange(10**6))
        for topic in TOPICS:
            if rng.random() < 0.05:
                topic_ids[topic] += 1
                for partition in range(PARTITIONS):
                    logs[topic, partition] = _Log()
                    committed.pop(TopicPartition(topic, partition), None)
        for key, log in logs.items():
            records = rng.choice([0, 1, 10, 500])
            log.end += records
            log.size_bytes += records * record_bytes
            if rng.random() < 0.1:
                log.start, log.size_bytes = log.end, 0
            if rng.random() < 0.6:
                committed[TopicPartition(*key)] = rng.randint(log.start // 2, log.end)
            if rng.random() < 0.1:
                placed[key] = rng.sample(range(1, 5), 3)
        counted += rng.randrange(5000)
        if rng.random() < 0.1:
            counted, gateway_restarts = rng.randrange(100), gateway_restarts + 1
        found.append(_reading(rng, at, cluster_id, brokers, logs, placed, topic_ids, dict(committed), counted, period))
    return found


def store_readings(
    warehouse: Warehouse, readings: Sequence[ClusterReading], bases: Bases | None = None
) -> list[str | None]:
    """Store some readings, each with its snapshot. Returns their ids."""
    stored = store_all([one.snapshot for one in readings], warehouse, bases, dict(enumerate(readings)))
    return [getattr(one, "snapshot_id", None) for one in stored]


def reading_of(snapshot: ClusterSnapshot) -> ClusterReading:
    """A reading of any snapshot, with a row in every table."""
    assert snapshot.taken_at is not None
    rows = snapshot.partitions
    ends, sizes = np.arange(len(rows), dtype=np.int64), np.full(rows.replicas.shape, 100, np.int64)
    committed = {"shop": {TopicPartition("orders", 0): 3}}
    (drawn,) = history(Random(1), 1)
    logs = ClusterLogs(snapshot, snapshot.taken_at, ends, sizes, committed, (), ends)
    return replace(drawn, logs=logs, partial=())


def same_readings(mine: ClusterReading, theirs: ClusterReading) -> bool:
    return (
        (mine.read_at, mine.groups, mine.selectors, mine.counters, mine.period_seconds, mine.partial, mine.bytes_out)
        == (
            *(theirs.read_at, theirs.groups, theirs.selectors, theirs.counters),
            *(theirs.period_seconds, theirs.partial, theirs.bytes_out),
        )
        and mine.logs.committed == theirs.logs.committed
        and all(
            np.array_equal(getattr(mine.logs, name), getattr(theirs.logs, name))
            for name in ("start_offset", "end_offset", "replica_bytes")
        )
    )


def _reading(
    rng: Random,
    at: datetime,
    cluster_id: str,
    brokers: tuple[Broker, ...],
    logs: dict[tuple[str, int], _Log],
    placed: dict[tuple[str, int], list[int]],
    topic_ids: dict[str, int],
    committed: dict[TopicPartition, int],
    counted: int,
    period: float,
) -> ClusterReading:
    rows = sorted(logs)
    snapshot = ClusterSnapshot(
        cluster_id=cluster_id,
        taken_at=at,
        brokers=brokers,
        controllers=tuple(Controller(BrokerId(one)) for one in (1, 2, 3)),
        topics=tuple(Topic(TopicName(name), topic_id=f"{name}-{topic_ids[name]}") for name in TOPICS),
        partitions=columns(
            topic=[TOPICS.index(topic) for topic, _ in rows],
            partition=[partition for _, partition in rows],
            leader=[placed[row][0] for row in rows],
            replicas=[placed[row] for row in rows],
            isr=[placed[row][: rng.choice([1, 2, 3, 3, 3])] for row in rows],
        ),
    )
    unknown = [rng.random() < 0.03 for _ in rows]
    members = (
        MemberDescription(
            "m1",
            "c1",
            host="/10.0.0.1",
            rack=RackId("r1"),
            partitions=tuple(TopicPartition("orders", partition) for partition in range(PARTITIONS)),
        ),
        MemberDescription(
            "m2",
            "c2",
            rack=rng.choice([None, RackId("r2")]),
            topics=frozenset(["pay"]),
            partitions=tuple(TopicPartition("pay", partition) for partition in range(PARTITIONS)),
        ),
    )
    groups = (
        # Of a generator of its own, so that the other values are what they were without it.
        streams_application(Random(str(at))),
        GroupDescription("empty", "Empty", "consumer", "", kind=GroupKind.CONSUMER),
        GroupDescription("shop", "Stable", "consumer", "range", members),
    )
    flow = CountedFlow(TrafficPath.PRODUCE, "pay", "p", "r1", "r2")
    logs_read = ClusterLogs(
        snapshot,
        at,
        np.array([-1 if gone else logs[row].end for row, gone in zip(rows, unknown, strict=True)], np.int64),
        np.array([[logs[row].size_bytes] * 3 for row in rows], np.int64),
        {"shop": committed} if committed else {},
        ("offsets of 1 partition: unknown",) if any(unknown) else (),
        np.array([logs[row].start for row in rows], np.int64),
    )
    selectors = dict.fromkeys(range(1, 5), ReplicaSelectors.RACK_AWARE)
    counters = {"http://gateway/metrics": {flow: counted}}
    return ClusterReading(logs_read, groups, selectors, counters, period, logs_read.partial, _sent(at))


def _sent(at: datetime) -> dict[int, dict[str, int]]:
    """What brokers 1 to 3 sent of `pay`, in steps of time; 4 leads few partitions and has counters only sometimes."""
    rng, sent = Random(f"sent {at}"), int((at - NOON).total_seconds()) * 7
    brokers = [1, 2, 3, *([4] if rng.random() < 0.8 else [])]
    return {broker: {"pay": rng.randrange(100) if rng.random() < 0.1 else sent * broker} for broker in brokers}


def streams_application(rng: Random, topology: Mapping[str, SubtopologyTopics] | None = None) -> GroupDescription:
    """A streams group of one to three processes whose tasks are anywhere; now and then one has no rack, or it rebalances."""
    topology = topology or {"0": SubtopologyTopics(("pay",), ("orders",)), "1": SubtopologyTopics(("orders",), ())}
    members = range(1, rng.randint(1, 3) + 1)
    tasks: dict[tuple[int, str], dict[str, list[int]]] = {}
    for name, topics in topology.items():
        for partition in range(PARTITIONS):
            owner, *others = rng.sample(members, len(members))
            tasks.setdefault((owner, "active"), {}).setdefault(name, []).append(partition)
            for other in others if topics.changelogs else ():
                role = rng.choice(["standby", "warmup", "none"])
                tasks.setdefault((other, role), {}).setdefault(name, []).append(partition)

    def held(member: int, role: str) -> dict[str, tuple[int, ...]]:
        return {name: tuple(partitions) for name, partitions in sorted(tasks.get((member, role), {}).items())}

    return GroupDescription(
        "app",
        "Stable" if rng.random() < 0.9 else "Reconciling",
        "",
        "",
        tuple(
            MemberDescription(
                f"s{member}",
                f"c3-{member}",
                rack=RackId(f"r{rng.randint(1, 3)}") if rng.random() < 0.9 else None,
                streams=StreamsMember(
                    str(UUID(int=member)), {}, held(member, "active"), held(member, "standby"), held(member, "warmup")
                ),
            )
            for member in members
        ),
        None,
        GroupKind.STREAMS,
        topology,
    )


def moved(reading: ClusterReading, seconds: float) -> ClusterReading:
    """The same reading at another time."""
    at = reading.read_at + timedelta(seconds=seconds)
    return replace(reading, logs=replace(reading.logs, read_at=at, snapshot=replace(reading.snapshot, taken_at=at)))
