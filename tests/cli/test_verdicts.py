"""Lines that sum up a page or a run, word for word."""

from collections.abc import Callable
from typing import Any

import pytest

from rackspan import api
from rackspan.acks.watch import Watch, cluster_isr
from rackspan.audit import RackPolicy
from rackspan.cli.pipeline import _report_run
from rackspan.cli.restart.pages import _plan_verdict
from rackspan.cli.traffic.clients import _verdict
from rackspan.errors import ClusterUnreachable
from rackspan.pipeline.incremental import RunReport
from rackspan.pipeline.warehouse import Repair
from tests.cli.conftest import Ran, good
from tests.snapshots import of_one_topic


def groups(*cross_rack: int | None, measured: tuple[int | None, ...] = (None,)) -> list[dict[str, Any]]:
    members = [{"measured_cross_rack_bytes": count} for count in measured]
    return [{"cross_rack": count, "members": members} for count in cross_rack]


@pytest.mark.parametrize(
    ("document", "line"),
    [
        ({"groups": [], "findings": []}, "no group has members"),
        (
            {"groups": groups(None), "findings": []},
            "which partitions are read across racks is not known; nothing to do",
        ),
        (
            {"groups": groups(1, None), "findings": [{}]},
            "1 partition read across racks by 1 of 2 groups by Kafka's rules, not verified; 1 thing to do",
        ),
        (
            {"groups": groups(1500, 2, measured=(0, None)), "findings": [{}, {}]},
            "1,502 partitions read across racks by Kafka's rules, verified by counters for 2 of 4 members; 2 things to do",
        ),
    ],
)
def test_clients_are_summed_up_by_what_is_known_of_them(document: Any, line: str) -> None:
    assert _verdict(document) == line


