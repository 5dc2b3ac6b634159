"""A proposal as a file: read back as it was written, and refused where it is damaged or no longer fits the cluster."""

import json
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest

from rackspan.errors import UsageError
from rackspan.model import BrokerId, ClusterSnapshot
from rackspan.placement.exclusion import Exclusion
from rackspan.placement.new_partitions import PlacerChoice, Proposal, more_partitions, new_topic
from rackspan.placement.proposal_format import (
    PlacementPlan,
    placement_plan_document,
    planned_proposal,
    proposal_document,
    read_placement_plan,
)
from tests.placement.snapshots import snapshot_of
from tests.placement.test_new_partitions import brokers_in

ROWS = np.array([[0, 1], [0, 1], [0, 2]], dtype=np.int32)
CLUSTER = replace(snapshot_of(brokers_in("a", "b", "c", "a"), ROWS), cluster_id="c1")
DAMAGED = "make it again with --out"


def proposed(snapshot: ClusterSnapshot = CLUSTER, existing: bool = False) -> Proposal:
    if existing:
        return more_partitions(snapshot, "placed", 5, PlacerChoice(), Random(1))
    return new_topic(snapshot, "orders", 2, 2, PlacerChoice(), Random(1))


def written(proposal: Proposal, **changes: Any) -> bytes:
    document = {**placement_plan_document(proposal, CLUSTER, {"retention.ms": "1"}), **changes}
    return json.dumps({key: value for key, value in document.items() if value != "left out"}).encode()


@pytest.mark.parametrize("existing", [False, True])
def test_a_proposal_is_made_as_it_was_written(existing: bool) -> None:
    proposal = proposed(existing=existing)
    plan = read_placement_plan(written(proposal))
    assert (plan.topic, plan.cluster_id, plan.start_partition) == (proposal.topic, "c1", 3 if existing else 0)
    assert (plan.configs, plan.by_rack) == ({"retention.ms": "1"}, True)
    again = planned_proposal(CLUSTER, plan, Exclusion(), new_topic=not existing)
    assert again.assignment.replicas.tolist() == proposal.assignment.replicas.tolist()
    assert proposal_document(again, applied=False) == proposal_document(proposal, applied=False)


def test_a_document_counts_the_new_partitions_alone_and_the_whole_cluster() -> None:
    proposal = proposed()
    document = proposal_document(proposal, applied=True)
    rows = proposal.assignment.replicas
    new, every = (np.bincount(held.ravel(), minlength=4) for held in (rows, np.concatenate([rows, ROWS])))
    led = np.bincount(np.concatenate([rows, ROWS])[:, 0], minlength=4)
    assert (document["topic"], document["applied"]) == ("orders", True)
    assert document["assignments"] == {"0": rows[0].tolist(), "1": rows[1].tolist()}
    assert document["replicas"] == {"min": new.min(), "max": new.max(), "bound": 1}
    assert document["cluster"] == {
        "leaders": {"min": led.min(), "max": led.max()},
        "replicas": {"min": every.min(), "max": every.max(), "bound": 3},
    }


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"version": 2}, "not a plan of rackspan place create or extend"),
        ({"assignments": "left out"}, "not a plan of rackspan place create or extend"),
        ({"topic": 7}, "plan: topic is 7, not a string"),
        ({"start_partition": -1}, "start_partition is -1, outside 0 to 2147483647"),
        ({"start_partition": True}, "start_partition is true, not a whole number"),
        ({"cluster_id": 7}, "cluster_id is 7, not a string"),
        ({"config": ["a"]}, 'config is ["a"], not an object'),
        ({"config": {"a": 1}}, "config: a is 1, not a string"),
        ({"assignments": {}}, "assignments is empty"),
        ({"assignments": {"0": [0], "2": [1]}}, "does not hold partitions 0 to 1"),
        ({"assignments": {"0": [0, 0]}}, "partition 0: [0, 0] names a broker twice"),
        ({"assignments": {"0": []}}, "assignments: 0 is empty"),
        ({"assignments": {"0": [True]}}, "assignments: 0[0] is true, not a whole number"),
        ({"assignments": {"0": [-1]}}, "assignments: 0[0] is -1, outside 0 to 2147483647"),
        ({"assignments": {"0": [2**31]}}, "assignments: 0[0] is 2147483648, outside 0 to"),
        ({"assignments": {"0": [0, 1], "1": [0]}}, "partition 1 has 1 replica, partition 0 2"),
    ],
)
def test_a_damaged_file_is_refused_with_what_to_do(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError) as refused:
        read_placement_plan(written(proposed(), **changes))
    assert words in str(refused.value)
    assert str(refused.value).endswith(DAMAGED)


def test_what_a_file_may_leave_out_has_its_default() -> None:
    plan = read_placement_plan(written(proposed(), config="left out", by_rack="left out", cluster_id=None))
    assert (plan.configs, plan.by_rack, plan.cluster_id) == ({}, True, None)


def plan_of(start: int, *rows: list[int], topic: str = "placed", cluster_id: str | None = "c1") -> PlacementPlan:
    listed = {str(start + at): row for at, row in enumerate(rows)}
    document = {"version": 1, "topic": topic, "cluster_id": cluster_id, "start_partition": start, "assignments": listed}
    return read_placement_plan(json.dumps(document).encode())


@pytest.mark.parametrize(
    ("plan", "new_topic", "words"),
    [
        (plan_of(0, [0, 1], topic="new"), False, "the plan is one of rackspan place create"),
        (plan_of(3, [0, 1]), True, "the plan is one of rackspan place extend"),
        (plan_of(3, [0, 1], cluster_id="c2"), False, "the plan is for cluster c2, and this is c1"),
        (plan_of(0, [0, 1]), True, "placed"),
        (plan_of(4, [0, 1]), False, "has 3 partitions, and the plan begins at 4"),
        (plan_of(3, [0, 1, 2]), False, "has 2 replicas a partition, and the plan 3"),
        (plan_of(3, [0, 3]), False, "broker 3, which is excluded"),
        (plan_of(3, [0, 9]), False, "broker 9, which is gone;"),
        (plan_of(3, [2, 0]), False, "has broker 2 lead, which is fenced"),
    ],
)
def test_a_plan_that_does_not_fit_the_cluster_is_refused(plan: PlacementPlan, new_topic: bool, words: str) -> None:
    fenced = tuple(replace(one, fenced=one.id == 2) for one in CLUSTER.brokers)
    with pytest.raises(UsageError) as refused:
        planned_proposal(
            replace(CLUSTER, brokers=fenced), plan, Exclusion(frozenset({BrokerId(3)})), new_topic=new_topic
        )
    assert words in str(refused.value)


def test_a_plan_without_a_cluster_id_fits_any_cluster() -> None:
    plan = plan_of(3, [0, 2], cluster_id=None)
    assert planned_proposal(CLUSTER, plan, Exclusion(), new_topic=False).start_partition == 3
