"""A topology script, as it is called and when it goes wrong. The scripts are real, the shell is only theirs."""

import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from rackspan.errors import RackLocatorFailed
from rackspan.model import Broker, BrokerId
from rackspan.sources.rack_locator import ClusterView, rack_info
from rackspan.sources.rack_locators import make
from tests.waiting import eventually

HOSTS = ("a0.example", "b1.example", "a0.example", "c3.example")
CLUSTER = ClusterView(tuple(Broker(BrokerId(i), host=host) for i, host in enumerate(HOSTS)))


def script(folder: Path, body: str) -> str:
    path = folder / "topology.sh"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)


def racks_from(command: str, cluster: ClusterView = CLUSTER, **properties: str) -> dict[int, str]:
    made = make("command", {"command": command, **{key.replace("_", "."): value for key, value in properties.items()}})
    return {int(broker): str(rack) for broker, rack in rack_info(made, cluster).items()}


BY_FIRST_LETTER = 'for host in "$@"; do echo "/dc1/rack-$(echo "$host" | cut -c1)"; done'


def test_each_host_is_passed_once_and_each_broker_gets_its_rack(tmp_path: Path) -> None:
    command = script(tmp_path, f'echo "$@" >> {tmp_path}/calls\n{BY_FIRST_LETTER}')
    assert racks_from(command) == {0: "/dc1/rack-a", 1: "/dc1/rack-b", 2: "/dc1/rack-a", 3: "/dc1/rack-c"}
    assert (tmp_path / "calls").read_text() == "a0.example b1.example c3.example\n"


def test_a_call_is_given_no_more_hosts_than_it_can_take(tmp_path: Path) -> None:
    command = script(tmp_path, f'echo "$@" >> {tmp_path}/calls\n{BY_FIRST_LETTER}')
    assert len(racks_from(command, hosts_max="2")) == 4
    assert (tmp_path / "calls").read_text() == "a0.example b1.example\nc3.example\n"


def test_arguments_are_passed_as_they_are_and_no_shell_reads_them(tmp_path: Path) -> None:
    command = script(tmp_path, f'echo "$1" > {tmp_path}/first; shift\n{BY_FIRST_LETTER}')
    racks_from(f"{command} '$(touch {tmp_path}/owned); x'")
    assert (tmp_path / "first").read_text() == f"$(touch {tmp_path}/owned); x\n"
    assert not (tmp_path / "owned").exists()


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("echo /r1", "printed 1 rack for 3 hosts; it must print one each"),
        ("echo a b c d", "printed 4 racks for 3 hosts; it must print one each"),
        ("true", "printed 0 racks for 3 hosts; it must print one each"),
        ("echo no table >&2; echo really >&2; exit 3", "exit code 3: really; fix the command"),
        ("exit 1", "exit code 1: nothing on standard error; fix the command"),
    ],
)
def test_a_script_that_goes_wrong_is_one_line(tmp_path: Path, body: str, why: str) -> None:
    command = script(tmp_path, body)
    with pytest.raises(RackLocatorFailed) as refusal:
        racks_from(command)
    assert str(refusal.value) == f"rack locator command: {command}: {why}"


def test_a_script_that_is_late_is_ended_with_all_it_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen[str]] = []

    def recorded(*words: Any, **options: Any) -> subprocess.Popen[str]:
        started.append(start(*words, **options))
        return started[0]

    start: Any = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", recorded)
    # The child holds the script's output open, which alone would keep a reader waiting.
    command = script(tmp_path, f"sleep 600 &\necho $! > {tmp_path}/child\nwait")
    with pytest.raises(RackLocatorFailed) as refusal:
        racks_from(command, timeout_ms="700")
    assert str(refusal.value) == (
        f"rack locator command: {command}: gave no response within 700 ms; raise timeout.ms, or fix the command"
    )
    ended = started[0]
    assert (ended.returncode, ended.stdout and ended.stdout.closed, ended.stderr and ended.stderr.closed) == (
        -signal.SIGKILL,
        True,
        True,
    )
    child = Path("/proc") / (tmp_path / "child").read_text().strip() / "stat"
    eventually(lambda: not alive(child), "the child is gone")


def alive(stat: Path) -> bool:
    """A killed process may stay a zombie until the process that inherits it reaps it."""
    try:
        return stat.read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def test_a_script_that_cannot_be_run_says_why(tmp_path: Path) -> None:
    path = tmp_path / "topology.sh"
    path.write_text("echo a")
    path.chmod(0o644)
    with pytest.raises(RackLocatorFailed) as refusal:
        racks_from(str(path))
    assert str(refusal.value) == f"rack locator command: {path}: cannot be started: Permission denied; correct command"


@pytest.mark.parametrize(
    ("host", "why"),
    [
        (None, "has no known host; use another locator"),
        ("-rf", "has host '-rf', which is not a host name"),
        (" ", "has host ' ', which is not a host name"),
    ],
)
def test_a_host_that_cannot_be_passed_is_reported_in_one_line(host: str | None, why: str) -> None:
    with pytest.raises(RackLocatorFailed) as refusal:
        racks_from("true", ClusterView((Broker(BrokerId(7), host=host),)))
    assert str(refusal.value) == f"rack locator command: broker 7 {why}"
