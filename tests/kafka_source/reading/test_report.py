import json
from collections import Counter
from pathlib import Path

import pytest

from rackspan.kafka_source.executor_rack import ExecutorRack
from rackspan.kafka_source.ranges import OffsetRange
from rackspan.kafka_source.reading.progress import ReplicaChoice
from rackspan.kafka_source.reading.report import Batch, TaskReport, publish
from rackspan.model.ids import TopicPartition

HERE = ExecutorRack("r1", "file /etc/rack")
NOWHERE = ExecutorRack(None, "none of rack.file gives a rack")


def report(
    number: int, rack: ExecutorRack, sizes: dict[tuple[int, str | None], int], choice: ReplicaChoice
) -> TaskReport:
    made = TaskReport(OffsetRange(TopicPartition("orders", number), 0, 10), rack, Counter(sizes), rows=10)
    made.chose(choice)
    return made


LOCAL = report(0, HERE, {(1, "r1"): 2_000_000}, ReplicaChoice.SAME_RACK)
FAR = report(1, HERE, {(1, "r1"): 100_000, (2, "r2"): 1_000_000}, ReplicaChoice.NO_REPLICA)
UNKNOWN = report(2, NOWHERE, {(3, "r3"): 500_000}, ReplicaChoice.NO_RACK)


def test_only_what_crossed_racks_is_logged_by_a_task(capsys: pytest.CaptureFixture[str]) -> None:
    publish(LOCAL, None, Batch("b", 1))
    assert capsys.readouterr().err == ""
    publish(FAR, None, Batch("b", 1))
    assert "1.0 MB from broker 2 (rack r2); this executor's rack is r1; no-replica-in-rack" in capsys.readouterr().err
    publish(UNKNOWN, None, Batch("b", 1))
    assert "this executor has no rack: none of rack.file gives a rack" in capsys.readouterr().err


def test_the_last_task_logs_a_line_about_the_batch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for one in (LOCAL, FAR, LOCAL):
        publish(one, str(tmp_path), Batch("b7", 3))
    publish(UNKNOWN, str(tmp_path), Batch("other", 3))
    assert "batch" not in capsys.readouterr().err
    publish(UNKNOWN, str(tmp_path), Batch("b7", 3))
    line = capsys.readouterr().err.splitlines()[-1]
    # A range that was read twice counts its records once, and its bytes twice.
    assert line == (
        "rackspan-kafka: batch b7: 30 records in 3 ranges, 5.6 MB, 1.5 MB of it across racks "
        "(r2 to r1 1.0 MB: no-replica-in-rack, r3 to unknown 0.5 MB: executor-without-rack)"
    )


def test_rows_name_the_batch_by_its_folder_and_broker_and_rack(tmp_path: Path) -> None:
    publish(FAR, str(tmp_path), Batch("b7", 9))
    (file,) = (tmp_path / "batch=b7").iterdir()
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert [(row["broker"], row["broker_rack"], row["executor_rack"], row["bytes"]) for row in rows] == [
        (1, "r1", "r1", 100_000),
        (2, "r2", "r1", 1_000_000),
    ]


def test_bytes_between_unknown_racks_count_as_across_racks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rackless = report(0, NOWHERE, {(1, None): 3_000_000}, ReplicaChoice.NO_RACK)
    publish(rackless, str(tmp_path), Batch("b", 1))
    task, batch = capsys.readouterr().err.splitlines()
    assert "3.0 MB from broker 1 (rack unknown); this executor has no rack" in task
    assert "3.0 MB, 3.0 MB of it across racks (unknown to unknown 3.0 MB" in batch


def test_a_choice_is_listed_when_it_changes() -> None:
    made = report(0, HERE, {}, ReplicaChoice.SAME_RACK)
    for choice in (ReplicaChoice.SAME_RACK, ReplicaChoice.FOLLOWER_FAILED, ReplicaChoice.SAME_RACK):
        made.chose(choice)
    (row,) = made.rows_for_table()
    assert row["choice"] == "same-rack,follower-failed,same-rack"


def test_a_task_that_read_nothing_has_a_row_too(tmp_path: Path) -> None:
    publish(TaskReport(OffsetRange(TopicPartition("orders", 0), 0, 1), HERE), str(tmp_path), Batch("b", 1))
    (row,) = (json.loads(file.read_text()) for file in tmp_path.rglob("*.json"))
    assert (row["broker"], row["broker_rack"], row["bytes"], row["records"]) == (-1, None, 0, 0)


@pytest.mark.parametrize("name", ["my metrics", "a%20b", "métriques", "a#b?c"])
def test_a_folder_of_any_name_has_the_rows(tmp_path: Path, name: str) -> None:
    publish(LOCAL, str(tmp_path / name), Batch("b", 1))
    (file,) = tmp_path.rglob("*.json")
    assert file.parent == tmp_path / name / "batch=b"


def test_a_folder_may_be_named_from_where_the_program_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    publish(LOCAL, "metrics", Batch("b", 1))
    assert len(list((tmp_path / "metrics").rglob("*.json"))) == 1


@pytest.mark.parametrize("topic", ["_schemas", ".hidden"])
def test_spark_reads_the_rows_of_every_topic(tmp_path: Path, topic: str) -> None:
    """It passes over files whose names begin with an underscore or a dot."""
    publish(TaskReport(OffsetRange(TopicPartition(topic, 0), 0, 1), HERE), str(tmp_path), Batch("b", 1))
    (file,) = tmp_path.rglob("*.json")
    assert file.name[0] not in "_."
