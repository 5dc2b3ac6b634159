"""Restarts: which brokers may stop, and all of them in the fewest safe batches.

Begin with stopping.py (the rule), safe.py (one set of brokers, judged) and planner.py (batches); rollout.py puts what is down
first, search.py finds the batches. Pure: a snapshot is an argument.
Depends on: audit, model, reassign.
"""

from rackspan.restart.lists import SufferingPartition
from rackspan.restart.planner import RestartPlan, RestartRequest, plan_restart
from rackspan.restart.safe import StopJudgement, brokers_in_racks, judge_stop
from rackspan.restart.stopping import BlockOn, StopPolicy

__all__ = [
    "BlockOn",
    "RestartPlan",
    "RestartRequest",
    "StopJudgement",
    "StopPolicy",
    "SufferingPartition",
    "brokers_in_racks",
    "judge_stop",
    "plan_restart",
]
