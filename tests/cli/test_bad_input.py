"""One table of wrong files and words: each gets its line and ends with 1; none a trace, none a half-written file.

No two rows go through the same check. Mistakes on the command line are in test_mistakes.py, of placing in test_place.py;
refused logins and certificates in tests/sources/test_secured_clusters.py, missing rights in test_rights.py.
"""

import errno
import io
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rackspan.cli import main, report
from tests.cli.conftest import GOOD, Ran, good

Cli = Callable[..., Ran]

TEXT = json.dumps(GOOD)
AUDIT = ("audit", "--snapshot", "bad.json")


def having(**changed: Any) -> str:
    """The good cluster, its first partition changed."""
    return json.dumps(good(**changed))


def altered(**changed: Any) -> str:
    """The good cluster with other keys at the top."""
    return json.dumps({**GOOD, **changed})


TORN = "not JSON: Unterminated string starting at: line 1 column 56 (char 55); is the file complete?"

DOCUMENTS: dict[str, tuple[str | bytes, str]] = {
    "zero bytes": ("", "not JSON: Expecting value: line 1 column 1 (char 0); is the file complete?"),
    "truncated": (TEXT[:60], TORN),
    "not text": (b"\x89PNG\r\n\x1a\n" + bytes(range(256)), "not JSON: no UTF-8 text (invalid start byte); is it the right file?"),
    "UTF-16, torn": (TEXT.encode("utf-16")[:-1], "not JSON: no UTF-8 text (truncated data); is it the right file?"),
    "half a surrogate pair": (
        TEXT.replace('"r1"', '"r\\ud800"', 1),
        "\\ud800 at line 1 column 128 is half of a surrogate pair and not a character; fix it in the file",
    ),
    "NaN": (TEXT.replace('"partition": 0', '"partition": NaN'), "NaN is not a JSON number; fix it in the file"),
    "a number of 5,000 digits": (
        TEXT.replace('"partition": 0', f'"partition": {"9" * 5_000}'),
        "a number has more than 4,300 digits; fix it in the file",
    ),
    "nested deep": ("[" * 100_000, "brackets nested too deep; write the file again"),
    "a key twice": (
        TEXT.replace('"version": 1', '"version": 1, "version": 1'),
        'key "version" occurs twice in one object; leave one of them out',
    ),
    "not an object": ("[1, 2]", "snapshot: is [1, 2], not an object; fix it in the file"),
    "an older or newer version": (
        altered(version=2),
        "version: is 2, but this rackspan reads version 1; take the snapshot again",
    ),
    "a key missing": ('{"version": 1, "brokers": []}', "snapshot: topics is missing; add it and run again"),
    "a list mistyped": (altered(topics={}), "snapshot: topics is {}, not a list; fix it in the file"),
    "an empty cluster": (
        altered(brokers=[]),
        "no brokers: a cluster has at least one; take the snapshot again with rackspan snapshot",
    ),
    "a broker twice": (altered(brokers=[{"id": 1}, {"id": 1}]), "broker 1: listed twice; leave one of them out"),
    "an id mistyped": (altered(brokers=[{"id": "1"}]), 'brokers[0]: id is "1", not a whole number; fix it in the file'),
    "true for a number": (having(leader=True), "orders-0: leader is true, not a whole number; fix it in the file"),
    "a negative id": (having(partition=-1), "orders--1: partition is -1, outside 0 to 2147483647; fix it in the file"),
    "a size beyond int64": (
        having(size_bytes=2**63),
        f"orders-0: size_bytes is {2**63}, outside 0 to {2**63 - 1}; fix it in the file",
    ),
    "a partition twice": (having(partition=1), "orders-1: listed twice; leave one of them out"),
    "a replica twice": (
        having(replicas=[1, 1], isr=[1]),
        "orders-0: a broker holds a partition once, but replicas names one twice; fix it in the file",
    ),
    "an ISR that names one twice": (having(isr=[1, 1]), "orders-0: isr names a broker twice; fix it in the file"),
    "no replicas": (
        having(replicas=[], isr=[]),
        "orders-0: replicas is empty; a partition has at least one replica",
    ),
    "a replica that is no id": (
        having(replicas=[1, None]),
        "orders-0: replicas[1] is null, not a whole number; fix it in the file",
    ),
    "a port beyond ports": (
        altered(brokers=[{"id": 1, "port": 65536}]),
        "brokers[0]: port is 65536, outside 0 to 65535; fix it in the file",
    ),
    "a flag mistyped": (
        altered(brokers=[{"id": 1, "fenced": "no"}]),
        'brokers[0]: fenced is "no", not true or false; fix it in the file',
    ),
    "a moment without its zone": (
        altered(taken_at="2026-11-21T02:00:00"),
        "taken_at 2026-11-21T02:00:00: the offset is missing; end it with Z for UTC",
    ),
    "a moment that is none": (
        altered(taken_at="yesterday"),
        'taken_at: is "yesterday", not a time such as 2026-11-21T02:00:00Z; fix it in the file',
    ),
    "a moment before the calendar": (
        altered(taken_at="0001-01-01T00:00:00+14:00"),
        "taken_at 0001-01-01T00:00:00+14:00: beyond the years 1 to 9999 in UTC; fix it in the file",
    ),
    "a topic Kafka would not name so": (
        TEXT.replace("orders", "../orders"),
        "topic '../orders': Kafka allows 1 to 249 letters, digits, '.', '_' and '-' in a name; fix it in the file",
    ),
    "a config that is no number": (
        TEXT.replace('"min.insync.replicas": "2"', '"min.insync.replicas": "two"'),
        "topic 'orders': min.insync.replicas is 'two', expected a whole number of at least 1; fix it in the snapshot",
    ),
}  # fmt: skip


