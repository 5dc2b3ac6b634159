"""A rolling restart batch by batch: which effect is next, by the journal and the cluster as it is.

Begin with decision.py; events.py is the journal, places.py the in-sync replicas that a batch has to regain. Pure: `apply`
reads the cluster, writes the journal and runs the command.
"""

from rackspan.restart.execution.decision import (
    AwaitBrokers,
    CommandStatus,
    Effect,
    ElectLeadersOfBatch,
    EndRestart,
    RecordEvent,
    RestartFinished,
    RunCommand,
    decide,
)
from rackspan.restart.execution.events import (
    BatchCompleted,
    BatchStarted,
    BrokersStopped,
    CommandStarted,
    LeadersElected,
    RestartEvent,
    RestartStarted,
    RestartState,
)
from rackspan.restart.execution.plan_file import RestartBatches, batches_of, command_for, read_restart_plan

__all__ = [
    "AwaitBrokers",
    "BatchCompleted",
    "BatchStarted",
    "BrokersStopped",
    "CommandStarted",
    "CommandStatus",
    "Effect",
    "ElectLeadersOfBatch",
    "EndRestart",
    "LeadersElected",
    "RecordEvent",
    "RestartBatches",
    "RestartEvent",
    "RestartFinished",
    "RestartStarted",
    "RestartState",
    "RunCommand",
    "batches_of",
    "command_for",
    "decide",
    "read_restart_plan",
]
