"""A clock in milliseconds since 1970 that never runs backwards and stops while the process is suspended."""

import time
from collections.abc import Callable
from typing import Final

_SUSPENDED_NS: Final = 500_000_000
"""Ten ticks. A longer time between two readings means that the process was suspended."""


class Clock:
    """The wall-clock time at its creation, and from then on the machine's monotonic clock.

    On an overloaded machine or in a debugger all brokers and the controller are suspended together. That time is left out,
    so that no broker is fenced, and no replica or member leaves its ISR or group, for it.
    """

    def __init__(
        self, monotonic_ns: Callable[[], int] = time.monotonic_ns, time_ns: Callable[[], int] = time.time_ns
    ) -> None:
        self._monotonic_ns = monotonic_ns
        self._read_ns = monotonic_ns()
        self._offset_ns = time_ns() - self._read_ns

    def now(self) -> int:
        read_ns = self._monotonic_ns()
        self._offset_ns -= max(0, read_ns - self._read_ns - _SUSPENDED_NS)
        self._read_ns = read_ns
        return (read_ns + self._offset_ns) // 1_000_000
