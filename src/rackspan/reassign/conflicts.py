"""Reasons why a request cannot be met in full, in words: which requirements contradict each other."""

from collections.abc import Iterator

import numpy as np

from rackspan.audit.batch import Requirements, requirements
from rackspan.audit.policy import RackPolicy
from rackspan.model.ids import shown
from rackspan.model.partitions import Int64s
from rackspan.model.snapshot import ClusterSnapshot
from rackspan.reassign.plan_cost import Conflict
from rackspan.reassign.problem import ReassignmentProblem
from rackspan.reassign.request import ReassignmentRequest
from rackspan.text import count_noun

NAMED_MAX = 3
"""Topics that a sentence names before it counts the rest."""


def too_few_brokers(snapshot: ClusterSnapshot, problem: ReassignmentProblem, rows: Int64s) -> Iterator[Conflict]:
    """Replication factors above the number of brokers left."""
    left = int(problem.rack_map.sizes.sum())
    for factor in np.unique(problem.target_factor[rows]).tolist():
        selected = rows[problem.target_factor[rows] == factor]
        yield Conflict(
            reason=f"{_topics(snapshot, problem, selected)} replication factor {factor}, {count_noun(left, 'broker')} left to hold replicas",
            remedy="add brokers, drain fewer, or lower the replication factor",
            partitions=len(selected),
        )


def fenced_racks(snapshot: ClusterSnapshot, problem: ReassignmentProblem, rows: Int64s) -> Iterator[Conflict]:
    """Partitions whose missing replicas only fenced brokers could take."""
    if not len(rows):
        return
    fenced = _blocking_brokers(problem)
    ids = ",".join(map(str, problem.rack_map.broker_ids[fenced].tolist()))
    racks = ",".join(shown(rack) for rack in problem.rack_map.names(problem.rack_map.rack_codes[fenced]))
    yield Conflict(
        reason=f"{_topics(snapshot, problem, rows)} partitions that need rack {racks}, whose brokers {ids} are fenced and can receive nothing",
        remedy=f"bring them back, or --drain {ids}",
        partitions=len(rows),
    )


def _blocking_brokers(problem: ReassignmentProblem) -> Int64s:
    """Fenced brokers of racks where no broker can receive; without such a rack, all fenced brokers."""
    codes = problem.rack_map.rack_codes
    able = np.isin(codes, codes[problem.can_receive])
    whole_racks = np.flatnonzero(~problem.can_receive & ~able)
    return whole_racks if len(whole_racks) else np.flatnonzero(~problem.can_receive)


def broken_minimums(
    snapshot: ClusterSnapshot, policy: RackPolicy, problem: ReassignmentProblem, request: ReassignmentRequest
) -> Iterator[tuple[Int64s, Conflict]]:
    """Partitions that a drain or a lower factor would bring under a minimum they meet today: these are not touched."""
    required = requirements(snapshot.topics, policy).of(problem.rows.topic)
    if request.leaving:
        yield from _too_few_racks(snapshot, problem, required, request)
    if request.replication_factor is not None:
        yield from _too_low_factor(snapshot, problem, required, request.replication_factor)


def _too_few_racks(
    snapshot: ClusterSnapshot, problem: ReassignmentProblem, required: Requirements, request: ReassignmentRequest
) -> Iterator[tuple[Int64s, Conflict]]:
    left = len(problem.rack_map.racks)
    before = len({broker.rack for broker in snapshot.brokers})
    broken = problem.chosen & (required.min_insync_racks > left) & (required.min_insync_racks <= before)
    for minimum in np.unique(required.min_insync_racks[broken]).tolist():
        selected = np.flatnonzero(broken & (required.min_insync_racks == minimum))
        yield (
            selected,
            Conflict(
                reason=f"{_topics(snapshot, problem, selected)} min.insync.racks {minimum}, draining {','.join(map(str, sorted(request.leaving)))} leaves {count_noun(left, 'rack')}",
                remedy="drain fewer brokers, or lower min.insync.racks",
                partitions=len(selected),
            ),
        )


def _too_low_factor(
    snapshot: ClusterSnapshot, problem: ReassignmentProblem, required: Requirements, factor: int
) -> Iterator[tuple[Int64s, Conflict]]:
    for name, minimum in (
        ("min.insync.replicas", required.min_insync_replicas),
        ("min.insync.racks", required.min_insync_racks),
    ):
        broken = problem.chosen & (minimum > factor) & (minimum <= problem.current_factor)
        for value in np.unique(minimum[broken]).tolist():
            selected = np.flatnonzero(broken & (minimum == value))
            yield (
                selected,
                Conflict(
                    reason=f"{_topics(snapshot, problem, selected)} {name} {value}, the replication factor asked for is {factor}",
                    remedy=f"ask for {value} or more, or lower {name}",
                    partitions=len(selected),
                ),
            )


def _topics(snapshot: ClusterSnapshot, problem: ReassignmentProblem, rows: Int64s) -> str:
    """`3 topics (a, b, c) have`."""
    names = [snapshot.topics[code].name for code in np.unique(problem.rows.topic[rows]).tolist()]
    listed = ", ".join(names[:NAMED_MAX]) + (", …" if len(names) > NAMED_MAX else "")
    return f"{count_noun(len(names), 'topic')} ({listed}) {'has' if len(names) == 1 else 'have'}"
