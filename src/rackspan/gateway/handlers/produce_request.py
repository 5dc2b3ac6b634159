"""One Produce request on its way through the gateway: what each step finds out about it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final
from uuid import UUID

from rackspan.acks.isr_samples import Partition
from rackspan.acks.verification import Requirement
from rackspan.errors import MalformedRequest
from rackspan.gateway.core.acknowledgement.guard import Hold
from rackspan.gateway.net.byte_flow import Exchange
from rackspan.gateway.net.session import ClientSession
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.kafka_bytes.record_batch import last_offset_delta
from rackspan.wire.apis import ApiKey
from rackspan.wire.codec import read_body, read_header, read_response, write_request, write_response
from rackspan.wire.framing import Piece
from rackspan.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequestData,
    ProduceResponseData,
    TopicProduceData,
    TopicProduceResponse,
)

_IDS_SINCE: Final = 13
_NO_ID: Final = UUID(int=0)

MOST_ELEMENTS: Final = 50_000
"""Topics and partitions of one request, more than a broker leads. Each takes some microseconds, in which no other connection is served, here and in the metadata of its topics."""

ACKNOWLEDGED: Final = frozenset({ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER})
"""Clients take a duplicate for an acknowledgement too."""


class ProduceRequest:
    """A request from its bytes to its response. `names` are the names of topic ids, shared by all requests of a process."""

    __slots__ = (
        "_deltas",
        "_ids",
        "body",
        "exchange",
        "header",
        "hold",
        "names",
        "produced",
        "requirements",
        "responses",
        "session",
        "until",
    )

    def __init__(
        self, session: ClientSession, exchange: Exchange, request: memoryview, names: Mapping[UUID, str], now: float
    ) -> None:
        """Errors: MalformedRequest."""
        self.session = session
        self.exchange = exchange
        self.header = read_header(request)
        self.body: ProduceRequestData = read_body(request, self.header, MOST_ELEMENTS)
        self.until = now + self.body.timeout / 1000
        """The end of the request's own timeout, counted from its arrival."""
        self._ids = [topic.topic_id for topic in self.body.topic_data]
        self.names = names
        self.requirements: dict[Partition, Requirement] = {}
        """The requirement of each partition that is guarded."""
        self.responses: dict[Partition, PartitionProduceResponse] = {}
        """The response of each partition that is not forwarded, in place of the broker's."""
        self.hold: Hold | None = None
        self._deltas: dict[Partition, int | None] = {}
        self.produced = ProduceResponseData()
        """The broker's response, once it was received."""

    @property
    def acks(self) -> int:
        return self.body.acks

    # The request.

    def unknown_ids(self) -> set[UUID]:
        """The topic ids without a name."""
        if self.header.api_version < _IDS_SINCE:
            return set()
        ids = (topic.topic_id for topic in self.body.topic_data)
        return {topic_id for topic_id in ids if topic_id is not None and topic_id not in self.names}

    def name(self, topic: TopicProduceData | TopicProduceResponse) -> str | None:
        """The topic's name; None for an id without one."""
        if self.header.api_version < _IDS_SINCE:
            return topic.name
        return None if topic.topic_id is None else self.names.get(topic.topic_id)

    def named_topics(self) -> Iterator[tuple[str, TopicProduceData]]:
        """The topics that have a name."""
        for topic in self.body.topic_data:
            name = self.name(topic)
            if name is not None:
                yield name, topic

    def partitions(self, topic: TopicProduceData) -> list[Partition]:
        """The partitions of one topic in the request."""
        name = self._key(topic)
        return [(name, data.index) for data in topic.partition_data]

    def _key(self, topic: TopicProduceData) -> str:
        """The topic's name, which may be empty, or its id as text."""
        name = self.name(topic)
        return str(topic.topic_id or _NO_ID) if name is None else name

    def data(self) -> Iterator[tuple[Partition, PartitionProduceData]]:
        """The records of each partition of a topic that has a name, in the order of the request."""
        for name, topic in self.named_topics():
            for data in topic.partition_data:
                yield (name, data.index), data

    def topics_responded_with(self, code: ErrorCode) -> set[str]:
        """The topics of the partitions that are not forwarded and have this error."""
        return {topic for (topic, _), response in self.responses.items() if response.error_code == code}

    def forwarded(self, hold: Hold | None) -> list[Piece] | None:
        """The request for the broker, None for the request as it came. The records are released."""
        self.hold = hold
        if hold is not None:
            self._deltas = {
                partition: last_offset_delta(data.records)
                for partition, data in self.data()
                if partition in hold.requirements
            }
        parts: list[Piece] | None = None
        if self.responses:
            self.body.topic_data = self.left()
            header = self.header
            version, correlation_id = header.api_version, header.correlation_id
            parts = [*write_request(ApiKey.PRODUCE, version, correlation_id, header.client_id, self.body)]
        # Else the memory of a request that is held would be in use until its acknowledgement is verified.
        self.body.topic_data = ()
        return parts

    @property
    def is_refused(self) -> bool:
        """Whether no partition is left to forward."""
        return bool(self.responses) and not self.left()

    def left(self) -> Sequence[TopicProduceData]:
        """The topics with the partitions that are not refused."""
        if not self.responses:
            return self.body.topic_data
        left = []
        for topic in self.body.topic_data:
            name = self._key(topic)
            data = [data for data in topic.partition_data if (name, data.index) not in self.responses]
            if data:
                left.append(TopicProduceData(name=topic.name, topic_id=topic.topic_id, partition_data=data))
        return left

    # The response.

    def receive(self, response: bytes) -> None:
        """Errors: MalformedRequest, also if it names what was not sent to the broker."""
        self.produced = read_response(ApiKey.PRODUCE, self.header.api_version, response)
        for topic in self.produced.responses:
            for partition in topic.partition_responses:
                if (self.name(topic), partition.index) in self.responses:
                    # Passed on, it could be an acknowledgement of a record that was refused.
                    raise MalformedRequest(f"a Produce response for partition {partition.index} that was not sent on")

    def acknowledged(self, required: Callable[[Partition], bool]) -> dict[Partition, int | None]:
        """The offset after the last record of each of these partitions that the broker acknowledged.

        None if the response to a repeated batch does not name its offset, or the partition was not guarded when it was forwarded.
        """
        return {
            (name, partition.index): _end_offset(partition, self._deltas.get((name, partition.index)))
            for topic in self.produced.responses
            if (name := self.name(topic)) is not None
            for partition in topic.partition_responses
            if partition.error_code in ACKNOWLEDGED and required((name, partition.index))
        }

    def refuse(self, refused: Mapping[Partition, PartitionProduceResponse]) -> None:
        """Replace the broker's acknowledgements of partitions that were not verified."""
        for topic in self.produced.responses:
            name = self.name(topic) or ""
            topic.partition_responses = [
                refused.get((name, partition.index), partition) for partition in topic.partition_responses
            ]

    def response(self) -> list[Piece]:
        """The broker's response, with what never reached the broker."""
        refused: dict[str, list[PartitionProduceResponse]] = {}
        for (name, _), partition in self.responses.items():
            refused.setdefault(name, []).append(partition)
        for topic in self.produced.responses:
            added = refused.pop(self.name(topic) or "", None)
            if added is not None:
                topic.partition_responses = [*topic.partition_responses, *added]
        self.produced.responses = [*self.produced.responses, *self._topics(refused)]
        return [*write_response(self.header, self.produced)]

    def _topics(self, refused: Mapping[str, list[PartitionProduceResponse]]) -> Iterator[TopicProduceResponse]:
        # The request's own ids: a topic created anew has another under the same name, which this client need not know yet.
        ids = {self.names.get(topic_id, str(topic_id)): topic_id for topic_id in reversed(self._ids) if topic_id}
        for name, partitions in refused.items():
            if self.header.api_version < _IDS_SINCE:
                yield TopicProduceResponse(name=name, partition_responses=partitions)
            else:
                yield TopicProduceResponse(name=name, topic_id=ids.get(name, _NO_ID), partition_responses=partitions)


def failed(index: int, code: int, message: str | None) -> PartitionProduceResponse:
    """The response for a partition that is not forwarded, or not acknowledged."""
    return PartitionProduceResponse(index=index, error_code=code, base_offset=-1, error_message=message)


def _end_offset(response: PartitionProduceResponse, delta: int | None) -> int | None:
    if delta is None or response.error_code != ErrorCode.NONE or response.base_offset < 0:
        return None
    return response.base_offset + delta + 1
