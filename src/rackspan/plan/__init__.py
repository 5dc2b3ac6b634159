"""A plan made ready to be carried out: in which order, in which portions, and as which file.

Begin with order.py (risk first, then size), then steps.py (the caps). json_format.py writes plans and reads Kafka's
reassignment files. It decides when things move, never what moves: that is reassign's.
"""

from rackspan.plan.order import in_steps
from rackspan.plan.steps import Caps, Step

__all__ = ["Caps", "Step", "in_steps"]