@pytest.mark.parametrize("mistake", DOCUMENTS)
def test_a_wrong_snapshot_gets_its_line(cli: Cli, tmp_path: Path, mistake: str) -> None:
    content, line = DOCUMENTS[mistake]
    (tmp_path / "bad.json").write_bytes(content if isinstance(content, bytes) else content.encode())
    for words in (AUDIT, ("snapshot", *AUDIT[1:], "--out", "copy"), ("snapshot", *AUDIT[1:], "--out", "copy.json")):
        ran = cli(*words)
        assert (ran.code, ran.out, ran.err) == (1, "", f"rackspan: bad.json: {line}\n")
    assert [path.name for path in tmp_path.iterdir()] == ["bad.json"]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_a_byte_order_mark_is_no_mistake(cli: Cli, tmp_path: Path, encoding: str) -> None:
    (tmp_path / "bad.json").write_bytes(TEXT.encode(encoding))
    assert cli(*AUDIT).code == 0


Rows = Callable[[pa.Table], pa.Table]


def replaced(column: str, values: list[Any], kind: pa.DataType) -> Rows:
    return lambda rows: rows.set_column(rows.column_names.index(column), column, pa.array(values, kind))


def not_utf8(rows: pa.Table) -> pa.Table:
    wrong = pa.array([b"\xff"] * len(rows), pa.binary()).buffers()
    return rows.set_column(3, "rack", pa.Array.from_buffers(pa.string(), len(rows), wrong))


MAP = pa.map_(pa.string(), pa.string())

