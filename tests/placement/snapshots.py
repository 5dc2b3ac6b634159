"""A placer's assignment as a snapshot that can be audited."""

from collections.abc import Sequence

import numpy as np

from rackspan.model import Broker, ClusterSnapshot, Topic, TopicName, columns
from rackspan.model.partitions import Int32s
from rackspan.placement import UsableBroker


def registered(brokers: Sequence[UsableBroker]) -> tuple[Broker, ...]:
    return tuple(Broker(broker.id, broker.rack, broker.fenced) for broker in brokers)


def snapshot_of(brokers: Sequence[UsableBroker], replicas: Int32s) -> ClusterSnapshot:
    """One topic, every partition led by its first replica and in sync on the brokers that are not fenced."""
    fenced = np.array([broker.id for broker in brokers if broker.fenced], dtype=np.int32)
    rows = replicas.tolist()
    return ClusterSnapshot(
        brokers=registered(brokers),
        topics=(Topic(TopicName("placed")),),
        partitions=columns(
            topic=[0] * len(rows),
            partition=list(range(len(rows))),
            leader=[row[0] for row in rows],
            replicas=[tuple(row) for row in rows],
            isr=[tuple(one for one in row if one not in fenced) for row in rows],
            adding_replicas=[()] * len(rows),
            removing_replicas=[()] * len(rows),
            size_bytes=[-1] * len(rows),
        ),
    )
