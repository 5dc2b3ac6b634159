"""Clusters that stand in need of repair: the instances on which plans are measured, and tiny random ones."""

import random
from collections.abc import Mapping, Sequence

import numpy as np

from rackspan.model import Broker, BrokerId, ClusterSnapshot, PartitionColumns, RackId, Topic, TopicName
from rackspan.model.partitions import padded_lists
from rackspan.reassign.optimizer.replica_lists import compacted

SIZES = {1_000: (12, 3), 10_000: (60, 3), 100_000: (300, 6), 1_000_000: (1_000, 3)}
"""Brokers and racks for each number of partitions."""

NAMES = ("labelled", "five percent", "broker lost")
TOPIC_PARTITIONS = 50


def instance(name: str, partitions: int, on: tuple[int, int] | None = None) -> ClusterSnapshot:
    """labelled: placed without racks, racks named afterwards by blocks of ids. five percent: one replica of every
    twentieth partition stands anywhere. broker lost: a good placement whose middle broker is gone. Replication factor 3. `on`: brokers and racks, where they are not those of SIZES.
    """
    brokers, racks = SIZES[partitions] if on is None else on
    in_turn = [f"r{broker % racks}" for broker in range(brokers)]
    match name:
        case "labelled":
            blocks = [f"r{broker * racks // brokers}" for broker in range(brokers)]
            return cluster(unaware(partitions, brokers, 3, 1), dict(enumerate(blocks)))
        case "five percent":
            placed = corrupted(spread(partitions, brokers, racks, 3, 2), brokers, 0.05, 3)
            return cluster(placed, dict(enumerate(in_turn)))
        case _:
            placed = spread(partitions, brokers, racks, 3, 4)
            return cluster(placed, {b: rack for b, rack in enumerate(in_turn) if b != brokers // 2})


def resized(partitions: int, ratio: float) -> tuple[ClusterSnapshot, tuple[int, ...]]:
    """An even placement, with `ratio` times as many brokers listed as hold replicas; below 1, the brokers to drain instead."""
    brokers, racks = SIZES[partitions]
    after = round(brokers * ratio)
    listed = {broker: f"r{broker % racks}" for broker in range(max(brokers, after))}
    return cluster(spread(partitions, brokers, racks, 3, 1), listed), tuple(range(after, brokers))


def cluster(
    replicas: Sequence[Sequence[int]], racks: Mapping[int, str | None], fenced: Sequence[int] = ()
) -> ClusterSnapshot:
    """A snapshot of topics of 50 partitions, in sync and led wherever a broker is alive."""
    count = len(replicas)
    matrix = padded_lists(replicas)
    none = np.full((count, 0), -1, dtype=np.int32)
    alive = np.isin(matrix, list(racks))
    first_alive = np.take_along_axis(matrix, alive.argmax(axis=1)[:, None], axis=1)[:, 0]
    return ClusterSnapshot(
        brokers=tuple(Broker(BrokerId(b), None if r is None else RackId(r), b in fenced) for b, r in racks.items()),
        topics=tuple(Topic(TopicName(f"topic-{code:06d}")) for code in range(-(-count // TOPIC_PARTITIONS))),
        partitions=PartitionColumns(
            topic=(np.arange(count) // TOPIC_PARTITIONS).astype(np.int32),
            partition=(np.arange(count) % TOPIC_PARTITIONS).astype(np.int32),
            leader=np.where(alive.any(axis=1), first_alive, -1).astype(np.int32),
            replicas=matrix,
            isr=compacted(np.where(alive, matrix, -1).astype(np.int32)),
            adding_replicas=none,
            removing_replicas=none.copy(),
            offline_replicas=none.copy(),
            size_bytes=np.arange(count, dtype=np.int64) % 1_000_003 * 1024,
        ),
    )


def unaware(partitions: int, brokers: int, factor: int, seed: int) -> list[list[int]]:
    """Kafka's rack-unaware shape: per topic a random start and shift over the brokers in order of id."""
    rng = random.Random(seed)
    placed: list[list[int]] = []
    while len(placed) < partitions:
        start, shift = rng.randrange(brokers), rng.randrange(brokers)
        for partition in range(min(TOPIC_PARTITIONS, partitions - len(placed))):
            shift += partition > 0 and partition % brokers == 0
            first = (partition + start) % brokers
            followers = [(first + 1 + (shift + nth) % (brokers - 1)) % brokers for nth in range(factor - 1)]
            placed.append([first, *followers])
    return placed


def spread(partitions: int, brokers: int, racks: int, factor: int, seed: int) -> list[list[int]]:
    """A legal and even placement: racks in turn, brokers of a rack in turn, reshuffled now and then."""
    rng = random.Random(seed)
    by_rack = [[broker for broker in range(brokers) if broker % racks == rack] for rack in range(racks)]
    turn = [rng.randrange(len(ids)) for ids in by_rack]
    placed = []
    for partition in range(partitions):
        row = []
        for nth in range(factor):
            rack = (partition + nth) % racks
            row.append(by_rack[rack][turn[rack] % len(by_rack[rack])])
            turn[rack] += 1
        placed.append(row)
        if partition % 97 == 0:
            for ids in by_rack:
                rng.shuffle(ids)
    return placed


def corrupted(placed: list[list[int]], brokers: int, share: float, seed: int) -> list[list[int]]:
    rng = random.Random(seed)
    for row in placed:
        if rng.random() < share:
            broker = rng.randrange(brokers)
            if broker not in row:
                row[rng.randrange(len(row))] = broker
    return placed
