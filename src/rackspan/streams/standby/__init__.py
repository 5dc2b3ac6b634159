"""Standby tasks: which clients hold copies of a task's state, and the exchanges that make their restores cheaper.

Begin with placement.py (by load, or over client tags: KIP-708), then exchange.py (Kafka's exchanges between pairs of clients),
joint.py, which runs them and then all at once (beyond Kafka). Never moves an active task.
"""

from rackspan.streams.standby.joint import optimize_standby
from rackspan.streams.standby.placement import MissingStandbys, StandbyPlacer, placer_for

__all__ = ["MissingStandbys", "StandbyPlacer", "optimize_standby", "placer_for"]
