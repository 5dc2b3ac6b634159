"""Ctrl-C and SIGTERM, within a command and after it. What the command does not handle goes to the handlers of before."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

import pytest

from rackspan.cli import command_tree
from rackspan.cli.commands import leaf_commands
from rackspan.cli.signals import ended_by_signals, stopped_by_signals
from tests.cli.conftest import GOOD
from tests.cli.test_streams import PROBLEM
from tests.processes import running
from tests.waiting import WITHIN_SECONDS

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@pytest.fixture
def outside() -> Iterator[list[int]]:
    """The signals that no command has handled."""
    found: list[int] = []
    before = {number: signal.signal(number, lambda got, _frame: found.append(got)) for number in SIGNALS}
    yield found
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_ends_a_command_that_runs_until_then(
    number: int, outside: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    went_on = False
    with ended_by_signals():
        signal.raise_signal(number)
        went_on = True
    assert not went_on
    assert capsys.readouterr().err == "ended\n"
    assert outside == []
    for again in SIGNALS:
        signal.raise_signal(again)
    assert outside == list(SIGNALS)


def test_a_command_that_ends_by_itself_says_nothing_and_an_error_passes(
    outside: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    with ended_by_signals():
        pass
    with pytest.raises(ZeroDivisionError), ended_by_signals():
        raise ZeroDivisionError
    assert capsys.readouterr().err == ""
    for number in SIGNALS:
        signal.raise_signal(number)
    assert outside == list(SIGNALS)


def test_the_first_sigterm_requires_a_command_to_stop_and_the_second_one_is_not_its_own(outside: list[int]) -> None:
    with stopped_by_signals() as stop:
        assert not stop.is_set()
        signal.raise_signal(signal.SIGTERM)
        assert stop.is_set()
        assert outside == []
        for again in SIGNALS:
            signal.raise_signal(again)
        assert outside == list(SIGNALS)


def test_ctrl_c_ends_the_block_of_such_a_command_and_nothing_more() -> None:
    went_on = False
    with stopped_by_signals() as stop:
        signal.raise_signal(signal.SIGINT)
        went_on = True
    assert stop.is_set()
    assert not went_on


def test_after_a_command_that_was_not_stopped_signals_are_as_before(outside: list[int]) -> None:
    with pytest.raises(ZeroDivisionError), stopped_by_signals():
        raise ZeroDivisionError
    for number in SIGNALS:
        signal.raise_signal(number)
    assert outside == list(SIGNALS)


SNAP = ("--snapshot", "snapshot.json")
LIVE = ("--bootstrap-server", "127.0.0.1:1")
NEW = ("--topic", "new", "--partitions", "3", "--replication-factor", "3")
TO_MOVE = ("--topics-to-move-json-file", "topics.json", "--broker-list", "1,2,3,4,5,6")
PLAN = ("--plan", "plan.json")
STORED = ("--warehouse", "w")

REQUESTS = "rackspan.client.cluster:ClusterConnection.__enter__"
CONTROL = "rackspan.practice.control_file:find_control"
SETTINGS = "rackspan.cli.options.settings:load"
"""All that commands wait for which read files alone."""

LASTING: dict[str, tuple[str, tuple[str, ...]]] = {
    "audit": ("rackspan.api:audit", SNAP),
    "outage": ("rackspan.api:outage", SNAP),
    "clients": (REQUESTS, LIVE),
    "traffic": (REQUESTS, LIVE),
    "advise": (REQUESTS, LIVE),
    "snapshot": (REQUESTS, (*LIVE, "--out", "-")),
    "place plan": ("rackspan.api:place_from_spec", ("--spec", "spec.json")),
    "place create": ("rackspan.api:place_new_topic", (*SNAP, *NEW)),
    "place extend": (REQUESTS, (*LIVE, "--topic", "orders", "--partitions", "9")),
    "reassign generate": ("rackspan.api:generate_reassignment", (*SNAP, *TO_MOVE)),
    "reassign plan": ("rackspan.api:plan_reassignment", SNAP),
    "reassign lint": ("rackspan.api:lint_reassignment", (*SNAP, *PLAN)),
    "reassign apply": (REQUESTS, (*LIVE, *PLAN, "--cluster-id", "a", "--apply")),
    "reassign verify": (REQUESTS, (*LIVE, *PLAN)),
    "reassign cancel": (REQUESTS, (*LIVE, "--in-flight")),
    "reassign undo": (REQUESTS, (*LIVE, *PLAN, "--cluster-id", "a", "--apply")),
    "restart safe": (REQUESTS, (*LIVE, "--broker", "1", "--wait", "60")),
    "restart plan": ("rackspan.api:plan_restart", SNAP),
    "restart watch": (REQUESTS, (*LIVE, "--plan", "rolling.json", "--exec", "true {brokers}", "--apply")),
    "acks harden": (REQUESTS, LIVE),
    "acks watch": (REQUESTS, LIVE),
    "gateway confirm": ("rackspan.gateway.confirm:confirm", ("--config", "gateway.toml")),
    "gateway check": ("rackspan.gateway.check:check_cluster", ("--config", "gateway.toml")),
    "streams assign": ("rackspan.flow.min_cost_flow:_flow", ("--problem", "problem.json")),
    "streams audit": (REQUESTS, (*LIVE, "--group", "shop")),
    "streams lab": ("rackspan.flow.min_cost_flow:_flow", ("--problem", "problem.json")),
    "pipeline collect": ("rackspan.api:collect", ("--warehouse", "w", *LIVE)),
    "pipeline run": ("rackspan.api:run_pipeline", STORED),
    "pipeline rebuild": ("rackspan.api:rebuild_pipeline", STORED),
    "pipeline check": ("rackspan.api:check_warehouse", STORED),
    "pipeline follow": ("rackspan.api:follow_pipeline", STORED),
    "pipeline maintain": ("rackspan.api:maintain", STORED),
    "pipeline report": ("rackspan.api:report", (*STORED, "--out", "page.html")),
    "pipeline table": ("rackspan.api:table", ("findings", *STORED)),
    "pipeline export": ("rackspan.api:export_tables", (*STORED, "--out", "tables")),
    "cluster up": ("rackspan.cluster:EmbeddedCluster.close", ("--brokers", "1", "--racks", "1")),
    **{f"cluster {fault}": (CONTROL, ("r1",)) for fault in ("lose", "restore")},
    **{f"cluster {fault}": (CONTROL, ("1",)) for fault in ("kill", "restart", "pause", "resume")},
    **{f"cluster {verb}": (CONTROL, ()) for verb in ("undo", "status")},
    "config show": (SETTINGS, ()),
    "config check": (SETTINGS, ()),
    "schema": (SETTINGS, ()),
    "demo": ("rackspan.demo:run_demo", ()),
}
"""Where each command gets stuck, and the words with which it comes there. `gateway` drains first: tests/gateway/test_process.py."""

SAMPLE = ("audit", "reassign apply", "restart watch", "pipeline follow", "cluster up", "streams assign")

FILES = {
    "snapshot.json": GOOD,
    "problem.json": PROBLEM,
    "plan.json": {"version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": [1, 2, 3]}]},
    "topics.json": {"version": 1, "topics": [{"topic": "orders"}]},
    "spec.json": {"brokers": [{"id": 1, "rack": "a"}], "partitions": 1, "replication_factor": 1},
    "rolling.json": {
        "cluster_id": "a",
        "as_of": None,
        "margin": 0,
        "block_on": [],
        "accept": None,
        "batches": [{"brokers": [1]}],
    },
}

STUCK = """
import importlib, sys, time
from rackspan import cli, interrupts