@pytest.mark.parametrize(
    ("report", "lines", "left_out"),
    [
        (
            RunReport("1", 1200, rows={"findings": 3000}, seconds=1.25),
            ["1,200 snapshots judged, 0 up to date; 3,000 rows written, 1.2 s"],
            False,
        ),
        (
            RunReport("1", 1, 1, "another policy", {"findings": 1}, 7),
            ["1 snapshot judged, 1 judged again because of another policy, 7 up to date; 1 row written, 0.0 s"],
            False,
        ),
        (
            RunReport("1", quarantined={"snapshots": "part 1 is torn", "b": "gone", "c": "gone", "d": "gone"}),
            [
                "0 snapshots judged, 0 up to date; 0 rows written, 0.0 s",
                "rackspan: 4 snapshots left out, because data files are damaged; snapshots: part 1 is torn; b: gone; c: gone; "
                "rackspan pipeline check --warehouse /w shows what to do",
            ],
            True,
        ),
        (
            RunReport(None, quarantined={"snapshots": "part 1 is torn"}),
            [
                "0 snapshots judged, 0 up to date; 0 rows written, 0.0 s",
                "rackspan: 1 snapshot left out, because data files are damaged; rackspan pipeline check --warehouse /w shows what to do",
            ],
            True,
        ),
        (
            RunReport("1", repair=Repair(lines=("put back a log",), lost=("rows of a day are lost",))),
            [
                "0 snapshots judged, 0 up to date; 0 rows written, 0.0 s",
                "put back a log",
                "rackspan: rows of a day are lost",
            ],
            True,
        ),
    ],
)
def test_a_run_is_summed_up_with_what_it_left_out_and_why_where_it_is_new(
    report: RunReport, lines: list[str], left_out: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _report_run(report, "/w") is left_out
    assert [line.removeprefix("warning: ") for line in capsys.readouterr().err.splitlines()] == lines


@pytest.mark.parametrize(
    ("partition", "line"),
    [({}, "no violations, 0 warnings"), ({"isr": [1]}, "1 violation on 1 partition, 0 warnings")],
)
def test_an_audit_is_summed_up_by_its_violations(
    partition: dict[str, Any], line: str, cli: Callable[..., Ran], write: Callable[[object], Any]
) -> None:
    assert line in cli("audit", "--snapshot", write(good(**partition))).out.splitlines()


@pytest.mark.parametrize(
    ("batches", "blocked", "line"),
    [
        (3, [], "3 batches; no plan needs fewer: one a rack"),
        (1, [], "1 batch; fewer than 3 are impossible: one a rack"),
        (0, [], "no batch: nothing to restart"),
        (0, [{}], "no batch: nothing can be restarted"),
    ],
)
def test_a_plan_of_restarts_is_summed_up_by_its_bound(batches: int, blocked: Any, line: str) -> None:
    document: Any = {
        "batches": [{}] * batches,
        "lower_bound": 3,
        "bound_reason": "one a rack",
        "blocked": blocked,
        "down": [],
        "batches_if_up": None,
    }
    assert _plan_verdict(document).plain == line


def test_a_plan_without_a_batch_has_no_largest_one(cli: Callable[..., Ran], write: Callable[[object], Any]) -> None:
    single = good(replicas=[1], isr=[1], leader=1)
    ran = cli("restart", "plan", "--snapshot", write(single), "--brokers", "1", "--block-on", "rf1")
    assert ran.out.splitlines()[1].startswith("as of ")
    assert "in a batch" not in ran.out
    batches = cli("restart", "plan", "--snapshot", write(good()), "--brokers", "1", "--max-batch", "1")
    assert batches.out.splitlines()[1].endswith(", at most 1 broker (--max-batch 1) in a batch")


def test_control_characters_that_a_message_quotes_are_escaped(cli: Callable[..., Ran]) -> None:
    assert cli("audit", "--snapshot", "no\x1b[31m\nfile").err.startswith("rackspan: no\\x1b[31m\\nfile: ")


def test_a_group_that_is_no_regular_expression_is_refused(cli: Callable[..., Ran]) -> None:
    assert cli("clients", "--bootstrap-server", "127.0.0.1:1", "--group", "(").err == (
        "rackspan: --group '(': not a regular expression: missing ), unterminated subpattern at position 0; "
        "write one such as orders-.*\n"
    )


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (
            ("--accept", "ord("),
            "--accept 'ord(': not a regular expression: missing ), unterminated subpattern at position 3; write one such as orders-.*",
        ),
        (("--block-on", "rf1,rf2"), "--block-on rf1,rf2: 'rf2' is not a harm; name one-copy or rf1"),
        (("--block-on", ""), "--block-on : '' is not a harm; name one-copy or rf1"),
    ],
)
def test_a_policy_of_stops_that_cannot_be_read_is_one_line(
    words: tuple[str, str], line: str, cli: Callable[..., Ran], write: Callable[[object], Any]
) -> None:
    ran = cli("restart", "safe", "--snapshot", write(good()), "--broker", "1", *words)
    assert (ran.code, ran.err) == (1, f"rackspan: {line}\n")


def test_a_watch_reports_once_what_it_cannot_read(cli: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch) -> None:
    def reading(*partial: str) -> Watch:
        snapshot = of_one_topic({1: "a"}, [[1]], config={"min.insync.replicas": "1"}, partial=partial)
        return Watch(cluster_isr(snapshot, RackPolicy()))

    lost = Watch(error=ClusterUnreachable("nobody listens"))
    readings = [reading("no configs"), reading("no configs", "no sizes"), lost, lost, reading("no configs")]
    monkeypatch.setattr(api, "watch", lambda *_, **__: iter(readings))
    ran = cli("acks", "watch", "--bootstrap-server", "127.0.0.1:1", "--every", "5", "--metrics-listen", "127.0.0.1:0")
    assert [line.removeprefix("warning: ") for line in ran.err.splitlines()] == [
        "no configs",
        "no sizes",
        "the cluster cannot be read: nobody listens; next try after 5 s",
        "the cluster can be read again",
        "no configs",
    ]
