"""What is computed once of a batch: which replicas stay, and which min.insync.replicas forces racks."""

from dataclasses import replace

import numpy as np

from rackspan.audit import RackPolicy
from rackspan.audit.batch import snapshot_batch
from rackspan.model import Broker, BrokerId, ClusterSnapshot, RackId, Topic, TopicName, columns


def cluster() -> ClusterSnapshot:
    """Two partitions on brokers 1 to 4; the first is leaving 1 and 2, its own column each."""
    moving = columns(topic=[0, 0], partition=[0, 1], leader=[1, 1], replicas=[[1, 2, 3, 4]] * 2, isr=[[1, 2, 3, 4]] * 2)
    leaving = np.array([[1, 2], [-1, -1]], dtype=np.int32)
    return ClusterSnapshot(
        brokers=tuple(Broker(BrokerId(one), RackId(rack)) for one, rack in enumerate("aabb", start=1)),
        topics=(Topic(TopicName("t")),),
        partitions=replace(moving, removing_replicas=leaving),
    )


def test_every_replica_that_a_reassignment_removes_is_left_out() -> None:
    batch = snapshot_batch(cluster(), RackPolicy())
    assert batch.staying.tolist() == [[False, False, True, True], [True] * 4]
    assert batch.replication_factor.tolist() == [2, 4]


def test_one_replica_forces_the_one_rack_that_is_required() -> None:
    assert snapshot_batch(cluster(), RackPolicy(min_insync_racks=1)).forcing_value.tolist() == [1, 1]
    assert snapshot_batch(cluster(), RackPolicy(min_insync_racks=2)).forcing_value.tolist() == [3, 3]
