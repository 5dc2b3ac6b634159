"""Executors and event loops whose threads are daemons: a call that hangs in one holds up nobody's end.

Python joins the threads of ThreadPoolExecutor at the end of the process, and asyncio.run those of its loop. Depends on no other package.
"""

import asyncio
import socket
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor, Future
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from typing import Any, Final, ParamSpec, TypeVar, TypeVarTuple, Unpack

P = ParamSpec("P")
T = TypeVar("T")
A = TypeVarTuple("A")

_LOOP_THREADS: Final = 32


class DaemonExecutor(Executor):
    """Calls in at most so many threads, in the order of their submission. What has not ended with the process is lost."""

    def __init__(self, threads: int, name: str) -> None:
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._most, self._name = threads, name
        self._threads: list[threading.Thread] = []
        self._lock, self._is_shut_down = threading.Lock(), False

    def submit(self, call: Callable[P, T], /, *arguments: P.args, **options: P.kwargs) -> "Future[T]":
        """Errors: RuntimeError after `shutdown`."""
        future: Future[T] = Future()
        with self._lock:
            if self._is_shut_down:
                raise RuntimeError(f"{self._name}: no call can be submitted after the shutdown")
            self._calls.put(lambda: _carry_out(future, partial(call, *arguments, **options)))
            if len(self._threads) < self._most:
                thread = threading.Thread(target=self._serve, name=f"{self._name}_{len(self._threads)}", daemon=True)
                self._threads.append(thread)
                thread.start()
        return future

    def _serve(self) -> None:
        while (call := self._calls.get()) is not None:
            call()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # Executor's
        """Calls that were submitted are carried out first."""
        assert not cancel_futures  # noqa: S101 - no caller requires it
        with self._lock:
            self._is_shut_down = True
            for _ in self._threads:
                self._calls.put(None)
        if wait:
            for thread in self._threads:
                thread.join()  # unlimited: as Executor has it; callers have the limit


def _carry_out(future: "Future[T]", call: Callable[[], T]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = call()
    except BaseException as error:
        future.set_exception(error)
    else:
        future.set_result(result)


class DaemonThreadLoop(asyncio.SelectorEventLoop):
    """An event loop that looks up names, and runs what blocks, in daemon threads."""

    def __init__(self) -> None:
        super().__init__()
        self._daemons = DaemonExecutor(_LOOP_THREADS, "blocking call")
        self.unresolved: set[str] = set()
        """Hosts whose look-up has begun and not ended, given up or not."""

    async def getaddrinfo(self, host: Any, port: Any, **hints: Any) -> Any:
        def look_up() -> Any:
            try:
                return socket.getaddrinfo(host, port, **hints)
            finally:
                self._call_if_open(self.unresolved.discard, host)

        self.unresolved.add(host)
        return await self.run_in_executor(None, look_up)

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[Unpack[A]], T], *args: *A
    ) -> "asyncio.Future[T]":
        """The loop's own threads are daemons. An executor that is given is used as it is."""
        result: asyncio.Future[T] = self.create_future()

        (executor or self._daemons).submit(func, *args).add_done_callback(
            lambda call: self._call_if_open(_hand_on, call, result)
        )
        return result

    def _call_if_open(self, call: Callable[[Unpack[A]], object], *arguments: *A) -> None:
        """In the loop's thread, for other threads. By then the loop may be closed."""
        with suppress(RuntimeError):
            self.call_soon_threadsafe(call, *arguments)


def _hand_on(call: "Future[T]", result: "asyncio.Future[T]") -> None:
    error = call.exception()
    if result.done():
        return
    if error is None:
        result.set_result(call.result())
    else:
        result.set_exception(error)


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """asyncio.run on such a loop."""
    with asyncio.Runner(loop_factory=DaemonThreadLoop) as runner:
        return runner.run(coroutine)
