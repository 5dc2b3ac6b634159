"""Mistakes in what a leader does with the bytes of a Produce request. The product holds none of them."""

from dataclasses import replace

from rackspan.cluster.core.batch import RecordBatch
from rackspan.cluster.core.broker import BrokerCore
from rackspan.cluster.core.broker.record_validation import KeylessRecords
from rackspan.cluster.core.errors import KafkaError
from rackspan.cluster.core.messages import ProduceResponse
from rackspan.kafka_bytes.record_batch import read_header
from rackspan.model.ids import TopicPartition


class KeepsFirstConfigs(BrokerCore):
    """What the topic's configs require of records is worked out once, for the first batch."""

    def validated_batch(
        self,
        partition: TopicPartition | None,
        records: memoryview | None,
        acks: int,
        now: int,
        keyless_records: KeylessRecords,
    ) -> RecordBatch | ProduceResponse:
        self._shared._record_configs_image = self.image
        return super().validated_batch(partition, records, acks, now, keyless_records)


class ChecksNoKeys(BrokerCore):
    """A compacted topic takes records without a key."""

    def validated_batch(
        self,
        partition: TopicPartition | None,
        records: memoryview | None,
        acks: int,
        now: int,
        keyless_records: KeylessRecords,
    ) -> RecordBatch | ProduceResponse:
        return super().validated_batch(partition, records, acks, now, lambda data: ())


class ChecksNoCrc(BrokerCore):
    """A batch whose bytes changed on the way is appended as it arrived."""

    def validated_batch(
        self,
        partition: TopicPartition | None,
        records: memoryview | None,
        acks: int,
        now: int,
        keyless_records: KeylessRecords,
    ) -> RecordBatch | ProduceResponse:
        result = super().validated_batch(partition, records, acks, now, keyless_records)
        if records is None or not isinstance(result, ProduceResponse) or result.error is not KafkaError.CORRUPT_MESSAGE:
            return result
        header = read_header(records)
        return RecordBatch(0, header.last_offset_delta, -1, bytearray(records), max_timestamp=header.max_timestamp)


class KeepsTheReceiveBuffer(BrokerCore):
    """The log refers to the memory in which a request was received, and the next request overwrites it."""

    _buffer = bytearray(1 << 16)

    def validated_batch(
        self,
        partition: TopicPartition | None,
        records: memoryview | None,
        acks: int,
        now: int,
        keyless_records: KeylessRecords,
    ) -> RecordBatch | ProduceResponse:
        result = super().validated_batch(partition, records, acks, now, keyless_records)
        if isinstance(result, ProduceResponse):
            return result
        self._buffer[: result.size_bytes] = result.data
        return replace(result, data=memoryview(self._buffer)[: result.size_bytes])
