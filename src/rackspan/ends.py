"""Ends with a time limit: a close or a destruction that does not return is left behind, and named in one line.

It runs in a daemon thread, which holds up neither its caller nor the end of the process. Begin with `end_within`. After Ctrl-C the
limits are shorter (interrupts.py). Depends on: interrupts, text.
"""

import asyncio
import ctypes
import gc
import logging
import sys
import threading
import time
import weakref
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final, TypeVar

from rackspan import interrupts
from rackspan.text import count_noun

log = logging.getLogger(__name__)

END_SECONDS: Final = 10.0
"""The limit of an end that takes milliseconds where nothing hangs."""

_POLL_SECONDS: Final = 0.01
_LONGEST_POLL_SECONDS: Final = 0.5
_RETURN_SECONDS: Final = 1.0
"""For a finalizer to return to its caller."""

Client = TypeVar("Client")
Say = Callable[[str], object]


def _no_records() -> int:
    return 0


def end_within(
    what: str,
    end: Callable[[], object],
    seconds: float = END_SECONDS,
    *,
    unacknowledged: Callable[[], int] = _no_records,
    say: Say = log.warning,
) -> bool:
    """Call `end`, and return whether it returned within `seconds`. If not, `say` gets a line with the records that are not acknowledged.

    `seconds` may be math.inf, for work that only Ctrl-C gives a limit. Errors: those of `end`.
    """
    errors: list[BaseException] = []

    def run() -> None:
        try:
            end()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, name=f"end of {what}", daemon=True)
    thread.start()
    ended = joined_within(what, thread, seconds, unacknowledged=unacknowledged, say=say)
    if errors:
        raise errors[0]
    return ended


def joined_within(
    what: str,
    thread: threading.Thread,
    seconds: float = END_SECONDS,
    *,
    unacknowledged: Callable[[], int] = _no_records,
    say: Say = log.warning,
) -> bool:
    """Wait for the end of a daemon thread that has been stopped. Otherwise as `end_within`."""
    began = time.monotonic()
    ended_by = began + interrupts.shortened(seconds)
    while thread.is_alive() and (left := ended_by - time.monotonic()) > 0:
        thread.join(min(left, _LONGEST_POLL_SECONDS))
        # Ctrl-C may come meanwhile.
        ended_by = min(ended_by, time.monotonic() + interrupts.shortened(seconds))
    if thread.is_alive():
        say(not_ended(what, min(seconds, time.monotonic() - began), unacknowledged()))
    return not thread.is_alive()


async def awaited_within(
    what: str, end: Awaitable[object], seconds: float = END_SECONDS, *, unacknowledged: Callable[[], int] = _no_records
) -> bool:
    """`end_within` on an event loop. An end that does not return is cancelled, and nothing waits for that. Errors: those of `end`."""
    task, seconds = asyncio.ensure_future(end), interrupts.shortened(seconds)
    done, _ = await asyncio.wait((task,), timeout=seconds)
    if done:
        task.result()
        return True
    task.cancel()
    # asyncio.run would wait for it, for ever if it drops its cancellation. The documentation has this under "Extending".
    asyncio._unregister_task(task)
    log.warning(not_ended(what, seconds, unacknowledged()))
    return False


def not_ended(what: str, seconds: float, records: int = 0) -> str:
    """The line of an end that did not return."""
    return f"{what} did not end in {seconds:.3g} s and is left behind{lost(records)}"


def lost(records: int) -> str:
    """The records of a line that are not acknowledged, nothing if there are none."""
    # librdkafka counts events that nobody has polled as records.
    return f"; at most {count_noun(records, 'record')} not acknowledged" if records else ""


@contextmanager
def closing(client: Client, seconds: float = END_SECONDS, *, say: Say = log.warning) -> Iterator[Client]:
    """Close a Kafka client at the end of the block, or flush it if it has no `close`. Its destruction is in the background."""
    try:
        yield client
    finally:
        name, end = type(client).__name__, getattr(client, "close", None)
        if end is None:
            end = lambda: client.flush(seconds)  # type: ignore[attr-defined] # noqa: E731 # a producer before confluent-kafka 2.13
        end_within(name, end, seconds, unacknowledged=lambda: _queued(client), say=say)
        _start_destruction(name, [client], say=say)


class DestroyedInBackground:
    """Mixin before a client of librdkafka, whose destruction joins librdkafka's threads and so may hang.

    The destruction takes place in a daemon thread. At the end of the interpreter there is none: the process takes the threads with it.
    """

    unacknowledged: Callable[[], int] | None = None
    """The count of records that its owner keeps, if there is one."""

    def __del__(self) -> None:
        name, records = type(self).__name__, _queued(self)
        if not sys.is_finalizing():
            with suppress(RuntimeError):
                # Since Python 3.12 no thread starts at the end of the interpreter.
                _start_destruction(name, [self], returned_within=_RETURN_SECONDS)
                return
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self))
        if records:
            log.warning("%s was not closed before the process ended%s", name, lost(records))


def _queued(client: object) -> int:
    """The records that a producer of librdkafka has not delivered. The other clients have no length."""
    counted: Callable[[], int] | None = getattr(client, "unacknowledged", None)
    if counted is not None:
        return counted()
    try:
        return len(client)  # type: ignore[arg-type] # its type has no length
    except (TypeError, RuntimeError):
        return 0


def _start_destruction(
    name: str, held: list[Any], *, returned_within: float | None = None, say: Say = log.warning
) -> None:
    """Release the client in `held` in a daemon thread, once no other code holds it: the last one to release it destroys it."""
    records = _queued(held[0])
    threading.Thread(
        target=_destroy, args=(name, held, records, returned_within, say), name=f"end of {name}", daemon=True
    ).start()


def _destroy(name: str, held: list[Any], records: int, returned_within: float | None, say: Say) -> None:
    began, pause = time.monotonic(), _POLL_SECONDS
    # The list and the argument of the call.
    while sys.getrefcount(held[0]) > 2 and (returned_within is None or time.monotonic() < began + returned_within):
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_POLL_SECONDS)
    late = threading.Timer(END_SECONDS, lambda: say(not_ended(f"the destruction of {name}", END_SECONDS, records)))
    late.daemon = True
    late.start()
    released = weakref.ref(held[0]) if type(held[0]).__weakrefoffset__ else lambda: None
    held.clear()
    if released() is not None:
        # It refers to itself, as by a callback. The thread that collects it destroys it.
        gc.collect()
    late.cancel()
