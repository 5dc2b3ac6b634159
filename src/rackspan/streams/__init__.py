"""Rack-aware task assignment for Kafka Streams (KIP-925): which client runs which task, at provably least cost.

Begin with assignment.py (a problem document in, an assignment document out) and problem.py (the values). Then, in the order
of an assignment: costs.py prices tasks; active/ has the strategies min_traffic and balance_subtopology; standby/ places
standby tasks; assignors/ has Kafka's assignors around them. formats.py reads problems from JSON. For running groups:
user_data.py decodes what members send, live/ turns it into a problem and an audit, lab/ replays a group over many rebalances.

Pure: reads no file and no clock, and uses no random generator. Equal input gives equal assignments on every machine; among
assignments of equal cost the one that moves the fewest tasks.
Depends on: flow, kafka_bytes, model.
"""

from rackspan.streams.assignment import assign, assign_problem
from rackspan.streams.assignors import ASSIGNORS, assignor_named
from rackspan.streams.formats import from_document
from rackspan.streams.lab import Setting, replay, settings
from rackspan.streams.live import (
    CapturedGroup,
    StreamsGroup,
    audit_group,
    capture_group,
    could_read_less,
    streams_group,
)
from rackspan.streams.problem import (
    KAFKA,
    AssignmentConfigs,
    Beyond,
    Client,
    Options,
    Problem,
    Strategy,
    options_named,
)

__all__ = [
    "ASSIGNORS",
    "KAFKA",
    "AssignmentConfigs",
    "Beyond",
    "CapturedGroup",
    "Client",
    "Options",
    "Problem",
    "Setting",
    "Strategy",
    "StreamsGroup",
    "assign",
    "assign_problem",
    "assignor_named",
    "audit_group",
    "capture_group",
    "could_read_less",
    "from_document",
    "options_named",
    "replay",
    "settings",
    "streams_group",
]
