"""The order of findings, and remedies that begin with a plan beside what the command line's own parser reads from their words."""

import shlex
from collections import Counter
from dataclasses import asdict, replace
from random import Random

import numpy as np
import pytest

from rackspan import api
from rackspan.audit import RackPolicy
from rackspan.audit.findings import (
    UNREGISTER,
    Finding,
    PlanCommand,
    PlanRemedy,
    Severity,
    at_address,
    in_order,
    or_else,
    plan_of,
)
from rackspan.model import NO_BROKER, RackId
from tests.audit import repairs
from tests.random_clusters.values import drawn
from tests.streams.groups import cluster

ORDER = [
    "offline",
    "under-min-isr",
    "under-min-racks",
    "unknown-broker",
    "unracked-broker",
    "controller-quorum-spread",
    "min-insync-racks-satisfiable",
    "survives-rack-loss",
    "accepts-writes-after-rack-loss",
    "survives-broker-loss",
    "accepts-writes-after-broker-loss",
    "rack-spread",
    "min-insync-replicas-forces-racks",
    "any-other",
]
"""Present states, then who is missing a rack, then placements by the worst loss, then configs."""


def finding(
    constraint: str, severity: Severity, topic: str | None = None, partition: int | None = None, reason: str = ""
) -> Finding:
    return Finding(constraint, severity, reason, "", topic, partition)


def test_violations_come_in_the_order_of_repair_then_warnings() -> None:
    violations = [finding(one, Severity.VIOLATION) for one in ORDER]
    warnings = [finding(one, Severity.WARNING) for one in (*ORDER, "another")]
    assert in_order(reversed([*warnings[:-2], *violations])) == [*violations, *warnings[:-2]]
    assert [one.constraint for one in in_order(warnings)][-2:] == ["another", "any-other"]


def test_findings_of_a_constraint_come_by_topic_partition_and_reason() -> None:
    listed = [
        finding("offline", Severity.VIOLATION),
        finding("offline", Severity.VIOLATION, "a", 2, "x"),
        finding("offline", Severity.VIOLATION, "a", 10, "x"),
        finding("offline", Severity.VIOLATION, "a", 10, "y"),
        finding("offline", Severity.VIOLATION, "b", 0, "x"),
    ]
    assert in_order(reversed(listed)) == listed


def options_of(command: PlanCommand) -> dict[str, object]:
    """The options of the command line of a plan, as its parser names them."""
    fields = asdict(command)
    return {**fields, "drain": ",".join(map(str, command.drain)) or None}


def read_from(words: str) -> dict[str, object]:
    path, options = repairs.parsed(shlex.split(words)[1:])
    assert path == ("reassign", "plan")
    return {name: options[name] for name in ("topic", "replication_factor", "drain", "balance", "leaders")}


@pytest.mark.parametrize(
    "command",
    [
        PlanCommand(),
        PlanCommand("orders", 3),
        PlanCommand("orders", leaders=True),
        PlanCommand(drain=(3, 9)),
        PlanCommand(balance=True),
    ],
)
def test_the_words_of_a_plan_are_a_command_with_its_options(command: PlanCommand) -> None:
    assert read_from(str(command)) == options_of(command)


@pytest.mark.slow
def test_each_remedy_that_begins_with_a_plan_has_it_and_no_other_does() -> None:
    found, rng = Counter[str](), Random(3)
    for _ in range(150):
        snapshot, policy = drawn(rng)
        if len(snapshot.brokers) > 1 and rng.random() < 0.3:
            excluded = frozenset({int(rng.choice(snapshot.brokers).id)})
            policy = RackPolicy(excluded_brokers=excluded, topic_leader_racks={"t0": (RackId("a"),)})
        for finding in api.audit(snapshot, policy).findings:
            begins = finding.remedy.startswith("rackspan reassign plan")
            assert begins == (finding.plan is not None), finding
            if finding.plan is not None:
                assert read_from(finding.remedy.partition(",")[0]) == options_of(finding.plan)
                found[finding.constraint] += 1
    assert {"rack-spread", "mixed-replication-factors", "excluded-broker", "leader-racks"} <= found.keys()
    assert {"replica-balance", "leader-balance", "survives-rack-loss"} <= found.keys()


def test_another_way_out_follows_a_plan_and_any_other_words() -> None:
    plan = or_else(PlanRemedy(PlanCommand("orders", 3)), "lower min.insync.racks")
    assert str(plan) == "rackspan reassign plan --topic orders --replication-factor 3, or lower min.insync.racks"
    assert plan_of(plan) == PlanCommand("orders", 3)
    words = or_else("bring back broker 3; then rackspan reassign plan", "lower it")
    assert (words, plan_of(words)) == ("bring back broker 3; then rackspan reassign plan, or lower it", None)


def test_what_has_to_be_waited_for_is_no_plan() -> None:
    snapshot = cluster({"orders": [[1, 2, 3], [1, 2]]})
    (mixed,) = (each for each in api.audit(snapshot).findings if each.constraint == "mixed-replication-factors")
    assert mixed.plan == PlanCommand("orders", 3)
    adding = np.array([[3], [NO_BROKER]], np.int32)
    moving = replace(snapshot, partitions=replace(snapshot.partitions, adding_replicas=adding))
    (mixed,) = (each for each in api.audit(moving).findings if each.constraint == "mixed-replication-factors")
    assert (
        mixed.remedy
        == "wait for the reassignment to end; then rackspan reassign plan --topic orders --replication-factor 3"
    )
    assert mixed.plan is None


def test_an_address_that_is_known_stands_in_every_command_of_kafkas_tools() -> None:
    command = "kafka-configs.sh --bootstrap-server {} --alter"
    document = {"findings": [{"remedy": command.format("HOST:PORT"), "partition": 3}], "summary": None}
    assert at_address(document, "h:1,h:2") == {
        "findings": [{"remedy": command.format("h:1,h:2"), "partition": 3}],
        "summary": None,
    }
    assert at_address(document, None) is document
    assert at_address("HOST:PORT is a word", "h:1") == "HOST:PORT is a word"


ELECTION_TOOL = "kafka-leader-election.sh"
"""Kafka 3.9.1 and 4.1.0 take --admin.config only, 4.4.0 both (--help of the tool)."""


def test_a_command_of_kafkas_tools_logs_in_as_the_audit_did() -> None:
    configs, election = (f"{tool} --bootstrap-server HOST:PORT --x" for tool in ("kafka-configs.sh", ELECTION_TOOL))
    assert at_address(f"do {configs}", "h:1", "my client.properties") == (
        "do kafka-configs.sh --bootstrap-server h:1 --command-config 'my client.properties' --x"
    )
    assert at_address(election, "h:1", "c") == f"{ELECTION_TOOL} --bootstrap-server h:1 --admin.config c --x"
    assert at_address(f"{UNREGISTER} --id 3", "h:1", "c") == (
        "kafka-cluster.sh unregister --bootstrap-server h:1 --config c --id 3"
    )
