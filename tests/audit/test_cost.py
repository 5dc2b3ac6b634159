"""The cost of an audit in elements of arrays, counted, whatever the machine: a finding costs as much in a cluster of any size."""

from typing import Any

import numpy as np

from rackspan.audit import PartitionBatch, RackPolicy, snapshot_batch
from rackspan.audit.constraints.partitions import BY_NAME, reported
from rackspan.audit.constraints.remedies import before_hardening
from rackspan.audit.survival import WorstLoss
from rackspan.model import Broker, BrokerId, ClusterSnapshot, PartitionColumns, RackId, Topic, TopicName, columns


class Counted(np.ndarray[Any, Any]):
    """An array that counts the elements that functions of NumPy read of it, and of its rows."""

    elements = 0

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        Counted.elements += sum(one.size for one in inputs if isinstance(one, Counted))
        plain = [one.view(np.ndarray) if isinstance(one, Counted) else one for one in inputs]
        return getattr(ufunc, method)(*plain, **options)


def counted(holder: object, names: list[str]) -> None:
    for name in names:
        if isinstance(value := getattr(holder, name), np.ndarray):
            object.__setattr__(holder, name, value.view(Counted))


def crowded(partitions: int) -> PartitionBatch:
    """Every partition has two of three replicas in one rack, so each has a finding."""
    brokers = tuple(Broker(BrokerId(one), RackId(f"r{one % 3}")) for one in range(9))
    rows = [[one % 9, (one + 3) % 9, (one + 1) % 9] for one in range(partitions)]
    snapshot = ClusterSnapshot(
        brokers=brokers,
        topics=(Topic(TopicName("t"), config={"min.insync.replicas": "2"}),),
        partitions=columns(
            topic=[0] * partitions,
            partition=list(range(partitions)),
            leader=[row[0] for row in rows],
            replicas=rows,
            isr=rows,
        ),
    )
    return snapshot_batch(snapshot, RackPolicy())


def elements_of_findings(partitions: int, findings: int) -> int:
    """The elements that the words of so many findings read, of a cluster of so many partitions."""
    batch = crowded(partitions)
    rows = [(name, row) for name, mask in reported(batch).items() for row in np.flatnonzero(mask).tolist()]
    counted(batch.rows, list(PartitionColumns.__dataclass_fields__))
    counted(batch.required, list(type(batch.required).__dataclass_fields__))
    for loss in (one for one in vars(batch).values() if isinstance(one, WorstLoss)):
        counted(loss, ["offline", "refused"])
    counted(batch, list(vars(batch)))
    first, *others = [(BY_NAME[name], row) for name, row in rows[: findings + 1]]
    # The first one makes what all of them read.
    first[0].finding(batch, first[1])
    Counted.elements = 0
    assert (batch.rows.leader == 0).any()
    assert Counted.elements >= partitions, "elements are not counted"
    Counted.elements = 0
    assert all(constraint.finding(batch, row).remedy for constraint, row in others)
    return Counted.elements


def test_the_words_of_a_finding_cost_the_same_in_a_cluster_of_any_size() -> None:
    few, many = elements_of_findings(200, 100), elements_of_findings(1_600, 100)
    assert many == few < 100 * 200


def elements_before_hardening(topics: int) -> int:
    """The elements that are read for what comes before hardening of each of so many topics, of two partitions each."""
    rows = [[0, 3, 1], [0, 1, 2]] * topics
    snapshot = ClusterSnapshot(
        brokers=tuple(Broker(BrokerId(one), RackId(f"r{one % 3}")) for one in range(9)),
        topics=tuple(Topic(TopicName(f"t{one:04}"), config={"min.insync.replicas": "2"}) for one in range(topics)),
        partitions=columns(
            topic=[place // 2 for place in range(len(rows))],
            partition=[place % 2 for place in range(len(rows))],
            leader=[row[0] for row in rows],
            replicas=rows,
            isr=rows,
        ),
    )
    batch = snapshot_batch(snapshot, RackPolicy(min_insync_racks=2))
    assert all(before_hardening(batch, topic) for topic in range(topics))
    batch.known_before_hardening.clear()
    counted(batch.rows, list(PartitionColumns.__dataclass_fields__))
    counted(batch.required, list(type(batch.required).__dataclass_fields__))
    counted(batch, list(vars(batch)))
    Counted.elements = 0
    assert all(before_hardening(batch, topic) for topic in range(topics))
    return Counted.elements


def test_what_comes_before_hardening_costs_the_same_for_each_topic_however_many_there_are() -> None:
    few, many = elements_before_hardening(20), elements_before_hardening(160)
    assert 0 < many == 8 * few
