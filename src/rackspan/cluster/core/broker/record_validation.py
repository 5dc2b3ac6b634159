"""Validation of a produced batch before a leader appends it: format, keys, timestamps (Kafka: LogValidator).

Unlike LogValidator it checks the first and the greatest timestamp of the batch's header and not each record's. Records are
decoded only for a compacted topic, where every record needs a key; the decoding itself is the caller's.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from rackspan.cluster.core.batch import NO_TIMESTAMP, RecordBatch
from rackspan.cluster.core.messages import ProduceResponse, RecordError
from rackspan.errors import CorruptRecords
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.kafka_bytes.record_batch import (
    MAGIC,
    MAGIC_AT,
    BatchHeader,
    read_any_header,
    stamp_append_time,
    verify_crc,
)
from rackspan.model.ids import TopicPartition
from rackspan.model.topic import parse_config_list

CLEANUP: Final = "cleanup.policy"
TIMESTAMP_TYPE: Final = "message.timestamp.type"
BEFORE: Final = "message.timestamp.before.max.ms"
AFTER: Final = "message.timestamp.after.max.ms"
RECORD_CONFIG_KEYS: Final = (CLEANUP, TIMESTAMP_TYPE, BEFORE, AFTER)

KEPT_IN_PLACE_BYTES: Final = 16 * 1024
"""A batch of at least this size stays where it was received and keeps all of its request in memory; smaller ones are copied."""

_LARGEST_CODEC: Final = 4
"""zstd."""

KeylessRecords: TypeAlias = Callable[[memoryview], Sequence[int]]
"""The places in the batch of records without a key. It may have to decompress the batch."""

RECORD_ERRORS_SHOWN: Final = 3
"""In the message for the whole batch; the response has an entry for each record (KIP-467)."""


@dataclass(frozen=True, slots=True)
class RecordConfig:
    """The configs of one topic that concern records. Milliseconds."""

    compacted: bool
    append_time: bool
    before_max_ms: int
    after_max_ms: int

    @classmethod
    def of(cls, values: Mapping[str, str | None]) -> "RecordConfig":
        """From the topic's configs in effect."""
        return cls(
            "compact" in parse_config_list(values[CLEANUP] or ""),
            values[TIMESTAMP_TYPE] == "LogAppendTime",
            int(values[BEFORE] or 0),
            int(values[AFTER] or 0),
        )

    def error(
        self,
        partition: TopicPartition,
        header: BatchHeader,
        data: memoryview,
        now: int,
        keyless_records: KeylessRecords,
    ) -> ProduceResponse | None:
        """Why the batch cannot be appended at `now` (ms since 1970); None if it can."""
        if self.compacted and (keyless := keyless_records(data)):
            return _keyless_error(partition, keyless)
        if self.append_time or NO_TIMESTAMP in (header.base_timestamp, header.max_timestamp):
            return None
        earliest, latest = now - self.before_max_ms, now + self.after_max_ms
        if header.base_timestamp < earliest or header.max_timestamp > latest:
            return ProduceResponse(
                ErrorCode.INVALID_TIMESTAMP,
                message=f"Timestamps {header.base_timestamp} to {header.max_timestamp} are out of range; "
                f"they should be within [{earliest}, {latest}]",
            )
        return None


def _keyless_error(partition: TopicPartition, keyless: Sequence[int]) -> ProduceResponse:
    """In the words of Kafka's LogValidator."""
    message = f"Compacted topic cannot accept message without key in topic partition {partition}"
    shown = ", ".join(
        f"RecordError(batchIndex={index}, message='{message}')" for index in keyless[:RECORD_ERRORS_SHOWN]
    )
    return ProduceResponse(
        ErrorCode.INVALID_RECORD,
        message=f"One or more records have been rejected due to {len(keyless)} record errors in total, "
        f"and only showing the first three errors at most: [{shown}]",
        record_errors=tuple(RecordError(index, message) for index in keyless),
    )


def validated_batch(
    partition: TopicPartition, records: memoryview, config: RecordConfig, now: int, keyless_records: KeylessRecords
) -> RecordBatch | ProduceResponse:
    """The one batch of a partition, in memory of its own, stamped with `now` (ms) if the topic has LogAppendTime."""
    if len(records) > MAGIC_AT and records[MAGIC_AT] < MAGIC:
        return ProduceResponse(ErrorCode.INVALID_RECORD, message=f"record batches of version {MAGIC} only")
    try:
        header = read_any_header(records)
        verify_crc(records, header)
    except CorruptRecords as error:
        return ProduceResponse(ErrorCode.CORRUPT_MESSAGE, message=str(error))
    if header.base_offset != 0:
        message = f"The base offset of a record batch is 0, and not {header.base_offset}"
        return ProduceResponse(ErrorCode.INVALID_RECORD, message=message)
    if header.size_bytes != len(records):
        return ProduceResponse(ErrorCode.INVALID_RECORD, message="more than one record batch; exactly one is wanted")
    refusal = _header_error(header) or config.error(partition, header, records, now, keyless_records)
    return refusal or _batch(header, records, config, now)


def _header_error(header: BatchHeader) -> ProduceResponse | None:
    if header.compression > _LARGEST_CODEC:
        # As an exception that nothing in Kafka handles.
        return ProduceResponse(
            ErrorCode.UNKNOWN_SERVER_ERROR, message=f"Unknown compression type id: {header.compression}"
        )
    if not header.is_counted:
        offsets = f"the last of which has offset delta {header.last_offset_delta}"
        return ProduceResponse(ErrorCode.INVALID_RECORD, message=f"a batch of {header.record_count} records, {offsets}")
    if header.producer_id >= 0 and header.base_sequence < 0:
        message = f"Invalid sequence number {header.base_sequence} in record batch with producerId {header.producer_id}"
        return ProduceResponse(ErrorCode.INVALID_RECORD, message=message)
    return None


def _batch(header: BatchHeader, records: memoryview, config: RecordConfig, now: int) -> RecordBatch:
    data = _own(records)
    if config.append_time:
        stamp_append_time(data, now)
    return RecordBatch(
        base_offset=0,
        last_offset=header.last_offset_delta,
        leader_epoch=-1,
        data=data,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        max_timestamp=now if config.append_time else header.max_timestamp,
        transactional=header.transactional,
        control=header.control,
    )


def _own(records: memoryview) -> bytearray | memoryview:
    """Memory that the log may keep and stamp."""
    in_place = not records.readonly and len(records) >= KEPT_IN_PLACE_BYTES
    return records if in_place else bytearray(records)
