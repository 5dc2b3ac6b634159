import io
import json
import re
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rackspan import api
from rackspan.audit import RackPolicy, audit
from rackspan.audit.findings import Finding
from rackspan.audit.json_format import FindingDocument, finding_document
from rackspan.cli import pipeline as pipeline_cli
from rackspan.cli.options.fleet import FleetOptions
from rackspan.cli.output import messages
from rackspan.errors import UsageError
from rackspan.model.ids import shown
from rackspan.pipeline import RunReport, create_warehouse
from rackspan.pipeline.follow import FollowedBatch
from rackspan.pipeline.judging.newest_losses import NewestLosses
from rackspan.pipeline.landing.markers import read_markers
from rackspan.pipeline.landing.store import store_all
from rackspan.pipeline.maintain import MaintainedTable
from rackspan.pipeline.schemas import DERIVED, HISTORY, LANDING, NAMES
from rackspan.sources import snapshot_file
from tests.cli.conftest import GOOD, Ran
from tests.cli.test_acks_watch import series
from tests.gateway.process import free_ports
from tests.pipeline.examples import small
from tests.waiting import eventually

Cli = Callable[..., Ran]

TOPIC = ("topic", "internal", "offline", "needs_unclean_election", "under_min_isr", "under_min_racks")
RECORDED = Path(__file__).parent.parent / "vectors" / "snapshots"


def stored(cli: Cli) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = cli("pipeline", "table", "snapshots", "--warehouse", "w", "-o", "json").document
    return rows


@pytest.mark.parametrize(
    ("command", "does", "line"),
    [
        (("run",), "run_pipeline", "the run"),
        (("rebuild",), "rebuild_pipeline", "the rebuild"),
        (("check",), "check_warehouse", "the check"),
        (("maintain",), "maintain", "maintain"),
        (("report", "--out", "page.html"), "report", "the report"),
    ],
)
def test_work_without_a_limit_shows_that_it_goes_on_until_it_ends(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], does: str, line: str
) -> None:
    shown: list[str] = []
    monkeypatch.setattr(messages, "GOES_ON_SECONDS", 0.01)
    monkeypatch.setattr(messages, "note", shown.append)

    def work(*_: Any, **__: Any) -> None:
        eventually(lambda: len(shown) > 1, "two lines are shown", pause_seconds=0.01)
        raise UsageError("it ends")

    monkeypatch.setattr(api, does, work)
    assert cli("pipeline", *command, "--warehouse", "w").code == 1
    assert shown[0] == f"{line} goes on, 0 s so far"
    assert "going-on" not in [thread.name for thread in threading.enumerate()]


@pytest.mark.slow
def test_collect_keeps_each_snapshot_once(cli: Cli, tmp_path: Path) -> None:
    first = cli("pipeline", "collect", "--from-snapshots", RECORDED, "--warehouse", "w")
    assert (first.code, first.out) == (0, "")
    kept = stored(cli)
    assert len(kept) == len(list(RECORDED.glob("*.json")))
    again = cli("pipeline", "collect", "--from-snapshots", RECORDED, "--warehouse", "w")
    assert again.err.count("stored already as") == len(kept)
    assert stored(cli) == kept


@pytest.mark.slow
def test_one_source_that_fails_is_named_and_the_others_are_kept(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "a.json").write_text("{")
    (tmp_path / "s" / "b.json").write_text(json.dumps(GOOD))
    ran = cli("pipeline", "collect", "--from-snapshots", "s", "--warehouse", "w")
    assert ran.code == 1
    assert ran.err.partition("Z ")[2].startswith("s/a.json: error: not JSON:")
    assert len(stored(cli)) == 1


