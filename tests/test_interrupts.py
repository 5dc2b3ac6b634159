"""The limit after Ctrl-C. The judge of a process that ends is the process; figures are those of a clock of the test."""

import asyncio
import math
import os
import signal
import subprocess
import sys
import time
from types import SimpleNamespace
from typing import Any, cast

import pytest

from rackspan import ends, interrupts
from tests.processes import running
from tests.waiting import WITHIN_SECONDS

LIMITED = """
import threading
from rackspan import interrupts
from tests.test_interrupts import *
interrupts.INTERRUPT_SECONDS = 0.3
interrupts.limit_interrupts(after={after})
print("begun", flush=True)
{hangs}
"""

DROPS_THE_EXCEPTION = "drop_interrupts()"
IN_A_CALL_OF_C = """
import ctypes
lock, mutex = ctypes.CDLL(None).pthread_mutex_lock, ctypes.create_string_buffer(64)
lock(mutex)
lock(mutex)
"""
IN_A_THREAD_THAT_PYTHON_JOINS = """
threading.Thread(target=drop_interrupts, name="reader").start()
try:
    threading.Event().wait()
except KeyboardInterrupt:
    pass
"""


def drop_interrupts() -> None:
    while True:
        try:
            time.sleep(WITHIN_SECONDS)
        except KeyboardInterrupt:
            continue


