"""Rack-aware partition assignment for plain consumers: which member of a group reads which partition.

KIP-881 requests it, KIP-925 shows how to price it; this package solves it. Begin with group.py (the values), then assign.py:
balance first, then the fewest partitions read across racks, then the fewest moves, each proven. rebalance.py is one call for
one rebalance: whether racks count, and what is withheld from its new reader.
member_data.py is the user data that members exchange. Pure: no client, no clock, no random generator. The plug-ins for
Kafka clients are in the package assignor.
Depends on: flow, model.
"""

from rackspan.consumers.assign import GroupAssignment, assign
from rackspan.consumers.group import NO_EPOCH, ConsumerGroup, GroupMember, MemberId
from rackspan.consumers.rebalance import RebalanceDecision, decide_rebalance
from rackspan.model.ids import TopicPartition

__all__ = [
    "NO_EPOCH",
    "ConsumerGroup",
    "GroupAssignment",
    "GroupMember",
    "MemberId",
    "RebalanceDecision",
    "TopicPartition",
    "assign",
    "decide_rebalance",
]
