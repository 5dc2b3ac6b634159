"""Records that a guarded producer has accepted and not yet given to its client, within a bound."""

import threading
from typing import Final

from rackspan.text import count_noun

RECORDS_MAX: Final = 100_000
"""librdkafka's own default."""


class WaitingRecords:
    """How many records wait, and how many bytes of keys and values. Used by any thread."""

    def __init__(self, records_max: float, bytes_max: int, when_full: str) -> None:
        """`when_full`: the end of the error, which names the two bounds and says what to do."""
        self._records_max, self._bytes_max, self._when_full = records_max, bytes_max, when_full
        self._changed = threading.Condition()
        self._records = self._bytes = 0

    def __len__(self) -> int:
        return self._records

    def add(self, size_bytes: int, beside: int = 0) -> None:
        """Count one more, `beside` others that the client holds. Errors: BufferError if the bound does not allow it."""
        with self._changed:
            records = self._records + beside
            if records >= self._records_max or self._bytes + size_bytes > self._bytes_max:
                raise BufferError(f"{count_noun(records, 'record')} wait, and {self._when_full}")
            self._records += 1
            self._bytes += size_bytes

    def remove(self, size_bytes: int) -> None:
        """Count one less."""
        with self._changed:
            self._records -= 1
            self._bytes -= size_bytes
            self._changed.notify_all()

    def await_none(self, seconds: float) -> None:
        """Return once none is left, or after so many seconds."""
        with self._changed:
            self._changed.wait_for(lambda: not self._records, seconds)
