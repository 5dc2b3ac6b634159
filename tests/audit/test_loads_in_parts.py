"""The loads of batches add up to the load of all of them, which is how a snapshot larger than memory is judged."""

from dataclasses import fields

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rackspan.audit.batch import snapshot_batch
from rackspan.audit.loads import BrokerLoads, loads, summed_loads
from rackspan.audit.policy import RackPolicy
from rackspan.model import ClusterSnapshot
from tests.strategies import policies, snapshots


def same(mine: BrokerLoads, other: BrokerLoads) -> bool:
    return all(np.array_equal(getattr(mine, field.name), getattr(other, field.name)) for field in fields(BrokerLoads))


@given(snapshots(), policies(), st.integers(0, 20))
def test_loads_of_two_batches_add_up_to_the_loads_of_both(
    snapshot: ClusterSnapshot, policy: RackPolicy, cut: int
) -> None:
    whole = snapshot_batch(snapshot, policy)
    rows = np.arange(len(whole.rows))
    halves = [loads(whole.take(rows[:cut])), loads(whole.take(rows[cut:]))]
    assert same(summed_loads(halves), loads(whole))
