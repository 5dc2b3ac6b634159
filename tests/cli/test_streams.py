import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rackspan import api
from rackspan.model.group import MemberDescription
from rackspan.model.snapshot import ReadSnapshot
from rackspan.sources.source import Source
from rackspan.streams import streams_group
from tests.cli.conftest import Ran
from tests.streams.groups import cluster, described, member

Cli = Callable[..., Ran]

PROBLEM: dict[str, Any] = {
    "config": {"strategy": "min_traffic"},
    "clients": [
        {"process_id": f"00000000-0000-0000-0000-00000000000{number}", "rack": f"r{number}", "threads": 1}
        for number in (1, 2)
    ],
    "tasks": [
        {"id": f"0_{number}", "stateful": True, "source": [f"orders:{number}"], "changelog": []} for number in (0, 1)
    ],
    "partitions": {"orders:0": ["r1"], "orders:1": ["r2"]},
    "initial_active": {
        "00000000-0000-0000-0000-000000000001": ["0_1"],
        "00000000-0000-0000-0000-000000000002": ["0_0"],
    },
}


@pytest.fixture
def problem(tmp_path: Path) -> Path:
    path = tmp_path / "problem.json"
    path.write_text(json.dumps(PROBLEM))
    return path


def test_tasks_go_where_their_partitions_are(cli: Cli, problem: Path) -> None:
    ran = cli("streams", "assign", "--problem", problem)
    assert (ran.code, ran.err) == (0, "")
    assert [tasks["active"] for tasks in ran.document["assignment"].values()] == [["0_0"], ["0_1"]]
    assert ran.document["cross_rack"]["active"] == 0
    assert ran.document["certificate"]["stateful"]["lower_bound"] == ran.document["cost"]["stateful"]


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"tasks": {}}, "problem: tasks is {}, not a list; fix it in the file"),
    ({"initial_active": {}}, "task 0_0: is active on no client; add it to initial_active"),
    (
        {"config": {**PROBLEM["config"], "num_standbys": 1}},
        "task 0_0: is stateful but has no changelog to price its standbys by; add it, or give streams audit "
        "--changelog 0=TOPIC",
    ),
    (
        {"config": {"strategy": "cheapest"}},
        "rack.aware.assignment.strategy is 'cheapest'; choose none, min_traffic (min_cost in KIP-925) or "
        "balance_subtopology (balanced_min_cost)",
    ),
]


@pytest.mark.parametrize(("changed", "line"), WRONG)
@pytest.mark.parametrize("verb", ["assign", "lab"])
def test_an_error_names_the_problem_file(
    cli: Cli, problem: Path, verb: str, changed: dict[str, Any], line: str
) -> None:
    problem.write_text(json.dumps({**PROBLEM, **changed}))
    ran = cli("streams", verb, "--problem", "problem.json")
    assert (ran.code, ran.out, ran.err) == (1, "", f"rackspan: problem.json: {line}\n")


def test_people_get_a_table(cli: Cli, problem: Path) -> None:
    assert "partitions that cross racks: 0 active" in cli("streams", "assign", "--problem", problem, "-o", "human").out


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("--problem", "absent.json"), "absent.json: cannot be read: No such file or directory; name a problem file"),
        (
            ("--problem", "problem.json", "--assignor", "best"),
            "assignor 'best' is unknown; choose among optimize, high-availability, sticky",
        ),
        (
            ("--problem", "problem.json", "--beyond", "magic"),
            "option 'magic' is unknown; choose among floating-quotas, joint-standbys, partition-weights, previous-overlap, rack-spread-standbys",
        ),
        ((), "Missing option '--problem'; see rackspan streams assign --help"),
    ],
)
def test_a_mistake_gets_one_line(cli: Cli, problem: Path, words: tuple[str, ...], line: str) -> None:
    ran = cli("streams", "assign", *words)
    assert (ran.code, ran.out, ran.err) == (1, "", f"rackspan: {line}\n")


LAB = ("streams", "lab", "--problem")


def test_the_lab_prints_a_row_for_each_setting_and_draws_them(cli: Cli, problem: Path, tmp_path: Path) -> None:
    ran = cli(*LAB, problem, "--assignor", "optimize", "--strategy", "min_traffic", "--out", tmp_path / "lab.svg")
    assert (ran.code, ran.err) == (0, f"{tmp_path / 'lab.svg'}: drawn\n")
    assert ran.out.splitlines()[0].strip() == f"{problem}: 2 tasks, 2 clients, 2 racks"
    assert " ".join(ran.out.splitlines()[2].split()) == ("optimize min_traffic 10/1 0 0 0 2 1 to 1 0 1")
    assert (tmp_path / "lab.svg").read_text().startswith("<svg xmlns=")


