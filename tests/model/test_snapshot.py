"""What a snapshot refuses, how it is ordered, and what is known of it."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pytest

from rackspan.errors import InvalidSnapshot
from rackspan.model import Broker, BrokerId, ClusterSnapshot, Controller, RackId, Topic, TopicName
from rackspan.model.ids import INT32_MAX
from rackspan.model.partitions import PartitionColumns, columns


def snapshot(
    *,
    partition: Sequence[int] = (0, 1),
    leader: Sequence[int] = (1, 1),
    replicas: Sequence[Sequence[int]] = ((1,), (1,)),
    isr: Sequence[Sequence[int]] = ((1,), (1,)),
    adding: Sequence[Sequence[int]] = ((), ()),
    removing: Sequence[Sequence[int]] = ((), ()),
    size_bytes: Sequence[int] = (0, 0),
    taken_at: datetime | None = None,
    controllers: Sequence[int] = (9, 8),
    partial: tuple[str, ...] = (),
) -> ClusterSnapshot:
    rows = columns(
        topic=[0] * len(partition),
        partition=partition,
        leader=leader,
        replicas=replicas,
        isr=isr,
        adding_replicas=adding,
        removing_replicas=removing,
        size_bytes=size_bytes,
    )
    return ClusterSnapshot(
        brokers=(Broker(BrokerId(2)), Broker(BrokerId(1), RackId("a"))),
        topics=(Topic(TopicName("orders")),),
        partitions=rows,
        taken_at=taken_at,
        controllers=tuple(Controller(BrokerId(one)) for one in controllers),
        partial=partial,
    )


ELSEWHERE = (
    "adding_replicas or removing_replicas names a broker that is not one of its replicas, which Kafka never reports; "
    "take the snapshot again"
)


def moving(adding: Sequence[int] = (), removing: Sequence[int] = ()) -> ClusterSnapshot:
    """The second partition is on brokers 1 and 2, and being reassigned."""
    return snapshot(replicas=[[1], [1, 2]], adding=[[], adding], removing=[[], removing])


WRONG_ROWS = {
    "orders-1: a broker id in isr is negative; fix it in the file": lambda: snapshot(isr=[[1], [-2]]),
    "orders-1: a broker id in replicas is negative; fix it in the file": lambda: snapshot(replicas=[[1], [1, -2]]),
    "orders-1: a broker id in adding_replicas is negative; fix it in the file": lambda: snapshot(adding=[[], [-2]]),
    "orders-1: a broker id in removing_replicas is negative; fix it in the file": lambda: snapshot(removing=[[], [-2]]),
    "orders-1: leader: expected a broker id, -1 for none, or -2 if it is not known; fix it in the file": lambda: (
        snapshot(leader=[-1, -3])
    ),
    "orders-1: size_bytes is negative; fix it in the file": lambda: snapshot(size_bytes=[-1, -2]),
    "orders--1: a partition id is negative; fix it in the file": lambda: snapshot(partition=[-1, 0]),
    "orders-7: listed twice; leave one of them out": lambda: snapshot(partition=[7, 7]),
    "orders-1: isr names a broker twice; fix it in the file": lambda: snapshot(isr=[[1], [2, 1, 2]]),
    "orders-1: adding_replicas names a broker twice; fix it in the file": lambda: moving(adding=[2, 2]),
    "orders-1: removing_replicas names a broker twice; fix it in the file": lambda: moving(removing=[2, 2]),
    f"orders-1: {ELSEWHERE}": lambda: moving(adding=[3]),
    f"orders-1: {ELSEWHERE} ": lambda: moving(removing=[3]),
    "orders-1: a broker is in adding_replicas and in removing_replicas, which Kafka never reports; take the snapshot again": lambda: (
        moving(adding=[2], removing=[2])
    ),
    "orders-1: removing_replicas names all of its replicas, which Kafka never reports; take the snapshot again": lambda: (
        moving(removing=[1, 2])
    ),
}


@pytest.mark.parametrize("line", WRONG_ROWS)
def test_a_wrong_row_is_refused_by_its_topic_and_partition(line: str) -> None:
    with pytest.raises(InvalidSnapshot) as refused:
        WRONG_ROWS[line]()
    assert str(refused.value) == line.strip()


def test_a_partition_of_a_topic_that_is_not_there_is_refused() -> None:
    for topic in (-1, 1):
        rows = columns(topic=[topic], partition=[0], leader=[1], replicas=[[1]], isr=[[1]])
        with pytest.raises(InvalidSnapshot, match="names a topic that is not in the snapshot"):
            ClusterSnapshot((Broker(BrokerId(1)),), (Topic(TopicName("orders")),), rows)


def test_brokers_and_controllers_are_ordered_by_id_and_found_by_it() -> None:
    ordered = snapshot()
    assert [broker.id for broker in ordered.brokers] == [1, 2]
    assert [controller.id for controller in ordered.controllers] == [8, 9]
    assert ordered.broker(1) == Broker(BrokerId(1), RackId("a"))
    assert (ordered.broker(2), ordered.broker(3)) == (Broker(BrokerId(2)), None)


def test_the_timestamp_is_kept_in_utc() -> None:
    kept = snapshot(taken_at=datetime(2026, 11, 21, 3, tzinfo=timezone(timedelta(hours=2)))).taken_at
    assert kept == datetime(2026, 11, 21, 1, tzinfo=UTC)
    assert kept.tzinfo is UTC
    with pytest.raises(InvalidSnapshot, match="beyond the years 1 to 9999"):
        snapshot(taken_at=datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=2))))


@pytest.mark.parametrize("broker_id", [0, INT32_MAX])
def test_ids_of_brokers_and_controllers_are_those_of_an_int32(broker_id: int) -> None:
    assert Broker(BrokerId(broker_id)).id == Controller(BrokerId(broker_id)).id == broker_id


@pytest.mark.parametrize("broker_id", [-1, INT32_MAX + 1])
def test_other_ids_are_refused(broker_id: int) -> None:
    for kind in (Broker, Controller):
        with pytest.raises(InvalidSnapshot):
            kind(BrokerId(broker_id))


def test_a_snapshot_is_the_same_whatever_the_padding_and_another_when_any_value_differs() -> None:
    wide, narrow = snapshot(), snapshot()
    padding = np.full((2, 3), -1, dtype=np.int32)
    padding[:, 0] = 1
    object.__setattr__(wide.partitions, "isr", padding)
    assert wide.same_as(narrow)
    assert not wide.same_as(snapshot(isr=[[1], []]))
    assert not wide.same_as(snapshot(leader=[1, -1]))
    assert not wide.same_as(snapshot(taken_at=datetime(2026, 1, 1, tzinfo=UTC)))
    assert not snapshot(isr=[[1], []]).same_as(snapshot(isr=[[], [1]]))


def rows_of(topic: Sequence[int], partition: Sequence[int]) -> PartitionColumns:
    count = len(topic)
    return columns(topic=topic, partition=partition, leader=[1] * count, replicas=[[1]] * count, isr=[[1]] * count)


def of_topics(names: Sequence[str], rows: PartitionColumns) -> ClusterSnapshot:
    return ClusterSnapshot((Broker(BrokerId(1)),), tuple(Topic(TopicName(name)) for name in names), rows)


def test_a_snapshot_of_brokers_topics_and_partitions_says_nothing_else() -> None:
    known = of_topics(["a"], rows_of([0], [0]))
    assert (known.cluster_id, known.taken_at, known.controllers, known.partial) == (None, None, (), ())


def test_a_controller_that_is_listed_twice_is_refused() -> None:
    with pytest.raises(InvalidSnapshot) as refused:
        snapshot(controllers=[8, 9, 8])
    assert str(refused.value) == "controller 8: listed twice; leave one of them out"


@pytest.mark.parametrize(
    ("names", "topic", "partition", "expected"),
    [
        ("a", [0, 0], [1, 0], [(0, 0), (0, 1)]),
        ("ba", [0, 0], [0, 1], [(1, 0), (1, 1)]),
        ("ba", [0, 1], [0, 5], [(0, 5), (1, 0)]),
    ],
)
def test_rows_are_in_the_order_of_topics_by_name_and_then_of_partitions(
    names: str, topic: list[int], partition: list[int], expected: list[tuple[int, int]]
) -> None:
    ordered = of_topics(names, rows_of(topic, partition))
    assert [known.name for known in ordered.topics] == ["a", "b"][: len(names)]
    assert [(row.topic, row.partition) for row in ordered.partitions] == expected


def test_rows_that_are_in_order_are_not_copied() -> None:
    rows = rows_of([0, 0, 1], [0, 1, 0])
    assert of_topics(["a", "b"], rows).partitions is rows


def test_what_could_not_be_read_and_is_needed_leaves_out_the_sizes() -> None:
    notes = ("sizes of broker 3", "configs of topics", "topics: sizes of none")
    assert snapshot(partial=notes).unread == ("configs of topics", "topics: sizes of none")


@pytest.mark.parametrize(
    ("moved", "moving"),
    [
        (snapshot(), False),
        (snapshot(partial=("sizes of broker 3",)), False),
        (snapshot(adding=[[], [1]]), True),
        (snapshot(replicas=[[1, 2], [1]], removing=[[2], []]), True),
        (snapshot(replicas=[[1, 2], [1]], adding=[[2], []], removing=[[1], []]), True),
        (snapshot(partial=("reassignments under way: no permission",)), True),
    ],
)
def test_a_partition_may_be_moving_if_one_is_or_if_that_could_not_be_read(moved: ClusterSnapshot, moving: bool) -> None:
    assert moved.may_be_moving is moving
