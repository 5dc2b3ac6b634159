"""Produce (key 0), versions 3-13. Record headers arrive in v3, error messages in v8, topic ids in v13.

Every partition is answered on its own. A large batch is not copied: where it was received is the log's own place for it.
Its records are opened only where the topic is compacted. Errors that only this cluster has travel as Kafka's own, their reason in
`error_message` (min.insync.racks, On the wire), unless extended.error.codes is set.
"""

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from rackspan.cluster.context.call import Call, Response
from rackspan.cluster.core.batch import NO_TIMESTAMP, Batch
from rackspan.cluster.core.errors import KafkaError
from rackspan.cluster.core.messages import Produce, ProduceResponse
from rackspan.cluster.core.metadata import NO_LEADER
from rackspan.cluster.handlers.common.record_validation import RecordTerms, record_terms
from rackspan.cluster.handlers.common.topics import topic_name
from rackspan.cluster.handlers.common.transaction_verification import Support, Writer, verify
from rackspan.errors import CorruptRecords
from rackspan.model.ids import BrokerId, TopicPartition
from rackspan.wire.record_batch import MAGIC, MAGIC_AT, read_header, stamp_append_time, verify_crc

VALID_ACKS: Final = (-1, 0, 1)

KEPT_IN_PLACE: Final = 16 * 1024
"""From so many bytes on a batch stays where it was received, and with it all of its request; smaller ones are copied out."""

ABORTABLE_SINCE: Final = 11
ADDS_SINCE: Final = 12
"""KIP-1050 and KIP-890, part 2."""

_UNVERIFIED: Final[Mapping[KafkaError, str]] = {
    KafkaError.INVALID_TXN_STATE: "Partition was not added to the transaction",
    KafkaError.NOT_ENOUGH_REPLICAS: "Unable to verify the partition has been added to the transaction",
}

_MOVED: Final = (KafkaError.NOT_LEADER_OR_FOLLOWER, KafkaError.FENCED_LEADER_EPOCH)


def handle(call: Call) -> Response | asyncio.Future[Response]:
    gathered = _Gathered(call)
    for topic in call.body["topic_data"]:
        name = topic_name(call, topic)
        answers: list[dict[str, Any]] = []
        gathered.responses.append({"name": name, "topic_id": topic.get("topic_id"), "partition_responses": answers})
        for data in topic["partition_data"]:
            answers.append({"index": data["index"]})
            _append(call, gathered, name, data, answers[-1])
    return gathered.answer()


