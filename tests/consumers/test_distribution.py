from rackspan.consumers.distribution import round_robin
from rackspan.model.ids import TopicPartition

PARTITIONS = [TopicPartition("t", one) for one in range(5)]


def numbers(**wanted: int) -> dict[str, list[int]]:
    return {name: [one.partition for one in hand] for name, hand in round_robin(PARTITIONS, wanted).items()}


def test_one_to_each_in_turn() -> None:
    assert numbers(a=2, b=3) == {"a": [0, 2], "b": [1, 3, 4]}


def test_a_receiver_with_count_zero_gets_nothing() -> None:
    assert numbers(a=0, b=5) == {"a": [], "b": [0, 1, 2, 3, 4]}
