"""The one question for which a broker opens a batch: which record stands at a timestamp (ListOffsets)."""

from dataclasses import dataclass

from rackspan.cluster.core.batch import Batch


@dataclass(frozen=True, slots=True)
class RecordPlace:
    """A record's offset and timestamp (ms)."""

    offset: int
    timestamp: int


def first_at(batch: Batch, timestamp: int) -> RecordPlace:
    """The first record of the batch at `timestamp` or later; the batch's last where it cannot be decompressed here."""
    found = [place for place in _places(batch) if place.timestamp >= timestamp]
    return found[0] if found else RecordPlace(batch.last_offset, batch.max_timestamp)


def latest(batch: Batch) -> RecordPlace:
    """The first of those with the batch's greatest timestamp."""
    return first_at(batch, batch.max_timestamp)


def _places(batch: Batch) -> list[RecordPlace]:
    # Read by kafka-python, which knows every compression that is installed.
    from kafka.errors import UnsupportedCodecError
    from kafka.record.default_records import DefaultRecordBatch

    try:
        return [RecordPlace(one.offset, one.timestamp) for one in DefaultRecordBatch(bytes(batch.data))]
    except UnsupportedCodecError:
        return []
