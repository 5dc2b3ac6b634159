"""Preferred leaders and replicas per broker, updated from changed topics alone.

An image shares unchanged topics with the image before it, so that a topic has changed if it is another object.
Bound: one comparison a topic, and the partitions of topics that changed.
"""

from collections import Counter
from collections.abc import Mapping

from rackspan.cluster.core.metadata import TopicImage
from rackspan.model.ids import BrokerId


class BrokerLoad:
    """Counts as of the last `update`. Partitions under reassignment count for their target replicas."""

    __slots__ = ("_topics", "leaders", "replicas")

    def __init__(self) -> None:
        self.leaders: Counter[BrokerId] = Counter()
        self.replicas: Counter[BrokerId] = Counter()
        self._topics: Mapping[str, TopicImage] = {}

    def update(self, topics: Mapping[str, TopicImage]) -> None:
        """Count the topics of a newer image. `topics` must not be changed afterwards."""
        before, self._topics = self._topics, topics
        for name, topic in topics.items():
            known = before.get(name)
            if known is not topic:
                self._count(topic, 1)
                self._count(known, -1)
        for deleted in before.keys() - topics.keys():
            self._count(before[deleted], -1)

    def _count(self, topic: TopicImage | None, times: int) -> None:
        for state in () if topic is None else topic.partitions:
            staying = [broker for broker in state.replicas if broker not in state.removing]
            self.leaders[staying[0]] += times
            for broker in staying:
                self.replicas[broker] += times
