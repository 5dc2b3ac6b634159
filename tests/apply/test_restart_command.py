"""The command of a rolling restart as a process: what starts it, what ends it, and how an earlier one is known."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rackspan.apply import RestartCommand, restarts
from rackspan.apply.restarts import start_of
from rackspan.errors import (
    UsageError,
)
from rackspan.model import TopicPartition
from rackspan.restart.execution.decision import (
    CommandStatus,
)


def no_election(partitions: tuple[TopicPartition, ...]) -> None:
    raise AssertionError(partitions)


def test_a_command_is_given_the_ids_of_its_brokers_and_begins_when_it_is_started(tmp_path: Path) -> None:
    command = RestartCommand(f"echo {{brokers}} > {tmp_path}/given; exit 3", no_election)
    pid = command.prepare((1, 4))
    assert command.status(pid) == CommandStatus(running=True)
    assert os.getpgid(pid) == pid  # Ctrl-C of the terminal does not reach it.
    assert not (tmp_path / "given").exists()
    command.start()
    while command.status(pid).running:
        pass
    assert command.status(pid) == CommandStatus(exit_status=3)
    assert (tmp_path / "given").read_text() == "1,4\n"


def test_a_second_ctrl_c_kills_the_command_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    command = RestartCommand(f"trap '' INT; echo {{brokers}} > {tmp_path}/begun; sleep 10", no_election)
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt), command:  # noqa: PT012 - as `restart` does
        pid = command.prepare((1,))
        command.start()
        wait_until((tmp_path / "begun").exists)
        patched.setattr(subprocess.Popen, "wait", interrupt)
        raise KeyboardInterrupt
    wait_until(lambda: not command.status(pid).running)
    assert command.status(pid).exit_status == -signal.SIGKILL


@pytest.mark.slow
def test_a_command_of_a_run_that_is_killed_before_it_is_started_never_runs(tmp_path: Path) -> None:
    script = (
        "import os, sys; from rackspan.apply import RestartCommand\n"
        f"print(RestartCommand('touch {tmp_path}/ran {{brokers}}', None).prepare((1,)), flush=True); os._exit(9)"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    pid, command = int(ended.stdout), RestartCommand("{brokers}", no_election)
    wait_until(lambda: not command.status(pid).running)
    assert os.listdir(tmp_path) == []


def test_a_command_of_an_earlier_run_is_known_by_its_process(tmp_path: Path) -> None:
    command = RestartCommand("{brokers}", no_election)
    sleeper = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    assert command.status(sleeper.pid) == CommandStatus(running=True)
    assert sleeper.stdin is not None
    sleeper.stdin.close()
    os.waitid(os.P_PID, sleeper.pid, os.WEXITED | os.WNOWAIT)
    assert command.status(sleeper.pid) == CommandStatus(), "it has ended, and nobody has read its status"
    sleeper.wait()
    assert command.status(sleeper.pid) == CommandStatus()
    assert command.status(None) == CommandStatus()


def test_a_process_of_another_user_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    def not_allowed(_pid: int, _signal: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "kill", not_allowed)
    assert RestartCommand("{brokers}", no_election).status(os.getpid()) == CommandStatus(running=True)


def test_where_no_file_says_what_a_process_is_one_that_can_be_signalled_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restarts, "_fields_of", lambda _pid: [])
    assert RestartCommand("{brokers}", no_election).status(os.getpid(), 7) == CommandStatus(running=True)


def test_what_a_command_prints_is_no_output_of_rackspan(capfd: pytest.CaptureFixture[str]) -> None:
    command = RestartCommand("echo restarting {brokers}", no_election)
    pid = command.prepare((1, 4))
    command.start()
    wait_until(lambda: not command.status(pid).running)
    assert capfd.readouterr() == ("", "restarting 1,4\n")


def test_without_a_file_about_it_a_process_has_no_start() -> None:
    assert start_of(0) is None


def test_a_command_that_names_no_brokers_is_refused() -> None:
    with pytest.raises(UsageError, match=r"names no brokers; write \{brokers\} where their ids belong"):
        RestartCommand("systemctl restart kafka", no_election)


def wait_until(holds: Callable[[], bool]) -> None:
    while not holds():
        pass
