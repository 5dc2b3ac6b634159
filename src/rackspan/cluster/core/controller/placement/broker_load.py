"""What each broker carries, kept up to date: of a cluster with many topics only those that changed are counted again.

Topics of an image are values that are shared from one image to the next, so that whether one changed is whether it is
another object. Bound: one comparison a topic, and the partitions of topics that changed.
"""

from collections import Counter
from collections.abc import Mapping

from rackspan.cluster.core.metadata import TopicImage
from rackspan.model.ids import BrokerId


class BrokerLoad:
    """Preferred leaders and replicas by broker, as of the topics last looked at; a reassignment counts where it leads."""

    __slots__ = ("_topics", "leaders", "replicas")

    def __init__(self) -> None:
        self.leaders: Counter[BrokerId] = Counter()
        self.replicas: Counter[BrokerId] = Counter()
        self._topics: Mapping[str, TopicImage] = {}

    def look_at(self, topics: Mapping[str, TopicImage]) -> None:
        """`topics` is an image's, which nobody changes."""
        before, self._topics = self._topics, topics
        for name, topic in topics.items():
            known = before.get(name)
            if known is not topic:
                self._count(topic, 1)
                self._count(known, -1)
        for gone in before.keys() - topics.keys():
            self._count(before[gone], -1)

    def _count(self, topic: TopicImage | None, times: int) -> None:
        for state in () if topic is None else topic.partitions:
            staying = [broker for broker in state.replicas if broker not in state.removing]
            self.leaders[staying[0]] += times
            for broker in staying:
                self.replicas[broker] += times
