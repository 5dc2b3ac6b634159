"""Rack-aware assignment for plain consumers: which member of a group reads which partition.

KIP-881 asks for it, KIP-925 shows how to price it; here it is solved. Begin with group.py (the values), then assign.py:
balance first, then the fewest partitions read across racks, then the fewest moves, each proven. claims.py says who owned
what, awareness.py when racks are left out, cooperative.py what must wait for its owner, member_data.py what members tell
each other; leader.py puts them together, one call a rebalance. Pure: no client, no clock, no rng; the plug-ins are in
the room assignor.
"""

from rackspan.consumers.assign import GroupAssignment, assign
from rackspan.consumers.group import Group, Member
from rackspan.model.ids import TopicPartition

__all__ = ["Group", "GroupAssignment", "Member", "TopicPartition", "assign"]
