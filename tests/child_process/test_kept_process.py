"""A kept process ends with its owner, however the owner ends."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rackspan.child_process.kept_process import KeptProcess, ProcessExit, run_kept
from tests.processes import alive, gone_within, running
from tests.waiting import WITHIN_SECONDS, eventually

OWNER = """
import sys, time
from pathlib import Path
from rackspan.child_process.kept_process import KeptProcess
kept = KeptProcess(["/bin/sleep", "1000"], Path(sys.argv[1]))
print(kept.pid, kept._keeper.pid, flush=True)
time.sleep(1000)
"""


def test_its_output_is_in_the_log_and_its_status_is_its_own(tmp_path: Path) -> None:
    kept = KeptProcess(["/bin/sh", "-c", "echo out; echo err >&2; exit 7"], tmp_path / "log")
    assert kept.wait(WITHIN_SECONDS) == 7
    assert (tmp_path / "log").read_text() == "out\nerr\n"
    kept.kill()


def test_kill_ends_it_and_may_be_called_twice(tmp_path: Path) -> None:
    kept = KeptProcess(["/bin/sleep", "1000"], tmp_path / "log")
    assert alive(kept.pid)
    kept.kill()
    kept.kill()
    assert gone_within(WITHIN_SECONDS, kept.pid)
    assert kept.exit_status == 128 + signal.SIGKILL


def test_terminate_lets_it_end_in_good_order(tmp_path: Path) -> None:
    kept = KeptProcess(
        ["/bin/sh", "-c", "trap 'echo bye; exit 3' TERM; while :; do sleep 0.05; done"], tmp_path / "log"
    )
    time.sleep(0.2)  # The shell has to reach its trap.
    kept.terminate()
    assert kept.wait(WITHIN_SECONDS) == 3
    assert (tmp_path / "log").read_text() == "bye\n"
    kept.kill()


@pytest.mark.slow
def test_a_command_is_run_to_its_end_or_killed_when_its_time_is_over() -> None:
    assert run_kept(["/bin/sh", "-c", "echo out; echo err >&2; exit 7"], 10) == ProcessExit(7, "out\nerr\n")
    assert run_kept(["/bin/sh", "-c", "echo begun; exec sleep 1000"], 1.0) == ProcessExit(None, "begun\n")


def test_a_frozen_process_runs_on_after_a_thaw(tmp_path: Path) -> None:
    kept = KeptProcess(["/bin/sh", "-c", "while :; do echo tick; sleep 0.02; done"], tmp_path / "log")
    kept.freeze()
    time.sleep(0.3)
    frozen_at = (tmp_path / "log").stat().st_size
    time.sleep(0.2)
    assert (tmp_path / "log").stat().st_size == frozen_at
    kept.thaw()
    eventually(lambda: (tmp_path / "log").stat().st_size > frozen_at, "it writes again")
    kept.kill()


def test_a_command_that_does_not_exist_is_an_error_and_not_a_wait(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="did not start"):
        KeptProcess(["/nonexistent/java"], tmp_path / "log")


@pytest.mark.parametrize("victim", ["owner", "keeper"])
def test_a_sigkill_of_its_owner_or_its_keeper_ends_it(tmp_path: Path, victim: str) -> None:
    with running([sys.executable, "-c", OWNER, str(tmp_path / "log")], stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        pid, keeper_pid = map(int, owner.stdout.readline().split())
        assert alive(pid)
        os.kill(owner.pid if victim == "owner" else keeper_pid, signal.SIGKILL)
        assert gone_within(WITHIN_SECONDS, pid)
        assert gone_within(WITHIN_SECONDS, keeper_pid) or victim == "keeper"
        owner.kill()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="NOT TESTED: the states of threads are read from /proc")
def test_freeze_returns_once_every_thread_has_stopped(tmp_path: Path) -> None:
    busy = "import threading\ndef spin():\n  while True: pass\nfor _ in range(4): threading.Thread(target=spin).start()"
    kept = KeptProcess([sys.executable, "-c", busy], tmp_path / "log")
    try:
        threads = Path(f"/proc/{kept.pid}/task")
        while len(list(threads.iterdir())) < 5:
            time.sleep(0.01)
        for _ in range(20):
            kept.freeze()
            # The state is behind the command's name, which is in brackets.
            states = {(thread / "stat").read_text().rpartition(") ")[2][0] for thread in threads.iterdir()}
            assert states == {"T"}
            kept.thaw()
    finally:
        kept.kill()


@pytest.mark.skipif(sys.platform != "linux", reason="NOT TESTED: the state of the child is read from /proc")
def test_a_process_that_has_ended_is_not_waited_for_to_stop(tmp_path: Path) -> None:
    kept = KeptProcess(["/bin/true"], tmp_path / "log")
    state = Path(f"/proc/{kept.pid}/stat")
    while state.exists() and state.read_text().rpartition(") ")[2][0] != "Z":
        time.sleep(0.001)
    kept.freeze()
    assert kept.wait(WITHIN_SECONDS) == 0
    kept.freeze()
