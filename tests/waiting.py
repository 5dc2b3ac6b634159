"""Waiting for events. All tests have one limit, so that only a test that fails reaches it, however busy the machine is.

tools/tidy.py refuses a shorter limit that does not say why.
"""

import time
from collections.abc import Callable
from typing import Final

WITHIN_SECONDS: Final = 180.0
"""How long a test waits for what must happen: a request at a load of 20 took half a minute."""


def eventually(holds: Callable[[], bool], what: str, *, pause_seconds: float = 0.1) -> None:
    """Wait until something holds that a process or a cluster does in its own time. `what` is the message of a failure."""
    until = time.monotonic() + WITHIN_SECONDS
    while not holds():
        assert time.monotonic() < until, f"after {WITHIN_SECONDS:.0f} s still not so: {what}"
        time.sleep(pause_seconds)
