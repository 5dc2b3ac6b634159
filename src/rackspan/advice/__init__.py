"""What to do first in a cluster: risks in the order of repair, then savings as they can be followed, each with its command.

Begin with ranking.py (the list), then risks.py and savings.py (the chain of what-ifs and its order; of_groups.py and of_topics.py
have them). Pure: snapshots, flows and prices are arguments. It never adds risk and money up, and recommends nothing that the
planner refuses.
Depends on: audit, clients, model, reassign, streams, traffic.
"""

from rackspan.advice.advice import Advice, ranked
from rackspan.advice.measured import LEAST_BYTES_A_MONTH, MeasuredTraffic, measured_traffic
from rackspan.advice.ranking import advise
from rackspan.advice.risks import repaired, risks
from rackspan.advice.savings import savings

__all__ = [
    "LEAST_BYTES_A_MONTH",
    "Advice",
    "MeasuredTraffic",
    "advise",
    "measured_traffic",
    "ranked",
    "repaired",
    "risks",
    "savings",
]
