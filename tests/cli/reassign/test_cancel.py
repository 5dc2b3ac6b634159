"""rackspan reassign cancel: what it shows, what it refuses, and what it leaves out since it would do harm."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rackspan.apply.live import LiveCluster
from rackspan.client.cluster import ConnectionSettings
from rackspan.cluster import EmbeddedCluster
from rackspan.model import TopicPartition
from tests.cli.conftest import GOOD, Ran, good
from tests.waiting import eventually

Cli = Callable[..., Ran]

MOVING: dict[str, Any] = {"adding_replicas": [4], "removing_replicas": [1], "replicas": [4, 2, 3, 1]}

HARMLESS: dict[str, Any] = {"harm": None, "left_out": False, "allowed_by": None}


@pytest.fixture
def moving(tmp_path: Path) -> None:
    document = json.loads(json.dumps(GOOD))
    document["topics"][0]["partitions"][0].update(MOVING)
    (tmp_path / "moving.json").write_text(json.dumps(document))
    (tmp_path / "resting.json").write_text(json.dumps(GOOD))


def test_what_is_under_way_is_listed_with_the_replicas_after_a_cancel(cli: Cli, moving: None) -> None:
    words = ("reassign", "cancel", "--in-flight", "--snapshot", "moving.json")
    ran = cli(*words, "-o", "json")
    assert (ran.code, ran.document) == (
        2,
        {
            "applied": False,
            "cluster_id": GOOD["cluster_id"],
            "in_flight": 1,
            "partitions": [
                {"topic": "orders", "partition": 0, "moves_to": [4, 2, 3], "replicas": [2, 3, 1], **HARMLESS}
            ],
        },
    )
    page = cli(*words).out.splitlines()
    assert page[1].split() == ["orders-0", "4,2,3", "2,3,1"]
    assert page[-1] == "1 reassignment under way; add --apply to cancel it"
    assert cli(*words, "--topic", "orders").code == 2


def test_nothing_under_way_is_nothing_to_cancel(cli: Cli, moving: None) -> None:
    ran = cli("reassign", "cancel", "--in-flight", "--snapshot", "resting.json")
    assert (ran.code, ran.out) == (0, "nothing is being reassigned\n")


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ((), "name the plan with --plan FILE, or --in-flight for every reassignment under way"),
        (
            ("--in-flight", "--plan", "p.json"),
            "--plan and --in-flight: the first cancels the moves of a run, the second those of every tool; leave one out",
        ),
        (("--in-flight", "--journal", "j"), "--journal and --in-flight: a journal is of a plan; leave one out"),
        (("--plan", "p.json", "--topic", "x"), "--topic: it goes with --in-flight; a plan is cancelled as a whole"),
        (
            ("--in-flight", "--topic", "x"),
            "--topic 'x': matches none of 1 topic by its whole name; write one such as orders-.*",
        ),
        (
            ("--in-flight", "--apply"),
            "--apply: a snapshot cannot be changed; name the cluster with --bootstrap-server HOST:PORT or --cluster NAME",
        ),
    ],
)
def test_a_mistake_gets_one_line(cli: Cli, moving: None, words: tuple[str, ...], line: str) -> None:
    ran = cli("reassign", "cancel", "--snapshot", "moving.json", *words)
    assert (ran.code, ran.out, ran.err) == (1, "", f"rackspan: {line}\n")


def test_the_remedy_of_a_move_under_way_is_that_command(cli: Cli, moving: None) -> None:
    document = cli("audit", "--snapshot", "moving.json", "-o", "json").document
    (remedy,) = {one["remedy"] for one in document["findings"] if one["constraint"] == "reassignment-in-progress"}
    assert remedy == "wait for it, or rackspan reassign cancel --in-flight"


NOTE = "reassignments under way: unknown, this user needs Describe on Cluster"


@pytest.mark.parametrize(
    "words", [("verify", "--plan", "plan.json"), ("cancel", "--plan", "plan.json"), ("cancel", "--in-flight")]
)
def test_what_may_be_under_way_is_not_done(cli: Cli, tmp_path: Path, words: tuple[str, ...]) -> None:
    """A partition that gets one more replica shows its target from the start of the copy."""
    (tmp_path / "unknown.json").write_text(json.dumps(GOOD | {"partial": [NOTE]}))
    plan = {"version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": [1, 2, 3]}]}
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    (tmp_path / "plan.json.journal").touch()
    ran = cli("reassign", *words, "--snapshot", "unknown.json")
    assert (ran.code, ran.out, ran.err) == (1, "", f"rackspan: {NOTE}; what is not known to be at rest is not done\n")


DOWN = {1, 3}
"""The brokers that are down: two of three that held the partition before its reassignment."""


def harmful(**partition: Any) -> dict[str, Any]:
    """Replicas move from 1,2,3 to 4,5,6; of the first only 2 is up, of the others 4 is in sync: acks=all is taken with 2 and 4."""
    moving = {"leader": 2, "isr": [2, 4], "replicas": [4, 5, 6, 1, 2, 3]}
    document = good(**moving, adding_replicas=[4, 5, 6], removing_replicas=[1, 2, 3], **partition)
    for broker in document["brokers"]:
        broker["fenced"] = broker["id"] in DOWN
    return document


IN_FLIGHT = ("reassign", "cancel", "--in-flight", "--snapshot", "moment.json")
REFUSED = "broker 2 left in sync, min.insync.replicas requires 2"
UNCLEAN = "no replica left in sync: Kafka refuses the cancel, which would need an unclean leader election"
FLAG = "--allow-refused-writes"


@pytest.mark.parametrize(
    ("partition", "harm", "allowed_by"),
    [
        ({}, REFUSED, FLAG),
        ({"leader": 4, "isr": [4, 5]}, UNCLEAN, None),
        ({"leader": 4, "isr": [3, 4]}, "no replica left in sync but on broker 3, which is down: it would have no leader", None),
    ],
)  # fmt: skip
def test_a_cancel_that_does_harm_is_left_out_with_its_reason(
    cli: Cli, write: Callable[[object], Path], partition: dict[str, Any], harm: str, allowed_by: str | None
) -> None:
    write(harmful() if not partition else _changed(harmful(), partition))
    shown = cli(*IN_FLIGHT, "-o", "json")
    (found,) = shown.document["partitions"]
    assert (shown.code, found["harm"], found["left_out"], found["allowed_by"]) == (2, harm, True, allowed_by)
    (allowed,) = cli(*IN_FLIGHT, FLAG, "-o", "json").document["partitions"]
    assert (allowed["harm"], allowed["left_out"]) == (harm, allowed_by is None)
    page = cli(*IN_FLIGHT).out.splitlines()
    # What Kafka refuses, or what is left out, gets no replicas after a cancel.
    assert page[1].split() == ["orders-0", "4,5,6", "left", "out"]
    assert f"orders-0: {harm}" in page
    accept = f", or accept refused writes with {FLAG}" if allowed_by else ""
    assert page[-1] == (
        "1 reassignment under way; --apply leaves 1 out: wait until the reassignment has ended or its brokers are back"
        f"{accept}"
    )


def _changed(document: dict[str, Any], partition: dict[str, Any]) -> dict[str, Any]:
    document["topics"][0]["partitions"][0].update(partition)
    return document


def test_an_unknown_minimum_may_be_refused_too(cli: Cli, write: Callable[[object], Path]) -> None:
    document = harmful()
    document["topics"][0]["config"] = {}
    write(document)
    (found,) = cli(*IN_FLIGHT, "-o", "json").document["partitions"]
    assert (found["harm"], found["left_out"]) == ("broker 2 left in sync, and min.insync.replicas is not known", True)


def test_an_audit_recommends_no_cancel_that_does_harm(cli: Cli, write: Callable[[object], Path]) -> None:
    def remedy() -> str:
        findings = cli("audit", "--snapshot", "moment.json", "-o", "json").document["findings"]
        (found,) = (one["remedy"] for one in findings if one["constraint"] == "reassignment-in-progress")
        return str(found)

    write(harmful())
    assert remedy() == "wait for it"
    document = harmful()
    document["brokers"][0]["fenced"] = False
    write(_changed(document, {"isr": [1, 2, 4]}))
    assert remedy() == "wait for it, or rackspan reassign cancel --in-flight"
    # It never ends while a broker that it adds is down.
    document["brokers"][4]["fenced"] = True
    write(document)
    assert remedy() == "bring back broker 5 and wait for it, or rackspan reassign cancel --in-flight"


def test_of_many_only_those_that_do_no_harm_are_cancelled_until_the_others_may(cli: Cli) -> None:
    """A cluster that runs: each remedy that is named is followed to its end."""
    of_one, harmless, never = (TopicPartition(topic, 0) for topic in ("of-one", "harmless", "never"))
    with EmbeddedCluster(racks=4, brokers=4) as cluster:
        for name, replicas in ((of_one, [1, 2]), (harmless, [2, 3]), (never, [1])):
            cluster.create_topic(name.topic, replicas=[replicas], config={"min.insync.replicas": str(len(replicas))})
        cluster.kill(4)
        where = ("--bootstrap-server", cluster.bootstrap_servers.split(",")[1])
        with LiveCluster(ConnectionSettings(where[1])) as live:
            live.start_moves({of_one: (3, 4), harmless: (2, 4), never: (3, 4)})
        eventually(lambda: cluster.isr("of-one", 0) == {1, 2, 3} and cluster.isr("never", 0) == {1, 3}, "3 is in sync")
        cluster.kill(1)
        eventually(lambda: cluster.isr("of-one", 0) == {2, 3} and cluster.isr("never", 0) == {3}, "1 is fenced")
        words = ("reassign", "cancel", "--in-flight", *where, "--apply")
        first = cli(*words)
        assert (first.code, first.out.splitlines()[-1]) == (
            2,
            "1 reassignment cancelled, 2 left out: wait until the reassignment has ended or its brokers are back, or accept "
            f"refused writes with {FLAG}",
        )
        assert cluster.isr("of-one", 0) == {2, 3}
        assert set(cluster.replicas("harmless", 0)) == {2, 3}
        allowed = cli(*words, FLAG)
        assert (allowed.code, cluster.isr("of-one", 0), cluster.isr("never", 0)) == (2, {2}, {3})
        # Once a broker that held it is back, the cancel harms nothing.
        cluster.restart(1)
        eventually(lambda: cluster.isr("never", 0) == {1, 3}, "1 is in sync")
        last = cli(*words)
        assert (last.code, cluster.isr("never", 0), cluster.replicas("never", 0)) == (0, {1}, (1,))
