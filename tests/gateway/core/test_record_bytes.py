"""Counted bytes: topics' names and leaders by metadata, bounded labels, and the lines of the log."""

from rackspan.gateway.core.record_bytes import (
    OTHER,
    UNKNOWN_TOPIC,
    BytesPath,
    ClientLabels,
    RecordBytes,
    RecordFlow,
    TopicLeaders,
)
from rackspan.model.ids import BrokerId, RackId

RACKS = {BrokerId(1): RackId("r1"), BrokerId(2): RackId("r2")}
SHOP = ClientLabels("shop", "librdkafka", "2.16", "r2")
ORDERS = TopicLeaders("orders", {0: 1, 1: 2})


def test_bytes_count_by_the_leader_of_their_partition() -> None:
    counted = RecordBytes(10, 10)
    topic_id = b"1234567890123456"
    counted.add(SHOP, 1, topic_id, 0, 10)
    counted.add(SHOP, 2, "orders", 0, 20)
    counted.add(SHOP, 2, "orders", 5, 30)
    counted.add(SHOP, 1, "orders", 0, 40, produced=True)
    assert not counted.flows
    counted.settle(counted.unsettled(), {topic_id: ORDERS, "orders": ORDERS}, RACKS)
    named = "orders", "shop", "librdkafka", "2.16"
    assert counted.flows == {
        RecordFlow(BytesPath.CONSUME_LEADER, *named, "r1", "r2"): 10,
        RecordFlow(BytesPath.CONSUME_FOLLOWER, *named, "r2", "r2"): 20,
        RecordFlow(BytesPath.CONSUME, *named, "r2", "r2"): 30,
        RecordFlow(BytesPath.PRODUCE, *named, "r2", "r1"): 40,
    }
    assert not counted.unsettled()


def test_what_waits_to_be_looked_up_is_bounded_and_no_byte_is_lost() -> None:
    """A client names other topics all the time, and no broker responds."""
    counted = RecordBytes(10, 10)
    for number in range(10_010):
        counted.add(SHOP, 1, f"topic-{number}", 0, 1, produced=True)
    counted.add(SHOP, 1, "topic-7", 0, 5, produced=True)
    counted.add(SHOP, 1, "t" * 250, 0, 7, produced=True)
    assert len(counted.unsettled()) == 10_001
    counted.settle(counted.unsettled(), {}, RACKS)
    assert counted.flows.total() == 10_010 + 5 + 7
    assert not any(len(flow.topic) > 249 for flow in counted.flows)


def test_topics_that_were_not_looked_up_wait() -> None:
    counted = RecordBytes(10, 10)
    counted.add(SHOP, 1, "orders", 0, 10)
    looked_up = counted.unsettled()
    counted.add(SHOP, 1, "late", 0, 20)
    counted.settle(looked_up, {}, RACKS)
    assert counted.flows.total() == 10
    assert counted.unsettled() == {"late"}


def test_a_topic_id_that_no_broker_reports_has_no_name() -> None:
    counted = RecordBytes(10, 10)
    counted.add(SHOP, 3, b"1234567890123456", 0, 10)
    counted.settle(counted.unsettled(), {}, RACKS)
    assert counted.flows == {RecordFlow(BytesPath.CONSUME, UNKNOWN_TOPIC, "shop", "librdkafka", "2.16", "", "r2"): 10}


def test_topics_and_clients_beyond_the_bounds_share_a_label() -> None:
    counted = RecordBytes(2, 3)
    for topic in range(20):
        for client in range(20):
            counted.add(ClientLabels(f"client-{client}", rack="r1"), 1, f"topic-{topic}", 0, 1)
    counted.settle(counted.unsettled(), {}, RACKS)
    assert counted.flows.total() == 400
    assert len({flow.topic for flow in counted.flows}) == 3
    assert len({flow.client_id for flow in counted.flows}) == 4
    assert sum(size for flow, size in counted.flows.items() if flow.client_id == "client-0") == 20
    rest = next(flow for flow in counted.flows if flow.topic == flow.client_id == OTHER)
    assert (rest.client_software_name, rest.client_software_version) == (OTHER, OTHER)


def test_the_log_names_the_largest_flows_and_adds_up_the_rest() -> None:
    counted = RecordBytes(10, 10)
    for size in (1, 2, 300):
        counted.add(SHOP, 1, f"topic-{size}", 0, size)
    counted.settle(counted.unsettled(), {}, RACKS)
    assert counted.summary(1) == [
        "300 bytes of records: consume topic-300, client 'shop' (librdkafka 2.16), from rack r1 to rack r2",
        "3 bytes of records in 2 more series",
    ]
