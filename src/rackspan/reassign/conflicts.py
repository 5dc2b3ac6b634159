"""Why a request cannot be met in full: the smallest set of facts that contradict each other, in words."""

from collections.abc import Iterator

import numpy as np

from rackspan.audit.batch import Requirements, requirements
from rackspan.audit.policy import RackPolicy
from rackspan.model.ids import shown
from rackspan.model.partitions import Int64s
from rackspan.model.snapshot import ClusterSnapshot
from rackspan.reassign.plan_cost import Conflict
from rackspan.reassign.problem import Standing
from rackspan.reassign.request import ReassignmentRequest

NAMED_MAX = 3
"""Topics that a sentence names before it counts the rest."""


def too_few_brokers(snapshot: ClusterSnapshot, now: Standing, rows: Int64s) -> Iterator[Conflict]:
    """Replication factors above the number of brokers left."""
    left = int(now.homes.sizes.sum())
    for factor in np.unique(now.wanted_factor[rows]).tolist():
        mine = rows[now.wanted_factor[rows] == factor]
        yield Conflict(
            reason=f"{_topics(snapshot, now, mine)} replication factor {factor}, {_count(left, 'broker')} left to hold replicas",
            remedy="add brokers, drain fewer, or lower the replication factor",
            partitions=len(mine),
        )


def fenced_racks(snapshot: ClusterSnapshot, now: Standing, rows: Int64s) -> Iterator[Conflict]:
    """Partitions whose missing replicas only fenced brokers could take."""
    if not len(rows):
        return
    fenced = _in_the_way(now)
    ids = ",".join(map(str, now.homes.broker_ids[fenced].tolist()))
    racks = ",".join(shown(rack) for rack in now.homes.names(now.homes.rack_codes[fenced]))
    yield Conflict(
        reason=f"{_topics(snapshot, now, rows)} partitions that need rack {racks}, whose brokers {ids} are fenced and can receive nothing",
        remedy=f"bring them back, or --drain {ids}",
        partitions=len(rows),
    )


def _in_the_way(now: Standing) -> Int64s:
    """Fenced brokers of racks where nobody can receive; where there is no such rack, all that are fenced."""
    codes = now.homes.rack_codes
    able = np.isin(codes, codes[now.receiving])
    whole_racks = np.flatnonzero(~now.receiving & ~able)
    return whole_racks if len(whole_racks) else np.flatnonzero(~now.receiving)


def broken_minimums(
    snapshot: ClusterSnapshot, policy: RackPolicy, now: Standing, request: ReassignmentRequest
) -> Iterator[tuple[Int64s, Conflict]]:
    """Partitions that a drain or a lower factor would bring under a minimum they meet today: these are not touched."""
    asked = requirements(snapshot.topics, policy).of(now.rows.topic)
    if request.leaving:
        yield from _too_few_racks(snapshot, now, asked, request)
    if request.replication_factor is not None:
        yield from _too_low_factor(snapshot, now, asked, request.replication_factor)


def _too_few_racks(
    snapshot: ClusterSnapshot, now: Standing, asked: Requirements, request: ReassignmentRequest
) -> Iterator[tuple[Int64s, Conflict]]:
    left = len(now.homes.racks)
    before = len({broker.rack for broker in snapshot.brokers})
    broken = now.chosen & (asked.min_insync_racks > left) & (asked.min_insync_racks <= before)
    for minimum in np.unique(asked.min_insync_racks[broken]).tolist():
        mine = np.flatnonzero(broken & (asked.min_insync_racks == minimum))
        yield (
            mine,
            Conflict(
                reason=f"{_topics(snapshot, now, mine)} min.insync.racks {minimum}, draining {','.join(map(str, sorted(request.leaving)))} leaves {_count(left, 'rack')}",
                remedy="drain fewer brokers, or lower min.insync.racks",
                partitions=len(mine),
            ),
        )


def _too_low_factor(
    snapshot: ClusterSnapshot, now: Standing, asked: Requirements, factor: int
) -> Iterator[tuple[Int64s, Conflict]]:
    for name, minimum in (
        ("min.insync.replicas", asked.min_insync_replicas),
        ("min.insync.racks", asked.min_insync_racks),
    ):
        broken = now.chosen & (minimum > factor) & (minimum <= now.current_factor)
        for value in np.unique(minimum[broken]).tolist():
            mine = np.flatnonzero(broken & (minimum == value))
            yield (
                mine,
                Conflict(
                    reason=f"{_topics(snapshot, now, mine)} {name} {value}, the replication factor asked for is {factor}",
                    remedy=f"ask for {value} or more, or lower {name}",
                    partitions=len(mine),
                ),
            )


def _topics(snapshot: ClusterSnapshot, now: Standing, rows: Int64s) -> str:
    """`3 topics (a, b, c) have`."""
    names = [snapshot.topics[code].name for code in np.unique(now.rows.topic[rows]).tolist()]
    listed = ", ".join(names[:NAMED_MAX]) + (", …" if len(names) > NAMED_MAX else "")
    return f"{_count(len(names), 'topic')} ({listed}) {'has' if len(names) == 1 else 'have'}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
