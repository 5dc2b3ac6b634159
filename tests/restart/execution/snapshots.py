"""A cluster of six brokers in three racks, and the batches of its restart."""

from collections.abc import Mapping

from rackspan.model import Broker, BrokerId, ClusterSnapshot, RackId, Topic, TopicName, columns
from rackspan.restart.execution.plan_file import PlannedBatch, RestartBatches

BATCHES = RestartBatches("c1", None, 0, (), None, (PlannedBatch((1, 4)), PlannedBatch((2, 5)), PlannedBatch((3, 6))))
REPLICAS = {"orders": ((1, 2, 3), (4, 5, 6), (2, 3, 1), (5, 6, 4)), "logs": ((3, 1, 2),)}


def cluster(
    *,
    isr: Mapping[tuple[str, int], tuple[int, ...]] | None = None,
    gone: tuple[int, ...] = (),
    fenced: tuple[int, ...] = (),
    leaders: Mapping[tuple[str, int], int] | None = None,
    replicas: Mapping[str, tuple[tuple[int, ...], ...]] = REPLICAS,
) -> ClusterSnapshot:
    """Six brokers in three racks, in sync unless they are gone, fenced, or `isr` lists others."""
    names = sorted(replicas)
    every = [(code, at, row) for code, name in enumerate(names) for at, row in enumerate(replicas[name])]
    in_sync = [
        (isr or {}).get((names[code], at), tuple(b for b in row if b not in gone + fenced)) for code, at, row in every
    ]
    return ClusterSnapshot(
        cluster_id="c1",
        brokers=tuple(
            Broker(BrokerId(b), RackId(f"r{(b - 1) % 3 + 1}"), b in fenced) for b in range(1, 7) if b not in gone
        ),
        topics=tuple(Topic(TopicName(name), config={"min.insync.replicas": "2"}) for name in names),
        partitions=columns(
            topic=[code for code, _, _ in every],
            partition=[at for _, at, _ in every],
            leader=[
                (leaders or {}).get((names[code], at), in_sync[index][0] if in_sync[index] else -1)
                for index, (code, at, _) in enumerate(every)
            ],
            replicas=[list(row) for _, _, row in every],
            isr=[list(row) for row in in_sync],
        ),
    )
