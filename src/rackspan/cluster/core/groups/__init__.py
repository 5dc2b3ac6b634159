"""Classic consumer groups, as Kafka's group coordinator runs them: who is a member, who owns what, what is committed.

Begin with group.py (the states), then rebalance.py (when they change) and joining.py; coordinator.py is the door, and
records.py what it keeps in `__consumer_offsets` so that the next leader of a partition knows all that was ever answered.
It never assigns a partition (the group's leader does) and never expires an offset.
"""

from rackspan.cluster.core.groups.coordinator import GroupCoordinator
from rackspan.cluster.core.groups.group import GroupState
from rackspan.cluster.core.groups.settings import GroupSettings

__all__ = ["GroupCoordinator", "GroupSettings", "GroupState"]
