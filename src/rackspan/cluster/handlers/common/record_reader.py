"""The two questions for which a broker opens a batch: which record stands at a timestamp, and whether all have keys."""

from dataclasses import dataclass
from typing import Any

from rackspan.cluster.core.batch import RecordBatch


@dataclass(frozen=True, slots=True)
class RecordPosition:
    """A record's offset and timestamp (ms)."""

    offset: int
    timestamp: int


def first_at(batch: RecordBatch, timestamp: int) -> RecordPosition:
    """The first record of the batch at `timestamp` or later; the batch's last where it cannot be decompressed here."""
    found = [place for place in _places(batch) if place.timestamp >= timestamp]
    return found[0] if found else RecordPosition(batch.last_offset, batch.max_timestamp)


def latest(batch: RecordBatch) -> RecordPosition:
    """The first of those with the batch's greatest timestamp."""
    return first_at(batch, batch.max_timestamp)


def lacks_a_key(data: bytes | bytearray | memoryview) -> bool:
    """Whether a record of the batch has no key; a batch that cannot be decompressed here passes."""
    return any(record.key is None for record in _opened(data))


def _places(batch: RecordBatch) -> list[RecordPosition]:
    return [RecordPosition(one.offset, one.timestamp) for one in _opened(batch.data)]


def _opened(data: bytes | bytearray | memoryview) -> list[Any]:
    # Read by kafka-python, which knows every compression that is installed.
    from kafka.errors import UnsupportedCodecError
    from kafka.record.default_records import DefaultRecordBatch

    try:
        return list(DefaultRecordBatch(bytes(data)))
    except UnsupportedCodecError:
        return []
