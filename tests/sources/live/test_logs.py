"""The ends of logs from their leaders, in the order of the snapshot's rows, and a line for each reason why some are unknown."""

from typing import Any

import pytest

from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model import Broker, BrokerId, ClusterSnapshot, Topic, TopicName, TopicPartition, columns
from rackspan.model.partitions import UNKNOWN_SIZE
from rackspan.sources.live import logs
from rackspan.sources.live.logs import _Offsets, _replica_bytes
from rackspan.traffic.logs import UNKNOWN_OFFSET
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.log_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponseData,
    ListOffsetsTopicResponse,
)
from tests.scripted_connection import ScriptedConnection

LEADERS = {"a": [1, 2, -1], "b": [2, 3]}
"""Of each partition; -1 has none."""


def snapshot() -> ClusterSnapshot:
    rows = [(code, at, leader) for code, name in enumerate(LEADERS) for at, leader in enumerate(LEADERS[name])]
    replicas = [{-1: [1, 2], 1: [1, 2], 2: [2, 1], 3: [3, 1]}[leader] for _, _, leader in rows]
    return ClusterSnapshot(
        brokers=tuple(Broker(BrokerId(broker)) for broker in (1, 2, 3)),
        topics=tuple(Topic(TopicName(name)) for name in LEADERS),
        partitions=columns(
            topic=[code for code, _, _ in rows],
            partition=[at for _, at, _ in rows],
            leader=[leader for _, _, leader in rows],
            replicas=replicas,
            isr=replicas,
        ),
    )


def responding(failing: dict[int, Exception | ErrorCode], sent: list[Any]) -> ScriptedConnection:
    """The end of partition n of a is 10 + n, of b 20 + n; brokers that fail raise, or refuse each partition."""

    def respond(request: Any, broker: int | None) -> Any:
        failure = failing.get(broker or 0)
        timestamps = {row.timestamp for topic in request.topics for row in topic.partitions}
        sent.append((broker, timestamps, sum(len(topic.partitions) for topic in request.topics)))
        if isinstance(failure, Exception):
            return failure
        return ListOffsetsResponseData(
            topics=[
                ListOffsetsTopicResponse(
                    name=topic.name,
                    partitions=[
                        ListOffsetsPartitionResponse(
                            partition_index=row.partition_index,
                            offset={"a": 10, "b": 20}[topic.name] + row.partition_index,
                            error_code=failure or 0,
                        )
                        for row in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    return ScriptedConnection({ApiKey.LIST_OFFSETS: respond})


def read(failing: dict[int, Exception | ErrorCode], sent: list[Any] | None = None) -> tuple[list[int], tuple[str, ...]]:
    connection = responding(failing, [] if sent is None else sent)
    ends, lines = connection.run(_Offsets(connection, snapshot(), -1).read)  # type: ignore[arg-type]
    return ends.tolist(), lines


def test_each_leader_is_requested_its_own_partitions() -> None:
    sent: list[Any] = []
    ends, lines = read({}, sent)
    assert ends == [10, 11, UNKNOWN_OFFSET, 20, 21]
    assert lines == ("offsets of 1 partition: unknown, they have no leader",)
    assert sorted(sent) == [(1, {-1}, 1), (2, {-1}, 2), (3, {-1}, 1)]


def test_a_broker_that_fails_or_refuses_is_named_with_the_count_and_the_others_are_read() -> None:
    ends, lines = read({2: TimeoutError("no response in time"), 3: ErrorCode.NOT_LEADER_OR_FOLLOWER})
    assert ends == [10, UNKNOWN_OFFSET, UNKNOWN_OFFSET, UNKNOWN_OFFSET, UNKNOWN_OFFSET]
    assert lines == (
        "offsets of 1 partition: unknown, they have no leader",
        "offsets of 2 partitions: unknown, broker 2: no response in time",
        "offsets of 1 partition: unknown, broker 3: NOT_LEADER_OR_FOLLOWER",
    )


def test_many_partitions_of_a_leader_are_several_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "OFFSETS_BATCH", 1)
    sent: list[Any] = []
    assert read({}, sent)[0] == [10, 11, UNKNOWN_OFFSET, 20, 21]
    assert sorted(sent) == [(1, {-1}, 1), (2, {-1}, 1), (2, {-1}, 1), (3, {-1}, 1)]


def test_bytes_are_those_of_each_replica_where_its_broker_reports_them() -> None:
    a0, b1 = TopicPartition("a", 0), TopicPartition("b", 1)
    held = _replica_bytes(snapshot(), {1: {a0: 5, b1: 7}, 3: {a0: 9}}).tolist()
    unknown = UNKNOWN_SIZE
    assert held == [[5, unknown], [unknown] * 2, [unknown] * 2, [unknown] * 2, [unknown, 7]]
