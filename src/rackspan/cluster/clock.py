"""Milliseconds since 1970 that never run backwards."""

import time


class Clock:
    """The wall's time when it was made, and from then on the machine's monotonic one."""

    def __init__(self) -> None:
        self._ahead_ns = time.time_ns() - time.monotonic_ns()

    def now(self) -> int:
        return (time.monotonic_ns() + self._ahead_ns) // 1_000_000
