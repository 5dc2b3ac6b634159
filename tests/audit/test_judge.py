from hypothesis import given

from rackspan.audit import RackPolicy, audit, outage
from rackspan.audit.constraints.partitions import PARTITION_CONSTRAINTS
from rackspan.audit.goals import GOALS
from rackspan.model import ClusterSnapshot
from tests.audit import brute_force
from tests.strategies import policies, snapshots


@given(snapshots(), policies())
def test_the_columns_find_what_plain_loops_find(snapshot: ClusterSnapshot, policy: RackPolicy) -> None:
    cluster, judged = brute_force.document(snapshot), audit(snapshot, policy)
    goals = {goal.name for goal in GOALS}
    found = [one for one in judged.findings if one.constraint not in goals]
    of_partitions = [
        ((one.constraint, one.topic, one.partition), one.severity) for one in found if one.partition is not None
    ]
    wanted = {key: brute_force.severity(cluster, policy, key) for key in brute_force.partition_keys(cluster, policy)}
    assert sorted(of_partitions) == sorted(wanted.items())
    of_cluster = sorted((one.constraint, one.severity) for one in found if one.partition is None)
    assert of_cluster == sorted(brute_force.cluster_findings(cluster, policy))
    assert judged.clean == ("violation" not in {severity for _, severity in [*wanted.items(), *of_cluster]})


@given(snapshots(), policies())
def test_a_loss_leaves_what_an_election_step_by_step_leaves(snapshot: ClusterSnapshot, policy: RackPolicy) -> None:
    cluster = brute_force.document(snapshot)
    _, losses = outage(snapshot, policy)
    assert [loss.racks[0] for loss in losses] == brute_force.all_racks(cluster, policy)
    for loss in losses:
        expected = brute_force.after_loss(cluster, policy, set(loss.racks))
        states = ("offline", "needs_unclean_election", "under_min_isr", "under_min_racks")
        counted = {t.topic: {state: n for state in states if (n := getattr(t, state))} for t in loss.topics}
        assert counted == expected["topics"]
        assert loss.leader_surge == expected["surge"]
        assert loss.quorum_lost == brute_force.quorum_lost(cluster, policy, set(loss.racks))


@given(snapshots(), policies())
def test_every_finding_says_why_and_what_next_in_one_line(snapshot: ClusterSnapshot, policy: RackPolicy) -> None:
    names = {one.name for one in PARTITION_CONSTRAINTS} | {goal.name for goal in GOALS}
    for finding in audit(snapshot, policy).findings:
        assert finding.constraint in names | {"unracked-broker", "controller-quorum-spread", "fenced-broker"}
        assert finding.reason
        assert finding.remedy
        assert "\n" not in finding.reason + finding.remedy
