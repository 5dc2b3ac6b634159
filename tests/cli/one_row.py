"""A placer with one result: every broker, the lowest id leading."""

from collections.abc import Mapping, Sequence

from rackspan.placement import TopicAssignment, UsableBroker


class OneRow:
    def configure(self, configs: Mapping[str, str]) -> None:
        pass

    def place(
        self, start_partition: int, num_partitions: int, num_replicas: int, brokers: Sequence[UsableBroker]
    ) -> TopicAssignment:
        return TopicAssignment.of([sorted(broker.id for broker in brokers)[:num_replicas]] * num_partitions)

    def close(self) -> None:
        pass
