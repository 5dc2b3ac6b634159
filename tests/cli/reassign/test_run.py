"""rackspan reassign apply, verify, cancel and undo where no cluster is needed: what they show, and what they refuse."""

import io
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest

from rackspan import api
from rackspan.api import Source
from rackspan.apply import Journal
from rackspan.errors import UsageError
from rackspan.plan import ConfigKey
from rackspan.plan.execution.events import DirectionSet, RunCancelled, RunCompleted, RunStarted, StepCompleted
from rackspan.plan.execution.events_format import event_line
from rackspan.plan.execution.throttle import Holder
from rackspan.plan.plan_file import read_plan
from rackspan.reassign import Direction
from rackspan.sources import snapshot_file
from tests.cli.conftest import GOOD, Ran

Cli = Callable[..., Ran]

CLUSTER_ID = "5L6g3nShT-eMCtK--X86sw"
MOVED = {"topic": "orders", "partition": 0, "replicas": [4, 2, 3]}
REORDERED = {"topic": "orders", "partition": 1, "replicas": [6, 5, 4]}
STEPS = [
    {"step": 1, "reason": "a rack short", "partitions": [{**MOVED, "undo": [1, 2, 3]}]},
    {"step": 2, "reason": "leaders", "partitions": [{**REORDERED, "undo": [5, 6, 4]}]},
]
PLAN: dict[str, Any] = {"version": 1, "partitions": [MOVED, REORDERED], "cluster_id": CLUSTER_ID, "steps": STEPS}
ANEW = "make a new plan with rackspan reassign plan --snapshot moment.json"

SNAPSHOT = ("--snapshot", "moment.json")
DEAD = ("--bootstrap-server", "127.0.0.1:1")


def changed(**keys: Any) -> dict[str, Any]:
    """The plan with other keys; None leaves one out."""
    return {key: value for key, value in {**PLAN, **keys}.items() if value is not None}


def moved(*replicas: int, **partition: Any) -> dict[str, Any]:
    """The plan, its first partition led elsewhere."""
    entry = {**MOVED, "replicas": list(replicas), **partition}
    return changed(partitions=[entry], steps=None)


@pytest.fixture
def files(tmp_path: Path) -> Callable[..., None]:
    """The cluster's snapshot, the plan, and what its journal says, if it has begun."""

    def written(plan: object = PLAN, snapshot: object = GOOD, journal: str | None = None) -> None:
        (tmp_path / "moment.json").write_text(json.dumps(snapshot))
        (tmp_path / "plan.json").write_text(plan if isinstance(plan, str) else json.dumps(plan))
        if journal is not None:
            (tmp_path / "plan.json.journal").write_text(journal)

    return written


def begun(plan: dict[str, Any] = PLAN, *more: Any) -> str:
    return "".join(f"{event_line(event)}\n" for event in (RunStarted(read_plan(json.dumps(plan))), *more))


