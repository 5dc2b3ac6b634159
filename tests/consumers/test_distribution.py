from rackspan.consumers.assign import round_robin
from rackspan.model.ids import TopicPartition

PARTITIONS = [TopicPartition("t", one) for one in range(5)]


def numbers(**counts: int) -> dict[str, list[int]]:
    received = round_robin(PARTITIONS, counts)
    return {name: [partition.partition for partition in partitions] for name, partitions in received.items()}


def test_each_receiver_gets_one_partition_in_turn() -> None:
    assert numbers(a=2, b=3) == {"a": [0, 2], "b": [1, 3, 4]}


def test_a_receiver_with_count_zero_gets_nothing() -> None:
    assert numbers(a=0, b=5) == {"a": [], "b": [0, 1, 2, 3, 4]}
