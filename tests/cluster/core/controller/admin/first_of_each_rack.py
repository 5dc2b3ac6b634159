"""A user's placer: a replica on the first broker of each rack, brokers without a rack counting as one."""

from collections.abc import Mapping, Sequence

from rackspan.placement import TopicAssignment, UsableBroker


class Placer:
    def configure(self, configs: Mapping[str, str]) -> None:
        pass

    def place(self, start: int, count: int, factor: int, brokers: Sequence[UsableBroker]) -> TopicAssignment:
        first = {broker.rack: broker.id for broker in reversed(brokers)}
        others = [broker.id for broker in brokers if broker.id not in first.values()]
        return TopicAssignment.of([[*first.values(), *others][:factor]] * count)

    def close(self) -> None:
        pass
