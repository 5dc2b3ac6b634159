"""The controller: registrations, elections, ISR changes, topics, configs, reassignments.

Begin with controller.py (entry points), then partition_change.py (the one way in which a partition changes). Every
other file is one kind of request. It holds no partition log and sends no request to a broker: brokers
send requests to it.
"""

from rackspan.cluster.core.controller.controller import ControllerCore
from rackspan.cluster.core.controller.partition_change import Conditions, Election, PartitionChange, changed
from rackspan.cluster.core.controller.rules import ControllerRules

__all__ = ["Conditions", "ControllerCore", "ControllerRules", "Election", "PartitionChange", "changed"]
