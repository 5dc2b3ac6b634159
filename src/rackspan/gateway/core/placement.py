"""Replicas of new partitions from the configured placer (KIP-660), as manual assignments that Kafka takes as they are."""

from collections import Counter
from collections.abc import Iterable, Sequence

from rackspan.errors import RackspanError
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model import Broker, BrokerId
from rackspan.placement import usable
from rackspan.placement.cluster_placer import NEW_PARTITIONS_MAX, ClusterPlacer, PlacementRefusal, refusal_of
from rackspan.placement.replica_counts import counts_of


class PlacedCounts:
    """Leaders and replicas of each broker. `partitions` are those that were added by this request."""

    def __init__(self, existing: Iterable[Sequence[int]]) -> None:
        """`existing` are the replicas of the cluster's partitions, preferred leader first."""
        self.leaders: Counter[BrokerId] = Counter()
        self.replicas: Counter[BrokerId] = Counter()
        self.partitions = 0
        self._count(existing)

    def add(self, placed: Sequence[Sequence[int]]) -> None:
        self.partitions += len(placed)
        self._count(placed)

    def _count(self, rows: Iterable[Sequence[int]]) -> None:
        for row in rows:
            self.leaders.update(map(BrokerId, row[:1]))
            self.replicas.update(map(BrokerId, row))


def place(
    placer: ClusterPlacer,
    brokers: Sequence[Broker],
    counts: PlacedCounts,
    start_partition: int,
    partitions: int,
    replication_factor: int,
    *,
    automatic: bool = False,
) -> tuple[tuple[int, ...], ...] | PlacementRefusal:
    """The replicas of each new partition, which are added to `counts`.

    `brokers` are those that are registered. `automatic`: the topic is created because a client named it.
    """
    if counts.partitions + partitions > NEW_PARTITIONS_MAX:
        return PlacementRefusal(
            ErrorCode.POLICY_VIOLATION,
            f"{partitions:,} partitions: one request may add {NEW_PARTITIONS_MAX:,} at most",
        )
    ids = sorted(broker.id for broker in brokers)
    try:
        assignment = placer.place(
            start_partition,
            partitions,
            replication_factor,
            usable(brokers),
            lambda: counts_of(ids, counts.leaders, counts.replicas).configs,
            automatic=automatic,
        )
    except RackspanError as error:
        return refusal_of(error, replication_factor)
    placed = tuple(tuple(int(broker) for broker in partition.replicas) for partition in assignment)
    counts.add(placed)
    return placed