def interrupted(hangs: str, *, times: int = 1, after: int = 1) -> tuple[int, str]:
    """The exit code and the last line of a process that hangs so."""
    script = LIMITED.format(after=after, hangs=hangs)
    with running([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        for _ in range(times):
            time.sleep(0.1)
            process.send_signal(signal.SIGINT)
        _, printed = process.communicate(timeout=WITHIN_SECONDS)
    return process.returncode, printed


@pytest.mark.parametrize(
    ("hangs", "named"),
    [
        (DROPS_THE_EXCEPTION, "a thread (unknown)"),
        (IN_A_CALL_OF_C, "a thread (unknown)"),
        (IN_A_THREAD_THAT_PYTHON_JOINS, "a thread (reader)"),
        (
            "from rackspan.text import count_noun\n"
            "class Noun:\n    def __format__(self, _):\n        drop_interrupts()\n"
            "count_noun(2, Noun())",
            "count_noun of rackspan.text, line ",
        ),
    ],
    ids=["code", "C", "thread", "rackspan"],
)
def test_a_process_ends_after_ctrl_c_whatever_it_does_and_names_where(hangs: str, named: str) -> None:
    code, printed = interrupted(hangs)
    assert code == 130
    assert printed.startswith(f"rackspan: {named}"), printed
    assert printed.endswith(" did not end in 0.3 s after Ctrl-C; the process is ended now\n")


def test_a_process_that_finishes_its_work_at_the_first_ctrl_c_has_the_limit_from_the_second_on() -> None:
    assert interrupted(DROPS_THE_EXCEPTION, times=2, after=2)[0] == 130


def test_what_was_printed_is_there_after_an_end_by_force() -> None:
    script = LIMITED.format(after=1, hangs="sys.stdout = open(1, 'w')\nprint('result')\ndrop_interrupts()")
    with running([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=WITHIN_SECONDS)[0] == "result\n"


LIFTED = """
lift = interrupts.limit_interrupts(after={after})
signal.signal(signal.SIGINT, lambda *_: None)
for _ in range(2):
    signal.raise_signal(signal.SIGINT)
{before}
lift()
assert interrupts.shortened(10.0) == 10.0
time.sleep(0.6)
print("still here", file=sys.stderr)
"""


@pytest.mark.parametrize(
    ("after", "before"),
    [(2, "while interrupts.shortened(10.0) == 10.0:\n    time.sleep(0.01)"), (3, "time.sleep(0.6)")],
    ids=["lifted after the last one", "in the place of another limit"],
)
def test_a_limit_that_is_lifted_ends_nothing_and_it_stands_in_for_the_one_before(after: int, before: str) -> None:
    assert interrupted(LIFTED.format(after=after, before=before), times=0) == (0, "still here\n")


HELD_BACK = """
handled = []
signal.signal(signal.SIGHUP, lambda *_: handled.append("handled"))
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGHUP])
os.kill(os.getpid(), signal.SIGHUP)
time.sleep(0.1)
print(handled, end=" ", file=sys.stderr)
signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGHUP])
print(handled, file=sys.stderr)
"""


def test_a_signal_that_the_main_thread_holds_back_is_not_handled_meanwhile() -> None:
    """Another thread would take it. The first process of several gateways would then not hand it on to one that it starts."""
    assert interrupted(HELD_BACK, times=0) == (0, "[] ['handled']\n")


ENDS = """
import atexit
atexit.register(signal.raise_signal, signal.SIGINT)
try:
    signal.raise_signal(signal.SIGINT)
except KeyboardInterrupt:
    pass
while interrupts.shortened(10.0) == 10.0:
    time.sleep(0.01)
interrupts.exit_process(130)
"""


def test_a_second_ctrl_c_while_the_process_ends_prints_nothing() -> None:
    assert interrupted(ENDS, times=0) == (130, "")


DROPPED_BY_PYTHON = """
interrupts.INTERRUPT_SECONDS = WITHIN_SECONDS
from rackspan.cli.signals import ended_by_signals

class Finalized:
    def __del__(self):
        signal.raise_signal(signal.{signal})

with ended_by_signals():
    Finalized()
    time.sleep(WITHIN_SECONDS)
interrupts.exit_process(0)
"""


@pytest.mark.parametrize("ended_by", ["SIGINT", "SIGTERM"])
def test_an_exception_that_python_drops_in_a_finalizer_is_raised_again(ended_by: str) -> None:
    """So a command that ends cleanly does so, whatever the main thread was at when the signal came."""
    assert interrupted(DROPPED_BY_PYTHON.format(signal=ended_by), times=0) == (0, "ended\n")


def test_what_else_a_finalizer_raises_is_reported_as_before() -> None:
    hangs = "class Failing:\n    def __del__(self):\n        raise OSError('of a finalizer')\nFailing()"
    code, printed = interrupted(hangs, times=0)
    assert (code, printed.splitlines()[-1]) == (0, "OSError: of a finalizer")


def test_the_figures_fit_into_five_seconds() -> None:
    assert interrupts.ENDS_SECONDS < interrupts.INTERRUPT_SECONDS
    assert interrupts.INTERRUPT_SECONDS + interrupts._FLUSH_SECONDS < 5


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, and the end of the process that it comes to."""
    now = [1000.0]

    monkeypatch.setattr(interrupts, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(interrupts, "_ends_until", math.inf)
    return now


def test_after_ctrl_c_the_process_has_its_limit_and_all_ends_together_have_less(
    clock: list[float], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    read, write = os.pipe()
    os.write(write, bytes([signal.SIGTERM, signal.SIGINT]))
    codes: list[int] = []
    monkeypatch.setattr(os, "_exit", codes.append)
    assert interrupts.shortened(math.inf) == math.inf

    def wait(seconds: float) -> bool:
        clock[0] += seconds
        return False

    interrupts._watch(read, -1, 1, cast("Any", SimpleNamespace(wait=wait)))
    assert clock == [1000.0 + 4.5]
    assert codes == [130]
    assert capfd.readouterr().err.partition(" did not")[2] == " end in 4.5 s after Ctrl-C; the process is ended now\n"
    for number in (read, write):
        os.close(number)
    clock[0] = 1000.0
    limits = []
    for _ in range(4):
        limits.append(interrupts.shortened(10.0))
        clock[0] += limits[-1]
    assert limits == [2.0, 1.0, 0.5, 0.25]
    clock[0] = 1000.0 + 60
    assert interrupts.shortened(10.0) == 0.1
    assert interrupts.shortened(0.05) == 0.05


def test_an_end_that_ctrl_c_finds_under_way_is_shortened_too(monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[str] = []
    released: list[bool] = []

    def end() -> None:
        monkeypatch.setattr(interrupts, "_ends_until", time.monotonic() + 0.2)
        while not released:
            time.sleep(0.01)

    assert not ends.end_within("a stream", end, math.inf, say=lines.append)
    released.append(True)
    assert len(lines) == 1
    assert lines[0].startswith("a stream did not end in 0.")


def test_signals_reach_the_event_loop_and_a_limit_that_was_lifted_has_no_effect() -> None:
    async def scenario() -> None:
        loop, came = asyncio.get_running_loop(), asyncio.Event()
        loop.add_signal_handler(signal.SIGINT, came.set)
        for limited in (True, False):
            lift = interrupts.limit_interrupts(after=2)
            if not limited:
                lift()
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.wait_for(came.wait(), WITHIN_SECONDS)
            came.clear()
            if limited:
                lift()
        loop.remove_signal_handler(signal.SIGINT)

    asyncio.run(scenario())
    assert interrupts.shortened(10.0) == 10.0
