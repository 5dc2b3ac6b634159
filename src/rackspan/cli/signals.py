"""Commands that run until a signal ends them."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from rackspan.cli import output


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Ctrl-C and SIGTERM end such a command cleanly, with exit code 0."""

    def end(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    except KeyboardInterrupt:
        output.note("ended")
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def stopped_by_signals() -> Iterator[threading.Event]:
    """An event that the first SIGTERM sets, for a command that finishes what it is at; the second one ends the process.

    Ctrl-C ends the block by KeyboardInterrupt, which does not leave it.
    """
    stop = threading.Event()

    def finish(*_: object) -> None:
        stop.set()
        signal.signal(signal.SIGTERM, before)

    before = signal.signal(signal.SIGTERM, finish)
    try:
        yield stop
    except KeyboardInterrupt:
        stop.set()
    finally:
        signal.signal(signal.SIGTERM, before)
