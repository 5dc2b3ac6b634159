import os
import tomllib
from collections import Counter
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackspan.audit import RackPolicy, Severity, audit, outage, rack_losses, snapshot_batch
from rackspan.audit.constraints.cluster import partial_racks
from rackspan.audit.constraints.partitions import PARTITION_CONSTRAINTS
from rackspan.audit.goals import GOALS
from rackspan.audit.policy import Survive
from rackspan.model import (
    Broker,
    BrokerId,
    ClusterSnapshot,
    Controller,
    RackId,
    Topic,
    TopicName,
    UnrackedPolicy,
    columns,
)
from tests.audit import brute_force
from tests.random_clusters.values import drawn
from tests.snapshots import of_one_topic
from tests.strategies import policies, with_known_controllers


@pytest.mark.slow
@given(with_known_controllers(), policies())
def test_the_columns_find_what_plain_loops_find(snapshot: ClusterSnapshot, policy: RackPolicy) -> None:
    findings_agree(snapshot, policy)


def findings_agree(snapshot: ClusterSnapshot, policy: RackPolicy) -> None:
    cluster, judged = brute_force.document(snapshot), audit(snapshot, policy)
    goals = {goal.name for goal in GOALS}
    found = [one for one in judged.findings if one.constraint not in goals]
    of_partitions = [
        ((one.constraint, one.topic, one.partition), one.severity) for one in found if one.partition is not None
    ]
    wanted = {key: brute_force.severity(cluster, policy, key) for key in brute_force.partition_keys(cluster, policy)}
    assert sorted(of_partitions) == sorted(wanted.items())
    of_topics = sorted((one.topic, one.constraint) for one in found if one.partition is None and one.topic is not None)
    assert of_topics == sorted(brute_force.topic_warnings(cluster, policy))
    of_cluster = sorted((one.constraint, one.severity) for one in found if one.partition is None and one.topic is None)
    assert of_cluster == sorted(brute_force.cluster_findings(cluster, policy))
    assert judged.clean == ("violation" not in {severity for _, severity in [*wanted.items(), *of_cluster]})


@given(with_known_controllers(), policies())
def test_a_loss_leaves_what_an_election_step_by_step_leaves(snapshot: ClusterSnapshot, policy: RackPolicy) -> None:
    losses_agree(snapshot, policy)


def losses_agree(snapshot: ClusterSnapshot, policy: RackPolicy) -> None:
    cluster = brute_force.document(snapshot)
    _, losses = outage(snapshot, policy)
    assert [loss.racks[0] for loss in losses] == brute_force.all_racks(cluster, policy)
    for loss in losses:
        expected = brute_force.after_loss(cluster, policy, set(loss.racks))
        states = ("offline", "needs_unclean_election", "under_min_isr", "under_min_racks", "after_reassignment")
        counted = {t.topic: {state: n for state in states if (n := getattr(t, state))} for t in loss.topics}
        assert counted == expected["topics"]
        assert loss.leader_surge == expected["surge"]
        assert loss.quorum_lost == brute_force.quorum_lost(cluster, policy, set(loss.racks))


def verdicts_agree(snapshot: ClusterSnapshot, policy: RackPolicy) -> None:
    """Audit's exit code and last line, and outage's: none is green where another, or plain loops, are not."""
    judged, (_, losses) = audit(snapshot, policy), outage(snapshot, policy)
    assert [one.survived for one in judged.losses] == [one.survived for one in losses]
    harmed = [one for one in losses if not one.as_required]
    if policy.survive is Survive.RACK and not policy.topic_survive:
        assert not (judged.clean and harmed)
    if judged.survives_any_rack:
        assert all(one.survived for one in losses)
        broken = {one.constraint for one in judged.findings if one.severity is Severity.VIOLATION}
        assert not broken & {
            "unracked-broker",
            "rack-names-alike",
            "survives-rack-loss",
            "accepts-writes-after-rack-loss",
        }


def random_clusters(first: int, count: int) -> Counter[str]:
    """Audit and outage against plain loops. Errors: AssertionError, naming the seed."""
    verdicts = Counter[str]()
    for seed in range(first, first + count):
        snapshot, policy = drawn(Random(seed))
        try:
            findings_agree(snapshot, policy)
            losses_agree(snapshot, policy)
            verdicts_agree(snapshot, policy)
        except AssertionError as error:
            raise AssertionError(f"random_clusters({seed}, 1): {error}") from error
        verdicts["clean" if audit(snapshot, policy).clean else "violations"] += 1
    return verdicts


