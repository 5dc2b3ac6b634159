"""A plan made ready to be carried out: in which order, in which portions, as which file, and what comes next.

Begin with order.py (risk first, then size), then steps.py (the caps). json_format.py writes plans and reads Kafka's
reassignment files. Carrying out: written.py (a plan read back), events.py (what a journal says), observed.py (what a
cluster shows), execution.py (the next effect, from these two alone), verdict.py (how far anyone's reassignment is).
It decides when things move, never what moves: that is reassign's. It touches no cluster: that is apply's.
"""

from rackspan.plan.execution.decision import Limits
from rackspan.plan.order import in_steps
from rackspan.plan.steps import Caps, Step
from rackspan.plan.written import Toward, WrittenPlan
from rackspan.plan.written_format import read_plan

__all__ = ["Caps", "Limits", "Step", "Toward", "WrittenPlan", "in_steps", "read_plan"]
