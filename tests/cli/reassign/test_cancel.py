"""rackspan reassign cancel --in-flight where no cluster is needed: what it shows, and what it refuses."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import GOOD, Ran

Cli = Callable[..., Ran]

MOVING: dict[str, Any] = {"adding_replicas": [4], "removing_replicas": [1], "replicas": [4, 2, 3, 1]}


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
            "partitions": [{"topic": "orders", "partition": 0, "moves_to": [4, 2, 3], "replicas": [2, 3, 1]}],
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