@pytest.mark.slow
def test_random_clusters_are_judged_as_plain_loops_judge_them() -> None:
    verdicts = random_clusters(0, 300)
    assert min(verdicts["clean"], verdicts["violations"]) >= 6


@pytest.mark.soak
@pytest.mark.skipif("RACKSPAN_SOAK" not in os.environ, reason="RACKSPAN_SOAK=1 runs it")
def test_twenty_thousand_random_clusters_are_judged_as_plain_loops_judge_them() -> None:
    assert random_clusters(200_000, 20_000).total() == 20_000


@pytest.mark.slow
@given(with_known_controllers(), policies())
def test_every_finding_says_why_and_what_next_in_one_line(snapshot: ClusterSnapshot, policy: RackPolicy) -> None:
    names = {one.name for one in PARTITION_CONSTRAINTS} | {goal.name for goal in GOALS}
    for finding in audit(snapshot, policy).findings:
        assert finding.constraint in names | {
            "unracked-broker",
            "rack-names-alike",
            "mixed-replication-factors",
            "min-insync-replicas-one",
            "min-insync-replicas-unknown",
            "unclean-leader-election",
            "throttle-left-behind",
            "controller-quorum-spread",
            "dead-controller",
            "failed-log-dir",
            "fenced-broker",
        }
        assert finding.reason
        assert finding.remedy
        assert "\n" not in finding.reason + finding.remedy


def test_controllers_of_unknown_rack_leave_the_quorum_in_doubt_even_where_no_rack_is_counted() -> None:
    """Three voters without a rack may stand together wherever that is; the brokers' racks count for nothing here."""
    voters = tuple(Controller(BrokerId(voter)) for voter in (101, 102, 103))
    brokers = (Broker(BrokerId(1), None, host="broker-1.example"),)
    none = columns(topic=[], partition=[], leader=[], replicas=[], isr=[])
    snapshot = ClusterSnapshot(brokers=brokers, topics=(), partitions=none, controllers=voters)
    found = audit(snapshot, RackPolicy(unracked=UnrackedPolicy.IGNORE)).findings
    (doubt,) = (one for one in found if one.constraint == "controller-quorum-spread")
    assert doubt.severity is Severity.VIOLATION
    assert "the racks of controllers 101,102,103 are not known" in doubt.reason


def test_a_rack_that_can_acknowledge_alone_is_found_where_the_replicas_are_in_exactly_the_racks_required() -> None:
    """Two of three replicas in rack a, min.insync.racks 2 and min.insync.replicas 2: only 3 would force both racks."""
    brokers = tuple(Broker(BrokerId(one), RackId(rack)) for one, rack in ((1, "a"), (2, "a"), (3, "b")))

    def found(min_insync_replicas: str) -> list[str]:
        config = {"min.insync.racks": "2", "min.insync.replicas": min_insync_replicas}
        row = columns(topic=[0], partition=[0], leader=[1], replicas=[[1, 2, 3]], isr=[[1, 2, 3]])
        topic = Topic(TopicName("orders"), config=config)
        snapshot = ClusterSnapshot(brokers=brokers, topics=(topic,), partitions=row)
        findings = audit(snapshot, RackPolicy(survive=Survive.NONE)).findings
        return [one.reason for one in findings if one.constraint == "min-insync-replicas-forces-racks"]

    (reason,) = found("2")
    assert reason.startswith("min.insync.replicas 2 lets 1 rack alone acknowledge")
    assert found("3") == []


def test_where_no_replica_counts_in_a_rack_any_rack_may_be_the_one_that_is_lost() -> None:
    snapshot = of_one_topic({1: "a", 2: "b", 3: None, 4: None}, [[3, 4]])
    found = audit(snapshot, RackPolicy(unracked=UnrackedPolicy.IGNORE)).findings
    assert [one.reason for one in found if one.constraint == "survives-rack-loss"] == [
        "the loss of any rack takes it offline (rack unknown: 3,4)"
    ]


