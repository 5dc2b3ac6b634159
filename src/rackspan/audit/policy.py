"""What the operator demands where the cluster itself does not say."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from rackspan.errors import UsageError
from rackspan.model.ids import RackId
from rackspan.model.racks import UnrackedPolicy


@dataclass(frozen=True, slots=True)
class RackPolicy:
    """How racks are judged.

    A topic whose config carries `min.insync.racks` is judged by that value, since its brokers enforce it. For all others,
    which is every topic of an Apache Kafka, `topic_min_insync_racks` counts, then `min_insync_racks`. `controller_racks`
    names the racks of controllers that no broker's registration tells.
    """

    unracked: UnrackedPolicy = UnrackedPolicy.SHARED
    min_insync_racks: int = 1
    topic_min_insync_racks: Mapping[str, int] = field(default_factory=dict)
    controller_racks: Mapping[int, RackId] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for place, value in (("", self.min_insync_racks), *self.topic_min_insync_racks.items()):
            if value < 1:
                whose = f"topic {place!r}: " if place else ""
                raise UsageError(f"{whose}min.insync.racks is {value}, but at least 1 rack is asked; correct it")
