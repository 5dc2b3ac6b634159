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
        self._counting = threading.Lock()
        self._records = self._bytes = 0

    def __len__(self) -> int:
        return self._records

    def add(self, size_bytes: int, beside: int = 0) -> None:
        """Count one more, `beside` others that the client holds. Errors: BufferError if the bound does not allow it."""
        with self._counting:
            records = self._records + beside
            if records >= self._records_max or self._bytes + size_bytes > self._bytes_max:
                raise BufferError(f"{count_noun(records, 'record')} wait, and {self._when_full}")
            self._records += 1
            self._bytes += size_bytes

    def remove(self, size_bytes: int) -> None:
        """Count one less."""
        with self._counting:
            self._records -= 1
            self._bytes -= size_bytes


def copied(name: str, given: object) -> bytes | None:
    """A serialized key or value that its owner cannot change any more. Errors: TypeError."""
    if given is None or isinstance(given, bytes | bytearray | memoryview):
        return None if given is None else bytes(given)
    raise TypeError(f"{name} is {type(given).__name__}; give bytes, or a serializer to the producer")
