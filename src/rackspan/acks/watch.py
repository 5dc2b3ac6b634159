"""The metrics of min.insync.racks, and of what the loss of a rack would do, from a cluster's metadata.

Metadata shows which racks each ISR spans, and so which partitions would refuse acks=all because of min.insync.racks. It
does not show how many requests were refused (RackCheckFailureRate, which only brokers can count). In its place a watch
counts the partition-seconds under the minimum. It serves users who cannot read the brokers' own metrics. Pure: readings and their times are arguments.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np

from rackspan.audit import PartitionBatch, RackLosses, RackPolicy, rack_losses, snapshot_batch
from rackspan.errors import RackspanError
from rackspan.model import NO_BROKER, Bools, BrokerId, ClusterSnapshot, RackId


@dataclass(frozen=True, slots=True)
class LeaderCounts:
    """One broker's leader partitions: how many ISRs span fewer racks than required, how many exactly as many."""

    broker: BrokerId
    rack: RackId | None
    under: int
    at: int


@dataclass(frozen=True, slots=True)
class PartitionIsr:
    """One partition: the number of racks that its ISR spans, and the number required. `leader` is -1 without a leader."""

    topic: str
    partition: int
    leader: BrokerId
    isr_racks: int
    required: int


@dataclass(frozen=True)
class ClusterIsr:
    """One reading of the cluster. `leaders` has every broker that is not fenced, in order of id.

    `under` and `at` count the partitions whose ISR spans fewer racks than required, and exactly as many. `losses`: what the
    loss of each rack would do. `partial` lists what the reading lacks. `taken_at` is in UTC.
    """

    cluster_id: str | None
    taken_at: datetime | None
    leaders: tuple[LeaderCounts, ...]
    under: int
    at: int
    leaderless: int
    losses: RackLosses
    partial: tuple[str, ...]
    _batch: PartitionBatch

    def partitions(self) -> Iterator[PartitionIsr]:
        """An iterator, since there may be very many."""
        batch = self._batch
        columns = (batch.rows.partition, batch.rows.leader, batch.isr_rack_count, batch.required.min_insync_racks)
        for row, (partition, leader, racks, required) in enumerate(
            zip(*(column.tolist() for column in columns), strict=True)
        ):
            yield PartitionIsr(batch.topic(row), partition, BrokerId(leader), racks, required)


@dataclass(frozen=True, slots=True)
class Watch:
    """The state of a watch after some readings; times in seconds.

    `latest` and `latest_at` are of the last reading, None if it failed with `error`: older values are not reported as
    current. `under_seconds` sums partition-seconds under the minimum between consecutive readings that succeeded.
    """

    latest: ClusterIsr | None = None
    latest_at: float | None = None
    error: RackspanError | None = None
    readings: int = 0
    failures: int = 0
    under_seconds: float = 0.0


def cluster_isr(snapshot: ClusterSnapshot, policy: RackPolicy) -> ClusterIsr:
    """The rack counts and losses of one snapshot. Errors: UsageError where the policy refuses the cluster's racks.

    Source: min.insync.racks, New Monitoring; AtMinRackIsr counts topics that require one rack too, as AtMinIsr does.
    """
    batch = snapshot_batch(snapshot, policy)
    under = batch.isr_rack_count < batch.required.min_insync_racks
    at = batch.isr_rack_count == batch.required.min_insync_racks
    return ClusterIsr(
        cluster_id=snapshot.cluster_id,
        taken_at=snapshot.taken_at,
        leaders=tuple(_leaders(snapshot, batch, under, at)),
        under=int(under.sum()),
        at=int(at.sum()),
        leaderless=int((batch.rows.leader == NO_BROKER).sum()),
        losses=rack_losses(snapshot, batch),
        partial=snapshot.partial,
        _batch=batch,
    )


def _leaders(snapshot: ClusterSnapshot, batch: PartitionBatch, under: Bools, at: Bools) -> Iterator[LeaderCounts]:
    counts = [_by_leader(batch, rows) for rows in (under, at)]
    for broker in sorted(snapshot.brokers, key=lambda broker: broker.id):
        if not broker.fenced:
            yield LeaderCounts(broker.id, broker.rack, *(count.get(broker.id, 0) for count in counts))


def _by_leader(batch: PartitionBatch, rows: Bools) -> Mapping[int, int]:
    leaders, counts = np.unique(batch.rows.leader[rows], return_counts=True)
    return dict(zip(leaders.tolist(), counts.tolist(), strict=True))


def watch_readings(
    readings: Iterable[tuple[float, ClusterSnapshot | RackspanError]], policy: RackPolicy
) -> Iterator[Watch]:
    """The state after each reading. Errors: the first reading's own, since a watch begins with a reading that succeeds."""
    watch = Watch()
    for now, reading in readings:
        watch = _after(watch, now, _counted(reading, policy))
        if watch.readings == 0 and watch.error is not None:
            raise watch.error
        yield watch


def _counted(reading: ClusterSnapshot | RackspanError, policy: RackPolicy) -> ClusterIsr | RackspanError:
    if isinstance(reading, RackspanError):
        return reading
    try:
        return cluster_isr(reading, policy)
    except RackspanError as error:
        return error


def _after(watch: Watch, now: float, reading: ClusterIsr | RackspanError) -> Watch:
    if isinstance(reading, RackspanError):
        return replace(watch, latest=None, latest_at=None, error=reading, failures=watch.failures + 1)
    more = 0.0
    if watch.latest is not None and watch.latest_at is not None:
        more = watch.latest.under * (now - watch.latest_at)
    return Watch(reading, now, None, watch.readings + 1, watch.failures, watch.under_seconds + more)
