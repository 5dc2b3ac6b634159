"""Advice from findings: its order, and the bytes of each plan beside those that following the remedy copies."""

import shlex
from collections import Counter
from dataclasses import replace
from importlib import import_module
from random import Random

import pytest

from rackspan import api, reassign
from rackspan.advice import Advice, ranked, repaired, risks
from rackspan.advice.advice import Concern
from rackspan.advice.risks import NOT_PLANNED, PLANNED_MAX
from rackspan.audit import Finding, RackPolicy
from rackspan.audit.findings import PlanCommand, PlanRemedy, Remedy, Severity, plan_of
from rackspan.model import ClusterSnapshot, RackId
from rackspan.reassign import ReassignmentPlan, ReassignmentRequest
from rackspan.text import human_bytes
from tests.audit import repairs
from tests.depth import at_depth
from tests.random_clusters.values import drawn
from tests.streams.groups import cluster


def finding(
    constraint: str, topic: str | None, partition: int | None, remedy: Remedy, *, warning: bool = False
) -> Finding:
    severity = Severity.WARNING if warning else Severity.VIOLATION
    return Finding(constraint, severity, f"why {constraint}", str(remedy), topic, partition, plan_of(remedy))


def test_findings_of_one_constraint_and_remedy_are_one_piece_in_the_order_of_repair() -> None:
    snapshot = cluster({topic: [[1, 2, 3]] * 3 for topic in "abc"})
    found = list(
        risks(
            snapshot,
            RackPolicy(),
            [
                finding("rack-spread", "a", 0, PlanRemedy(PlanCommand())),
                finding("rack-spread", "b", 2, PlanRemedy(PlanCommand())),
                finding("leader-racks", "c", None, PlanRemedy(PlanCommand("c", leaders=True)), warning=True),
                finding("offline", "a", 1, "bring back broker 3"),
                finding("unracked-broker", None, None, "set broker.rack on broker 9 and restart it"),
            ],
        )
    )
    assert [(each.concern, each.kind, each.topic, each.command) for each in found] == [
        (Concern.RISK, "offline", "a", "bring back broker 3"),
        (Concern.RISK, "unracked-broker", None, "set broker.rack on broker 9 and restart it"),
        (Concern.RISK, "rack-spread", None, "rackspan reassign plan"),
        (Concern.WARNING, "leader-racks", "c", "rackspan reassign plan --leaders --topic c"),
    ]
    assert [each.reason for each in found] == [
        "1 partition of 1 topic, such as a-1: why offline",
        "why unracked-broker",
        "2 partitions of 2 topics, such as a-0: why rack-spread",
        "why leader-racks",
    ]
    assert [bool(each.undo) for each in found] == [False, False, True, True]
    # What the audit put last stays last, whatever order advice comes in.
    assert ranked(reversed(found)) == found


def copies(before: ClusterSnapshot, after: ClusterSnapshot) -> tuple[int, int]:
    """The replicas and the bytes that a change copies, by plain loops."""
    count = size_bytes = 0
    for old, new in zip(before.partitions, after.partitions, strict=True):
        added = len({*new.replicas} - {*old.replicas})
        count, size_bytes = count + added, size_bytes + added * (old.size_bytes or 0)
    return count, size_bytes


@pytest.mark.slow
@pytest.mark.parametrize("topics_max", [3, 20])
@pytest.mark.parametrize("seed", range(3))
def test_each_plan_costs_the_bytes_that_following_it_copies(seed: int, topics_max: int) -> None:
    """Generated clusters; the command line's own parser reads each remedy, whose plan is then made by itself and carried out."""
    rng, counts = Random(seed), Counter[str]()
    for _ in range(at_depth(test=40, soak=100) if topics_max == 3 else 15):
        snapshot, policy = drawn(rng, topics_max)
        if len(snapshot.brokers) > 1 and rng.random() < 0.3:
            policy = replace(policy, excluded_brokers=frozenset({int(rng.choice(snapshot.brokers).id)}))
        for advice in risks(snapshot, policy, api.audit(snapshot, policy).findings):
            command = advice.command.partition(",")[0]
            if not command.startswith("rackspan reassign plan"):
                assert (advice.cost, advice.undo) == ("", "")
                continue
            _, options = repairs.parsed(shlex.split(command)[1:])
            planned = api.plan_reassignment(snapshot, policy, repairs.requested(options))
            if advice.cost == NOT_PLANNED:
                assert planned.infeasible or not len(planned)
                counts["refused in part"] += 1
                continue
            # Racks that may be one refuse nothing: the plan is not certain to keep them apart.
            assert not [conflict for conflict in planned.infeasible if conflict.partitions]
            count, size_bytes = copies(snapshot, api.snapshot_after(snapshot, planned))
            replicas = "1 replica" if count == 1 else f"{count} replicas"
            expected = f"{replicas} copied once, {human_bytes(size_bytes)}" if count else "nothing is copied"
            assert advice.cost == expected
            flags = [word for word in command.split() if word.startswith("--")]
            counts.update(flags or ["cluster"])
    assert counts["refused in part"] < 0.2 * counts.total()
    assert {"--topic", "--replication-factor", "--balance", "cluster"} <= counts.keys()
    assert {"--drain", "refused in part"} <= counts.keys() or topics_max > 3


def test_leaders_brought_into_racks_copy_nothing_though_replicas_are_uneven() -> None:
    snapshot = cluster({"orders": [[1, 4, 2], [2, 3, 1]]}, ("r1", "r2", "r3", "r1"))
    policy = RackPolicy(topic_leader_racks={"orders": (RackId("r2"),)})
    costs = {each.kind: each.cost for each in risks(snapshot, policy, api.audit(snapshot, policy).findings)}
    assert costs["leader-racks"] == "nothing is copied"
    assert costs["rack-spread"].startswith("1 replica copied once")


