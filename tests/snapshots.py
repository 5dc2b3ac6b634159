"""A snapshot for tests that need little of one."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from rackspan.model import Broker, BrokerId, ClusterSnapshot, RackId, Topic, TopicName, columns


def of_one_topic(
    racks: Mapping[int, str | None],
    replicas: Sequence[Sequence[int]],
    *,
    isr: Sequence[Sequence[int]] | None = None,
    leader: Sequence[int] | None = None,
    fenced: Collection[int] = (),
    topic: str = "orders",
    config: Mapping[str, str] | None = None,
    more: Mapping[str, Any] | None = None,
    **parts: Any,
) -> ClusterSnapshot:
    """Brokers by their racks, and one topic. Without `isr` every replica is in sync, without `leader` the first of each leads.

    `more` are columns of partitions, `parts` other parts of the snapshot.
    """
    return ClusterSnapshot(
        brokers=tuple(Broker(BrokerId(b), None if r is None else RackId(r), b in fenced) for b, r in racks.items()),
        topics=(Topic(TopicName(topic), config=dict(config or {})),),
        partitions=columns(
            topic=[0] * len(replicas),
            partition=range(len(replicas)),
            leader=leader or [held[0] for held in isr or replicas],
            replicas=replicas,
            isr=isr or replicas,
            **(more or {}),
        ),
        **parts,
    )
