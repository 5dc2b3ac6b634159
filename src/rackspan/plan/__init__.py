"""The order of a plan's steps, plan files, and what a run of a plan does next.

Begin with order.py (risk first, then size), then plan_file.py (plans as files), reassignment_file.py (the files of
kafka-reassign-partitions) and verification.py (how far a reassignment has come). execution/ decides the effects of a run.
Which replicas move is decided in `reassign`; `apply` carries out the effects on a cluster.
No replica is chosen here.
Depends on: audit, model, reassign.
"""

from rackspan.plan.difference import PartitionDifference, PlanDifference, partition_differences, plan_difference
from rackspan.plan.execution.decision import RunLimits, ours_in_flight
from rackspan.plan.execution.effects import Finished, Paused
from rackspan.plan.execution.events import DirectionSet, RateSet, RunCancelled, RunStarted, RunState, after
from rackspan.plan.execution.foreign import foreign_throttles, plan_in_flight, throttle_configs
from rackspan.plan.execution.observed import ObservationRequest, ObservedCluster, observed, refuse_unknown_moves
from rackspan.plan.execution.start import (
    plan_to_start,
    refuse_a_limit_below,
    refuse_to_repeat,
    refuse_to_resume,
    refuse_unnamed_cluster,
)
from rackspan.plan.execution.throttle import ConfigKey
from rackspan.plan.order import StepLimits, order_steps
from rackspan.plan.plan_file import PlanDocument, plan_document, read_plan
from rackspan.plan.reassignment_file import (
    ReassignmentFile,
    read_broker_list,
    read_reassignment,
    read_topics_to_move,
    reassignment_file,
    reassignment_json,
)
from rackspan.plan.verification import VerifiedPartition, VerifiedState, all_done, counted, verify

__all__ = [
    "ConfigKey",
    "DirectionSet",
    "Finished",
    "ObservationRequest",
    "ObservedCluster",
    "PartitionDifference",
    "Paused",
    "PlanDifference",
    "PlanDocument",
    "RateSet",
    "ReassignmentFile",
    "RunCancelled",
    "RunLimits",
    "RunStarted",
    "RunState",
    "StepLimits",
    "VerifiedPartition",
    "VerifiedState",
    "after",
    "all_done",
    "counted",
    "foreign_throttles",
    "observed",
    "order_steps",
    "ours_in_flight",
    "partition_differences",
    "plan_difference",
    "plan_document",
    "plan_in_flight",
    "plan_to_start",
    "read_broker_list",
    "read_plan",
    "read_reassignment",
    "read_topics_to_move",
    "reassignment_file",
    "reassignment_json",
    "refuse_a_limit_below",
    "refuse_to_repeat",
    "refuse_to_resume",
    "refuse_unknown_moves",
    "refuse_unnamed_cluster",
    "throttle_configs",
    "verify",
]