def test_plans_of_the_first_pieces_of_advice_are_made_and_the_others_name_the_command() -> None:
    """Every topic in one of two racks, and each with a plan of its own."""
    snapshot = cluster({f"t{number:03}": [[1, 3, 5]] for number in range(PLANNED_MAX + 20)}, ("x", "y") * 3)
    found = list(risks(snapshot, RackPolicy(), api.audit(snapshot).findings))
    planned = [each.cost != NOT_PLANNED for each in found if "reassign plan" in each.command]
    assert planned == [True] * PLANNED_MAX + [False] * (len(planned) - PLANNED_MAX)
    assert len(planned) > PLANNED_MAX


def test_plans_that_differ_in_their_topic_only_are_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fifty topics of two partitions in one of two racks; t010 has one that has no leader to copy from."""
    snapshot = cluster({f"t{number:03}": [[1, 3, 5]] * 2 for number in range(50)}, ("x", "y") * 3)
    leader = snapshot.partitions.leader.copy()
    leader[20] = -1
    snapshot = replace(snapshot, partitions=replace(snapshot.partitions, leader=leader))
    requests = list[ReassignmentRequest]()

    def counted(of: ClusterSnapshot, policy: RackPolicy, request: ReassignmentRequest) -> ReassignmentPlan:
        requests.append(request)
        return reassign.plan(of, policy, request)

    monkeypatch.setattr(import_module("rackspan.advice.risks"), "plan", counted)
    found = [each for each in risks(snapshot, RackPolicy(), api.audit(snapshot).findings) if each.topic is not None]
    plans = {each.topic: each.cost for each in found if each.command.startswith("rackspan reassign plan --topic")}
    assert len(plans) == 50
    assert plans.pop("t010") == NOT_PLANNED
    assert NOT_PLANNED not in plans.values()
    assert len(requests) == len(set(requests)) < 5


def test_a_piece_of_advice_says_how_many_partitions_or_how_often_and_how_to_undo_it() -> None:
    snapshot = cluster({topic: [[1, 2, 3]] * 2 for topic in "ab"})
    remedy = PlanRemedy(PlanCommand("a"))
    found = list(
        risks(
            snapshot,
            RackPolicy(),
            [
                *(finding("rack-spread", "a", at, remedy) for at in range(2)),
                *(finding("throttles", topic, None, "take them off", warning=True) for topic in "aab"),
                finding("unracked-broker", None, None, "set broker.rack"),
            ],
        )
    )
    by_kind = {each.kind: each for each in found}
    assert by_kind["rack-spread"] == Advice(
        concern=Concern.RISK,
        kind="rack-spread",
        reason="2 partitions of 1 topic, such as a-0: why rack-spread",
        command="rackspan reassign plan --topic a",
        # The partitions are in every rack already.
        cost="nothing is copied",
        undo="rackspan reassign undo, with the journal of the run",
        topic="a",
        place=by_kind["rack-spread"].place,
    )
    assert by_kind["throttles"] == Advice(
        concern=Concern.WARNING,
        kind="throttles",
        reason="3 times, such as: why throttles",
        command="take them off",
        cost="",
        undo="",
        place=by_kind["throttles"].place,
    )
    assert by_kind["unracked-broker"].reason == "why unracked-broker"
    assert [each.place for each in found] == [0, 1, 2]
    assert NOT_PLANNED == (
        "the command prints what it would move, and moves nothing without rackspan reassign apply --apply"
    )


def test_many_partitions_are_counted_with_a_comma() -> None:
    snapshot = cluster({"a": [[1, 2, 3]]})
    many = [finding("offline", "a", at, "start it") for at in range(1234)]
    assert [each.reason for each in risks(snapshot, RackPolicy(), many)] == [
        "1,234 partitions of 1 topic, such as a-0: why offline"
    ]


def test_a_repaired_cluster_is_that_after_the_plans_of_the_risks_each_found_where_the_one_before_left_it() -> None:
    """By the command line's own parser. What the planner refuses in part is done as far as it goes."""
    rng, plans = Random(11), 0
    for _ in range(20):
        snapshot, policy = drawn(rng)
        findings = api.audit(snapshot, policy).findings
        expected = snapshot
        commands = [each.command.partition(",")[0] for each in risks(snapshot, policy, findings)]
        for command in dict.fromkeys(commands):
            if command.startswith("rackspan reassign plan"):
                _, options = repairs.parsed(shlex.split(command)[1:])
                planned = api.plan_reassignment(expected, policy, repairs.requested(options))
                expected, plans = api.snapshot_after(expected, planned), plans + len(planned)
        found = repaired(snapshot, policy, findings)
        assert [(row.replicas, row.leader) for row in found.partitions] == [
            (row.replicas, row.leader) for row in expected.partitions
        ]
    assert plans > 10


def test_many_plans_of_a_large_cluster_are_made_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = cluster({topic: [[1, 4]] * 2 for topic in "abc"})
    findings = [finding("rack-spread", topic, 0, PlanRemedy(PlanCommand(topic))) for topic in "ab"]
    made: list[str | None] = []

    def planned(on: ClusterSnapshot, policy: RackPolicy, request: ReassignmentRequest) -> ReassignmentPlan:
        made.append(request.topics)
        return reassign.plan(on, policy, request)

    monkeypatch.setattr(import_module("rackspan.advice.risks"), "plan", planned)
    repaired(snapshot, RackPolicy(), findings)
    assert made == ["a", "b"]
    monkeypatch.setattr(import_module("rackspan.advice.risks"), "SINGLY_MAX", 11)
    repaired(snapshot, RackPolicy(), findings)
    assert made == ["a", "b", "a|b"]