def test_who_is_out_of_sync_is_named_and_nothing_more_where_nothing_is_copied() -> None:
    brokers = tuple(Broker(BrokerId(one), RackId(rack)) for one, rack in ((1, "a"), (2, "b"), (3, "c")))
    row = columns(topic=[0], partition=[0], leader=[1], replicas=[[1, 2, 3]], isr=[[1, 2]])
    snapshot = ClusterSnapshot(brokers=brokers, topics=(Topic(TopicName("orders")),), partitions=row)
    (reason,) = (one.reason for one in audit(snapshot, RackPolicy()).findings if one.constraint == "under-replicated")
    assert reason == "2 of 3 replicas in sync; out of sync: c: 3"


@pytest.mark.parametrize(
    ("moving", "assumed"),
    [
        (1, "1 partition being reassigned judged now and by its target"),
        (2, "2 partitions being reassigned judged now and by their target"),
    ],
)
def test_reassignments_in_flight_are_counted_among_what_is_assumed(moving: int, assumed: str) -> None:
    more = {"adding_replicas": [[3]] * moving + [[]]}
    replicas = [[1, 2, 3]] * moving + [[1, 2]]
    config = {"min.insync.replicas": "1"}
    snapshot = of_one_topic({1: "a", 2: "b", 3: "c"}, replicas, isr=[[1, 2]] * (moving + 1), more=more, config=config)
    assert audit(snapshot, RackPolicy()).assumed == (assumed,)


def test_topics_whose_min_insync_replicas_is_unknown_are_counted_among_what_is_assumed() -> None:
    """With 3 of 3 required the loss of any rack would stop acks=all, and it is not known to be 1."""
    snapshot = of_one_topic({1: "a", 2: "b", 3: "c"}, [[1, 2, 3], [2, 3, 1]])
    assert audit(snapshot, RackPolicy()).assumed == ("unknown min.insync.replicas of 1 topic counted as 1",)
    known = of_one_topic({1: "a", 2: "b", 3: "c"}, [[1, 2, 3]], config={"min.insync.replicas": "1"})
    assert audit(known, RackPolicy()).assumed == ()


def test_what_only_a_warning_says_leaves_the_loss_of_a_rack_certain() -> None:
    """Brokers without a rack, where none has one: the loss of the unnamed rack is judged, and it is not survived."""
    unracked = of_one_topic({1: None, 2: None}, [[1, 2]])
    judged = audit(unracked, RackPolicy(survive=Survive.NONE))
    assert [(one.constraint, one.severity) for one in judged.findings if one.constraint == "unracked-broker"] == [
        ("unracked-broker", Severity.WARNING)
    ] * 2
    assert judged.left_open_by == ()
    mixed = audit(of_one_topic({1: "a", 2: "b", 3: None}, [[1, 2]]), RackPolicy(survive=Survive.NONE))
    assert mixed.left_open_by == ("unracked-broker",)


def with_controllers(snapshot: ClusterSnapshot, *controllers: Controller) -> ClusterSnapshot:
    return replace(snapshot, controllers=controllers)


def remedy_of(constraint: str, snapshot: ClusterSnapshot) -> tuple[str, str]:
    (found,) = (one for one in audit(snapshot, RackPolicy()).findings if one.constraint == constraint)
    return found.reason, found.remedy


def test_a_rack_is_spelt_alike_on_brokers_and_on_controllers_that_are_none() -> None:
    """Controller 3 is in the process of broker 3, whose rack is its own."""
    spelt = of_one_topic({1: "az1", 2: "az1", 3: "AZ1"}, [[1, 2]])
    names = [(3, "AZ1"), (101, "Az1"), (102, "az1 "), (103, "az1")]
    controllers = [Controller(BrokerId(voter), RackId(rack)) for voter, rack in names]
    _, remedy = remedy_of("rack-names-alike", with_controllers(spelt, *controllers))
    different = "or where they are different racks, write above all tables of rackspan.toml: racks.different"
    assert remedy == (
        "set broker.rack to 'az1' on broker 3 and restart; name the rack of controllers 101,102 'az1' in rackspan.toml, "
        f'{different} = ["AZ1", "Az1", "az1", "az1 "]'
    )
    of_one = of_one_topic({1: "az1", 2: "az1"}, [[1, 2]])
    _, remedy = remedy_of("rack-names-alike", with_controllers(of_one, controllers[1]))
    assert remedy == f'name the rack of controller 101 \'az1\' in rackspan.toml, {different} = ["Az1", "az1"]'


