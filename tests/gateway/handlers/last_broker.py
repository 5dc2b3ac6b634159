"""A placer for tests: the brokers with the highest ids, and nothing of seven partitions."""

from collections.abc import Mapping, Sequence

from rackspan.errors import ReplicaPlacementException
from rackspan.placement.placer import TopicAssignment
from rackspan.placement.usable_brokers import UsableBroker


class LastBroker:
    def configure(self, configs: Mapping[str, str]) -> None:
        """It has no configs."""

    def place(
        self, _start_partition: int, num_partitions: int, num_replicas: int, brokers: Sequence[UsableBroker]
    ) -> TopicAssignment:
        if num_partitions == 7:
            raise ReplicaPlacementException("seven is refused")
        row = sorted((broker.id for broker in brokers), reverse=True)[:num_replicas]
        return TopicAssignment.of([row] * num_partitions)

    def close(self) -> None:
        """It holds nothing."""
