"""Calls in daemon threads. The judge of a process that ends is the process."""

import asyncio
import subprocess
import sys
import threading
from contextlib import suppress

import pytest

from rackspan.daemon_threads import DaemonExecutor, run
from tests.waiting import WITHIN_SECONDS


def ends(script: str) -> bool:
    words = [sys.executable, "-c", script]
    return subprocess.run(words, check=False, timeout=WITHIN_SECONDS).returncode == 0


def test_calls_have_results_and_errors_and_a_shutdown_carries_out_what_was_submitted() -> None:
    executor = DaemonExecutor(2, "call")
    results = [executor.submit(divmod, 7, divisor) for divisor in (2, 0)]
    executor.shutdown()
    assert results[0].result(0) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        results[1].result(0)


def test_a_call_that_was_cancelled_before_its_turn_is_not_made() -> None:
    begun, go_on, made = threading.Event(), threading.Event(), list[str]()

    def first() -> None:
        begun.set()
        go_on.wait(WITHIN_SECONDS)

    executor = DaemonExecutor(1, "call")
    executor.submit(first)
    assert begun.wait(WITHIN_SECONDS)
    assert executor.submit(made.append, "second").cancel()
    go_on.set()
    executor.shutdown()
    assert made == []


def test_so_many_calls_are_made_side_by_side() -> None:
    both = threading.Barrier(2)
    executor = DaemonExecutor(2, "call")
    calls = [executor.submit(both.wait, WITHIN_SECONDS) for _ in range(2)]
    assert {call.result(WITHIN_SECONDS) for call in calls} == {0, 1}
    executor.shutdown()


def test_a_call_that_hangs_does_not_hold_up_the_end_of_the_process() -> None:
    assert ends(
        "import threading\nfrom rackspan.daemon_threads import *\nDaemonExecutor(1, 'call').submit(threading.Event().wait)"
    )


def test_a_call_that_an_event_loop_gave_up_does_not_hold_up_the_end_of_the_process() -> None:
    assert ends(
        "import asyncio, threading\nfrom contextlib import suppress\nfrom rackspan.daemon_threads import run\n"
        "async def main():\n"
        "    with suppress(TimeoutError):\n"
        "        await asyncio.wait_for(asyncio.to_thread(threading.Event().wait), 0.05)\n"
        "run(main())"
    )


def test_on_the_loop_calls_have_results_and_errors() -> None:
    async def main() -> tuple[int, int]:
        with pytest.raises(ZeroDivisionError):
            await asyncio.to_thread(divmod, 7, 0)
        return await asyncio.to_thread(divmod, 7, 2)

    assert run(main()) == (3, 1)


def test_a_call_that_ends_after_it_was_given_up_is_no_fault() -> None:
    go_on, faults = threading.Event(), list[object]()

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: faults.append(context))
        waiting = asyncio.ensure_future(asyncio.to_thread(go_on.wait, WITHIN_SECONDS))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait([waiting])
        go_on.set()
        await asyncio.to_thread(lambda: None)
        await asyncio.sleep(0)

    run(main())
    assert faults == []


def test_a_call_that_is_submitted_after_the_shutdown_is_refused_and_never_lost() -> None:
    executor, made = DaemonExecutor(1, "call"), list[str]()
    executor.submit(made.append, "first")
    executor.shutdown()
    with pytest.raises(RuntimeError, match="call: no call can be submitted after the shutdown"):
        executor.submit(made.append, "second")
    assert made == ["first"]


def test_calls_that_are_submitted_by_several_threads_have_at_most_so_many() -> None:
    together = threading.Barrier(2)

    class CountedTogether(list[threading.Thread]):
        """Two threads that may count it at the same time do so."""

        def __len__(self) -> int:
            length = super().__len__()
            with suppress(threading.BrokenBarrierError):
                together.wait(0.2)
            return length

    executor = DaemonExecutor(1, "call")
    executor._threads = CountedTogether()
    submitting = [threading.Thread(target=executor.submit, args=(int,)) for _ in range(2)]
    for thread in submitting:
        thread.start()
    for thread in submitting:
        thread.join()
    assert len(executor._threads) == 1
    executor.shutdown()
