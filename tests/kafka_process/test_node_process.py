"""What a node's log shows of its current run, and how long its end is waited for."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from rackspan.kafka_process import node_process
from rackspan.kafka_process.node_process import NodeProcess
from rackspan.kafka_process.release.runtime import KafkaRuntime
from rackspan.kafka_process.topology import KafkaNode


def test_the_tail_of_a_log_is_its_last_forty_lines(tmp_path: Path) -> None:
    process = NodeProcess(KafkaNode(1, "r1", True, True), tmp_path, {}, cast("KafkaRuntime", None))
    process.log_file.write_text("".join(f"line {number}\n" for number in range(50)))
    assert process.log_tail().splitlines() == [f"line {number}" for number in range(10, 50)]
    assert process.log_tail(2).splitlines() == ["line 48", "line 49"]


@pytest.mark.parametrize(
    ("log", "line"),
    [
        ("a\nx.SomeException: why\n\tat x.y(Z.java)\nlater\n", "x.SomeException: why"),
        ("ERROR first\nERROR last\nlater\n", "ERROR last"),
        (
            "x.NotFoundException: why\n\tat x.y(Z.java)\n1 [stop] INFO x - because of RejectedException\n2 [stop] WARN x - Exception\n",
            "x.NotFoundException: why",
        ),
        ("begun\n  ended  \n\n", "ended"),
        ("\n", "its log is empty"),
    ],
)
def test_the_cause_is_the_last_exception_or_error_else_the_last_line(log: str, line: str) -> None:
    assert node_process._line_with_cause(log) == line


@pytest.mark.parametrize(("now", "waits"), [(10.0, 5.0), (15.0, 0.0), (99.0, 0.0)])
def test_a_stop_is_waited_for_until_the_deadline_that_all_nodes_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, now: float, waits: float
) -> None:
    process = NodeProcess(KafkaNode(1, "r1", True, True), tmp_path, {}, cast("KafkaRuntime", None))
    waited: list[float] = []
    kept: Any = SimpleNamespace(wait=waited.append, kill=lambda: None)
    process._process = kept
    monkeypatch.setattr(node_process, "time", SimpleNamespace(monotonic=lambda: now))
    assert process.end_stop(15.0) is False
    assert waited == [waits]


def test_the_tool_that_formats_a_folder_is_cleared_away(tmp_path: Path) -> None:
    process = NodeProcess(KafkaNode(1, "r1", True, True), tmp_path, {}, cast("KafkaRuntime", None))
    cleared: list[str] = []
    kept: Any = SimpleNamespace(wait=lambda _seconds: 0, kill=lambda: cleared.append("killed"))
    process._process = kept
    process.end_format(60)
    assert cleared == ["killed"]


def test_a_node_that_does_not_run_is_killed_frozen_and_stopped_without_an_error(tmp_path: Path) -> None:
    process = NodeProcess(KafkaNode(1, "r1", True, True), tmp_path, {}, cast("KafkaRuntime", None))
    process.freeze()
    process.thaw()
    process.begin_stop()
    process.kill()
    assert (process.end_stop(0.0), process.pid, process.is_running) == (False, None, False)