@pytest.mark.slow
def test_collect_keeps_the_racks_that_a_locator_finds(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "moment.json").write_text(json.dumps(GOOD))
    racks = ",".join(f"{broker}=x" for broker in range(1, 7))
    words = ("--rack-locator-class", "properties", "--rack-locator-properties", racks)
    assert cli("pipeline", "collect", "--snapshot", "moment.json", "--warehouse", "w", *words).code == 0
    brokers = cli("pipeline", "table", "brokers", "--warehouse", "w", "-o", "json").document
    assert {broker["rack"] for broker in brokers} == {"x"}


@pytest.mark.slow
def test_lists_of_a_table_are_a_cell_each_on_its_page(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "moment.json").write_text(json.dumps(GOOD))
    assert cli("pipeline", "collect", "--snapshot", "moment.json", "--warehouse", "w").code == 0
    assert "1:r1:True,2:r2:True,3:r3:True" in cli("pipeline", "table", "snapshots", "--warehouse", "w").out


@pytest.mark.slow
def test_export_says_which_files_it_wrote(cli: Cli) -> None:
    assert cli("pipeline", "collect", "--from-snapshots", RECORDED, "--warehouse", "w").code == 0
    ran = cli("pipeline", "export", "brokers", "topics", "--warehouse", "w", "--out", "files")
    assert (ran.code, ran.out) == (0, "")
    assert ran.err == "files/brokers.parquet: written, 41 rows\nfiles/topics.parquet: written, 29 rows\n"
    assert "exists already" in cli("pipeline", "export", "topics", "--warehouse", "w", "--out", "files").err


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (
            ("collect", "--warehouse", "w"),
            "no source named: give --bootstrap-server HOST:PORT, --cluster NAME, --all-clusters, --snapshot FILE or --from-snapshots DIR",
        ),
        (
            ("collect", "--warehouse", "w", "--from-snapshots", "absent"),
            "absent: no such folder; name one that holds snapshots",
        ),
        (
            ("collect", "--snapshot", "x.json"),
            "Missing option '--warehouse' (env var: 'RACKSPAN_WAREHOUSE'); see rackspan pipeline collect --help",
        ),
        (("run",), "Missing option '--warehouse' (env var: 'RACKSPAN_WAREHOUSE'); see rackspan pipeline run --help"),
        (
            ("table", "findings", "--warehouse", "w", "--limit", "-1"),
            "Invalid value for '--limit': expected at least 0; see rackspan pipeline table --help",
        ),
    ],
)
def test_a_mistake_gets_one_line(cli: Cli, tmp_path: Path, words: tuple[str, ...], line: str) -> None:
    ran = cli("pipeline", *words)
    assert (ran.code, ran.out, ran.err) == (1, "", f"rackspan: {line}\n")
    assert list(tmp_path.iterdir()) == []


