"""The metrics of min.insync.racks as far as a cluster's metadata tells them: for whoever cannot ask its brokers.

Metadata tells which racks an ISR spans and so which partitions would refuse acks=all for want of racks, reading by
reading. It does not tell how many requests were refused: RackCheckFailureRate is a broker's own to count. What is counted
here in its place is how long how many partitions were seen under their minimum. Pure: readings and moments are arguments.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from rackspan.audit.batch import PartitionBatch, snapshot_batch
from rackspan.audit.policy import RackPolicy
from rackspan.errors import RackspanError
from rackspan.model.ids import NO_BROKER, BrokerId, RackId
from rackspan.model.partitions import Bools
from rackspan.model.snapshot import ClusterSnapshot


@dataclass(frozen=True, slots=True)
class Led:
    """What one broker's leader partitions come to: how many span fewer racks than asked, how many exactly as many."""

    broker: BrokerId
    rack: RackId | None
    under: int
    at: int


@dataclass(frozen=True, slots=True)
class SeenPartition:
    """One partition: the racks its ISR spans, and the racks asked. `leader` is -1 where nobody leads."""

    topic: str
    partition: int
    leader: BrokerId
    isr_racks: int
    asked: int


@dataclass(frozen=True)
class Seen:
    """One reading. `led` has every broker that is not fenced, in order of id; partitions without a leader are nobody's."""

    cluster_id: str | None
    led: tuple[Led, ...]
    under: int
    at: int
    leaderless: int
    partial: tuple[str, ...]
    _evidence: PartitionBatch

    def partitions(self) -> Iterator[SeenPartition]:
        """One by one; there may be very many."""
        seen = self._evidence
        columns = (seen.rows.partition, seen.rows.leader, seen.isr_rack_count, seen.required.min_insync_racks)
        for row, (partition, leader, racks, asked) in enumerate(
            zip(*(column.tolist() for column in columns), strict=True)
        ):
            yield SeenPartition(seen.topic(row), partition, BrokerId(leader), racks, asked)


@dataclass(frozen=True, slots=True)
class Watch:
    """What is known after so many readings; moments in seconds.

    `seen` and `seen_at` are of the last reading, None where that failed with `error`: nothing old is told as if it were
    now. `under_seconds` sums partition-seconds under the minimum between readings that succeeded, one after the other.
    """

    seen: Seen | None = None
    seen_at: float | None = None
    error: RackspanError | None = None
    readings: int = 0
    failures: int = 0
    under_seconds: float = 0.0


def seen_in(snapshot: ClusterSnapshot, policy: RackPolicy) -> Seen:
    """What one moment's metadata says. Errors: UsageError where the policy refuses the cluster's racks.

    Source: min.insync.racks, New Monitoring; AtMinRackIsr counts topics that ask for one rack too, as AtMinIsr does.
    """
    judged = snapshot_batch(snapshot, policy)
    under = judged.isr_rack_count < judged.required.min_insync_racks
    at = judged.isr_rack_count == judged.required.min_insync_racks
    return Seen(
        cluster_id=snapshot.cluster_id,
        led=tuple(_led(snapshot, judged, under, at)),
        under=int(under.sum()),
        at=int(at.sum()),
        leaderless=int((judged.rows.leader == NO_BROKER).sum()),
        partial=snapshot.partial,
        _evidence=judged,
    )


def _led(snapshot: ClusterSnapshot, judged: PartitionBatch, under: Bools, at: Bools) -> Iterator[Led]:
    counted = [_by_leader(judged, rows) for rows in (under, at)]
    for broker in sorted(snapshot.brokers, key=lambda one: one.id):
        if not broker.fenced:
            yield Led(broker.id, broker.rack, *(count.get(broker.id, 0) for count in counted))


def _by_leader(judged: PartitionBatch, rows: Bools) -> Mapping[int, int]:
    leaders, counts = np.unique(judged.rows.leader[rows], return_counts=True)
    return dict(zip(leaders.tolist(), counts.tolist(), strict=True))


def watched(readings: Iterable[tuple[float, ClusterSnapshot | RackspanError]], policy: RackPolicy) -> Iterator[Watch]:
    """What is known after each reading. The first must succeed, since nothing is watched before. Errors: that reading's."""
    watch = Watch()
    for now, reading in readings:
        watch = _after(watch, now, _judged(reading, policy))
        if watch.readings == 0 and watch.error is not None:
            raise watch.error
        yield watch


def _judged(reading: ClusterSnapshot | RackspanError, policy: RackPolicy) -> Seen | RackspanError:
    if isinstance(reading, RackspanError):
        return reading
    try:
        return seen_in(reading, policy)
    except RackspanError as error:
        return error


def _after(watch: Watch, now: float, outcome: Seen | RackspanError) -> Watch:
    if isinstance(outcome, RackspanError):
        return replace(watch, seen=None, seen_at=None, error=outcome, failures=watch.failures + 1)
    more = 0.0
    if watch.seen is not None and watch.seen_at is not None:
        more = watch.seen.under * (now - watch.seen_at)
    return Watch(outcome, now, None, watch.readings + 1, watch.failures, watch.under_seconds + more)
