"""The load while a batch is down: which brokers lead more, as a multiple of now, and the partitions at their minimum.

Leaders are elected as Kafka does it: the first replica in assignment order that is in sync and up. They stay there when the
batch is back, so a later batch finds what an earlier one left. A partition without a leader has one once a replica is back.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from rackspan.audit import PartitionBatch
from rackspan.audit.loads import BELIEVED_BYTES_MAX
from rackspan.audit.outage import first_electable
from rackspan.model import UNKNOWN_SIZE, Bools, Int32s, Int64s, count_in_row
from rackspan.restart.stopping import InSyncRows, marks, touched


@dataclass(frozen=True, slots=True)
class SurvivorLoad:
    """The leaders of one broker that stays up, and the bytes of their partitions, now and while a batch is down.

    Bytes are None if the size of any partition is not known.
    """

    broker: int
    leaders_now: int
    leaders: int
    bytes_now: int | None
    bytes: int | None


@dataclass(frozen=True, slots=True)
class Forecast:
    """`survivors`: the brokers that stay up and whose load changes. `most_leaders`, `most_bytes`: the largest multiple of now.

    `at_minimum`: partitions that lose a replica in sync and have exactly min.insync.replicas left.
    """

    leaders_moved: int
    most_leaders: float
    most_bytes: float | None
    at_minimum: int
    survivors: tuple[SurvivorLoad, ...]


def forecasts(
    batch: PartitionBatch, rows: InSyncRows, ordered: Sequence[Int64s], fenced: Bools | None = None
) -> Iterator[Forecast]:
    """The forecast of each batch in turn; `ordered` has the broker indices of each.

    `fenced` (brokers,): those that are down until the batch with them, though `batch` has them up.
    """
    size = len(batch.members.rack_map.broker_ids)
    known = not bool((batch.rows.size_bytes == UNKNOWN_SIZE).any())
    weight = np.where(known, np.clip(batch.rows.size_bytes, 0, BELIEVED_BYTES_MAX), 0)
    standing = batch.members.usable.copy()
    if fenced is not None:
        standing[:-1] &= ~fenced
    leader, moved = _elected(batch, batch.leader_index, standing)
    without_leader = moved[leader[moved] < 0]
    leads_now, bytes_now = _loads(leader, weight, size)
    for brokers in ordered:
        # Partitions whose replicas an earlier batch has brought back have a leader again.
        leader[without_leader] = _first_of(batch, without_leader, standing)
        up = standing.copy()
        up[brokers] = False
        leader, moved = _elected(batch, leader, up)
        without_leader = np.append(without_leader, moved)
        without_leader = without_leader[leader[without_leader] < 0]
        leads, held = _loads(leader, weight, size)
        yield Forecast(
            leaders_moved=len(moved),
            most_leaders=_largest(leads, leads_now, up[:-1]),
            most_bytes=_largest(held, bytes_now, up[:-1]) if known else None,
            at_minimum=_at_minimum(rows, brokers, standing),
            survivors=tuple(
                SurvivorLoad(
                    int(batch.members.rack_map.broker_ids[index]),
                    int(leads_now[index]),
                    int(leads[index]),
                    int(bytes_now[index]) if known else None,
                    int(held[index]) if known else None,
                )
                for index in np.flatnonzero(up[:-1] & ((leads != leads_now) | (held != bytes_now))).tolist()
            ),
        )
        standing[brokers] = True


def _elected(batch: PartitionBatch, leader: Int32s, up: Bools) -> tuple[Int32s, Int64s]:
    """The leaders once only these brokers are up, and the partitions that have another one, or none."""
    moved = np.flatnonzero((leader >= 0) & ~up[leader])
    leader = leader.copy()
    leader[moved] = _first_of(batch, moved, up)
    return leader, moved


def _first_of(batch: PartitionBatch, partitions: Int64s, up: Bools) -> Int32s:
    return first_electable(batch.replica_index[partitions], batch.isr_index[partitions], up)


def _loads(leader: Int32s, weight: Int64s, size: int) -> tuple[Int64s, Int64s]:
    led = leader >= 0
    counts = np.bincount(leader[led], minlength=size)
    held = np.zeros(size, dtype=np.int64)
    # With integers: a bincount by weights would lose bytes beyond 2^53.
    np.add.at(held, leader[led], weight[led])
    return counts, held


def _largest(after: Int64s, now: Int64s, up: "np.ndarray[tuple[int], np.dtype[np.bool_]]") -> float:
    """The largest multiple; a broker that carries nothing now counts as one that carries the mean. 1 if no broker carries anything."""
    if not up.any():
        return 0.0
    if not now.any():
        return 1.0
    base = np.where(now > 0, now, max(1.0, float(now.mean())))
    return round(float(np.max(np.where(up, after / base, 0.0))), 2)


def _at_minimum(rows: InSyncRows, brokers: Int64s, standing: Bools) -> int:
    stopped = marks(len(standing) - 1, brokers) & standing
    reached = rows.take(touched(rows, stopped)).without(~standing)
    exact = (count_in_row(reached.left_without(stopped)) == reached.min_isr) & (reached.min_isr < reached.replicas)
    return int(np.count_nonzero(exact & ~reached.by_target))
