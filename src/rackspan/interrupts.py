"""The end of a process after Ctrl-C: within INTERRUPT_SECONDS, whatever its main thread does.

Python raises KeyboardInterrupt between two instructions of the main thread. A call of C that does not return, a close that hangs, or
code that drops the exception would hold it up. Begin with `limit_interrupts`. Depends on no other package.
"""

import atexit
import math
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final, NoReturn

INTERRUPT_SECONDS: Final = 4.5
"""From Ctrl-C until the process is ended by force."""

ENDS_SECONDS: Final = 4.0
"""From Ctrl-C, for all closes and joins of ends.py together."""

_LEAST_SECONDS: Final = 0.1
"""For an end that would take milliseconds, after others that took all the time."""

_STATUS: Final = 128 + signal.SIGINT
"""As shells report it."""

_NO_FILE: Final = -1
_STDERR: Final = 2

_ends_until = math.inf


def shortened(seconds: float) -> float:
    """The limit of an end that has `seconds` otherwise. After Ctrl-C each end may take half of the time that is left for all of them."""
    return min(seconds, max(_LEAST_SECONDS, (_ends_until - time.monotonic()) / 2))


def limit_interrupts(*, after: int = 1) -> Callable[[], None]:
    """End this process at most INTERRUPT_SECONDS after Ctrl-C was pressed `after` times. Call the returned function to lift the limit.

    If nothing else has ended it by then, a line on standard error names the place of the code that hangs. Only the main thread may call this.
    An event loop that handles signals must do so already: signals are passed on to it. While a call of C holds Python's lock,
    the limit cannot take effect.
    """
    read, write = os.pipe()
    os.set_blocking(write, False)
    passed_on = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    watch = threading.Thread(target=_watch, args=(read, passed_on, after), name="watch of Ctrl-C", daemon=True)
    watch.start()

    def lift() -> None:
        signal.set_wakeup_fd(passed_on)
        os.close(write)

    return lift


def exit_process(code: int) -> NoReturn:
    """sys.exit. After Ctrl-C without the interpreter's own end, which stops the thread that has the limit first."""
    if _ends_until < math.inf:
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(code)
    sys.exit(code)


def _watch(read: int, passed_on: int, after: int) -> None:
    """The C half of Python's handlers writes the number of each signal, also while the main thread runs no Python."""
    global _ends_until
    left = after
    while left and (number := os.read(read, 1)):
        if passed_on != _NO_FILE:
            with suppress(OSError):
                os.write(passed_on, number)
        left -= number[0] == signal.SIGINT
    if left:
        os.close(read)
        return
    _ends_until = time.monotonic() + ENDS_SECONDS
    time.sleep(INTERRUPT_SECONDS)
    line = f"rackspan: {_what_hangs()} did not end in {INTERRUPT_SECONDS:g} s after Ctrl-C; the process is ended now\n"
    # Without Python's streams, whose locks the thread that hangs may hold; and not into a pipe that nobody reads.
    with suppress(OSError):
        if select.select([], [_STDERR], [], 0)[1]:
            os.write(_STDERR, line.encode())
    os._exit(_STATUS)


def _what_hangs() -> str:
    """The place in rackspan at which the main thread is. At the end of the process: threads that it waits for."""
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    while frame is not None and not frame.f_globals.get("__name__", "").startswith("rackspan."):
        frame = frame.f_back
    if frame is not None:
        return f"{frame.f_code.co_name} of {frame.f_globals['__name__']}, line {frame.f_lineno},"
    threads = [thread.name for thread in threading.enumerate() if not thread.daemon]
    return f"a thread ({', '.join(name for name in threads if name != threading.main_thread().name) or 'unknown'})"
