"""Standby tasks: which clients hold copies of a task's state, and the exchanges that make their restores cheaper.

Begin with placement.py (by load, or over client tags: KIP-708), then exchange.py (Kafka's exchanges between pairs of clients),
joint.py (all standbys at once, beyond Kafka) and optimize.py, which runs them. Never moves an active task.
"""

from rackspan.streams.standby.optimize import optimize_standby
from rackspan.streams.standby.placement import MissingStandbys, StandbyPlacer, placer_for

__all__ = ["MissingStandbys", "StandbyPlacer", "optimize_standby", "placer_for"]
