"""How partitions and racks are written in messages."""

from rackspan.model import RackId, TopicPartition, shown


def racks(*names: str) -> list[RackId]:
    return [RackId(name) for name in names]


def test_a_partition_is_written_as_kafka_names_its_folder() -> None:
    assert str(TopicPartition("orders", 3)) == "orders-3"


def test_the_rack_without_a_name_is_shown_in_words() -> None:
    assert [shown(rack) for rack in racks("", "eu-1")] == ["(no rack)", "eu-1"]
