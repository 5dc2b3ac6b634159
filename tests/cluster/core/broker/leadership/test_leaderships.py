"""Requests to a broker for partitions that it does not lead."""

from rackspan.cluster.core.ids import CLIENT
from rackspan.cluster.core.messages import DeleteRecords, DeleteRecordsResponse, ProduceResponse
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import TopicPartition
from tests.cluster.world import World


def test_only_the_leader_takes_records_and_an_unknown_partition_is_another_error() -> None:
    w = World({1: "a", 2: "b"})
    w.run(500)
    orders = w.create("orders", [1, 2])
    w.settle()
    errors = []
    for broker, partition in ((1, orders), (2, orders), (2, TopicPartition("orders", 1))):
        correlation_id = w.produce(broker, partition)
        w.run(500)
        result = w.results[correlation_id]
        assert isinstance(result, ProduceResponse)
        errors.append(result.error)
    assert errors == [ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


def test_only_the_leader_deletes_records() -> None:
    w = World({1: "a", 2: "b"})
    w.run(500)
    orders = w.create("orders", [1, 2])
    w.settle()
    w._take(2, w.broker(2).on_message(w.now, CLIENT, DeleteRecords(900, orders, 0)))
    result = w.results[900]
    assert isinstance(result, DeleteRecordsResponse)
    assert result.error is ErrorCode.NOT_LEADER_OR_FOLLOWER
