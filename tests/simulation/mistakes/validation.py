"""Mistakes in what a leader does with the bytes of a Produce request. The product holds none of them."""

from dataclasses import replace

from rackspan.cluster.core.batch import RecordBatch
from rackspan.cluster.core.broker import BrokerCore
from rackspan.cluster.core.broker.record_validation import KeylessRecords
from rackspan.cluster.core.messages import ProduceResponse
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.kafka_bytes.record_batch import read_header
from rackspan.model.ids import TopicPartition


class ValidatesOtherwise(BrokerCore):
    """Each mistake overrides one of three steps."""

    def validated_batch(
        self,
        partition: TopicPartition | None,
        records: memoryview | None,
        acks: int,
        now: int,
        keyless_records: KeylessRecords,
        *,
        to_internal: bool = False,
    ) -> RecordBatch | ProduceResponse:
        self.before()
        result = super().validated_batch(
            partition, records, acks, now, self.keys_by(keyless_records), to_internal=to_internal
        )
        if isinstance(result, RecordBatch):
            return self.appended(result)
        return result if records is None else self.refused(records, result)

    def before(self) -> None:
        """Nothing."""

    def keys_by(self, keyless_records: KeylessRecords) -> KeylessRecords:
        return keyless_records

    def appended(self, batch: RecordBatch) -> RecordBatch:
        return batch

    def refused(self, records: memoryview, response: ProduceResponse) -> RecordBatch | ProduceResponse:
        return response


class KeepsFirstConfigs(ValidatesOtherwise):
    """What the topic's configs require of records is worked out once, for the first batch."""

    def before(self) -> None:
        self._shared._record_configs_image = self.image


class ChecksNoKeys(ValidatesOtherwise):
    """A compacted topic takes records without a key."""

    def keys_by(self, keyless_records: KeylessRecords) -> KeylessRecords:
        return lambda data: ()


class ChecksNoCrc(ValidatesOtherwise):
    """A batch whose bytes changed on the way is appended as it arrived."""

    def refused(self, records: memoryview, response: ProduceResponse) -> RecordBatch | ProduceResponse:
        if response.error is not ErrorCode.CORRUPT_MESSAGE:
            return response
        header = read_header(records)
        return RecordBatch(0, header.last_offset_delta, -1, bytearray(records), max_timestamp=header.max_timestamp)


class KeepsTheReceiveBuffer(ValidatesOtherwise):
    """The log refers to the memory in which a request was received, and the next request overwrites it."""

    _buffer = bytearray(1 << 16)

    def appended(self, batch: RecordBatch) -> RecordBatch:
        self._buffer[: batch.size_bytes] = batch.data
        return replace(batch, data=memoryview(self._buffer)[: batch.size_bytes])
