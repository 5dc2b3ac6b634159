"""The files by which a practice cluster that is up is found: owner-only, one each, and gone with the cluster."""

import os
import signal
import stat
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from rackspan.errors import UsageError
from rackspan.practice.control_file import ControlFile, announced, control_folder, find_control
from tests.processes import running
from tests.waiting import WITHIN_SECONDS

ONE = ControlFile("127.0.0.1:1001", "secret", "embedded", "127.0.0.1:9092")
OTHER = ControlFile("127.0.0.1:1002", "another", "kafka 4.3.1", "127.0.0.1:9093")

OWNER = """
import sys, time
from pathlib import Path
from rackspan.practice.control_file import ControlFile, announced
with announced(ControlFile("127.0.0.1:1003", "third", "embedded", ""), Path(sys.argv[1])):
    print("announced", flush=True)
    time.sleep(600)
"""


def test_only_its_owner_can_read_it_and_it_is_removed_at_the_end(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with announced(ONE, tmp_path / "clusters") as path:
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
            assert list(path.parent.iterdir()) == [path], "no part of it is left beside it"
            assert find_control(path.parent) == ONE
        assert list(path.parent.iterdir()) == []
    finally:
        os.umask(before)


def test_one_of_several_is_named_by_its_address(tmp_path: Path) -> None:
    with ExitStack() as stack:
        stack.enter_context(announced(ONE, tmp_path))
        stack.enter_context(announced(OTHER, tmp_path))
        assert find_control(tmp_path, "127.0.0.1:1002") == OTHER
        with pytest.raises(UsageError) as several:
            find_control(tmp_path)
        with pytest.raises(UsageError, match=r"no practice cluster is up at 127\.0\.0\.1:9;"):
            find_control(tmp_path, "127.0.0.1:9")
    assert str(several.value) == (
        "2 practice clusters are up: 127.0.0.1:1001 (embedded), 127.0.0.1:1002 (kafka 4.3.1); "
        "name one with --control HOST:PORT"
    )


def test_the_file_of_a_cluster_that_was_killed_is_named_once_and_removed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", OWNER, str(tmp_path)]
    with running(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "announced\n"
        assert find_control(tmp_path).address == "127.0.0.1:1003", "another process reads it"
        process.send_signal(signal.SIGKILL)
        process.wait(WITHIN_SECONDS)
    with announced(ONE, tmp_path):
        assert find_control(tmp_path) == ONE, "it is in nobody's way"
    assert list(tmp_path.iterdir()) == []


def test_the_line_says_which_cluster_was_killed(tmp_path: Path) -> None:
    with announced(ONE, tmp_path) as path:
        text = path.read_bytes()
    path.write_bytes(text)
    with pytest.raises(UsageError) as found:
        find_control(tmp_path)
    assert str(found.value) == (
        "no practice cluster is up (127.0.0.1:1001: killed, its file is removed); start one with `rackspan cluster up`"
    )
    with pytest.raises(UsageError, match="no practice cluster is up; start one"):
        find_control(tmp_path)


def test_a_file_of_somebody_else_is_named(tmp_path: Path) -> None:
    (tmp_path / "1.json").write_text("{}")
    with pytest.raises(UsageError, match=r"1\.json: not written by rackspan: .*; delete it"):
        find_control(tmp_path)


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(UsageError, match=r"cannot be written: .*; set XDG_STATE_HOME"),
        announced(ONE, tmp_path / "file" / "clusters"),
    ):
        pass


@pytest.mark.parametrize(
    ("environ", "folder"),
    [
        ({"XDG_STATE_HOME": "/state"}, Path("/state/rackspan/clusters")),
        ({}, Path.home() / ".local" / "state" / "rackspan" / "clusters"),
    ],
)
def test_the_folder_is_the_users_state(environ: dict[str, str], folder: Path) -> None:
    assert control_folder(environ) == folder
