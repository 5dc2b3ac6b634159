"""The search for few batches: conflicts.py says which brokers may stop together, batches.py is greedy, exact.py is CP-SAT.

bounds.py proves how few batches there can be.
"""

from rackspan.restart.search.batches import greedy_batches
from rackspan.restart.search.bounds import LowerBound, dense_bound, lower_bound
from rackspan.restart.search.conflicts import Conflicts, chosen_conflicts
from rackspan.restart.search.exact import is_small, searched_batches

__all__ = [
    "Conflicts",
    "LowerBound",
    "chosen_conflicts",
    "dense_bound",
    "greedy_batches",
    "is_small",
    "lower_bound",
    "searched_batches",
]
