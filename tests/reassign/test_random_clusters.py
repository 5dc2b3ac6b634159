"""Remedies and plans of random clusters against plain loops: nothing that is proposed breaks what held.

`RACKSPAN_SOAK=1 pytest -s -m "" tests/reassign/test_random_clusters.py` runs 20,000 and prints how many plans there were.
"""

import re
from collections import Counter
from collections.abc import Iterator
from random import Random

import pytest

from rackspan import api
from rackspan.audit import RackPolicy, Severity
from rackspan.errors import UsageError
from rackspan.model import ClusterSnapshot, UnrackedPolicy
from rackspan.model.partitions import Partition
from rackspan.reassign import ReassignmentPlan, ReassignmentRequest
from tests.depth import at_depth
from tests.random_clusters.values import drawn

CLUSTERS = at_depth(check=30, test=120, soak=20_000)


def held_racks(snapshot: ClusterSnapshot, policy: RackPolicy) -> dict[int, str | None]:
    """The rack that each broker counts in, None for none."""
    unnamed = {UnrackedPolicy.SHARED: "unnamed", UnrackedPolicy.IGNORE: None}
    return {
        int(one.id): one.rack if one.rack is not None else unnamed.get(policy.unracked, f"only {one.id}")
        for one in snapshot.brokers
    }


def name(snapshot: ClusterSnapshot, row: Partition) -> str:
    return f"{snapshot.topics[row.topic].name}-{row.partition}"


def of_remedies(snapshot: ClusterSnapshot, policy: RackPolicy) -> Iterator[str]:
    """Plans for one partition that take replicas from another in which nothing is wrong."""
    found = api.audit(snapshot, policy).findings
    wrong = {(one.topic, one.partition) for one in found if one.severity is Severity.VIOLATION}
    for one in found:
        factor = re.search(r"reassign plan --topic (\S+) --replication-factor (\d+)", one.remedy)
        if factor is None or one.constraint == "mixed-replication-factors":
            continue
        for row in snapshot.partitions:
            sound = (factor[1], row.partition) not in wrong and not row.removing_replicas
            if snapshot.topics[row.topic].name == factor[1] and sound and len(row.replicas) > int(factor[2]):
                yield f"{one.constraint} of {one.topic}-{one.partition}: {one.remedy} takes a replica of {row}"


def of_plan(snapshot: ClusterSnapshot, policy: RackPolicy, rng: Random) -> Iterator[str | ReassignmentPlan]:
    """What a plan and its lint do not say of the state on the way, of leaders, and of replicas in sync."""
    ids = [int(one.id) for one in snapshot.brokers]
    request = ReassignmentRequest(
        drain=frozenset(rng.sample(ids, 1)) if rng.random() < 0.3 and len(ids) > 1 else frozenset(),
        replication_factor=rng.randint(1, 4) if rng.random() < 0.3 else None,
        balance=rng.random() < 0.3,
        allow_fewer_racks=rng.random() < 0.5,
    )
    planned = api.plan_reassignment(snapshot, policy, request)
    yield planned
    rows = {name(snapshot, row): row for row in snapshot.partitions}
    racks, refused = held_racks(snapshot, policy), set()
    for step in planned.steps:
        in_step = set()
        for one in step.partitions:
            row = rows[one.name]
            value = int(snapshot.topics[row.topic].config.get("min.insync.replicas", "1"))
            there = len({*row.replicas, *one.replicas})
            if row.leader != -1 and min(value, len(row.replicas)) <= len(row.isr) < min(value, there):
                in_step.add(one.name)
            kept = set(row.replicas) & set(one.replicas)
            stays = set(row.isr) - request.leaving
            places = {racks.get(laggard) for laggard in kept} | {None}
            if kept and not kept & set(row.isr) and any(racks.get(last) in places for last in stays & racks.keys()):
                yield f"{one}: drops the last in sync of {row}"
        if bool(in_step) != ("acks=all is refused until" in step.reason):
            yield f"step {step.number}, {step.reason}: refused midway are {sorted(in_step)}"
        refused |= in_step
    found = api.lint_reassignment(snapshot, policy, planned, request)
    reported = {f"{one.topic}-{one.partition}" for one in found if one.constraint == "plan-intermediate-refuses-writes"}
    if reported != refused:
        yield f"lint reports {sorted(reported)}, refused midway are {sorted(refused)}"
    offline = any(row.leader == -1 and not row.adding_replicas and not row.removing_replicas for row in rows.values())
    if offline and not (planned.infeasible or (planned.cost and planned.cost.leaderless)):
        yield "partitions without a leader are not mentioned"
    for conflict in planned.infeasible:
        if "min.insync.racks" in conflict.reason and "draining" in conflict.reason:
            touched = sum(bool(request.leaving & set(row.replicas)) for row in rows.values())
            if conflict.partitions > touched:
                yield f"{conflict.reason}: {conflict.partitions} partitions, {touched} are on brokers to drain"


def contradictions(seed: int) -> tuple[list[str], int]:
    """What is wrong with one cluster, and how many of its plans were judged."""
    rng = Random(seed)
    snapshot, policy = drawn(rng)
    try:
        parts = [*of_remedies(snapshot, policy), *of_plan(snapshot, policy, rng)]
    except UsageError:
        return [], 0
    return [f"contradictions({seed}): {one}" for one in parts if isinstance(one, str)], 1


@pytest.mark.slow
def test_nothing_that_is_proposed_for_a_random_cluster_breaks_what_held() -> None:
    count, found = Counter[str](), list[str]()
    for seed in range(CLUSTERS):
        wrong, plans = contradictions(seed)
        found += wrong
        count += Counter(clusters=1, plans=plans, contradictions=len(wrong))
    print(dict(count))
    assert not found, "\n".join(found[:20])
