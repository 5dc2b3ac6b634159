"""Rack-aware task assignment for Kafka Streams (KIP-925): which client runs which task, at provably least cost.

Begin with answer.py (a problem document in, an answer out) and problem.py (the values). Then costs.py; min_traffic.py and
balance_subtopology.py, the two strategies; high_availability.py and sticky.py, the assignors around them. options.py names
what goes beyond Kafka; all of it is off by default. Running groups: live_group.py understands what members put on the
wire, capture.py makes a problem of it, group_audit.py prices it, lab.py replays it until it comes to rest. Pure: reads no
file and no clock, throws no rng. Equal input gives equal answers on every machine; among answers of equal cost the one
that moves the fewest tasks.
"""

from rackspan.streams.answer import ASSIGNORS, assign, assign_problem, assignor_named
from rackspan.streams.capture import Captured, capture_group
from rackspan.streams.config import AssignmentConfigs, Strategy
from rackspan.streams.group_audit import audit_group, could_be_less
from rackspan.streams.lab import Setting, replay, settings
from rackspan.streams.live_group import DescribedGroup, DescribedMember, StreamsGroup, streams_group
from rackspan.streams.options import KAFKA, Beyond, Options, options_named
from rackspan.streams.problem import Client, Problem
from rackspan.streams.problem_format import from_document, read

__all__ = [
    "ASSIGNORS",
    "KAFKA",
    "AssignmentConfigs",
    "Beyond",
    "Captured",
    "Client",
    "DescribedGroup",
    "DescribedMember",
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
    "could_be_less",
    "from_document",
    "options_named",
    "read",
    "replay",
    "settings",
    "streams_group",
]