def test_readings_are_not_collected_more_often_than_snapshots(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    source = SimpleNamespace(name="h:1", read_traffic=print)
    monkeypatch.setattr(FleetOptions, "sources", lambda _options: [source])
    monkeypatch.setattr(api, "collect", lambda *_: iter(()))
    words = ("pipeline", "collect", "--bootstrap-server", "h:1", "--warehouse", "w", "--traffic-every", "60")
    assert cli(*words, "--every", "61").err == (
        "rackspan: --traffic-every 60: a reading is stored with a snapshot, of which there is one every 61 s; give as much or more\n"
    )
    assert cli(*words).code == 0


def test_the_period_of_a_scheduler_says_until_when_snapshots_are_known(cli: Cli) -> None:
    words = ("pipeline", "collect", "--from-snapshots", RECORDED, "--warehouse", "w", "--period", "20")
    refused = cli(*words, "--every", "30")
    assert (refused.code, refused.err) == (
        1,
        "rackspan: --period is that of a scheduler, and --every has one of its own; leave --period out\n",
    )
    assert cli(*words).code == 0
    snapshots = json.loads(cli("pipeline", "table", "snapshots", "--warehouse", "w", "-o", "json").out)
    until = {datetime.fromisoformat(row["known_until"]) - datetime.fromisoformat(row["taken_at"]) for row in snapshots}
    assert until == {timedelta(minutes=1)}


def test_a_batch_of_follow_is_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    made = RunReport("r7", 2_000, rows={"findings": 3, "drift": 1}, seconds=1.25)
    for report, behind in (
        (RunReport(None), None),
        (made, None),
        (replace(made, remade=5, reason="another policy", corrected=1), 61.04),
    ):
        pipeline_cli._report_batch(FollowedBatch(4, report, behind))
    assert capsys.readouterr().err.splitlines() == [
        "batch 4: nothing new",
        "batch 4, run r7: 2,000 snapshots judged; 4 rows written, 1.2 s",
        "batch 4, run r7: 2,000 snapshots judged, 5 judged again because of another policy, 1 compared again; 4 rows written, "
        "1.2 s, 61.0 s behind the newest",
    ]


def test_maintenance_is_a_line_for_each_table_and_ends_with_1_where_files_are_damaged(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = [MaintainedTable("findings", 1, 2_000, 3, 4), MaintainedTable("drift")]
    monkeypatch.setattr(api, "maintain", lambda *_, **__: done)
    ran = cli("pipeline", "maintain", "--warehouse", "w")
    assert (ran.code, ran.err.splitlines()) == (
        0,
        [
            "findings: 1 day dropped, 2,000 files joined into 3, 4 deleted",
            "drift: 0 files joined into 0, 0 deleted",
        ],
    )
    done.append(MaintainedTable("runs", damaged=("a file is torn",)))
    ran = cli("pipeline", "maintain", "--warehouse", "w")
    assert (ran.code, ran.err.count("warning: a file is torn\n")) == (1, 1)


def test_a_time_has_its_offset() -> None:
    assert pipeline_cli._timestamp("2026-11-22T14:00:00+02:00") == datetime(2026, 11, 22, 12, tzinfo=UTC)
    with pytest.raises(UsageError, match=r"^--at 2026-11-22T14:00:00: the offset is missing; end it with Z for UTC$"):
        pipeline_cli._timestamp("2026-11-22T14:00:00")
    with pytest.raises(UsageError, match=r"^--at noon: not a time in ISO 8601; write it as 2026-11-22T14:00:00Z$"):
        pipeline_cli._timestamp("noon")


def test_a_run_has_one_spark(cli: Cli) -> None:
    ran = cli("pipeline", "run", "--warehouse", "w", "--master", "local[1]", "--remote", "sc://h")
    assert (ran.code, ran.err) == (1, "rackspan: --master and --remote both name a Spark; give one of them\n")


@pytest.mark.parametrize("left_out", [0, 1])
def test_a_report_is_written_to_the_file_that_is_named_and_warns_of_what_it_lacks(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, left_out: int
) -> None:
    def report(_warehouse: object, _policy: object, out: Path, titles: object, on_left_out: Any) -> list[str]:
        out.write_text("page")
        for _ in range(left_out):
            on_left_out("a file")
        return ["cluster x: no snapshot for an hour"]

    monkeypatch.setattr(api, "report", report)
    ran = cli("pipeline", "report", "--warehouse", "w", "--out", "r.html")
    assert Path("r.html").read_text() == "page"
    assert ran.code == left_out
    assert "warning: cluster x: no snapshot for an hour" in ran.err
    assert ran.err.splitlines()[-1] == "r.html: written; it needs no network to be read"


@pytest.mark.parametrize("verb", [("run",), ("table", "findings"), ("report", "--out", "r.html")])
def test_a_folder_that_is_no_warehouse_is_refused(cli: Cli, tmp_path: Path, verb: tuple[str, ...]) -> None:
    ran = cli("pipeline", *verb, "--warehouse", "absent")
    assert (ran.code, ran.out, ran.err.count("\n")) == (1, "", 1)
    assert "rackspan: absent: " in ran.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_tables_before_any_run_are_missed_in_one_line(cli: Cli, tmp_path: Path) -> None:
    cli("pipeline", "collect", "--from-snapshots", RECORDED, "--warehouse", "w")
    ran = cli("pipeline", "table", "findings", "--warehouse", "w")
    where = tmp_path / "w"
    assert ran.err == f"rackspan: {where}: has no table findings yet; run rackspan pipeline run --warehouse {where}\n"
    ran = cli("pipeline", "table", "colours", "--warehouse", "w")
    assert (ran.code, ran.err.count("\n")) == (1, 1)
    assert "colours" in ran.err


@pytest.mark.java
@pytest.mark.spark
def test_collected_snapshots_become_the_tables_and_the_page(cli: Cli, tmp_path: Path) -> None:
    cli("pipeline", "collect", "--from-snapshots", RECORDED, "--warehouse", "w")
    ran = cli("pipeline", "run", "--warehouse", "w")
    assert ran.code == 0, ran.err
    rows = cli("pipeline", "table", "findings", "--warehouse", "w", "-o", "json").document
    assert [_found(row) for row in rows] == [finding for path in _by_timestamp() for finding in _audited(path)]
    impact = cli("pipeline", "table", "outage_impact", "--warehouse", "w", "-o", "json").document
    for path in RECORDED.glob("*.json"):
        _check_impact(cli("outage", "--snapshot", path, "-o", "json").document, impact)
    assert cli("pipeline", "table", "drift", "--warehouse", "w").code == 0
    # A table without rows is its header.
    header, *prices = cli("pipeline", "table", "bill", "--warehouse", "w", "-o", "csv").out.splitlines()
    assert (header.split(",")[:2], prices) == (["cluster_id", "hour"], [])
    untouched = cli("pipeline", "run", "--warehouse", "w")
    assert untouched.err.splitlines()[-1].partition("Z ")[2].startswith("0 snapshots judged, ")
    assert " up to date; 0 rows written" in untouched.err
    drawn = cli("pipeline", "report", "--warehouse", "w", "--out", "page.html")
    assert (drawn.code, drawn.err) == (0, "settings: none\npage.html: written; it needs no network to be read\n")
    page = (tmp_path / "page.html").read_text()
    assert "does not survive the loss of a rack" in page
    otherwise = cli("pipeline", "report", "--warehouse", "w", "--out", "page.html", "--min-insync-racks", "2")
    assert (otherwise.code, otherwise.err.splitlines()[0]) == (
        0,
        "warning: the tables were made with min_insync_racks 1, the verdicts on the page with min_insync_racks 2; "
        "give run and report the same policy",
    )


def _check_impact(refused: dict[str, Any], impact: list[dict[str, Any]]) -> None:
    """What `rackspan outage` says of a snapshot is what the table says of it."""
    rows = [
        row for row in impact if (row["cluster_id"], row["taken_at"]) == (refused["cluster_id"], refused["taken_at"])
    ]
    losses = [{**refused["now"], "racks": []}, *refused["losses"]]
    assert sum(row["topic"] is None for row in rows) == len(losses)
    for loss in losses:
        [whole, *topics] = [row for row in rows if [shown(rack) for rack in row["lost_racks"]] == loss["racks"]]
        # What a topic must survive is the policy's; the table holds what the loss does.
        reported = [{name: one[name] for name in TOPIC} for one in loss["topics"]]
        assert [{name: row[name] for name in TOPIC} for row in topics] == sorted(
            reported, key=lambda one: str(one["topic"])
        )
        if loss["racks"]:
            assert whole["survived"] == loss["survived"]
            assert {str(one["broker"]): one["leaders"] for one in whole["leader_surge"]} == loss["leader_surge"]
            assert whole["quorum_holds"] == (loss["controller_quorum"] or {"holds": None})["holds"]


def _by_timestamp() -> list[Path]:
    """In the order of a table: by cluster and timestamp."""
    snapshot = {path: snapshot_file.read(path).snapshot for path in RECORDED.glob("*.json")}
    return sorted(snapshot, key=lambda path: (str(snapshot[path].cluster_id), str(snapshot[path].taken_at)))


def _audited(path: Path) -> list[FindingDocument]:
    findings = audit(snapshot_file.read(path).snapshot, RackPolicy()).findings
    return [finding_document(one) for one in sorted(findings, key=_grain)]


def _grain(one: Finding) -> tuple[object, ...]:
    return (one.constraint, one.topic or "", -1 if one.partition is None else one.partition, one.reason)


def _found(row: dict[str, object]) -> dict[str, object]:
    return {name: row[name] for name in ("constraint", "severity", "topic", "partition", "reason", "remedy")}


def test_the_help_lists_the_tables_there_are() -> None:
    assert (*DERIVED, *LANDING, *HISTORY, *NAMES) == pipeline_cli.TABLES


def damaged_warehouse(cli: Cli, tmp_path: Path) -> Path:
    """A warehouse of two snapshots, whose newest log entry of `snapshots` is torn."""
    (tmp_path / "s").mkdir()
    for hour in (1, 2):
        document = {**GOOD, "taken_at": f"2026-11-21T0{hour}:00:00Z"}
        (tmp_path / "s" / "now.json").write_text(json.dumps(document))
        assert cli("pipeline", "collect", "--from-snapshots", "s", "--warehouse", "w").code == 0
    entry = max((tmp_path / "w/tables/snapshots/_delta_log").glob("*.json"))
    entry.write_bytes(entry.read_bytes()[:50])
    return entry


@pytest.mark.slow
def test_a_collect_that_repairs_a_torn_log_says_so_and_loses_nothing(cli: Cli, tmp_path: Path) -> None:
    entry = damaged_warehouse(cli, tmp_path)
    ran = cli("pipeline", "check", "--warehouse", "w", "-o", "json")
    assert ran.code == 2
    assert [(one["kind"], one["table"], one["remedy"]) for one in ran.document["problems"]] == [
        ("torn-log", "snapshots", f"rackspan pipeline run --warehouse {tmp_path}/w")
    ]
    ran = cli("pipeline", "table", "snapshots", "--warehouse", "w")
    assert ran.code == 1
    assert (
        "in its log is torn, so its newest rows are missing; rackspan pipeline run --warehouse w repairs it" in ran.err
    )
    ran = cli("pipeline", "collect", "--from-snapshots", "s", "--warehouse", "w")
    assert ran.code == 0
    assert f"table snapshots: {entry.name} in its log was torn, and is kept with the ending .torn" in ran.err
    assert "stored already" in ran.err
    assert len(stored(cli)) == 2
    assert cli("pipeline", "check", "--warehouse", "w", "--whole").code == 0


@pytest.mark.slow
def test_a_collect_that_finds_a_part_of_a_snapshot_lost_ends_with_1(cli: Cli, tmp_path: Path) -> None:
    damaged_warehouse(cli, tmp_path)
    for file in (tmp_path / "w/tables/snapshots").glob("day=*/*.parquet"):
        file.write_bytes(b"")
    ran = cli("pipeline", "collect", "--from-snapshots", "s", "--warehouse", "w")
    assert ran.code == 1
    assert "in its log was torn" in ran.err


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.slow
def test_check_prints_the_problem_and_the_command(cli: Cli, tmp_path: Path) -> None:
    damaged_warehouse(cli, tmp_path)
    cli("pipeline", "collect", "--from-snapshots", "s", "--warehouse", "w")
    ran = cli("pipeline", "check", "--warehouse", "w", "--max-age", "1")
    assert ran.code == 2
    assert "no snapshot for" in ran.out
    # Its file has no name, under which a command could collect it.
    assert "see why its collector stopped, and start it again" in ran.out
    whole = {file: file.read_bytes() for file in (tmp_path / "w/tables/brokers").glob("day=*/*.parquet")}
    for file, content in whole.items():
        file.write_bytes(content[:40])
    ran = cli("pipeline", "check", "--warehouse", "w")
    assert ran.code == 2
    assert f"rackspan pipeline maintain --drop-damaged --warehouse {tmp_path}/w" in ran.out
    ran = cli("pipeline", "table", "brokers", "--warehouse", "w", "-o", "json")
    assert (ran.code, ran.document) == (1, [])
    assert "are left out" in ran.err
    ran = cli("pipeline", "maintain", "--drop-damaged", "--warehouse", "w")
    assert ran.code == 1
    assert "is not whole" in ran.err
    assert "nothing is dropped; add --yes to drop what is named above" in ran.err
    assert cli("pipeline", "check", "--warehouse", "w").code == 2
    with pytest.MonkeyPatch.context() as patched:
        for response, code in (("n", 1), ("y", 0)):
            patched.setattr(sys, "stdin", Terminal(f"{response}\n"))
            ran = cli("pipeline", "maintain", "--drop-damaged", "--warehouse", "w")
            assert ran.code == code, ran.err
    assert "was not whole, and is dropped" in ran.err
    assert cli("pipeline", "check", "--warehouse", "w").code == 0
    undo = re.search(r"rackspan (pipeline maintain --undo-drop --warehouse \S+) brings back for 168 hours", ran.err)
    assert undo is not None
    assert cli(*undo[1].split()).code == 1, "the file is damaged still"
    for file, content in whole.items():
        file.write_bytes(content)
    assert cli(*undo[1].split(), "--vacuum-hours", "100").code == 0
    assert len(cli("pipeline", "table", "brokers", "--warehouse", "w", "-o", "json").document) > 0
    for words in (("--yes",), ("--drop-damaged", "--undo-drop")):
        assert cli("pipeline", "maintain", *words, "--warehouse", "w").code == 1


def test_rebuild_names_the_tables_that_it_can_make(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "now.json").write_text(json.dumps(GOOD))
    cli("pipeline", "collect", "--snapshot", "now.json", "--warehouse", "w")
    ran = cli("pipeline", "rebuild", "brokers", "--warehouse", "w")
    assert ran.code == 1
    assert "the derived tables are partition_durability, findings, outage_impact, drift" in ran.err
    assert cli("pipeline", "check", "--warehouse", "absent").code == 1


def test_follow_serves_what_the_loss_of_a_rack_would_do_to_each_cluster_by_its_name(
    cli: Callable[..., Ran], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it begins, of what is stored; after a batch, of what that judged."""
    monkeypatch.chdir(tmp_path)
    Path("rackspan.toml").write_text(
        '[clusters.eu]\nbootstrap-server = "127.0.0.1:1"\ncluster-id = "b"\nname = "Europe"\n', encoding="utf-8"
    )
    warehouse, (port,) = create_warehouse(tmp_path / "w"), free_ports(1)
    now = datetime.now(UTC)
    store_all([small("a", now)], warehouse)

    def known() -> set[tuple[str, ...]]:
        return {key[1:] for key, value in series(f"127.0.0.1:{port}").items() if key[0] == KNOWN and value == 1}

    def following(_: object, policies: object, on_batch: Any, stop: object, *, losses: NewestLosses, **__: Any) -> None:
        with losses.judged(warehouse):
            eventually(lambda: known() == {("a", "a")}, "what is stored is judged")
            store_all([small("b", now)], warehouse)
            judged = [stored for stored in read_markers(warehouse).of_days([now.date()]) if stored.cluster_id == "b"]
            on_batch(FollowedBatch(0, RunReport("1", judged=judged), None))
            eventually(lambda: known() == {("a", "a"), ("Europe", "b")}, "what a batch judged is served")

    monkeypatch.setattr(api, "follow_pipeline", following)
    ran = cli("pipeline", "follow", "--warehouse", "w", "--metrics-listen", f"127.0.0.1:{port}")
    assert ran.code == 0, ran.err


KNOWN = "rackspan_rack_loss_known"
