"""The exit codes: one rule, a meaning for every command, and commands whose outcomes are mixed."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rackspan.cli import command_tree
from rackspan.cli.commands import leaf_commands
from rackspan.cli.exit_codes import MEANINGS, exit_code
from tests.cli.conftest import GOOD, Ran, good
from tools import command_line

Cli = Callable[..., Ran]

SNAPSHOT = ("--snapshot", "moment.json")
ONE_RACK: dict[str, Any] = good() | {"brokers": [{"id": broker, "rack": "r1"} for broker in range(1, 7)]}
"""Nothing forces two racks here."""

UNEVEN: dict[str, Any] = json.loads(json.dumps(GOOD))
UNEVEN["topics"].append(
    {"name": "stacked", "partitions": [{"partition": 0, "leader": 1, "replicas": [1, 4], "isr": [1, 4]}]}
)
"""`stacked` has two replicas in one rack, which a plan moves apart."""

LEADERLESS: dict[str, Any] = json.loads(json.dumps(UNEVEN))
LEADERLESS["topics"].append(
    {"name": "down", "partitions": [{"partition": 0, "leader": -1, "replicas": [2, 5], "isr": [2]}]}
)
"""Beside `stacked`, a partition that no plan can move."""


@pytest.mark.parametrize(
    ("impossible", "to_act_on", "code"), [(False, False, 0), (False, True, 2), (True, False, 1), (True, True, 1)]
)
def test_what_is_impossible_comes_before_what_is_left_to_do(impossible: bool, to_act_on: bool, code: int) -> None:
    assert exit_code(impossible=impossible, to_act_on=to_act_on) == code


def test_every_command_has_a_meaning_and_every_meaning_a_command() -> None:
    assert sorted(words for words, _ in leaf_commands(command_tree())) == sorted(MEANINGS)


def test_every_help_ends_with_the_meaning_of_the_exit_codes(cli: Cli) -> None:
    for words, meaning in MEANINGS.items():
        shown = " ".join(cli(*words.split(), "--help").out.split())
        assert shown.endswith(meaning.help()), words


def test_the_page_holds_the_table() -> None:
    page = command_line.PAGE.read_text(encoding="utf-8")
    assert command_line.document(page) == page


PLAN = {"version": 1, "partitions": [{"topic": "stacked", "partition": 0, "replicas": [1, 5]}]}
DONE = {"version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": [1, 2, 3]}]}
NEW = ("--topic", "new", "--partitions", "2", "--replication-factor", "2")

CASES: dict[str, tuple[int, object, tuple[str, ...]]] = {
    "audit: no violation": (0, GOOD, ("audit",)),
    "audit: a violation": (2, UNEVEN, ("audit",)),
    "outage: one loss of three is survived": (2, UNEVEN, ("outage",)),
    "outage: the named loss is survived": (0, UNEVEN, ("outage", "--lose", "r2")),
    "outage: no such rack": (1, UNEVEN, ("outage", "--lose", "r9")),
    "place create: a dry run": (2, GOOD, ("place", "create", *NEW)),
    "place create: impossible": (1, GOOD, ("place", "create", *NEW[:-1], "9")),
    "place extend: a dry run": (2, GOOD, ("place", "extend", "--topic", "orders", "--partitions", "4")),
    "reassign plan: nothing to move": (0, GOOD, ("reassign", "plan")),
    "reassign plan: moves": (2, UNEVEN, ("reassign", "plan")),
    "reassign plan: moves, and a part that is impossible": (1, LEADERLESS, ("reassign", "plan")),
    "reassign plan: an impossible part alone": (1, LEADERLESS, ("reassign", "plan", "--topic", "down")),
    "reassign lint: clean": (0, UNEVEN, ("reassign", "lint", "--reassignment-json-file", "plan.json")),
    "reassign verify: not started": (2, UNEVEN, ("reassign", "verify", "--plan", "plan.json")),
    "reassign verify: all done": (0, UNEVEN, ("reassign", "verify", "--plan", "done.json")),
    "reassign apply: a dry run with moves": (2, UNEVEN, ("reassign", "apply", "--plan", "plan.json", "--cluster-id", "5L6g3nShT-eMCtK--X86sw")),
    "reassign apply: of another cluster": (1, UNEVEN, ("reassign", "apply", "--plan", "plan.json", "--cluster-id", "other")),
    "restart safe: the broker may stop": (0, GOOD, ("restart", "safe", "--broker", "1")),
    "restart safe: acks=all would be refused": (2, GOOD, ("restart", "safe", "--broker", "1,2,3")),
    "restart plan: batches": (2, GOOD, ("restart", "plan")),
    "restart plan: a broker that can never stop": (1, LEADERLESS | {"topics": [{"name": "t", "config": {"min.insync.replicas": "2"}, "partitions": [{"partition": 0, "leader": 1, "replicas": [1, 4], "isr": [1, 4]}]}]}, ("restart", "plan")),
    "acks harden: every topic forced": (0, GOOD, ("acks", "harden", "--min-insync-racks", "2")),
    "acks harden: a value to raise": (2, GOOD, ("acks", "harden", "--min-insync-racks", "3")),
    "acks harden: one to raise, one impossible": (1, UNEVEN, ("acks", "harden", "--min-insync-racks", "3")),
    "acks harden: impossible": (1, ONE_RACK, ("acks", "harden", "--min-insync-racks", "2")),
    "a flag that does not exist": (1, GOOD, ("audit", "--colour")),
    "a value that is none": (1, GOOD, ("outage", "--min-insync-racks", "two")),
    "a snapshot that is none": (1, "not JSON", ("audit",)),
    "pipeline collect: one source of two fails": (1, GOOD, ("pipeline", "collect", "--warehouse", "out", "--snapshot", "plan.json")),
    "pipeline collect: every source is stored": (0, GOOD, ("pipeline", "collect", "--warehouse", "out")),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_command_ends_with_the_code_of_its_outcome(
    cli: Cli, write: Callable[[object], Path], tmp_path: Path, name: str
) -> None:
    code, document, words = CASES[name]
    write(document)
    (tmp_path / "plan.json").write_text(json.dumps(PLAN))
    (tmp_path / "done.json").write_text(json.dumps(DONE))
    ran = cli(*words, *SNAPSHOT)
    assert ran.code == code, ran
