"""Commands that run until a signal ends them."""

import signal
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
