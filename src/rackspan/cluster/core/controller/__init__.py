"""The controller: who is registered, who leads, what is in sync, which topics there are.

Begin with controller.py (which request goes where), then partition_change.py (the one way a partition changes). Every
other file is one kind of request. It never holds a log and never asks a broker: brokers ask it.
"""

from rackspan.cluster.core.controller.controller import ControllerCore
from rackspan.cluster.core.controller.partition_change import Conditions, Election, PartitionChange, changed
from rackspan.cluster.core.controller.rules import ControllerRules

__all__ = ["Conditions", "ControllerCore", "ControllerRules", "Election", "PartitionChange", "changed"]
