"""The cost of one more replica on a broker, as flow arcs whose unit cost rises with the broker's load."""

from dataclasses import dataclass

import numpy as np

from rackspan.audit.loads import replica_bound
from rackspan.model.partitions import Int64s
from rackspan.reassign.problem import ReassignmentProblem

FINE_STEPS_MIN = 32
FINE_ARCS_MAX = 600_000
"""Loads near the water level have one step each, as far out as present loads lie, within FINE_ARCS_MAX arcs in all. Beyond,
steps grow by GROWTH."""

GROWTH = 1.35


@dataclass(frozen=True, slots=True, eq=False)
class LoadCosts:
    """Steps for each broker: `broker`, `capacity` (replicas), `unit_cost`, all (S,). Costs rise with the load."""

    broker: Int64s
    capacity: Int64s
    unit_cost: Int64s


def load_costs(problem: ReassignmentProblem) -> LoadCosts:
    """Steps centred on the water level that each rack can reach.

    The cost of step x to y is x + y: the slope of the square, so that the cheapest flow has the least sum of squared
    loads, which also makes the largest load as small as can be. Where one broker's step is coarse, loads within it
    count as equal; the fine part lies around the rack's water level, where good plans end.
    """
    levels, most = water_levels(problem), int(max(problem.loads.max(initial=0), len(problem.rows)))
    mean = int(problem.target_factor.sum()) // max(1, len(problem.rack_map.broker_ids))
    fine = _fine_steps(problem, levels, mean)
    per_rack = [_edges((int(level), mean), most, fine) for level in levels.tolist()]
    uncounted = _edges((mean,), most, fine)
    edges = [per_rack[code] if code >= 0 else uncounted for code in problem.rack_map.rack_codes.tolist()]
    return LoadCosts(
        broker=np.repeat(np.arange(len(edges)), [len(edge) - 1 for edge in edges]),
        capacity=np.concatenate([np.diff(edge) for edge in edges]),
        unit_cost=np.concatenate([edge[:-1] + edge[1:] - 2 * mean for edge in edges]),
    )


def _fine_steps(problem: ReassignmentProblem, levels: Int64s, mean: int) -> int:
    """How far from its centre the steps are fine: to the load that lies furthest out, within FINE_ARCS_MAX."""
    centre = np.append(levels, mean)[problem.rack_map.rack_codes]
    furthest = int(np.abs(problem.loads - centre).max(initial=0)) + 1
    return max(FINE_STEPS_MIN, min(furthest, FINE_ARCS_MAX // (2 * max(1, len(problem.loads)))))


def water_levels(problem: ReassignmentProblem) -> Int64s:
    """Replicas per broker of each rack, rounded down, when all are filled evenly. Shape (racks,)."""
    partitions_of = np.bincount(np.minimum(problem.target_factor, len(problem.shares.least) - 1))
    least = partitions_of @ problem.shares.least[: len(partitions_of), :-1]
    most = partitions_of @ problem.shares.most[: len(partitions_of), :-1]
    sizes = np.maximum(problem.rack_map.sizes, 1)
    return np.asarray(np.clip(replica_bound(problem.rack_map, partitions_of) * sizes, least, most) // sizes)


def _edges(centres: tuple[int, ...], most: int, fine: int) -> Int64s:
    steps = np.concatenate(([1] * fine, np.maximum(2, GROWTH ** np.arange(1, 60)).astype(np.int64)))
    reach = np.concatenate(([0], np.cumsum(steps)))
    edges = np.concatenate([centre + sign * reach for centre in centres for sign in (-1, 1)])
    return np.unique(np.concatenate(([0, most], edges[(edges > 0) & (edges < most)])))
