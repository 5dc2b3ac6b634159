"""The values of an assignment problem: clients, tasks and partitions of one Kafka Streams group, and its configs.

Begin with problem.py. config.py has Kafka's configs with their defaults, options.py what rackspan adds to Kafka (all of it
off by default), ids.py the ids and their order, rack_awareness.py whether racks count for a group and why not.
Assigns nothing and reads no JSON: that is formats/.
"""

from rackspan.streams.problem.config import (
    ALL_CAUGHT_UP,
    HIGH_AVAILABILITY_COSTS,
    STATELESS_COSTS,
    STICKY_COSTS,
    AssignmentConfigs,
    Costs,
    Strategy,
    strategy_named,
)
from rackspan.streams.problem.ids import ProcessId, TaskId, process_order, task_order, topic_of
from rackspan.streams.problem.options import KAFKA, Beyond, Options, options_named
from rackspan.streams.problem.problem import (
    LATEST,
    UNKNOWN,
    Bools,
    Client,
    Int32s,
    Int64s,
    PartitionLists,
    PartitionRacks,
    Problem,
    TaskColumns,
    client_racks,
)
from rackspan.streams.problem.rack_awareness import (
    RACK_TAG,
    RackAwareness,
    changelogs_known,
    client_rack_reason,
    judge_rack_awareness,
    rack_warnings,
    source_reason,
    sources_known,
    tag_warnings,
)

__all__ = [
    "ALL_CAUGHT_UP",
    "HIGH_AVAILABILITY_COSTS",
    "KAFKA",
    "LATEST",
    "RACK_TAG",
    "STATELESS_COSTS",
    "STICKY_COSTS",
    "UNKNOWN",
    "AssignmentConfigs",
    "Beyond",
    "Bools",
    "Client",
    "Costs",
    "Int32s",
    "Int64s",
    "Options",
    "PartitionLists",
    "PartitionRacks",
    "Problem",
    "ProcessId",
    "RackAwareness",
    "Strategy",
    "TaskColumns",
    "TaskId",
    "changelogs_known",
    "client_rack_reason",
    "client_racks",
    "judge_rack_awareness",
    "options_named",
    "process_order",
    "rack_warnings",
    "source_reason",
    "sources_known",
    "strategy_named",
    "tag_warnings",
    "task_order",
    "topic_of",
]
