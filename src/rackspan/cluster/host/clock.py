"""Milliseconds since 1970 that never run backwards, nor on while the process stands still."""

import time
from typing import Final

_LONGEST_NS: Final = 500_000_000
"""Ten ticks: whoever asks the time less often was kept from running."""


class Clock:
    """The wall's time when it was made, and from then on the machine's monotonic one.

    On a machine without time to spare, or in a debugger, all brokers and the controller stand still together. That is no
    fault of any broker, so the time of it is left out: nobody is fenced, and nobody leaves an ISR or a group, for it.
    """

    def __init__(self) -> None:
        self._read_ns = time.monotonic_ns()
        self._ahead_ns = time.time_ns() - self._read_ns

    def now(self) -> int:
        read_ns = time.monotonic_ns()
        self._ahead_ns -= max(0, read_ns - self._read_ns - _LONGEST_NS)
        self._read_ns = read_ns
        return (read_ns + self._ahead_ns) // 1_000_000
