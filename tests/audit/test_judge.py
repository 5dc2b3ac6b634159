from hypothesis import given

from rackspan.audit import RackPolicy, Severity, audit, outage
from rackspan.audit.constraints.partitions import PARTITION_CONSTRAINTS
from rackspan.audit.goals import GOALS
from rackspan.model import ClusterSnapshot
from tests.audit import brute_force
from tests.strategies import policies, snapshots


@given(snapshots(), policies())
def test_the_columns_find_what_plain_loops_find(snapshot: ClusterSnapshot, policy: RackPolicy) -> None:
    found = [one for one in audit(snapshot, policy).findings if one.partition is not None]
    keys = [(one.constraint, one.topic, one.partition) for one in found]
    assert sorted(keys) == sorted(brute_force.partition_keys(brute_force.document(snapshot), policy))


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


@given(snapshots(), policies())
def test_an_audit_is_clean_exactly_when_it_names_no_violation(snapshot: ClusterSnapshot, policy: RackPolicy) -> None:
    judged = audit(snapshot, policy)
    assert judged.clean == (Severity.VIOLATION not in {finding.severity for finding in judged.findings})


@given(snapshots(), policies())
def test_losing_two_racks_is_never_better_than_losing_one_of_them(
    snapshot: ClusterSnapshot, policy: RackPolicy
) -> None:
    _, singles = outage(snapshot, policy)
    _, pairs = outage(snapshot, policy, pairs=True)
    offline = {loss.racks: loss.total("offline") for loss in singles}
    for pair in pairs:
        assert pair.total("offline") >= max(offline[pair.racks[:1]], offline[pair.racks[1:]])
