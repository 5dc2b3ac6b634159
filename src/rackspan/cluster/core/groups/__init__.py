"""Classic consumer groups, as Kafka's group coordinator runs them: members, generations, committed offsets.

Begin with group.py (the states), then membership/rebalance.py (when they change); coordinator.py has the entry points.
records.py is the format of `__consumer_offsets`, from which the next leader of a partition restores every response given.
It never assigns a partition (the group's leader does) and never expires an offset.
"""

from rackspan.cluster.core.groups.context import GroupSettings
from rackspan.cluster.core.groups.coordinator import GroupCoordinator
from rackspan.cluster.core.groups.group import GroupState

__all__ = ["GroupCoordinator", "GroupSettings", "GroupState"]