def test_csv_of_the_lab_has_a_row_for_each_setting(cli: Cli, problem: Path) -> None:
    ran = cli(*LAB, problem, "--assignor", "optimize", "--strategy", "min_traffic", "-o", "csv")
    header, *rows = ran.out.splitlines()
    assert header.split(",")[:3] == ["problem", "assignor", "strategy"]
    assert [row.split(",")[:3] for row in rows] == [[str(problem), "optimize", "min_traffic"]] * len(rows)
    assert len(rows) == 1


def test_the_labs_document_has_every_setting_of_every_problem(cli: Cli, problem: Path, tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text(problem.read_text())
    document = cli(
        *LAB, problem, "--problem", "other.json", "--weights", "10/1", "--weights", "1/10", "-o", "json"
    ).document
    assert [one["problem"] for one in document["problems"]] == [str(problem), "other.json"]
    # Without racks nothing is weighed: one run for each of two assignors, and four for each other strategy.
    assert [len(one["runs"]) for one in document["problems"]] == [10, 10]


def test_the_lab_warns_of_what_a_problem_configures_in_vain(cli: Cli, problem: Path, tmp_path: Path) -> None:
    """Once for each problem, however many settings it is replayed under."""
    tasks = [{**task, "changelog": task["source"]} for task in PROBLEM["tasks"]]
    clients = [{**client, "tags": {"rack": client["rack"]}} for client in PROBLEM["clients"]]
    config = {"num_standbys": 1, "rack.aware.assignment.tags": ["rack"], "poll.ms": 5}
    problem.write_text(json.dumps({**PROBLEM, "config": config, "tasks": tasks, "clients": clients}))
    sticky = (
        "rack.aware.assignment.tags has no effect: the sticky assignor, as Kafka's, places standbys by load and by where they "
        "were; choose high-availability to spread them by tags"
    )
    unknown = "config: unknown key 'poll.ms' ignored"
    ran = cli(*LAB, "problem.json", "-o", "json")
    assert ran.document["problems"][0]["warnings"] == [unknown, sticky]
    assert ran.err == "".join(f"warning: problem.json: {each}\n" for each in (unknown, sticky))
    assert cli(*LAB, "problem.json", "--assignor", "high-availability").err == f"warning: problem.json: {unknown}\n"


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("lab",), "Missing option '--problem'; see rackspan streams lab --help"),
        (("lab", "--problem", "no.json"), "no.json: cannot be read: No such file or directory; name a problem file"),
        (
            ("lab", "--problem", "broken.json"),
            "broken.json: not JSON: Expecting value: line 1 column 1 (char 0); is the file complete?",
        ),
        (("lab", "--problem", "empty.json"), "empty.json: problem: tasks is missing; add it and run again"),
        (
            ("lab", "--problem", "problem.json", "--weights", "ten"),
            "weights 'ten': they are written TRAFFIC/NON-OVERLAP, such as 10/1; correct them",
        ),
        (
            ("lab", "--problem", "problem.json", "--strategy", "MIN_TRAFFIC"),
            "rack.aware.assignment.strategy is 'MIN_TRAFFIC'; choose none, min_traffic (min_cost in KIP-925) or "
            "balance_subtopology (balanced_min_cost)",
        ),
        (
            ("lab", "--problem", "problem.json", "--assignor", "range"),
            "assignor 'range' is unknown; choose among optimize, high-availability, sticky",
        ),
        (
            ("lab", "--problem", "problem.json", "--weights", "99999999999/1", "--strategy", "min_traffic"),
            "rack.aware.assignment.traffic_cost is 99999999999, outside 0 to 2147483647; fix it in the file",
        ),
        (
            ("lab", "--problem", "problem.json", "--out", "absent/lab.svg"),
            "absent/lab.svg: cannot be written: No such file or directory; choose another --out",
        ),
        (("audit",), "Missing option '--group'; see rackspan streams audit --help"),
        (("audit", "--group", "shop"), "no cluster named: give --bootstrap-server HOST:PORT or --cluster NAME"),
        (
            ("audit", "--group", "shop", "--bootstrap-server", "127.0.0.1:1"),
            "no broker responded: 127.0.0.1:1: connection refused; check --bootstrap-server, and that the cluster is up",
        ),
        (
            ("audit", "--group", "shop", "--bootstrap-server", "127.0.0.1:1", "--changelog", "1"),
            "--changelog 1: expected SUBTOPOLOGY=TOPIC",
        ),
        (
            ("audit", "--group", "shop", "--bootstrap-server", "127.0.0.1:1", "--rack-locator-class", "nowhere"),
            "rack locator 'nowhere': not found; there are availability-zones, command, file, host-pattern, properties, registered, or name a module:Class",
        ),
    ],
)
def test_a_mistake_in_lab_and_audit_gets_one_line(
    cli: Cli, problem: Path, tmp_path: Path, words: tuple[str, ...], line: str
) -> None:
    (tmp_path / "broken.json").write_text("")
    (tmp_path / "empty.json").write_text("{}")
    before = sorted(path.name for path in tmp_path.iterdir())
    ran = cli("streams", *words)
    assert (ran.code, ran.out, ran.err) == (1, "", f"rackspan: {line}\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == before


# -- the human-readable audit of a given group


def live(
    *members: MemberDescription, monkeypatch: pytest.MonkeyPatch, partial: tuple[str, ...] = ()
) -> tuple[str, ...]:
    """The arguments of an audit of this group, on a cluster with one topic and one store."""
    snapshot = replace(cluster({"orders": [[1], [2]], "shop-s-changelog": [[2], [1]]}), partial=partial)
    monkeypatch.setattr(api, "read_streams_group", lambda _cluster, _group: streams_group(described(*members)))
    monkeypatch.setattr(api, "live_cluster", lambda *_, **_sizes: Source("here", lambda: ReadSnapshot(snapshot, ())))
    return ("streams", "audit", "--bootstrap-server", "here:1", "--group", "shop")


def swapped(**values: Any) -> list[MemberDescription]:
    """Two clients, each in the rack of the other's partition, and with a standby of the other's task."""
    return [
        member("a", process=1, rack="r1", active={"0_1": ["orders:1"]}, standby={"0_0": ["orders:0"]}, **values),
        member("b", process=2, rack="r2", active={"0_0": ["orders:0"]}, standby={"0_1": ["orders:1"]}, **values),
    ]


def test_people_read_clients_strategies_and_a_verdict(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = cli(*live(*swapped(), monkeypatch=monkeypatch))
    assert (ran.code, ran.err) == (2, "")
    assert ran.out.splitlines()[-3:-1].count("") == 1  # One empty line, not two, where nothing is unknown.
    assert [" ".join(line.split()) for line in ran.out.splitlines() if line] == [
        "group shop: 2 tasks with state, 0 without, 1 standby each",
        "client rack threads active across racks standby across racks",
        "a r1 1 1 1 1 1",
        "b r2 1 1 1 1 1",
        "active across racks standby across racks active tasks moved",
        "now 2 of 2 2 of 2",
        "none 0 of 2 0 of 2 2",
        "min_traffic 0 of 2 0 of 2 2",
        "balance_subtopology 0 of 2 0 of 2 2",
        "2 partitions cross racks needlessly: set rack.aware.assignment.strategy=min_traffic on every client",
    ]


def test_csv_of_an_audit_has_a_row_for_each_strategy(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = cli(*live(*swapped(), monkeypatch=monkeypatch), "-o", "csv")
    assert ran.out.splitlines() == [
        "strategy,active_across_racks,standby_across_racks,active_moved",
        "now,2,2,",
        "none,0,0,2",
        "min_traffic,0,0,2",
        "balance_subtopology,0,0,2",
    ]


def test_an_audit_warns_of_what_the_snapshot_lacks(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    hidden = "topics pay: on disk but not shown to this user, who needs Describe on Topic pay"
    assert cli(*live(*swapped(), monkeypatch=monkeypatch, partial=(hidden,))).err == f"warning: {hidden}\n"


def test_changelogs_of_unknown_sub_topologies_are_listed(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    old = member("old", process=3, active={"1_0": ["clicks:0"]}, protocol_version=2)
    ran = cli(*live(*swapped(), old, monkeypatch=monkeypatch))
    assert ran.code == 1
    assert ran.out.splitlines()[-4:] == [
        "unknown: active tasks have no price: client 00000000-0000-4000-8000-000000000003 has no client.rack; set it on every consumer",
        "unknown: client old is older than Kafka 3.4 and does not report its rack; upgrade it",
        "",
        "no price: see above",
    ]


def test_a_captured_group_is_a_problem_for_assign_and_for_the_lab(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = cli(*live(*swapped(), monkeypatch=monkeypatch), "--capture", "group.json")
    assert ran.err == "group.json: 2 tasks, 2 clients\n"
    assigned = cli("streams", "assign", "--problem", "group.json").document
    assert assigned["cross_rack"] == {"active": 0, "standby": 0}
    assert cli(*LAB, "group.json").code == 0


def test_a_capture_that_cannot_be_written_gets_one_line(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = cli(*live(*swapped(), monkeypatch=monkeypatch), "--capture", "absent/group.json")
    line = "absent/group.json: cannot be written: No such file or directory; choose another --capture"
    assert (ran.code, ran.out, ran.err) == (1, "", f"rackspan: {line}\n")
