"""Temporary data goes when its cluster closes, and the next one removes what a dead owner left."""

import errno
import fcntl
import gc
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rackspan.errors import UsageError
from rackspan.kafka_process import KafkaVersion
from rackspan.kafka_process.data_folder import PREFIX, DataFolder, sweep
from tests.processes import running

OWNER = """
import sys, tempfile, time
tempfile.tempdir = sys.argv[1]
from rackspan.kafka_process.data_folder import DataFolder
print(DataFolder().path, flush=True)
time.sleep(1000)
"""


@pytest.fixture(autouse=True)
def _own_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


def test_a_temporary_folder_is_gone_after_close() -> None:
    folder = DataFolder()
    (folder.path / "node-1").mkdir()
    folder.close()
    folder.close()
    assert not folder.path.exists()


def test_a_folder_of_the_users_own_is_kept(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path / "mine")
    (folder.path / "log").write_text("kept")
    folder.close()
    assert (tmp_path / "mine" / "log").read_text() == "kept"


def test_the_cluster_of_the_data_is_that_of_the_first_node(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path / "mine")
    assert folder.cluster_id() is None
    names = sorted(f"node-{number}" for number in range(1, 12))
    for name in reversed(names):
        (folder.path / name).mkdir()
        (folder.path / name / "meta.properties").write_text(f"version=1\ncluster.id=of-{name}\n")
    assert folder.cluster_id() == f"of-{names[0]}"
    folder.close()


def test_a_living_owner_keeps_its_folder(tmp_path: Path) -> None:
    folder = DataFolder()
    assert sweep(tmp_path) == []
    assert folder.path.exists()
    folder.close()


def test_a_folder_that_is_only_called_alike_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / f"{PREFIX}notes").mkdir()
    assert sweep(tmp_path) == []
    assert (tmp_path / f"{PREFIX}notes").exists()


def test_the_next_cluster_sweeps_what_a_killed_owner_left(tmp_path: Path) -> None:
    with running([sys.executable, "-c", OWNER, str(tmp_path)], stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        left = Path(owner.stdout.readline().strip())
        (left / "node-1").mkdir()
        assert sweep(tmp_path) == []
        owner.send_signal(signal.SIGKILL)
        owner.wait()
    folder = DataFolder()
    assert not left.exists()
    folder.close()


def test_a_sweep_names_what_it_removed_and_keeps_no_file_open(tmp_path: Path) -> None:
    for name in ("b", "a"):
        (tmp_path / f"{PREFIX}{name}").mkdir()
        (tmp_path / f"{PREFIX}{name}" / "owner.lock").touch()
    living = DataFolder()
    (tmp_path / f"{PREFIX}c").mkdir()
    (tmp_path / f"{PREFIX}c" / "owner.lock").touch()
    gc.collect()  # What earlier tests left open is closed now, and not while files are counted.
    before = os.listdir("/proc/self/fd")
    assert sweep(tmp_path) == [tmp_path / f"{PREFIX}c"]
    assert len(os.listdir("/proc/self/fd")) == len(before)
    living.close()
    for name in ("b", "a"):
        (tmp_path / f"{PREFIX}{name}").mkdir()
        (tmp_path / f"{PREFIX}{name}" / "owner.lock").touch()
    assert sweep() == [tmp_path / f"{PREFIX}a", tmp_path / f"{PREFIX}b"]


def test_without_locks_on_the_file_system_a_folder_works_and_is_not_swept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def flock(_file: int, _operation: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", flock)
    folder = DataFolder()
    assert sweep(tmp_path) == []
    assert folder.path.is_dir()
    folder.close()
    assert not folder.path.exists()


def test_a_closed_folder_holds_no_lock(tmp_path: Path) -> None:
    before = os.listdir("/proc/self/fd")
    DataFolder().close()
    assert len(os.listdir("/proc/self/fd")) == len(before)


def test_a_folder_is_not_started_by_an_older_release_than_the_one_that_formatted_it(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    newer, older = KafkaVersion.parse("4.4.0"), KafkaVersion.parse("4.3.1")
    DataFolder(kept).claim(newer)
    # Nothing was formatted: the format failed.
    DataFolder(kept).claim(older)
    DataFolder(kept).claim(newer)
    (kept / "node-1").mkdir()
    (kept / "node-1" / "meta.properties").write_text("cluster.id=c\n")
    DataFolder(kept).claim(newer)
    with pytest.raises(UsageError) as raised:
        DataFolder(kept).claim(older)
    assert str(raised.value) == (
        f"{kept}: the data was formatted by Kafka 4.4.0, and Kafka 4.3.1 does not read it; "
        "start 4.4.0, or give 4.3.1 another folder"
    )


def test_a_folder_of_an_older_release_is_started_by_a_newer_one_and_then_by_the_older_again(tmp_path: Path) -> None:
    """As in an upgrade that is rolled back before metadata.version is raised."""
    kept = tmp_path / "kept"
    DataFolder(kept).claim(KafkaVersion.parse("4.3.1"))
    (kept / "node-1").mkdir()
    (kept / "node-1" / "meta.properties").write_text("cluster.id=c\n")
    DataFolder(kept).claim(KafkaVersion.parse("4.4.0"))
    DataFolder(kept).claim(KafkaVersion.parse("4.3.1"))
    (kept / "kafka.release").unlink()
    DataFolder(kept).claim(KafkaVersion.parse("3.9.1"))
