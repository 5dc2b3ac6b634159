"""rackspan advise on snapshots; tests/sources/test_advice_carried_out.py carries out what it says of traffic."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from rackspan import api
from rackspan.audit import RackPolicy
from rackspan.sources import snapshot_file
from tests.cli.conftest import GOOD, Ran


@pytest.fixture
def stacked(tmp_path: Path) -> Path:
    """Two of three replicas in one rack, on brokers 1 and 4."""
    document: dict[str, Any] = json.loads(json.dumps(GOOD))
    document["topics"][0]["partitions"][0] |= {"replicas": [1, 4, 2], "isr": [1, 4, 2], "leader": 1}
    file = tmp_path / "stacked.json"
    file.write_text(json.dumps(document))
    return file


def test_risks_of_a_snapshot_come_with_their_command(cli: Callable[..., Ran], stacked: Path) -> None:
    ran = cli("advise", "--snapshot", str(stacked), "-o", "json")
    audited = cli("audit", "--snapshot", str(stacked), "-o", "json").document
    assert ran.code == 2
    advice = ran.document["advice"]
    assert [each["rank"] for each in advice] == [*range(1, len(advice) + 1)]
    assert {(each["kind"], each["command"]) for each in advice} == {
        (finding["constraint"], finding["remedy"]) for finding in audited["findings"]
    }
    assert {each["concern"] for each in advice} == {"risk"}
    assert {each["seconds_at_risk"] for each in advice} == {each["bytes_a_month"] for each in advice} == {None}
    assert ran.document["summary"]["seconds"] is None


def test_the_page_has_the_command_alone_on_its_line_and_says_that_traffic_was_not_measured(
    cli: Callable[..., Ran], stacked: Path
) -> None:
    ran = cli("advise", "--snapshot", str(stacked))
    assert "    rackspan reassign plan" in ran.out
    assert ran.out.splitlines()[-1].endswith("; traffic was not measured")


def test_what_a_warehouse_has_is_judged_by_the_policy_and_of_the_cluster_that_are_named(
    cli: Callable[..., Ran], stacked: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[tuple[object, ...]] = []

    def stored(warehouse: str, policy: RackPolicy, cluster_id: str | None) -> tuple[object, ...]:
        given.append((warehouse, policy.min_insync_racks, cluster_id))
        return snapshot_file.read(stacked).snapshot, [], datetime(2026, 11, 22, 14, tzinfo=UTC), ("sizes",)

    monkeypatch.setattr(api, "advise_stored", stored)
    ran = cli("advise", "--warehouse", "w", "--cluster-id", "x", "--min-insync-racks", "2", "-o", "json")
    assert given == [("w", 2, "x")]
    summary = ran.document["summary"]
    assert (summary["unread"], summary["hour"], summary["seconds"]) == (["sizes"], "2026-11-22T14:00:00Z", 3600)


def test_nothing_to_do_ends_with_0(cli: Callable[..., Ran], tmp_path: Path) -> None:
    file = tmp_path / "good.json"
    file.write_text(json.dumps(GOOD))
    ran = cli("advise", "--snapshot", str(file))
    assert (ran.code, ran.out.splitlines()[-1]) == (0, "nothing to do; traffic was not measured")


@pytest.mark.parametrize(
    "words",
    [
        ("--seconds", "5"),
        ("--prices", "x.json"),
        ("--network", "10.0.0.0/8=r1"),
        ("--counters", "http://g:1/metrics"),
        ("--least", "1GB"),
    ],
)
def test_what_is_about_traffic_is_refused_of_a_snapshot(
    cli: Callable[..., Ran], stacked: Path, words: tuple[str, str]
) -> None:
    ran = cli("advise", "--snapshot", str(stacked), *words)
    assert (ran.code, ran.out) == (1, "")
    assert f"{words[0]}: a snapshot has no traffic; name a running cluster with --bootstrap-server" in ran.err


def test_what_is_named_at_a_higher_level_counts_before_a_warehouse_and_two_flags_are_refused(
    cli: Callable[..., Ran], tmp_path: Path, stacked: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rackspan.toml").write_text('warehouse = "none"\n')
    no_folder = "rackspan: none: no such folder; fill it first with rackspan pipeline collect --warehouse none\n"
    assert cli("advise", "--snapshot", str(stacked)).code == 2
    assert cli("advise").err == no_folder
    both = cli("advise", "--snapshot", str(stacked), "--warehouse", "none")
    assert both.err == "rackspan: --warehouse: is read in place of a cluster or snapshot; name one of them\n"
    assert cli("advise", "--warehouse", "none", "--seconds", "5").err == (
        "rackspan: --seconds: the tables of a warehouse are made already; see rackspan pipeline run --warehouse none\n"
    )
    unused = cli("advise", "--snapshot", str(stacked), "--cluster-id", "x")
    assert (
        unused.err == "rackspan: --cluster-id: only a warehouse may have several clusters; give it with --warehouse\n"
    )
    monkeypatch.setenv("RACKSPAN_SNAPSHOT", str(stacked))
    assert cli("advise").code == 2
    assert cli("advise", "--warehouse", "none").err == no_folder
    monkeypatch.setenv("RACKSPAN_WAREHOUSE", "none")
    assert cli("advise").code == 2