def test_the_line_that_says_that_racks_are_different_can_be_copied_whatever_their_names() -> None:
    names = ['a"b\\', 'A"b\\', "e\u0301", "\u00e9", "x\u00a0", "X", "\U0001f600", "\U0001f600 "]
    found = audit(of_one_topic(dict(enumerate(names)), [[1, 2]]), RackPolicy()).findings
    lines = [one.remedy.split("rackspan.toml: ")[1] for one in found if one.constraint == "rack-names-alike"]
    assert all(line.isascii() for line in lines)
    assert {frozenset(tomllib.loads(line)["racks"]["different"]) for line in lines} == {
        frozenset(names[at : at + 2]) for at in range(0, 8, 2)
    }


def test_racks_that_the_policy_says_are_different_are_no_finding_and_the_verdict_rests_on_its_word() -> None:
    snapshot = of_one_topic({1: "az1", 2: "AZ1", 3: "az2"}, [[1, 2]], config={"min.insync.replicas": "1"})
    policy = RackPolicy(different_racks=frozenset({RackId("az1"), RackId("AZ1")}), different_racks_by="a file")
    judged = audit(snapshot, policy)
    assert "rack-names-alike" not in {one.constraint for one in judged.findings}
    assert judged.survives_any_rack
    assert judged.assumed == ("racks 'az1', 'AZ1' count as 2 on the word of a file",)
    one_of_them = audit(snapshot, replace(policy, different_racks=frozenset({RackId("az1")})))
    assert "rack-names-alike" in {one.constraint for one in one_of_them.findings}


def test_dead_controllers_are_named_in_order_whatever_order_a_set_has_them_in() -> None:
    """A set of 8 and 1 has 8 first."""
    voters = (Controller(BrokerId(voter), RackId("a"), alive=voter == 3) for voter in (8, 1, 3))
    reason, remedy = remedy_of(
        "controller-quorum-spread", with_controllers(of_one_topic({11: "a", 12: "b"}, [[11, 12]]), *voters)
    )
    assert reason == (
        "controllers 1,8 are down, 1 of 3 voters left is no majority: no leader is elected and no ISR changes"
    )
    assert remedy == "bring back controllers 1,8"


def test_lost_and_unknown_controllers_are_listed_in_order() -> None:
    voters = [
        *(Controller(BrokerId(voter), RackId("a")) for voter in (8, 1)),
        *(Controller(BrokerId(voter)) for voter in (9, 2)),
        Controller(BrokerId(5), RackId("b")),
    ]
    _, losses = outage(with_controllers(of_one_topic({11: "a", 12: "b"}, [[11, 12]]), *voters), RackPolicy())
    assert [(one.quorum.lost, one.quorum.unknown_rack) for one in losses if one.quorum] == [
        ((1, 8), (2, 9)),
        ((5,), (2, 9)),
    ]


def test_dead_controllers_and_fenced_brokers_are_warned_of_with_their_rack_if_they_have_one() -> None:
    """Controller 12 is in the process of the fenced broker."""
    snapshot = of_one_topic({11: "a", 12: None}, [[11]], fenced=[12])
    voters = [Controller(BrokerId(one), RackId("a") if one == 1 else None, alive=one in (3, 4)) for one in (8, 1, 3, 4)]
    found = audit(with_controllers(snapshot, *voters, Controller(BrokerId(12), alive=False)), RackPolicy()).findings
    assert [one.reason for one in found if one.constraint in ("dead-controller", "fenced-broker")] == [
        "controller 1 (rack a) is down or far behind the quorum's leader: it counts as lost already",
        "controller 8 is down or far behind the quorum's leader: it counts as lost already",
        "broker 12 (rack (no rack)) is fenced: it neither leads nor follows any partition; it holds no replica, so that it may be a registration that was left behind",
    ]