FOLDERS: dict[str, tuple[str, Rows, str]] = {
    "another's Parquet": ("partitions", lambda _: pa.table({"a": [1]}), "partitions.parquet: column topic is missing; take the snapshot again"),
    "a column of another type": ("partitions", replaced("leader", [1.5, 2.5], pa.float64()), "partitions.parquet: column leader is double, not int32, or out of its range; take the snapshot again"),
    "a column that is there twice": ("partitions", lambda rows: rows.append_column("leader", rows.column("leader")), "partitions.parquet: column leader is there twice; take the snapshot again"),
    "nulls where something must stand": ("partitions", replaced("partition", [None, 1], pa.int32()), "partitions.parquet: column partition holds nulls; take the snapshot again"),
    "a list that names no broker": ("partitions", replaced("isr", [[1], [-7]], pa.list_(pa.int32())), "partitions.parquet: isr names something that is not a broker id; fix it in the file"),
    "a topic that is not listed": ("topics", lambda rows: rows.slice(0, 0), "partitions.parquet: topic 'orders' is not in topics.parquet; take the snapshot again"),
    "text that is none": ("brokers", not_utf8, "brokers.parquet: cannot be read: Column 3: In chunk 0: Invalid: Invalid UTF8 sequence at string index 0; take the snapshot again"),
    "two moments": ("cluster", lambda rows: pa.concat_tables([rows, rows]), "cluster.parquet: 2 rows, but a snapshot is one; take it again"),
    "another version": ("cluster", replaced("version", [2], pa.int32()), "version is 2, but this rackspan reads version 1; take the snapshot again"),
    "a moment beyond the calendar": ("cluster", replaced("taken_at", [2**62], pa.timestamp("us", "UTC")), "cluster.parquet: taken_at is beyond the years 1 to 9999; fix it in the file"),
    "a null within a list": ("cluster", replaced("partial", [[None]], pa.list_(pa.string())), "cluster.parquet: partial holds a null inside a row; take the snapshot again"),
    "a config key twice": ("topics", replaced("config", [[("a", "1"), ("a", "2")]], MAP), "topics.parquet: config of orders names a key twice; take the snapshot again"),
    "a broker id below zero": ("brokers", replaced("id", [-5, 2, 3, 4, 5, 6], pa.int32()), "broker -5: expected an id between 0 and 2147483647; fix it in the file"),
    "a port below zero": ("brokers", replaced("port", [-5] * 6, pa.int32()), "broker 1: port -5 is outside 0 to 65535; fix it in the file"),
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The good cluster as Parquet."""
    from rackspan.model import json_format
    from rackspan.sources import snapshot_file

    path = tmp_path_factory.mktemp("good") / "good"
    snapshot_file.write(json_format.from_document(GOOD).snapshot, path)
    return path


@pytest.mark.parametrize("mistake", FOLDERS)
def test_a_wrong_parquet_folder_gets_its_line(cli: Cli, tmp_path: Path, folder: Path, mistake: str) -> None:
    name, change, line = FOLDERS[mistake]
    shutil.copytree(folder, tmp_path / "bad")
    file = tmp_path / "bad" / f"{name}.parquet"
    pq.write_table(change(pq.ParquetFile(file).read()), file)
    ran = cli("audit", "--snapshot", "bad")
    assert (ran.code, ran.out, ran.err) == (1, "", f"rackspan: bad: {line}\n")


def torn(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-20])


def a_folder_instead(file: Path) -> None:
    file.unlink()
    file.mkdir()


def emptied(file: Path) -> None:
    file.write_bytes(b"")


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (emptied, "partitions.parquet: cannot be read: Parquet file size is 0 bytes; take the snapshot again"),
        (torn, "partitions.parquet: cannot be read: Parquet magic bytes not found in footer. Either the file is corrupted or this is not a parquet file.; take the snapshot again"),
        (a_folder_instead, "partitions.parquet is missing, so this is not a snapshot folder; take it with rackspan snapshot"),
    ],
)  # fmt: skip
def test_a_file_of_the_folder_that_is_none_gets_its_line(
    cli: Cli, tmp_path: Path, folder: Path, change: Callable[[Path], None], line: str
) -> None:
    shutil.copytree(folder, tmp_path / "bad")
    change(tmp_path / "bad" / "partitions.parquet")
    ran = cli("audit", "--snapshot", "bad")
    assert (ran.code, ran.out, ran.err) == (1, "", f"rackspan: bad: {line}\n")


SNAPSHOT = ("--snapshot", "moment.json")

WORDS: dict[str, tuple[tuple[str, ...], str]] = {
    "a folder where a spec is expected": (("place", "plan", "--spec", "."), ".: cannot be read: Is a directory; name a placement spec"),
    "a folder where a plan is expected": (("reassign", "lint", "--reassignment-json-file", ".", *SNAPSHOT), ".: cannot be read: Is a directory; name a reassignment file"),
    "a folder where a problem is expected": (("streams", "assign", "--problem", "."), ".: cannot be read: Is a directory; name a problem file"),
    "a folder where properties are expected": (("audit", "--bootstrap-server", "127.0.0.1:1", "--command-config", "."), "--command-config .: Is a directory; name a file that can be read"),
    "a folder where a snapshot is expected": (("audit", "--snapshot", "empty"), "empty: cluster.parquet is missing, so this is not a snapshot folder; take it with rackspan snapshot"),
    "a warehouse that is a file": (("pipeline", "collect", "--warehouse", "moment.json", *SNAPSHOT), "moment.json: cannot be written: File exists; choose another --warehouse"),
    "a warehouse that is another's folder": (("pipeline", "collect", "--warehouse", ".", *SNAPSHOT), ".: holds other files and is not a warehouse; name a new or an empty folder"),
    "an --out below a file": (("snapshot", *SNAPSHOT, "--out", "moment.json/x.json"), "moment.json/x.json: cannot be written: File exists; choose another --out"),
    "an --out that is a folder": (("reassign", "plan", *SNAPSHOT, "--drain", "1", "--out", "empty"), "empty: cannot be written: Is not a regular file; choose another --out"),
    "an --out that is a device": (("snapshot", *SNAPSHOT, "--out", "/dev/null"), "/dev/null: exists already; name a new folder, or a file that ends in .json"),
    "10⁹ partitions to place": (("place", "create", "--topic", "t", "--partitions", "1000000000", "--replication-factor", "3", *SNAPSHOT), "1000000000 partitions: at most 10000000 are placed at a time; request fewer"),
    "10⁹ replicas of each": (("place", "create", "--topic", "t", "--partitions", "1", "--replication-factor", "1000000000", *SNAPSHOT), "Replication factor: 1000000000 larger than available brokers: 6."),
    "racks beyond int64": (("audit", *SNAPSHOT, "--min-insync-racks", "9" * 20), "Invalid value for '--min-insync-racks' (env var: 'RACKSPAN_MIN_INSYNC_RACKS'): expected at most 2147483647; see rackspan audit --help"),
    "a timeout beyond clocks": (("audit", *SNAPSHOT, "--timeout", "9" * 20), "Invalid value for '--timeout' (env var: 'RACKSPAN_TIMEOUT'): expected at most 2147483647; see rackspan audit --help"),
    "a broker beyond int64": (("reassign", "plan", *SNAPSHOT, "--drain", "9" * 20), f"broker {'9' * 20}: the cluster does not list it, and no partition has a replica on it"),
    "an address that is none": (("audit", "--bootstrap-server", "kafka:port"), "--bootstrap-server 'kafka:port': 'kafka:port' is not of the form HOST:PORT or PROTOCOL://HOST:PORT; write it as broker-1:9092"),
    "a port nobody listens on": (("audit", "--bootstrap-server", "127.0.0.1:1"), "no broker responded: 127.0.0.1:1: connection refused; check --bootstrap-server, and that the cluster is up"),
    "a host that cannot be": (("audit", "--bootstrap-server", "bad..name:9092"), "no broker responded: bad..name:9092: no such host name; check --bootstrap-server, and that the cluster is up"),
    "a line break in a name": (("outage", *SNAPSHOT, "--lose", "r\n1"), r"rack 'r\n1': not in this cluster; it has r1, r2, r3"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", WORDS)
def test_wrong_words_get_their_line_and_leave_nothing(cli: Cli, tmp_path: Path, mistake: str) -> None:
    words, line = WORDS[mistake]
    (tmp_path / "moment.json").write_text(TEXT)
    (tmp_path / "empty").mkdir()
    ran = cli(*words)
    # A line of a log has its time.
    assert (ran.code, ran.out, re.sub(r"^\S+Z ", "", ran.err)) == (1, "", f"rackspan: {line}\n")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["empty", "moment.json"]


STRICTLY: dict[str, str] = {
    '{"version": 1, "version": 1}': 'key "version" occurs twice in one object; leave one of them out',
    '{"version": NaN}': "NaN is not a JSON number; fix it in the file",
    '{"version": "\\udc00"}': "\\udc00 at line 1 column 14 is half of a surrogate pair and not a character; fix it in the file",
    '{"version": 1': "not JSON: Expecting ',' delimiter: line 1 column 14 (char 13); is the file complete?",
}

READERS: tuple[tuple[str, ...], ...] = (
    ("audit", "--snapshot"),
    ("place", "plan", "--spec"),
    ("streams", "assign", "--problem"),
    ("streams", "lab", "--problem"),
    ("reassign", "generate", *SNAPSHOT, "--broker-list", "1", "--topics-to-move-json-file"),
    ("reassign", "lint", *SNAPSHOT, "--reassignment-json-file"),
    ("reassign", "apply", *SNAPSHOT, "--plan"),
    ("reassign", "verify", *SNAPSHOT, "--plan"),
    ("reassign", "cancel", *SNAPSHOT, "--plan"),
    ("reassign", "undo", *SNAPSHOT, "--plan"),
)


@pytest.mark.parametrize("words", READERS, ids=" ".join)
def test_every_file_of_json_is_read_as_strictly_and_named(cli: Cli, tmp_path: Path, words: tuple[str, ...]) -> None:
    (tmp_path / "moment.json").write_text(TEXT)
    for text, line in STRICTLY.items():
        (tmp_path / "bad.json").write_text(text)
        ran = cli(*words, "bad.json")
        assert (ran.code, ran.out, ran.err) == (1, "", f"rackspan: bad.json: {line}\n")


@pytest.mark.skipif(os.geteuid() == 0, reason="NOT TESTED as root, whom no file refuses")
def test_a_file_nobody_may_read_gets_its_line(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text(TEXT)
    (tmp_path / "bad.json").chmod(0)
    ran = cli(*AUDIT)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("rackspan: bad.json: cannot be read: [Errno 13] Permission denied")


def test_a_file_that_the_machine_refuses_gets_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert report(PermissionError(errno.EACCES, "Permission denied", "plan.json")) == 1
    line = "rackspan: plan.json: Permission denied; name another file, or change its permissions\n"
    assert capsys.readouterr().err == line


def test_settings_nested_deep_get_their_line(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "rackspan.toml").write_text("a = " + "[" * 3_000)
    ran = cli("audit", *SNAPSHOT)
    assert (ran.code, ran.err) == (1, "rackspan: rackspan.toml: brackets nested too deep; fix it in the file\n")


def torn_log(warehouse: Path) -> None:
    (warehouse / "tables" / "snapshots" / "_delta_log" / f"{1:020}.json").write_text('{"add": {"path"')


def without_its_log(warehouse: Path) -> None:
    shutil.rmtree(warehouse / "tables" / "snapshots")


def without_a_file(warehouse: Path) -> None:
    next((warehouse / "tables" / "snapshots").rglob("part-*.parquet")).unlink()


WAREHOUSES: dict[str, tuple[Callable[[Path], None], str]] = {
    "with a torn log": (torn_log, "warehouse: table snapshots: 00000000000000000001.json in its log is torn"),
    "without its marker table": (
        without_its_log,
        "warehouse: not a warehouse (it has no table snapshots); fill one with ",
    ),
    "that lost a data file": (without_a_file, "file://{root}/tables/snapshots/: day=2026-11-21/part-"),
}


@pytest.mark.parametrize("mistake", WAREHOUSES)
def test_a_wrong_warehouse_gets_its_line(cli: Cli, tmp_path: Path, mistake: str) -> None:
    damage, line = WAREHOUSES[mistake]
    (tmp_path / "moment.json").write_text(TEXT)
    assert cli("pipeline", "collect", "--warehouse", "warehouse", *SNAPSHOT).code == 0
    damage(tmp_path / "warehouse")
    ran = cli("pipeline", "table", "snapshots", "--warehouse", "warehouse")
    assert (ran.code, ran.err.count("\n")) == (1, 1)
    # At most the head of the table.
    assert "2026" not in ran.out
    assert len(ran.out.splitlines()) <= 1
    assert ran.err.partition(": ")[2].startswith(f"{line.format(root=tmp_path / 'warehouse')}")


def as_a_process(tmp_path: Path, words: tuple[str, ...], **streams: Any) -> subprocess.CompletedProcess[str]:
    (tmp_path / "moment.json").write_text(TEXT)
    command = [sys.executable, "-m", "rackspan", *words]
    return subprocess.run(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True, check=False, **streams)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="NOT TESTED: a full disk, for lack of /dev/full")
@pytest.mark.parametrize("words", [("audit", *SNAPSHOT, "-o", "json"), ("--version",)])
def test_a_full_disk_behind_standard_output_gets_its_line(tmp_path: Path, words: tuple[str, ...]) -> None:
    with open("/dev/full", "w") as full:
        ran = as_a_process(tmp_path, words, stdout=full)
    assert (ran.returncode, ran.stderr) == (
        1,
        "rackspan: standard output: cannot be written: No space left on device; make room, or write elsewhere\n",
    )


@pytest.mark.slow
def test_a_disk_that_fills_while_a_snapshot_is_written_leaves_nothing(tmp_path: Path) -> None:
    """A limit on file sizes stands for the disk: the kernel refuses the write in the same place."""
    (tmp_path / "moment.json").write_text(TEXT)
    script = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64)); from rackspan.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    for out in ("copy.json", "copy"):
        command = [sys.executable, "-B", "-c", script, "snapshot", *SNAPSHOT, "--out", out]
        ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (ran.returncode, ran.stdout) == (1, "")
        assert ran.stderr.startswith(f"rackspan: {out}: cannot be written: "), ran.stderr
        assert ran.stderr.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["moment.json"]


@pytest.mark.slow
def test_letters_that_standard_output_cannot_hold_are_escaped(tmp_path: Path) -> None:
    (tmp_path / "moment.json").write_text(TEXT.replace('"r1"', '"é1"'))
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    for form in ("json", "yaml", "human"):
        command = [sys.executable, "-m", "rackspan", "audit", *SNAPSHOT, "-o", form]
        ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, check=False)
        assert (ran.returncode, ran.stderr) == (0, b"")
        if form == "json":
            assert "é1" in json.loads(ran.stdout)["summary"]["racks"]


@pytest.mark.parametrize("form", ["json", "yaml", "csv", "human"])
def test_a_standard_output_without_an_encoding_holds_every_letter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    """io.StringIO, in which a program collects what it prints: its encoding is None."""
    file = tmp_path / "moment.json"
    file.write_text(TEXT.replace('"r1"', '"é1"').replace('"leader": 1', '"leader": 2'))
    printed = io.StringIO()
    monkeypatch.setattr(sys, "stdout", printed)
    assert main(["outage", "--snapshot", str(file), "-o", form]) == 0
    assert "é1" in printed.getvalue()
