import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Ran

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
            "option 'magic' is unknown; choose among floating-quotas, joint-standbys, partition-weights, rack-spread-standbys",
        ),
        ((), "Missing option '--problem'; see rackspan streams assign --help"),
    ],
)
def test_a_mistake_gets_one_line(cli: Cli, problem: Path, words: tuple[str, ...], line: str) -> None:
    ran = cli("streams", "assign", *words)
    assert (ran.code, ran.out, ran.err) == (1, "", f"rackspan: {line}\n")
