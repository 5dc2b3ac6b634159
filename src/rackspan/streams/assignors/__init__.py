"""Kafka Streams' assignors, by the names `--assignor` takes: problem in, assignment out.

Begin with high_availability.py, Kafka's default; lags.py, movements.py and thread_balance.py are its steps. sticky.py is
Kafka's older assignor, optimize.py improves an assignment that is given. A new assignor is a file and a line in ASSIGNORS.
None reads a cluster.
"""

from collections.abc import Callable, Mapping
from typing import Final

from rackspan.errors import UsageError
from rackspan.streams.assignors.high_availability import high_availability
from rackspan.streams.assignors.optimize import optimize
from rackspan.streams.assignors.sticky import sticky
from rackspan.streams.problem import Options, Problem
from rackspan.streams.rack_awareness import RackAwareness
from rackspan.streams.task_assignment import AssignorOutput

Assignor = Callable[[Problem, RackAwareness, Options], AssignorOutput]

ASSIGNORS: Final[Mapping[str, Assignor]] = {
    "optimize": optimize,
    "high-availability": high_availability,
    "sticky": sticky,
}


def assignor_named(name: str) -> Assignor:
    """An assignor by its name in ASSIGNORS. Errors: UsageError, listing the assignors there are."""
    if name not in ASSIGNORS:
        raise UsageError(f"assignor {name!r} is unknown; choose among {', '.join(ASSIGNORS)}")
    return ASSIGNORS[name]
