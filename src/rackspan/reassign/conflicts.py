"""Reasons why a request cannot be met in full, in words: which requirements contradict each other."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from rackspan.audit.batch import ClusterMembers, Requirements, requirements
from rackspan.audit.constraints.cluster import WHERE_TO_CORRECT, count_apart
from rackspan.audit.policy import RackPolicy
from rackspan.model import (
    NO_BROKER,
    Bools,
    ClusterSnapshot,
    Int32s,
    Int64s,
    PartitionColumns,
    any_in_row,
    shown,
)
from rackspan.model.partitions import listed_in
from rackspan.reassign.plan_cost import Conflict
from rackspan.reassign.problem import ReassignmentProblem
from rackspan.reassign.request import ReassignmentRequest
from rackspan.reassign.safety import PlacementSafety, safety_of_rows, staying_replicas, words
from rackspan.text import count_noun, noun_and_ids

NAMED_MAX = 3
"""Topics that a sentence names before it counts the rest."""


def without_rows(mask: Bools, rows: Int64s) -> Bools:
    """The mask without these rows."""
    rest = mask.copy()
    rest[rows] = False
    return rest


def racks_alike(snapshot: ClusterSnapshot, policy: RackPolicy) -> Iterator[Conflict]:
    """Racks that may be fewer than they count as. Everything is planned as if they were not, and nothing is certain."""
    for group in ClusterMembers(snapshot.brokers, snapshot.controllers, policy).racks_alike:
        yield Conflict(f"a plan that is certain to keep racks apart: {count_apart(group)}", WHERE_TO_CORRECT, 0)


def too_few_brokers(snapshot: ClusterSnapshot, problem: ReassignmentProblem, rows: Int64s) -> Iterator[Conflict]:
    """Replication factors above the number of brokers left."""
    left = int(problem.rack_map.sizes.sum())
    for factor in np.unique(problem.target_factor[rows]).tolist():
        selected = rows[problem.target_factor[rows] == factor]
        yield conflict_of(
            snapshot,
            selected,
            f"replication factor {factor}, {count_noun(left, 'broker')} left to hold replicas",
            remedy="add brokers, drain fewer, or lower the replication factor",
        )


def blocked_racks(
    snapshot: ClusterSnapshot, policy: RackPolicy, problem: ReassignmentProblem, rows: Int64s
) -> Iterator[Conflict]:
    """Partitions whose missing replicas only fenced or excluded brokers could take."""
    if not len(rows):
        return
    blocking = _blocking_brokers(problem)
    ids = problem.rack_map.broker_ids[blocking].tolist()
    closed = policy.excluded_of(snapshot.brokers)
    cordoned = [int(broker.id) for broker in snapshot.brokers if broker.cordoned and broker.id in ids]
    excluded = [broker for broker in ids if broker in policy.excluded_brokers]
    fenced = [broker for broker in ids if broker not in closed]
    racks = ",".join(shown(rack) for rack in problem.rack_map.names(problem.rack_map.rack_codes[blocking]))
    why = [
        f"{noun_and_ids('broker', some)} {'is' if len(some) == 1 else 'are'} {state}"
        for some, state in ((fenced, "fenced"), (cordoned, "cordoned"), (excluded, "excluded"))
        if some
    ]
    ways = [f"bring {noun_and_ids('broker', fenced)} back"] * bool(fenced)
    ways += [f"uncordon {noun_and_ids('broker', cordoned)}"] * bool(cordoned)
    ways += [f"end the exclusion of {_ids(excluded)}"] * bool(excluded)
    yield conflict_of(
        snapshot,
        rows,
        f"partitions that need rack {racks}, whose {' and '.join(why)} and can receive nothing",
        remedy=f"{', '.join(ways)}, or --drain {_ids(ids)}",
    )


def _ids(brokers: Sequence[int]) -> str:
    return ",".join(map(str, brokers))


def _blocking_brokers(problem: ReassignmentProblem) -> Int64s:
    """The brokers of racks where none can receive; without such a rack, all brokers that cannot."""
    codes = problem.rack_map.rack_codes
    able = np.isin(codes, codes[problem.can_receive])
    whole_racks = np.flatnonzero(~problem.can_receive & ~able)
    return whole_racks if len(whole_racks) else np.flatnonzero(~problem.can_receive)


def missing_brokers(
    snapshot: ClusterSnapshot, problem: ReassignmentProblem, request: ReassignmentRequest
) -> Iterator[tuple[Int64s, Conflict]]:
    """Partitions with a replica on a broker that the cluster does not list and the request does not name.

    Before Kafka 4 a broker that restarts is not listed (KIP-1073): to copy its replicas elsewhere at once would be wrong.
    """
    if request.replace_missing:
        return
    now = snapshot.partitions
    listed = [int(broker.id) for broker in snapshot.brokers]
    staying = staying_replicas(now.replicas, now.removing_replicas)
    missing = (staying != NO_BROKER) & ~np.isin(staying, [*listed, *sorted(request.leaving)])
    # A partition without a leader is reported for that first, in without_leader.
    rows = np.flatnonzero(problem.chosen & any_in_row(missing) & ~problem.leaderless)
    if not len(rows):
        return
    brokers = np.unique(staying[rows][missing[rows]]).tolist()
    ids, they = ",".join(map(str, brokers)), "it is" if len(brokers) == 1 else "they are"
    yield (
        rows,
        conflict_of(
            snapshot,
            rows,
            f"{count_noun(len(rows), 'partition')} on {_broker_list(brokers)}, which the cluster does not list: before Kafka 4 that is also a broker that restarts",
            remedy=f"wait until {they} back; if {they} gone for good, add --drain {ids}, or --replace-missing-brokers",
            refused=True,
        ),
    )


def costs_safety(
    snapshot: ClusterSnapshot,
    policy: RackPolicy,
    request: ReassignmentRequest,
    refused: Sequence[tuple[Int64s, PlacementSafety]],
) -> Iterator[Conflict]:
    """Partitions that the request would leave less safe than they are. `refused`: their rows, and how safe they would be."""
    if not refused:
        return
    rows = np.concatenate([rows for rows, _ in refused])
    after = PlacementSafety(
        *(np.concatenate([getattr(safety, name) for _, safety in refused]) for name in ("racks", "left", "writable"))
    )
    cause = f"draining {','.join(map(str, sorted(request.leaving)))}" if request.leaving else "the request"
    ways = [
        *(["drain fewer brokers"] if request.leaving else []),
        *(["request more replicas"] if request.replication_factor is not None else []),
        "accept it with --allow-fewer-racks",
    ]
    yield conflict_of(
        snapshot,
        rows,
        f"{count_noun(len(rows), 'partition')} that {cause} would leave {words(safety_of_rows(snapshot, policy, rows), after)}",
        remedy=", or ".join(ways),
        refused=True,
    )


def broken_minimums(
    snapshot: ClusterSnapshot, policy: RackPolicy, problem: ReassignmentProblem, request: ReassignmentRequest
) -> Iterator[tuple[Int64s, Conflict]]:
    """Partitions that a drain or a lower factor would bring under a minimum they meet today: these are not touched."""
    required = requirements(snapshot.topics, policy).of(problem.rows.topic)
    if request.leaving:
        for selected, conflict in _too_few_racks(snapshot, problem, required, request):
            problem = replace(problem, chosen=without_rows(problem.chosen, selected))
            yield selected, conflict
    if request.replication_factor is not None:
        yield from _too_low_factor(snapshot, problem, required, request.replication_factor)


def _too_few_racks(
    snapshot: ClusterSnapshot, problem: ReassignmentProblem, required: Requirements, request: ReassignmentRequest
) -> Iterator[tuple[Int64s, Conflict]]:
    left = len(problem.rack_map.racks)
    before = len({broker.rack for broker in snapshot.brokers})
    held = any_in_row(np.isin(problem.rows.replicas, sorted(request.leaving)))
    broken = problem.chosen & held & (required.min_insync_racks > left) & (required.min_insync_racks <= before)
    for minimum in np.unique(required.min_insync_racks[broken]).tolist():
        selected = np.flatnonzero(broken & (required.min_insync_racks == minimum))
        yield (
            selected,
            conflict_of(
                snapshot,
                selected,
                f"min.insync.racks {minimum}, draining {','.join(map(str, sorted(request.leaving)))} leaves {count_noun(left, 'rack')}",
                remedy="drain fewer brokers, or lower min.insync.racks",
            ),
        )


def _too_low_factor(
    snapshot: ClusterSnapshot, problem: ReassignmentProblem, required: Requirements, factor: int
) -> Iterator[tuple[Int64s, Conflict]]:
    """A partition under both minimums is in one conflict that names both."""
    names = ("min.insync.replicas", "min.insync.racks")
    minimums = np.column_stack([required.min_insync_replicas, required.min_insync_racks]).astype(np.int64)
    broken = problem.chosen[:, None] & (minimums > factor) & (minimums <= problem.current_factor[:, None])
    values = np.where(broken, minimums, 0)
    for pair in np.unique(values[broken.any(axis=1)], axis=0)[::-1].tolist():
        selected = np.flatnonzero((values == pair).all(axis=1))
        named = [(name, value) for name, value in zip(names, pair, strict=True) if value]
        yield (
            selected,
            conflict_of(
                snapshot,
                selected,
                f"{' and '.join(f'{name} {value}' for name, value in named)}, the requested replication factor is {factor}",
                remedy=f"request {max(pair)} or more, or lower {' and '.join(name for name, _ in named)}",
            ),
        )


def without_leader(snapshot: ClusterSnapshot, rows: Int64s) -> Iterator[Conflict]:
    """Partitions that no new replica can copy from."""
    if not len(rows):
        return
    yield conflict_of(
        snapshot,
        rows,
        f"{count_noun(len(rows), 'partition')} without a leader, which a new replica cannot copy from",
        remedy=f"{_bring_back_in_sync(snapshot, rows)}; then plan again",
    )


def leaderless(snapshot: ClusterSnapshot, rows: Int64s) -> Iterator[str]:
    """A sentence about partitions that no plan can help: they have no leader, and their replicas need not move."""
    if len(rows):
        of = f"{of_topics(snapshot, rows)} {count_noun(len(rows), 'partition')} without a leader"
        yield f"{of}: {_bring_back_in_sync(snapshot, rows)}"


def _bring_back_in_sync(snapshot: ClusterSnapshot, rows: Int64s) -> str:
    """What brings these partitions back; what loses records comes last, and only if it is read that nothing in sync is up."""
    selected = snapshot.partitions.take(rows)
    up = [int(broker.id) for broker in snapshot.brokers if not broker.fenced]
    in_sync = np.unique(selected.isr[selected.isr != NO_BROKER]).tolist()
    failed = np.intersect1d(selected.offline_replicas, [broker for broker in in_sync if broker in up]).tolist()
    remedy = f"bring back a replica that was in sync{f' ({_broker_list(in_sync)})' if in_sync else ''}"
    if failed:
        remedy += f", which needs the disk of {_broker_list(failed)} repaired with what is on it"
    able_isr, able = (_able(selected, brokers, up) for brokers in (selected.isr, selected.replicas))
    if bool((~any_in_row(able_isr) & any_in_row(selected.isr != NO_BROKER) & any_in_row(able)).any()):
        lost = f"the {'disk' if len(in_sync) == 1 else 'disks'} of {_broker_list(in_sync)} {'is' if len(in_sync) == 1 else 'are'}"
        remedy += (
            f"; only if {lost} lost for good, an unclean election, which loses the records that the other replicas lack"
        )
    return remedy


def _able(rows: PartitionColumns, brokers: Int32s, up: Sequence[int]) -> Bools:
    """Which of these brokers' replicas can lead: neither down nor in a failed log directory. Shape as `brokers`."""
    return np.asarray(np.isin(brokers, up) & ~listed_in(brokers, rows.offline_replicas))


def _broker_list(brokers: list[int]) -> str:
    listed = ", ".join(map(str, brokers[:NAMED_MAX])) + (", …" if len(brokers) > NAMED_MAX else "")
    return f"{'broker' if len(brokers) == 1 else 'brokers'} {listed}"


def conflict_of(
    snapshot: ClusterSnapshot,
    rows: Int64s,
    reason: str,
    remedy: str,
    refused: bool = False,
) -> Conflict:
    """`reason` follows `topic t has`."""
    return Conflict(
        f"{of_topics(snapshot, rows)} {reason}", remedy, len(rows), refused, frozenset(_names(snapshot, rows))
    )


def of_topics(snapshot: ClusterSnapshot, rows: Int64s) -> str:
    """`3 topics (a, b, c) have`: the topics of these rows."""
    names = _names(snapshot, rows)
    listed = ", ".join(names[:NAMED_MAX]) + (", …" if len(names) > NAMED_MAX else "")
    return f"{count_noun(len(names), 'topic')} ({listed}) {'has' if len(names) == 1 else 'have'}"


def _names(snapshot: ClusterSnapshot, rows: Int64s) -> list[str]:
    return [str(snapshot.topics[code].name) for code in np.unique(snapshot.partitions.topic[rows]).tolist()]
