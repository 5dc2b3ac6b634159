"""The records of the config topic in order, and the keys that it has lost."""

from collections.abc import Callable

from rackspan.gateway.core.gateways.registrations import GatewayRecords, optional_key
from rackspan.kafka_bytes.record_batch import read_records, whole_batches

Replay = Callable[[bytes | None, bytes | None], None]
"""Called with key and value of a record."""


class ConfigRecords:
    """Replays the records of one log up to `offset`.

    While the log is read again from its beginning, nothing is replayed: records may be missing there. At its end the last record of each
    key is. A key that is missing without a tombstone keeps its value, and is in `lost`. Records that are no values, whose keys are optional,
    are followed by `gateways` instead.
    """

    def __init__(self, replay: Replay) -> None:
        self._replay = replay
        self.gateways = GatewayRecords()
        self.offset = 0
        self._reread: dict[bytes | None, bytes | None] | None = {}
        """The last record of each key, while everything is read; None once that is replayed."""
        self._keys: set[bytes] = set()
        """Those that have a value."""
        self.lost: set[bytes] = set()

    @property
    def is_reread(self) -> bool:
        """Whether the log is read from its beginning, so that what is read is not replayed yet."""
        return self._reread is not None

    def has_passed(self, offset: int) -> bool:
        """Whether the record at this offset is replayed."""
        return not self.is_reread and self.offset > offset

    def read_again(self, offset: int) -> None:
        """The log is read again, from its first offset on."""
        self.offset, self._reread = offset, {}
        self.gateways.read_again()

    def replay_batches(self, records: bytes) -> None:
        """Errors: MalformedBytes."""
        for header, at in whole_batches(records):
            batch = records[at : at + header.size_bytes]
            for delta, (key, value) in read_records(batch) if not header.control else ():
                if header.base_offset + delta < self.offset:
                    continue
                optional = optional_key(key)
                if optional is not None:
                    self.gateways.observe(optional, value)
                elif self._reread is None:
                    self._replay_record(key, value)
                else:
                    self._reread[key] = value
            # Two replicas may be read at the same time.
            self.offset = max(self.offset, header.base_offset + header.last_offset_delta + 1)

    def end(self) -> set[bytes]:
        """The log is read to its end. Returns all lost keys if there are more than before, else none."""
        if self._reread is None:
            return set()
        records, self._reread = self._reread, None
        self.gateways.end()
        lost = self._keys - records.keys()
        for key, value in records.items():
            self._replay_record(key, value)
        is_more = bool(lost - self.lost)
        self.lost |= lost
        return lost if is_more else set()

    def _replay_record(self, key: bytes | None, value: bytes | None) -> None:
        if key is not None:
            self.lost.discard(key)
            if value is None:
                self._keys.discard(key)
            else:
                self._keys.add(key)
        self._replay(key, value)