def stuck(*_, **__):
    said = False
    while True:
        try:
            if not said:
                said = True
                print("stuck", file=sys.stderr, flush=True)
            time.sleep(1)
        except KeyboardInterrupt:
            pass

interrupts.INTERRUPT_SECONDS = 0.3
module, _, path = sys.argv.pop(1).partition(":")
owner = importlib.import_module(module)
*outer, name = path.split(".")
for part in outer:
    owner = getattr(owner, part)
setattr(owner, name, stuck)
cli.run()
"""


def test_every_command_is_interrupted_here() -> None:
    commands = command_tree().commands
    leaves = {
        words: None
        for name, command in commands.items()
        for words, _ in (leaf_commands(command, name) if hasattr(command, "commands") else [(name, command)])
    }
    assert set(LASTING) == set(leaves)


@pytest.mark.slow
@pytest.mark.parametrize(
    "command", [pytest.param(command, marks=() if command in SAMPLE else pytest.mark.rest) for command in LASTING]
)
def test_every_command_ends_after_ctrl_c_even_if_it_drops_it(command: str, tmp_path: Path) -> None:
    for name, document in FILES.items():
        (tmp_path / name).write_text(json.dumps(document))
    (tmp_path / "gateway.toml").write_text('bootstrap.servers = "127.0.0.1:1"\n')
    place, words = LASTING[command]
    line = [sys.executable, "-c", STUCK, place, *command.split(), *words]
    with running(line, stderr=subprocess.PIPE, stdout=subprocess.PIPE, cwd=tmp_path) as process:
        assert process.stderr is not None
        if command == "cluster up":
            # It is its end that is stuck.
            assert process.stdout is not None
            assert process.stdout.readline()
            process.send_signal(signal.SIGINT)
        before = list(takewhile(lambda line: line != "stuck\n", process.stderr))
        process.send_signal(signal.SIGINT)
        _, after = process.communicate(timeout=WITHIN_SECONDS)
    printed = [*before, *after.splitlines(keepends=True)]
    assert process.returncode == 130, printed
    assert printed[-1].startswith("rackspan: "), printed
    assert printed[-1].endswith(" did not end in 0.3 s after Ctrl-C; the process is ended now\n")
