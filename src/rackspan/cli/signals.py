"""Verbs that go on until they are told to stop."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from rackspan.cli import output


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Ctrl-C and SIGTERM are how such a verb is meant to end: cleanly, with exit code 0."""

    def end(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    before = {one: signal.signal(one, end) for one in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    except KeyboardInterrupt:
        output.note("ended")
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
