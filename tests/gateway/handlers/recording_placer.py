"""A placer for tests that records what happens to it: as LastBroker, with a diary of all instances."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from rackspan.placement.placer import TopicAssignment
from rackspan.placement.usable_brokers import UsableBroker
from tests.gateway.handlers.last_broker import LastBroker


class RecordingPlacer(LastBroker):
    diary: ClassVar[list[str]] = []
    offered: ClassVar[list[tuple[int, str | None, bool]]] = []
    """The brokers of the last placement."""

    def __init__(self) -> None:
        self.diary.append("new")

    def configure(self, configs: Mapping[str, str]) -> None:
        if configs.get("refused"):
            raise ValueError("it is configured to refuse")
        self.diary.append(f"configure {configs.get('mine')}")

    def place(
        self, start_partition: int, num_partitions: int, num_replicas: int, brokers: Sequence[UsableBroker]
    ) -> TopicAssignment:
        self.diary.append(f"place {num_partitions}")
        self.offered[:] = [(int(broker.id), broker.rack, broker.fenced) for broker in brokers]
        return super().place(start_partition, num_partitions, num_replicas, brokers)

    def close(self) -> None:
        self.diary.append("close")
