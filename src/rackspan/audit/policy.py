"""The operator's settings for an audit: how racks are counted, and the racks required in sync."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from rackspan.errors import UsageError
from rackspan.model import RackId, UnrackedPolicy


@dataclass(frozen=True, slots=True)
class RackPolicy:
    """How racks are counted and how many are required.

    `topic_min_insync_racks` applies to a topic, then `min_insync_racks`. A topic whose config holds a higher
    `min.insync.racks` is judged by that, since its brokers enforce it. `controller_racks` gives the racks of controllers,
    which no broker registration contains. `excluded_brokers` are being retired or maintained: nothing new is placed on them,
    and they are not expected to hold their share.
    """

    unracked: UnrackedPolicy = UnrackedPolicy.SHARED
    min_insync_racks: int = 1
    topic_min_insync_racks: Mapping[str, int] = field(default_factory=dict)
    controller_racks: Mapping[int, RackId] = field(default_factory=dict)
    excluded_brokers: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        for topic, value in (("", self.min_insync_racks), *self.topic_min_insync_racks.items()):
            if value < 1:
                whose = f"topic {topic!r}: " if topic else ""
                raise UsageError(f"{whose}min.insync.racks is {value}, but at least 1 rack is asked; correct it")

    def min_insync_racks_of(self, topic: str) -> int:
        """The racks that the policy requires in sync for a topic."""
        return self.topic_min_insync_racks.get(topic, self.min_insync_racks)
