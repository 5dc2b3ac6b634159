"""Rack-aware task assignment for Kafka Streams (KIP-925): which client runs which task, at provably least cost.

Begin with answer.py (a problem document in, an answer out) and problem.py (the values). Then costs.py; min_traffic.py and
balance_subtopology.py, the two strategies; high_availability.py and sticky.py, the assignors around them. options.py names
what goes beyond Kafka; all of it is off by default. Pure: reads no file and no clock, throws no dice. Equal input gives
equal answers on every machine; among answers of equal cost the one that moves the fewest tasks.
"""

from rackspan.streams.answer import ASSIGNORS, assign, assign_problem
from rackspan.streams.config import AssignmentConfigs, Strategy
from rackspan.streams.options import KAFKA, Beyond, Options, options_named
from rackspan.streams.problem import Client, Problem
from rackspan.streams.problem_format import from_document, read

__all__ = [
    "ASSIGNORS",
    "KAFKA",
    "AssignmentConfigs",
    "Beyond",
    "Client",
    "Options",
    "Problem",
    "Strategy",
    "assign",
    "assign_problem",
    "from_document",
    "options_named",
    "read",
]
