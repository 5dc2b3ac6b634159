"""Ends that never return, in place of those of clients: their callers go on, and so does the end of the process."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from rackspan import ends
from tests.waiting import WITHIN_SECONDS, eventually

SOON = 0.05


def hang() -> None:
    threading.Event().wait()


def ran(script: str) -> "subprocess.CompletedProcess[str]":
    words = [sys.executable, "-c", script]
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=WITHIN_SECONDS)


class Handle:
    """What a C type destroys when its last reference goes."""

    def __init__(self, destroy: Callable[[], None]) -> None:
        self._destroy = destroy

    def __del__(self) -> None:
        self._destroy()


class Client(ends.DestroyedInBackground):
    """A producer of librdkafka with three records in its queue."""

    def __init__(self, destroy: Callable[[], None]) -> None:
        self.handle = Handle(destroy)

    def __len__(self) -> int:
        return 3


def test_an_end_in_time_is_no_warning_and_its_error_is_the_callers() -> None:
    lines: list[str] = []
    assert ends.end_within("a consumer", lambda: None, say=lines.append)
    with pytest.raises(ZeroDivisionError):
        ends.end_within("a consumer", lambda: 1 / 0, say=lines.append)
    assert lines == []


@pytest.mark.parametrize(("records", "more"), [(0, ""), (1, "; at most 1 record not acknowledged")])
def test_an_end_that_hangs_is_left_behind_and_named_with_its_records(records: int, more: str) -> None:
    lines: list[str] = []
    assert not ends.end_within("a consumer", hang, SOON, unacknowledged=lambda: records, say=lines.append)
    assert lines == [f"a consumer did not end in 0.05 s and is left behind{more}"]


def test_on_an_event_loop_an_end_that_ignores_its_cancellation_is_left_behind(caplog: pytest.LogCaptureFixture) -> None:
    async def ignore() -> None:
        while True:
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(SOON)

    async def stop() -> bool:
        return await ends.awaited_within("a producer", ignore(), SOON, unacknowledged=lambda: 2)

    assert not asyncio.run(stop())
    assert caplog.messages == [
        "a producer did not end in 0.05 s and is left behind; at most 2 records not acknowledged"
    ]


def test_on_an_event_loop_an_end_in_time_is_no_warning_and_its_error_is_the_callers() -> None:
    async def fail() -> None:
        raise ZeroDivisionError

    async def stop() -> bool:
        with pytest.raises(ZeroDivisionError):
            await ends.awaited_within("a producer", fail())
        return await ends.awaited_within("a producer", asyncio.sleep(0))

    assert asyncio.run(stop())


def test_a_destruction_that_hangs_holds_up_nobody_and_is_named(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(ends, "END_SECONDS", SOON)
    client: Client | None = Client(hang)
    assert client is not None
    client = None
    eventually(lambda: bool(caplog.messages), "the line")
    assert caplog.messages == [
        "the destruction of Client did not end in 0.05 s and is left behind; at most 3 records not acknowledged"
    ]


def test_a_destruction_that_does_not_hang_happens_in_another_thread_and_is_no_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    where: list[str] = []
    client: Client | None = Client(lambda: where.append(threading.current_thread().name))
    assert client is not None
    client = None
    eventually(lambda: bool(where), "the destruction")
    assert where == ["end of Client"]
    assert caplog.messages == []


_AT_THE_END = """
import gc, logging, threading
from tests.test_ends import Client, hang
client = Client(hang)
# Python's last collection would otherwise finalize the handle beside its client, which librdkafka's are not.
gc.freeze()
"""


def test_at_the_end_of_the_process_no_client_is_destroyed_and_its_records_are_named() -> None:
    done = ran(_AT_THE_END)
    assert done.returncode == 0
    assert done.stderr == "Client was not closed before the process ended; at most 3 records not acknowledged\n"


def test_an_end_that_was_left_behind_does_not_hold_up_the_end_of_the_process() -> None:
    done = ran("from rackspan.ends import *\nimport threading\nend_within('a consumer', threading.Event().wait, 0.05)")
    assert done.returncode == 0
    assert done.stderr == "a consumer did not end in 0.05 s and is left behind\n"


@pytest.mark.parametrize("end", ["close", "flush"])
def test_a_client_is_closed_at_the_end_of_a_block_or_flushed_if_it_has_no_close(end: str) -> None:
    calls: list[tuple[Any, ...]] = []
    client = type("Consumer", (), {end: lambda self, *arguments: calls.append(arguments)})()
    with ends.closing(client, 2.0) as within:
        assert within is client
        assert calls == []
    assert calls == [() if end == "close" else (2.0,)]


def test_a_close_that_hangs_is_left_behind_at_the_end_of_a_block() -> None:
    lines: list[str] = []
    client = type("Consumer", (), {"close": lambda self: hang(), "__len__": lambda self: 1})()
    with ends.closing(client, SOON, say=lines.append):
        pass
    assert lines == ["Consumer did not end in 0.05 s and is left behind; at most 1 record not acknowledged"]