@pytest.mark.parametrize(
    ("voters", "dead", "reason"),
    [
        (2, 0, "the quorum has 2 voters: without one of them no leader is elected and no ISR changes"),
        (
            3,
            1,
            "the quorum has 3 voters, and controller 1 is down: without one more of them no leader is elected and no ISR changes",
        ),
        (3, 0, None),
        (4, 0, None),
    ],
)
def test_a_quorum_that_cannot_lose_one_voter_is_found_where_a_topic_must_survive_the_loss_of_a_broker(
    voters: int, dead: int, reason: str | None
) -> None:
    controllers = [Controller(BrokerId(one), RackId("a"), alive=one > dead) for one in range(1, voters + 1)]
    snapshot = with_controllers(of_one_topic({11: "a", 12: "b"}, [[11, 12]]), *controllers)
    found = audit(snapshot, RackPolicy(survive=Survive.BROKER)).findings
    assert [one.reason for one in found if one.constraint == "controller-quorum-spread"] == [reason] * (
        reason is not None
    )


def test_racks_that_no_broker_has_are_not_partial() -> None:
    for racks, warnings in (((None, None), 0), (("a", "b"), 0), (("a", None), 1)):
        brokers = of_one_topic(dict(enumerate(racks, start=1)), [[1]]).brokers
        assert len(list(partial_racks(brokers, UnrackedPolicy.SHARED))) == warnings


@given(with_known_controllers(), policies(), st.booleans())
def test_the_losses_that_metrics_show_are_those_of_the_audit(
    snapshot: ClusterSnapshot, policy: RackPolicy, require_controllers: bool
) -> None:
    """What an audit ends with 0 for is never shown as not survived, and what it leaves open never as survived."""
    policy = replace(policy, require_controllers=require_controllers)
    judged, shown = audit(snapshot, policy), rack_losses(snapshot, snapshot_batch(snapshot, policy))
    assert list(shown.losses) == judged.losses == outage(snapshot, policy)[1]
    assert shown.left_open_by == judged.left_open_by
    if not snapshot.unread:
        assert [shown.survived(loss) for loss in shown.losses] == [loss.as_required for loss in judged.losses]
        assert not (judged.clean and shown.any_survived is False)
    if shown.any_survived:
        assert all(loss.as_required for loss in judged.losses)
        assert not judged.left_open_by
        assert not snapshot.unread
        assert judged.partitions


DISKLESS = [[1], [2]]


def with_diskless(*replicas: list[int], key: str = "diskless.enable") -> ClusterSnapshot:
    """Topic `logs`, whose records are in object storage, and topic `orders` with these replicas."""
    rows = [*DISKLESS, *replicas]
    return ClusterSnapshot(
        brokers=tuple(Broker(BrokerId(one), RackId("abc"[one - 1])) for one in (1, 2, 3)),
        topics=(
            Topic(TopicName("logs"), config={key: "true"}),
            Topic(TopicName("orders"), config={"min.insync.replicas": "2"}),
        ),
        partitions=columns(
            topic=[0] * len(DISKLESS) + [1] * len(replicas),
            partition=[*range(len(DISKLESS)), *range(len(replicas))],
            leader=[row[0] for row in rows],
            replicas=rows,
            isr=rows,
        ),
    )


@pytest.mark.parametrize("key", ["diskless.enable", "inkless.enable"])
def test_a_diskless_topic_is_not_judged_which_the_audit_says(key: str) -> None:
    judged = audit(with_diskless([1, 2, 3], key=key), RackPolicy())
    assert (judged.findings, judged.partitions, judged.survives_any_rack) == ([], 1, True)
    assert judged.assumed == ("1 diskless topic not judged",)
    assert not any(loss.topics for loss in judged.losses)
    _, losses = outage(with_diskless([1, 2, 3], key=key), RackPolicy(), pairs=True)
    assert {harm.topic for loss in losses for harm in loss.topics} == {"orders"}


def test_a_cluster_of_diskless_topics_only_has_nothing_to_judge() -> None:
    judged = audit(with_diskless(), RackPolicy())
    assert (judged.partitions, judged.survives_any_rack, judged.clean) == (0, None, True)
    losses = rack_losses(with_diskless(), snapshot_batch(with_diskless(), RackPolicy()))
    assert (losses.partitions, losses.any_survived) == (0, None)


def test_a_topic_that_says_it_is_not_diskless_is_judged() -> None:
    snapshot = with_diskless([1, 2, 3])
    plain = replace(
        snapshot, topics=(replace(snapshot.topics[0], config={"diskless.enable": "false"}), snapshot.topics[1])
    )
    assert {one.topic for one in audit(plain, RackPolicy()).findings if one.constraint == "survives-rack-loss"} == {
        "logs"
    }
