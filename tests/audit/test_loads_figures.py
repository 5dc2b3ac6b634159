"""Loads survive being taken apart into figures, summed elsewhere and put together again: what Spark does with them."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import fields

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rackspan.audit.batch import PartitionBatch, Requirements, snapshot_batch
from rackspan.audit.loads import LARGEST, BrokerLoads, Figure, figures, from_figures, loads
from rackspan.audit.policy import RackPolicy
from rackspan.model import ClusterSnapshot
from tests.strategies import policies, snapshots


def part(batch: PartitionBatch, rows: slice) -> PartitionBatch:
    chosen = np.arange(len(batch.rows))[rows]
    required = Requirements(*(getattr(batch.required, field.name)[chosen] for field in fields(Requirements)))
    return PartitionBatch(batch.members, batch.topics, batch.rows.take(chosen), required)


def added(parts: Iterable[Figure]) -> list[Figure]:
    totals: dict[tuple[str, int], int] = defaultdict(int)
    for one in parts:
        key = (one.field, one.index)
        totals[key] = max(totals[key], one.value) if one.field == LARGEST else totals[key] + one.value
    return [Figure(field, index, value) for (field, index), value in totals.items()]


def same(one: BrokerLoads, other: BrokerLoads) -> bool:
    return all(np.array_equal(getattr(one, field.name), getattr(other, field.name)) for field in fields(BrokerLoads))


@given(snapshots(), policies(), st.integers(0, 20))
def test_figures_of_two_batches_add_up_to_the_loads_of_both(
    snapshot: ClusterSnapshot, policy: RackPolicy, cut: int
) -> None:
    whole = snapshot_batch(snapshot, policy)
    halves = [part(whole, slice(0, cut)), part(whole, slice(cut, None))]
    total = added(figure for half in halves for figure in figures(loads(half)))
    assert same(from_figures(total, len(snapshot.brokers)), loads(whole))


def test_no_figures_at_all_are_an_empty_cluster() -> None:
    empty = from_figures([], brokers=3)
    assert empty.replicas.tolist() == [0, 0, 0]
    assert empty.by_replication_factor.tolist() == []
    assert empty.largest_partition_bytes == 0
