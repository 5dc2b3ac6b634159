"""The end of a process after Ctrl-C: within INTERRUPT_SECONDS, whatever its main thread does.

Python raises KeyboardInterrupt between two instructions of the main thread. A call of C that does not return, a close that hangs, or
code that drops the exception would hold it up. Python itself drops it in a finalizer and in a callback of a weak reference: it is raised
again. Begin with `limit_interrupts`. Depends on no other package.
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

_AGAIN_SECONDS: Final = 0.25
"""From an exception that was dropped until it is raised again, at most: the finalizer has ended by then."""

_FLUSH_SECONDS: Final = 0.2
"""For what is in the buffer of standard output, before the end by force."""

_STATUS: Final = 128 + signal.SIGINT
"""As shells report it."""

_NO_FILE: Final = -1
_STDERR: Final = 2

_ends_until = math.inf
_is_dropped = False
"""Whether Python has dropped the exception, and it has to be raised again."""

_own: Final = set[int]()
"""The pipes of limits that are in force."""


def shortened(seconds: float) -> float:
    """The limit of an end that has `seconds` otherwise. After Ctrl-C each end may take half of the time that is left for all of them."""
    return min(seconds, max(_LEAST_SECONDS, (_ends_until - time.monotonic()) / 2))


def limit_interrupts(*, after: int = 1) -> Callable[[], None]:
    """End this process at most INTERRUPT_SECONDS after Ctrl-C was pressed `after` times. Call the returned function to lift the limit.

    A limit that is in force already has no effect until this one is lifted.
    If nothing else has ended it by then, a line on standard error names the place of the code that hangs. Only the main thread may call this.
    An event loop that handles signals must do so already: signals are passed on to it. While a call of C holds Python's lock,
    the limit cannot take effect.
    """
    read, write = os.pipe()
    os.set_blocking(write, False)
    passed_on = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    dropped = sys.unraisablehook
    lifted = threading.Event()
    listener = _NO_FILE if passed_on in _own else passed_on
    _own.add(write)
    arguments = (read, listener, after, lifted)
    watch = threading.Thread(target=_watch, args=arguments, name="watch of Ctrl-C", daemon=True)
    # Signals are for the main thread: those that it blocks for a while would reach a thread that does not.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        watch.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    def drop(unraisable: "sys.UnraisableHookArgs") -> None:
        global _is_dropped
        if not issubclass(unraisable.exc_type, KeyboardInterrupt):
            dropped(unraisable)
            return
        _is_dropped = True
        # One of SIGTERM has not begun the limit.
        with suppress(OSError):
            os.write(write, bytes([signal.SIGINT]))

    sys.unraisablehook = drop

    def lift() -> None:
        global _ends_until
        sys.unraisablehook = dropped
        signal.set_wakeup_fd(passed_on)
        _own.remove(write)
        lifted.set()
        os.close(write)
        _ends_until = math.inf

    return lift


def exit_process(code: int) -> NoReturn:
    """sys.exit. After Ctrl-C without the interpreter's own end, which stops the thread that has the limit first."""
    if _ends_until < math.inf:
        # One more would be a traceback of whatever it finds at work.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(code)
    sys.exit(code)


def _watch(read: int, passed_on: int, after: int, lifted: threading.Event) -> None:
    """The C half of Python's handlers writes the number of each signal, also while the main thread runs no Python."""
    global _ends_until, _is_dropped
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
    ended_by = time.monotonic() + INTERRUPT_SECONDS
    while (seconds := ended_by - time.monotonic()) > 0:
        if lifted.wait(min(seconds, _AGAIN_SECONDS)):
            _ends_until = math.inf
            os.close(read)
            return
        if _is_dropped:
            _is_dropped = False
            # A signal, so that a call of C that waits ends too.
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    _flush_standard_output()
    line = f"rackspan: {_what_hangs()} did not end in {INTERRUPT_SECONDS:g} s after Ctrl-C; the process is ended now\n"
    # Without Python's streams, whose locks the thread that hangs may hold; and not into a pipe that nobody reads.
    with suppress(OSError):
        if select.select([], [_STDERR], [], 0)[1]:
            os.write(_STDERR, line.encode())
    os._exit(_STATUS)


def _flush_standard_output() -> None:
    """In a thread: the one that hangs may hold the lock of the stream, and nobody may read the pipe."""

    def flush() -> None:
        with suppress(OSError, ValueError, AttributeError):
            sys.stdout.flush()

    # The interpreter starts no threads once it ends.
    with suppress(RuntimeError):
        thread = threading.Thread(target=flush, name="flush of standard output", daemon=True)
        thread.start()
        thread.join(_FLUSH_SECONDS)


def _what_hangs() -> str:
    """The place in rackspan at which the main thread is. At the end of the process: threads that it waits for."""
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    while frame is not None and not frame.f_globals.get("__name__", "").startswith("rackspan."):
        frame = frame.f_back
    if frame is not None:
        return f"{frame.f_code.co_name} of {frame.f_globals['__name__']}, line {frame.f_lineno},"
    threads = [thread.name for thread in threading.enumerate() if not thread.daemon]
    return f"a thread ({', '.join(name for name in threads if name != threading.main_thread().name) or 'unknown'})"
