"""What to do first in a cluster: risks in the order of repair, then savings by money, each with its command.

Begin with advice.py (the values and the rule of their order), then risks.py and savings.py (the chain of what-ifs; of_groups.py and
of_topics.py have them). Pure: findings, flows and prices are arguments. It never adds risk and money up, and recommends nothing
that the planner refuses.
Depends on: audit, clients, model, reassign, streams, traffic.
"""

from rackspan.advice.advice import Advice, ranked
from rackspan.advice.measured import LEAST_BYTES_A_MONTH, MeasuredTraffic, measured_traffic
from rackspan.advice.risks import risks
from rackspan.advice.savings import savings

__all__ = ["LEAST_BYTES_A_MONTH", "Advice", "MeasuredTraffic", "measured_traffic", "ranked", "risks", "savings"]