class _Gathered:
    """The results of one request's partitions, as they come in."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.responses: list[dict[str, Any]] = []
        self._open = 1
        self._moved: set[BrokerId] = set()
        self._future: asyncio.Future[Response] | None = None

    def expect(self) -> None:
        self._open += 1

    def take(
        self,
        place: dict[str, Any],
        partition: TopicPartition,
        result: ProduceResponse,
        *,
        log_append_time: int = NO_TIMESTAMP,
    ) -> None:
        place.update(_place(self.call, result))
        if result.error is KafkaError.NONE:
            place["log_append_time"] = log_append_time
        if result.error in _MOVED:
            self._say_who_leads(place, partition)
        self._open -= 1
        if not self._open and self._future is not None and not self._future.done():
            self._future.set_result(self._body())

    def answer(self) -> Response | asyncio.Future[Response]:
        self._open -= 1
        if self.call.body["acks"] == 0:
            return None
        if not self._open:
            return self._body()
        self._future = asyncio.get_running_loop().create_future()
        return self._future

    def _say_who_leads(self, place: dict[str, Any], partition: TopicPartition) -> None:
        """The new leader at once, without another round of metadata (KIP-951)."""
        state = self.call.broker.image.partition(partition)
        if state is not None and state.leader != NO_LEADER:
            place["current_leader"] = {"leader_id": state.leader, "leader_epoch": state.leader_epoch}
            self._moved.add(state.leader)

    def _body(self) -> dict[str, Any]:
        return {"responses": self.responses, "node_endpoints": self.call.broker.endpoints(self._moved)}


def _append(call: Call, gathered: _Gathered, topic: str | None, data: dict[str, Any], place: dict[str, Any]) -> None:
    gathered.expect()
    partition = TopicPartition(topic or "", data["index"])
    now = call.broker.now
    batch = _batch(call, topic, data["records"], now)
    if isinstance(batch, ProduceResponse):
        gathered.take(place, partition, batch)
        return
    call.broker.traffic.add_produced(call.broker.id, call.header.client_id, partition.topic, batch.size_bytes)
    stamped = topic is not None and record_terms(call.broker, topic).append_time
    take = partial(gathered.take, place, partition, log_append_time=now if stamped else NO_TIMESTAMP)

    def write() -> None:
        call.broker.requests.send_to_core(
            lambda correlation_id: Produce(
                correlation_id, partition, (batch,), call.body["acks"], call.body["timeout"]
            ),
            take,
        )

    if batch.transactional:
        _verified(call, partition, batch, write, take)
    else:
        write()


def _verified(
    call: Call,
    partition: TopicPartition,
    batch: Batch,
    write: Callable[[], None],
    take: Callable[[ProduceResponse], None],
) -> None:
    """Write a transactional batch where its transaction goes on (KIP-890); this log knows so from its second batch on."""
    leader = call.broker.core.leaders.get(partition)
    name, producer_id, epoch = call.body["transactional_id"], batch.producer_id, batch.producer_epoch
    if name is None:
        take(ProduceResponse(KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED))
        return
    if leader is None or leader.log.in_transaction(producer_id, epoch):
        write()
        return
    log, known = leader.log, leader.log.producers.get(producer_id)

    def answered(error: KafkaError) -> None:
        # A marker that came meanwhile has ended the transaction that was verified.
        if error is KafkaError.NONE and not log.in_transaction(producer_id, epoch):
            error = KafkaError.NONE if log.producers.get(producer_id) is known else KafkaError.INVALID_TXN_STATE
        if error is KafkaError.NONE:
            write()
        else:
            take(ProduceResponse(error, message=_UNVERIFIED.get(error)))

    verify(
        call.broker,
        Writer(name, producer_id, epoch),
        partition,
        Support.of(call.version, abortable_since=ABORTABLE_SINCE, adds_since=ADDS_SINCE),
        answered,
    )


def _batch(call: Call, topic: str | None, records: memoryview | None, now: int) -> Batch | ProduceResponse:
    if call.body["acks"] not in VALID_ACKS:
        return ProduceResponse(KafkaError.INVALID_REQUIRED_ACKS)
    if topic is None:
        return ProduceResponse(KafkaError.UNKNOWN_TOPIC_ID)
    if not records:
        return ProduceResponse(KafkaError.INVALID_RECORD, message="no record batch; exactly one is wanted")
    if topic not in call.broker.image.topics:
        return ProduceResponse(KafkaError.UNKNOWN_TOPIC_OR_PARTITION)
    if len(records) > MAGIC_AT and records[MAGIC_AT] < MAGIC:
        return ProduceResponse(KafkaError.INVALID_RECORD, message=f"record batches of version {MAGIC} only")
    try:
        return checked_batch(records, record_terms(call.broker, topic), now)
    except CorruptRecords as error:
        return ProduceResponse(KafkaError.CORRUPT_MESSAGE, message=str(error))


def checked_batch(records: memoryview, terms: RecordTerms, now: int) -> Batch | ProduceResponse:
    """The one batch of a partition, in bytes of its own, stamped with `now` (ms) where the topic wants that. Errors: CorruptRecords."""
    header = read_header(records)
    verify_crc(records, header)
    if header.size_bytes != len(records):
        return ProduceResponse(KafkaError.INVALID_RECORD, message="more than one record batch; exactly one is wanted")
    refusal = terms.refusal(header, records, now)
    if refusal is not None:
        return refusal
    data = _own(records)
    if terms.append_time:
        stamp_append_time(data, now)
    return Batch(
        base_offset=0,
        last_offset=header.last_offset_delta,
        leader_epoch=-1,
        data=data,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        max_timestamp=now if terms.append_time else header.max_timestamp,
        transactional=header.transactional,
        control=header.control,
    )


def _own(records: memoryview) -> bytearray | memoryview:
    """Bytes that the log may keep and stamp."""
    in_place = not records.readonly and len(records) >= KEPT_IN_PLACE
    return records if in_place else bytearray(records)


def _place(call: Call, result: ProduceResponse) -> dict[str, Any]:
    return {
        "error_code": call.broker.code(result.error),
        "base_offset": result.base_offset,
        "log_append_time": result.log_append_time,
        "log_start_offset": result.log_start,
        "error_message": result.message,
    }