def test_a_dry_run_shows_what_is_left_to_do_and_writes_nothing(
    cli: Cli, files: Callable[..., None], tmp_path: Path
) -> None:
    files()
    ran = cli("reassign", "apply", "--plan", "plan.json", *SNAPSHOT, "--throttle", "1000")
    assert (ran.code, ran.err) == (2, "")
    assert ran.out.splitlines()[-1] == (
        f"1 move, an unknown number of bytes, in 2 steps on cluster {CLUSTER_ID}, throttled to 1000 B a second; "
        "add --apply to do it"
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["moment.json", "plan.json"]


def test_a_dry_run_goes_on_where_the_journal_stands(cli: Cli, files: Callable[..., None]) -> None:
    files(journal=begun(PLAN, StepCompleted(1), RunCancelled()))
    document = cli("reassign", "apply", "--plan", "plan.json", *SNAPSHOT, "-o", "json").document
    assert [(step["step"], step["done"]) for step in document["steps"]] == [(1, True), (2, False)]
    assert (document["toward"], document["moves"], document["journal"]) == ("targets", 0, "plan.json.journal")


def test_a_dry_run_shows_what_is_left_of_a_step_that_is_partly_done(cli: Cli, files: Callable[..., None]) -> None:
    """orders-0 has its target replicas, orders-1 those before the plan."""
    at_once = changed(steps=[{**STEPS[0], "partitions": [one for step in PLAN["steps"] for one in step["partitions"]]}])
    files(at_once, snapshot_with(replicas=[4, 2, 3]), begun(at_once))
    left = cli("reassign", "apply", "--plan", "plan.json", *SNAPSHOT, "--details", "-o", "json").document
    assert ([one["partition"] for one in left["details"]], left["moves"]) == ([1], 0)
    back = cli("reassign", "undo", "--plan", "plan.json", *SNAPSHOT, "--details", "-o", "json").document
    assert [(one["partition"], one["before"], one["after"]) for one in back["details"]] == [(0, [4, 2, 3], [1, 2, 3])]
    changes = {one["broker"]: one["replicas"] for one in back["difference"]["brokers"]}
    assert (changes[1], changes[4]) == ({"before": 0, "after": 1}, {"before": 2, "after": 1})


def test_undoing_passes_the_steps_backwards(cli: Cli, files: Callable[..., None]) -> None:
    files(journal=begun(PLAN, StepCompleted(1)))
    document = cli("reassign", "undo", "--plan", "plan.json", *SNAPSHOT, "-o", "json").document
    assert [(step["step"], step["moves"], step["done"]) for step in document["steps"]] == [(2, 0, False), (1, 1, False)]


def test_any_reassignment_file_is_a_plan(cli: Cli, files: Callable[..., None]) -> None:
    files(changed(steps=None, cluster_id=None))
    document = cli("reassign", "apply", "--reassignment-json-file", "plan.json", *SNAPSHOT, "-o", "json").document
    assert (document["moves"], len(document["steps"]), document["cluster_id"]) == (1, 1, CLUSTER_ID)


def test_a_run_needs_a_cluster_before_anything_is_read(cli: Cli, files: Callable[..., None]) -> None:
    files()
    ran = cli("reassign", "apply", "--plan", "plan.json", "--snapshot", "absent.json", "--apply")
    assert ran.code == 1
    assert "absent.json" not in ran.err


def test_a_dry_run_names_all_that_the_snapshot_lacks_and_a_run_what_it_lacks_of_its_topics(
    cli: Cli, files: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    lacking = ["topic other: hidden from this user", "topic orders: sizes unknown"]
    files(snapshot={**GOOD, "partial": lacking})
    ran = cli("reassign", "apply", "--plan", "plan.json", *SNAPSHOT)
    assert ran.err.splitlines() == [f"warning: {line}" for line in lacking]
    read = snapshot_file.read(Path("moment.json"))

    def carry_out(*_: object, **__: object) -> NoReturn:
        raise UsageError("enough")

    monkeypatch.setattr(api, "live_cluster", lambda *_, **__: Source("here", lambda: read))
    monkeypatch.setattr(api, "foreign_throttles", lambda _cluster, _state: {})
    monkeypatch.setattr(api, "carry_out", carry_out)
    ran = cli("reassign", "apply", "--plan", "plan.json", "--bootstrap-server", "h:1", "--apply")
    assert ran.err.splitlines() == ["warning: topic orders: sizes unknown", "rackspan: enough"]


@pytest.mark.parametrize(
    ("journal", "throttle", "meaning"),
    [
        ((), (), ": left as it is"),
        ((), ("--throttle", "1MB"), ": this run replaces it and restores it at the end"),
        ((StepCompleted(1), StepCompleted(2)), (), None),
    ],
)
def test_throttles_of_others_are_named_before_a_run_that_has_something_left_to_do(
    cli: Cli,
    files: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    journal: tuple[Any, ...],
    throttle: tuple[str, ...],
    meaning: str | None,
) -> None:
    moved_already = snapshot_with(replicas=[4, 2, 3])
    moved_already["topics"][0]["partitions"][1].update(replicas=[6, 5, 4], isr=[6, 5, 4], leader=6)
    files(snapshot=moved_already if journal else GOOD, journal=begun(PLAN, *journal) if journal else None)
    set_by_others = ConfigKey(Holder.TOPIC, "orders", "leader.replication.throttled.replicas")
    read = snapshot_file.read(Path("moment.json"))

    def follow(updates: Iterator[Any], _sizes: object) -> NoReturn:
        next(updates)
        raise UsageError("enough")

    monkeypatch.setattr(api, "live_cluster", lambda *_, **__: Source("here", lambda: read))
    monkeypatch.setattr(api, "foreign_throttles", lambda _cluster, _state: {set_by_others: "*"})
    monkeypatch.setattr(api, "carry_out", lambda *_, **__: iter([SimpleNamespace(effect=None)]))
    monkeypatch.setattr("rackspan.cli.reassign.run.follow", follow)
    ran = cli("reassign", "apply", "--plan", "plan.json", "--bootstrap-server", "h:1", "--apply", *throttle)
    warned = [line for line in ran.err.splitlines() if line.startswith("warning: throttle not set by this run: ")]
    assert [line.endswith(meaning or "") for line in warned] == ([] if meaning is None else [True])
    assert "enough" in ran.err


def test_a_run_beside_another_one_is_refused_before_it_says_what_it_would_do(
    cli: Cli, files: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    files(snapshot=GOOD, journal=begun())
    read = snapshot_file.read(Path("moment.json"))
    monkeypatch.setattr(api, "live_cluster", lambda *_, **__: Source("here", lambda: read))
    monkeypatch.setattr(api, "foreign_throttles", lambda *_: pytest.fail("the cluster is asked for throttles"))
    with Journal(Path("plan.json.journal")):
        ran = cli("reassign", "apply", "--plan", "plan.json", *DEAD, "--apply", "--throttle", "10MB/s")
    assert (ran.code, ran.err) == (
        1,
        "rackspan: plan.json.journal: another rackspan is carrying this plan out; wait for it, or end it first\n",
    )


def snapshot_with(**partition: Any) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(json.dumps(GOOD))
    one = document["topics"][0]["partitions"][0]
    one.update(partition)
    one["isr"] = [broker for broker in one["isr"] if broker in one["replicas"]]
    one["leader"] = one["isr"][0]
    return document


@pytest.mark.parametrize(
    ("partition", "code", "verdict", "reason"),
    [
        ({"replicas": [4, 2, 3]}, 0, "done", None),
        ({}, 2, "not started", "its replicas are 1,2,3"),
        ({"replicas": [2, 4, 3]}, 2, "differs", "its replicas are 2,4,3"),
        ({"replicas": [4, 2, 3, 1], "adding_replicas": [4], "removing_replicas": [1]}, 2, "in progress", None),
        (
            {"replicas": [5, 2, 3, 1], "adding_replicas": [5], "removing_replicas": [1]},
            2,
            "differs",
            "moves to 5,2,3",
        ),
    ],
)
def test_verify_says_of_each_partition_how_far_it_is(
    cli: Cli, files: Callable[..., None], partition: dict[str, Any], code: int, verdict: str, reason: str | None
) -> None:
    files(changed(partitions=[MOVED], steps=STEPS[:1]), snapshot_with(**partition))
    ran = cli("reassign", "verify", "--plan", "plan.json", *SNAPSHOT, "-o", "json")
    (found,) = ran.document["partitions"]
    assert (ran.code, found["verdict"], found["reason"]) == (code, verdict, reason)
    page = cli("reassign", "verify", "--plan", "plan.json", *SNAPSHOT).out
    assert page.splitlines()[-1] == f"1 partition: 1 {verdict}"


APPLY = ("apply", *SNAPSHOT)

WRONG: list[tuple[tuple[str, ...], Any, Any, str]] = [
    (("apply",), PLAN, None, "no cluster named: give --bootstrap-server HOST:PORT, --cluster NAME or --snapshot FILE"),
    (
        ("apply", *SNAPSHOT, "--apply"),
        PLAN,
        None,
        "--apply: a snapshot cannot be changed; name the cluster with --bootstrap-server HOST:PORT or --cluster NAME",
    ),
    (
        ("undo", *SNAPSHOT, "--apply"),
        PLAN,
        None,
        "--apply: a snapshot cannot be changed; name the cluster with --bootstrap-server HOST:PORT or --cluster NAME",
    ),
    (
        ("apply", *DEAD, "--apply"),
        PLAN,
        None,
        "no broker responded: 127.0.0.1:1: connection refused; check --bootstrap-server, and that the cluster is up",
    ),
    (
        ("apply", *DEAD, "--apply"),
        changed(cluster_id=None),
        None,
        "the plan names no cluster; confirm the one that is meant with --cluster-id ID",
    ),
    (
        (*APPLY, "--cluster-id", "other"),
        PLAN,
        None,
        f"--cluster-id other: the plan is for cluster {CLUSTER_ID}; name one of them",
    ),
    (
        APPLY,
        changed(cluster_id="other"),
        None,
        f"this is cluster {CLUSTER_ID}, the plan is for other; name that one, or {ANEW}",
    ),
    (
        (*APPLY, "--throttle", "0"),
        PLAN,
        None,
        "Invalid value for '--throttle': '0' is not a rate; write bytes a second, such as 50000000, or 50MB/s, 50MiB/s, or none for no throttle; see rackspan reassign apply --help",
    ),
    (
        (*APPLY, "--max-moves", "0"),
        PLAN,
        None,
        "Invalid value for '--max-moves': expected at least 1; see rackspan reassign apply --help",
    ),
    (
        ("apply", *SNAPSHOT, "--plan", "absent.json"),
        PLAN,
        None,
        "absent.json: cannot be read: No such file or directory; name a reassignment file",
    ),
    (APPLY, "", None, "plan.json: not JSON: Expecting value: line 1 column 1 (char 0); is the file complete?"),
    (APPLY, changed(version=2), None, "plan.json: Not supported version field value 2"),
    (
        APPLY,
        changed(partitions=[MOVED]),
        None,
        "plan.json: orders-1: partitions and steps name different replicas; change both, or leave out the steps",
    ),
    (
        APPLY,
        moved(4, 4, 3),
        None,
        "plan.json: Partition replica lists may not contain duplicate entries: orders-0 contains multiple entries for 4",
    ),
    (
        APPLY,
        moved(4, 2, 3, log_dirs=["/data", "any", "any"]),
        None,
        'plan.json: orders-0: log directory /data is named; rackspan moves between brokers alone, write "any"',
    ),
    (
        APPLY,
        moved(9, 2, 3),
        None,
        f"broker 9 is down and must receive orders-0; bring it back, or {ANEW}",
    ),
    (APPLY, moved(4, 2, 3, topic="payments"), None, f"topic payments is not in the cluster; {ANEW}"),
    (APPLY, moved(4, 2, 3, partition=7), None, f"partition orders-7 is not in the cluster; {ANEW}"),
    (
        APPLY,
        changed(steps=[{**STEPS[0], "partitions": [{**MOVED, "undo": [1, 2, 5]}]}, STEPS[1]]),
        None,
        f"orders-0 is on 1,2,3: the plan found it on 1,2,5 and leads to 4,2,3; {ANEW}",
    ),
    (
        ("undo", *SNAPSHOT),
        changed(steps=None),
        None,
        "the plan does not say where replicas were; name the --journal of the run that moved them",
    ),
    (
        ("cancel", *SNAPSHOT),
        PLAN,
        None,
        "plan.json.journal: no such journal; name the --journal of the run that is to be cancelled, or cancel whatever is under way with rackspan reassign cancel --in-flight",
    ),
    (
        ("cancel", *DEAD, "--apply"),
        PLAN,
        None,
        "plan.json.journal: no such journal; name the --journal of the run that is to be cancelled, or cancel whatever is under way with rackspan reassign cancel --bootstrap-server 127.0.0.1:1 --in-flight",
    ),
    (
        APPLY,
        PLAN,
        "anything\n",
        "plan.json.journal: line 1 is not an event; restore the file, or name another --journal",
    ),
    (
        APPLY,
        PLAN,
        begun(changed(partitions=[MOVED], steps=STEPS[:1])),
        "plan.json.journal: the journal of another plan; name the --journal of this one",
    ),
    (
        APPLY,
        changed(cluster_id=None),
        begun(changed(cluster_id="other")),
        f"this is cluster {CLUSTER_ID}, the plan is for other; name that one, or {ANEW}",
    ),
    (
        (*APPLY, "--journal", "/proc"),
        PLAN,
        None,
        "/proc: cannot be used as a journal: Is a directory; name another --journal",
    ),
    (
        (*APPLY, "--plan", "-"),
        PLAN,
        None,
        "--plan -: a plan from standard input has no journal beside it; name one with --journal FILE",
    ),
    (("verify",), PLAN, None, "no cluster named: give --bootstrap-server HOST:PORT, --cluster NAME or --snapshot FILE"),
    (("verify", *SNAPSHOT, "--force"), PLAN, None, "No such option: --force; see rackspan reassign verify --help"),
]


@pytest.mark.parametrize(("words", "plan", "journal", "line"), WRONG, ids=[str(number) for number in range(len(WRONG))])
def test_a_mistake_gets_one_line_and_leaves_everything_as_it_was(
    cli: Cli,
    files: Callable[..., None],
    tmp_path: Path,
    words: tuple[str, ...],
    plan: object,
    journal: str | None,
    line: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    files(plan, journal=journal)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(json.dumps(plan).encode())))
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    named = () if "--plan" in words else ("--plan", "plan.json")
    ran = cli("reassign", words[0], *named, *words[1:])
    assert (ran.code, ran.out, ran.err) == (1, "", f"rackspan: {line}\n")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize(
    ("partition", "line"),
    [
        (
            {"replicas": [4, 2, 3, 1], "adding_replicas": [4], "removing_replicas": [1]},
            "orders-0 is being reassigned already, and not by this journal; wait for the end, or cancel it with rackspan reassign cancel --in-flight, then run again",
        ),
        ({"replicas": [6, 2, 3]}, f"orders-0 is on 6,2,3: the plan found it on 1,2,3 and leads to 4,2,3; {ANEW}"),
    ],
)
def test_a_cluster_that_is_not_as_assumed_is_left_alone(
    cli: Cli, files: Callable[..., None], partition: dict[str, Any], line: str
) -> None:
    files(snapshot=snapshot_with(**partition))
    ran = cli("reassign", *APPLY, "--plan", "plan.json")
    assert (ran.code, ran.out, ran.err) == (1, "", f"rackspan: {line}\n")


def test_a_run_that_ended_is_done_only_where_its_partitions_are_as_it_left_them(
    cli: Cli, files: Callable[..., None]
) -> None:
    journal = begun(PLAN, StepCompleted(1), StepCompleted(2), RunCompleted())
    files(journal=journal)
    ran = cli("reassign", *APPLY, "--plan", "plan.json")
    line = f"orders-0 is on 1,2,3: the run ended on 4,2,3, and it was changed since; {ANEW}"
    assert (ran.code, ran.out, ran.err) == (1, "", f"rackspan: {line}\n")
    ended = snapshot_with(replicas=[4, 2, 3])
    ended["topics"][0]["partitions"][1]["replicas"] = [6, 5, 4]
    files(snapshot=ended, journal=journal)
    ran = cli("reassign", *APPLY, "--plan", "plan.json")
    assert (ran.code, ran.out, ran.err) == (0, "settings: none\nnothing is left to do\n", "")


@pytest.mark.parametrize("verb", ["apply", "undo", "verify"])
def test_a_plan_without_partitions_has_nothing_to_move(cli: Cli, files: Callable[..., None], verb: str) -> None:
    """As `reassign plan --out` writes where nothing is to move: a script may go on to lint and apply it."""
    files({"version": 1, "partitions": []})
    ran = cli("reassign", verb, *SNAPSHOT, "--plan", "plan.json")
    # verify compares with the cluster alone.
    head = "" if verb == "verify" else "settings: none\n"
    assert (ran.code, ran.out.strip(), ran.err) == (0, f"{head}nothing to move", "")
    assert not Path("plan.json.journal").exists()


def test_another_reassignment_and_another_topic_are_named(cli: Cli, files: Callable[..., None]) -> None:
    beside = snapshot_with(replicas=[4, 2, 3, 1], adding_replicas=[4], removing_replicas=[1])
    files(changed(partitions=[REORDERED], steps=STEPS[1:]), beside)
    assert cli("reassign", *APPLY, "--plan", "plan.json").err == (
        "rackspan: orders-0: being reassigned, not by this plan; wait for the end, or cancel it with rackspan reassign cancel --in-flight, then run again\n"
    )
    anew = json.loads(json.dumps(GOOD))
    anew["topics"][0]["topic_id"] = "BBBB"
    files(changed(topic_ids={"orders": "AAAA"}), anew)
    assert cli("reassign", *APPLY, "--plan", "plan.json").err == (
        f"rackspan: topic orders was deleted and created again since: its id is BBBB, the plan's AAAA; {ANEW}\n"
    )


SIZED = 3_000
"""Bytes of orders-0 in the snapshot below."""


def test_a_dry_run_shows_what_changes_and_how_long_the_throttle_makes_it_take(
    cli: Cli, files: Callable[..., None]
) -> None:
    files(snapshot=snapshot_with(size_bytes=SIZED))
    words = ("reassign", "apply", "--plan", "plan.json", *SNAPSHOT, "--throttle", "1000", "--details")
    document = cli(*words, "-o", "json").document
    assert (document["bytes"], document["seconds_at_least"]) == (SIZED, 3)
    changes = {one["broker"]: one for one in document["difference"]["brokers"]}
    assert changes[4]["replicas"] == {"before": 1, "after": 2}
    assert (changes[4]["bytes_in"], changes[1]["bytes_out"]) == (SIZED, SIZED)
    assert [(one["partition"], one["before"], one["after"]) for one in document["details"]] == [
        (0, [1, 2, 3], [4, 2, 3]),
        (1, [5, 6, 4], [6, 5, 4]),
    ]
    page = cli(*words).out
    assert "  orders-0: 1,2,3 → 4,2,3  " in page
    assert "  orders-1: 5,6,4 → 6,5,4  preferred leader 5 → 6" in page


def test_a_plan_that_makes_a_partition_less_safe_is_refused_by_apply_and_not_by_undo(
    cli: Cli, files: Callable[..., None]
) -> None:
    files(moved(1, 4, 2))
    words = ("--plan", "plan.json", *SNAPSHOT)
    ran = cli("reassign", "apply", *words)
    assert (ran.code, ran.err) == (
        1,
        "rackspan: the plan leaves 1 partition in 2 racks instead of 3; the loss of one rack would then stop "
        "acks=all on it; make another with rackspan reassign plan --snapshot moment.json, "
        "or accept it with --allow-fewer-racks\n",
    )
    assert "less safe: 1 partition left in 2 racks instead of 3" in ran.out
    ran = cli("reassign", "apply", *words, "--allow-fewer-racks")
    assert (ran.code, ran.err) == (2, "")
    linted = cli("reassign", "lint", *words, "-o", "json").document
    assert {one["constraint"] for one in linted["findings"]} >= {"rack-spread"}


def test_details_are_of_a_dry_run(cli: Cli, files: Callable[..., None]) -> None:
    files()
    ran = cli("reassign", "apply", "--plan", "plan.json", *DEAD, "--details", "--apply")
    assert (ran.code, ran.err) == (
        1,
        "rackspan: --details: a dry run shows them; leave out --apply, or --details\n",
    )


HARMFUL = {"replicas": [4, 2, 3, 1], "adding_replicas": [4], "removing_replicas": [1], "leader": 3, "isr": [4, 3]}
"""The move of orders-0 is under way. Of the brokers that held it only 3 is in sync: a cancel stops acks=all."""

HARM = "orders-0: cancelled now, broker 3 left in sync, min.insync.replicas requires 2"
REVERTED = begun(PLAN, DirectionSet(Direction.ORIGINALS))
MOVING_BACK = {"replicas": [1, 2, 3, 4], "adding_replicas": [1], "removing_replicas": [4], "leader": 3, "isr": [1, 3]}


@pytest.mark.parametrize(
    ("verb", "journal", "partition"),
    [("cancel", begun(), HARMFUL), ("undo", begun(), HARMFUL), ("apply", REVERTED, MOVING_BACK)],
)
def test_a_cancel_on_the_way_that_does_harm_is_refused_unless_it_is_allowed(
    cli: Cli,
    files: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    verb: str,
    journal: str,
    partition: dict[str, Any],
) -> None:
    files(snapshot=snapshot_with(**partition), journal=journal)
    read, flag = snapshot_file.read(Path("moment.json")), "--allow-refused-writes"

    def reached(*_: object, **__: object) -> NoReturn:
        raise UsageError("carried out")

    monkeypatch.setattr(api, "live_cluster", lambda *_, **__: Source("here", lambda: read))
    monkeypatch.setattr(api, "foreign_throttles", lambda _cluster, _state: {})
    for carried_out in ("carry_out", "cancel_reassignment"):
        monkeypatch.setattr(api, carried_out, reached)
    words = ("reassign", verb, "--plan", "plan.json")
    assert cli(*words, *SNAPSHOT).err == f"warning: {HARM}; --apply refuses it\n"
    ran = cli(*words, *DEAD, "--apply")
    until = "wait until the moves have ended or their brokers are back"
    assert (ran.code, ran.err) == (1, f"rackspan: {HARM}; {until}, or accept it with {flag}\n")
    assert cli(*words, *DEAD, "--apply", flag).err == f"warning: {HARM}\nrackspan: carried out\n"


def test_a_cancel_that_loses_every_replica_in_sync_is_never_allowed(
    cli: Cli, files: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    files(snapshot=snapshot_with(**{**HARMFUL, "leader": 4, "isr": [4]}), journal=begun())
    read = snapshot_file.read(Path("moment.json"))
    monkeypatch.setattr(api, "live_cluster", lambda *_, **__: Source("here", lambda: read))
    ran = cli("reassign", "cancel", "--plan", "plan.json", *DEAD, "--apply", "--allow-refused-writes")
    assert (ran.code, ran.err) == (
        1,
        "rackspan: orders-0: cancelled now, no replica left in sync: Kafka refuses the cancel, which would need an unclean "
        "leader election; wait until the moves have ended or their brokers are back\n",
    )
