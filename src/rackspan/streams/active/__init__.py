"""Active tasks given to clients at least cost: Kafka's strategies, each solved exactly by a min-cost flow.

Begin with min_traffic.py (solved on racks alone), then balance_subtopology.py and client_flow.py (solved on clients).
task_groups.py groups interchangeable tasks, optimum.py checks every assignment against its proof, quotas.py is beyond
Kafka, optimize.py picks the strategy. Never decides how many tasks a client gets: that is the assignor's part.
"""

from rackspan.streams.active.optimize import optimize_active, optimize_states
from rackspan.streams.active.optimum import Optimum

__all__ = ["Optimum", "optimize_active", "optimize_states"]
