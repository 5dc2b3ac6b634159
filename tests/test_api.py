"""The public functions in a row, on the embedded cluster: what one returns, the next one takes. No file but the journal."""

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import pytest

from rackspan import api
from rackspan.cluster import EmbeddedCluster
from rackspan.errors import ClusterRequestFailed, ReassignmentStopped, UsageError
from rackspan.model import ClusterSnapshot
from rackspan.reassign import PartitionReassignment, Step

DRAINED = 1


@pytest.fixture(scope="module")
def embedded() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(racks=3, brokers=6) as cluster:
        yield cluster


@pytest.fixture
def cluster(embedded: EmbeddedCluster) -> api.Cluster:
    embedded.reset()
    embedded.create_topic("orders", 6, 3)
    return api.Cluster(embedded.bootstrap_servers, None, 30.0)


def read(cluster: api.Cluster) -> ClusterSnapshot:
    return api.live_cluster(cluster.bootstrap_servers, None, cluster.timeout_seconds).read().snapshot


def drain(snapshot: ClusterSnapshot, broker: int = DRAINED) -> api.ReassignmentPlan:
    return api.plan_reassignment(snapshot, request=api.ReassignmentRequest(drain=frozenset({broker})))


def placement(snapshot: ClusterSnapshot) -> dict[int, tuple[int, ...]]:
    return {row.partition: row.replicas for row in snapshot.partitions}


def test_a_plan_goes_from_the_planner_to_the_cluster_as_it_is(cluster: api.Cluster, tmp_path: Path) -> None:
    before = read(cluster)
    plan = drain(before)
    assert plan.moves > 0
    assert not any(one.state == "done" for one in api.verify_reassignment(before, plan))
    assert not [one for one in api.lint_reassignment(before, api.RackPolicy(), plan) if one.severity == "violation"]
    blind = replace(before, partial=("reassignments under way: unknown, this user needs Describe on Cluster",))
    for judge in (lambda: api.verify_reassignment(blind, plan), lambda: api.reassignments_in_flight(blind)):
        with pytest.raises(ClusterRequestFailed, match=r"what is not known to be at rest is not done$"):
            judge()
    assert api.check_reassignment(before, plan, tmp_path / "journal").step == plan.steps[0]

    updates = list(api.carry_out(cluster, plan, tmp_path / "journal"))

    assert updates[-1].state.completed
    after = read(cluster)
    assert all(one.state == "done" for one in api.verify_reassignment(after, plan))
    assert placement(after) == placement(api.snapshot_after(before, plan))
    assert not any(DRAINED in replicas for replicas in placement(after).values())


def test_a_plan_that_was_carried_out_is_undone_and_cancelled_as_it_is(cluster: api.Cluster, tmp_path: Path) -> None:
    before = read(cluster)
    plan, journal = drain(before), tmp_path / "journal"
    list(api.carry_out(cluster, plan, journal))
    list(api.cancel_reassignment(cluster, plan, journal))
    list(api.carry_out(cluster, plan, journal, direction=api.Direction.ORIGINALS))
    assert placement(read(cluster)) == placement(before)


def test_a_plan_read_from_its_file_resumes_the_run_of_the_plan_in_memory(cluster: api.Cluster, tmp_path: Path) -> None:
    plan = drain(read(cluster))
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(api.plan_document(plan)))
    from_file = api.read_plan(file.read_bytes())
    assert from_file == plan
    started = api.carry_out(cluster, plan, tmp_path / "journal")
    next(started)
    started.close()  # type: ignore[attr-defined]
    list(api.carry_out(cluster, from_file, tmp_path / "journal"))
    assert all(one.state == "done" for one in api.verify_reassignment(read(cluster), plan))


def test_a_plan_for_another_cluster_is_refused(cluster: api.Cluster, tmp_path: Path) -> None:
    snapshot = read(cluster)
    plan = drain(replace(snapshot, cluster_id="another"))
    with pytest.raises(ReassignmentStopped, match=f"this is cluster {snapshot.cluster_id}, the plan is for another"):
        list(api.carry_out(cluster, plan, tmp_path / "journal"))
    with pytest.raises(ReassignmentStopped, match="the plan is for another"):
        api.check_reassignment(snapshot, plan, tmp_path / "journal")
    with pytest.raises(UsageError, match="the plan is for cluster another; name one of them"):
        plan.for_cluster(str(snapshot.cluster_id))
    assert not (tmp_path / "journal").exists()
    assert placement(read(cluster)) == placement(snapshot)


def test_a_plan_that_names_no_cluster_is_refused_until_one_is_named(cluster: api.Cluster, tmp_path: Path) -> None:
    snapshot = read(cluster)
    plan = drain(replace(snapshot, cluster_id=None))
    with pytest.raises(UsageError, match="the plan names no cluster; confirm the one that is meant"):
        list(api.carry_out(cluster, plan, tmp_path / "journal"))
    assert placement(read(cluster)) == placement(snapshot)
    list(api.carry_out(cluster, plan.for_cluster(str(snapshot.cluster_id)), tmp_path / "journal"))
    assert all(one.state == "done" for one in api.verify_reassignment(read(cluster), plan))


def test_a_plan_whose_replicas_moved_meanwhile_is_refused(cluster: api.Cluster, tmp_path: Path) -> None:
    outdated = drain(read(cluster))
    first = outdated.steps[0].partitions[0]
    other = next(
        three for three in permutations(range(1, 7), 3) if set(three) not in (set(first.undo), set(first.replicas))
    )
    by_hand = Step.of(1, "by hand", [PartitionReassignment(first.topic, first.partition, other)])
    list(api.carry_out(cluster, api.ReassignmentPlan(outdated.cluster_id, {}, (by_hand,)), tmp_path / "other"))
    moved = placement(read(cluster))
    assert moved[first.partition] == other
    with pytest.raises(ReassignmentStopped, match="make a new plan with rackspan reassign plan"):
        list(api.carry_out(cluster, outdated, tmp_path / "journal"))
    assert placement(read(cluster)) == moved


def test_a_plan_without_reassignments_changes_nothing_and_leaves_no_journal(
    cluster: api.Cluster, tmp_path: Path
) -> None:
    plan = api.plan_reassignment(read(cluster), request=api.ReassignmentRequest(reorder_leaders=False))
    assert (len(plan), plan.moves) == (0, 0)
    assert list(api.carry_out(cluster, plan, tmp_path / "journal")) == []
    assert not (tmp_path / "journal").exists()
