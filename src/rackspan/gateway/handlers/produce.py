"""Produce requests through the guard: refused partitions are taken out, the rest forwarded, the responses merged."""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final, Protocol
from uuid import UUID
from weakref import WeakKeyDictionary

from rackspan.acks.isr_samples import Partition
from rackspan.acks.min_insync_racks import ACKS_ALL, ProduceVerdict
from rackspan.acks.produce_errors import ERROR_CODES, Cause, Refusal
from rackspan.acks.verification import Requirement
from rackspan.errors import MalformedRequest
from rackspan.gateway.core.acknowledgement.guard import AcknowledgementGuard, Hold, out_of_order
from rackspan.gateway.core.acknowledgement.order import RefusedSequences, last_offset_delta, producer_batch
from rackspan.gateway.core.endpoints import Addresses, set_endpoints
from rackspan.gateway.core.policies import Policies
from rackspan.gateway.core.produce import acks_of
from rackspan.gateway.handlers.refusal_log import RefusalLog
from rackspan.gateway.handlers.rights import WriteRights
from rackspan.gateway.net.exchange import Exchange
from rackspan.gateway.net.session import Session
from rackspan.wire.apis import ApiKey
from rackspan.wire.codec import (
    RequestHeader,
    read_body,
    read_header,
    read_response,
    write_request,
    write_response,
)
from rackspan.wire.framing import Piece
from rackspan.wire.messages.produce import (
    PartitionProduceResponse,
    ProduceRequestData,
    ProduceResponseData,
    TopicProduceData,
    TopicProduceResponse,
)

_IDS_SINCE: Final = 13
_MESSAGES_SINCE: Final = 8
_ACKNOWLEDGED: Final = frozenset({0, 46})
"""NONE, and DUPLICATE_SEQUENCE_NUMBER, which clients take for an acknowledgement too."""

_MOST_COUNTED: Final = 10_000
_OTHERS: Final = "(others)"
"""Refusals of further partitions are counted together: a client chooses how many it names, existing or not."""

TOPIC_AUTHORIZATION_FAILED: Final = 29
POLICY_VIOLATION: Final = 44
UNKNOWN_TOPIC_ID: Final = 100
_CODE_FOR_OLD_CLIENTS: Final = {1001: 19, 1002: 20}


class Sampler(Protocol):
    """Where samples of the ISR come from."""

    def sampled(self, broker: int, topics: Iterable[str]) -> "asyncio.Future[None]": ...

    def wake(self, broker: int) -> None: ...


class LogReader(Protocol):
    """Where log ends of replicas come from."""

    def wake(self) -> None: ...


class ProduceHandler:
    """Decides every Produce request of a process. `config_topic` is written by gateways alone."""

    def __init__(
        self,
        guard: AcknowledgementGuard,
        policies: Policies,
        addresses: Addresses,
        config_topic: str | None,
        *,
        extended_error_codes: bool,
        deny_weak_acks: bool,
    ) -> None:
        self._guard = guard
        self._policies = policies
        self._addresses = addresses
        self._config_topic = config_topic
        self.extended_error_codes = extended_error_codes
        self.deny_weak_acks = deny_weak_acks
        self._loop = asyncio.get_running_loop()
        self.sampler: Sampler
        self.log_reader: LogReader
        self.learn_names: Callable[[int, Iterable[UUID]], Coroutine[Any, Any, None]]
        """Looks the ids up at a broker and puts their names into `names`."""
        self.names: dict[UUID, str] = {}
        self._held: dict[Hold, _Response] = {}
        self._rights = WriteRights()
        self.refusal_log = RefusalLog()
        self._refused: WeakKeyDictionary[Session, RefusedSequences] = WeakKeyDictionary()
        self.refusals: Counter[tuple[str, int, Cause, bool, str]] = Counter()
        """By topic, partition, cause, whether it was after the append, and the racks that were in sync."""
        self.rack_check_failures: Counter[int] = Counter()
        """Requests refused for want of racks, by broker (RackCheckFailureRate)."""
        self.acknowledged = 0
        self.hold_seconds = 0.0
        self.verified = 0

    def take(self, session: Session, exchange: Exchange, request: memoryview) -> None:
        acks = acks_of(exchange.version, request)
        header = read_header(request)
        body: ProduceRequestData = read_body(request, header)
        if exchange.version >= _IDS_SINCE:
            unknown = {topic.topic_id for topic in body.topic_data if topic.topic_id not in self.names}
            if unknown:
                # Looked up at the broker itself. What it has not either is refused: its topic could be a guarded one.
                session.wait_for(
                    self._learned(session, unknown), lambda: self._decide(session, exchange, header, body, acks)
                )
                return
        self._decide(session, exchange, header, body, acks)

    def _learned(self, session: Session, ids: Iterable[UUID | None]) -> "asyncio.Future[None]":
        return self._loop.create_task(self.learn_names(session.node_id, [one for one in ids if one is not None]))

    def _decide(
        self, session: Session, exchange: Exchange, header: RequestHeader, body: ProduceRequestData, acks: int
    ) -> None:
        denied = self._denied(session.node_id, exchange.version, body, acks)
        guarded = self._guarded(session.node_id, exchange.version, body) if acks == ACKS_ALL else {}
        admission = self._guard.admit(session.node_id, guarded, self._loop.time())
        if admission.unsampled:
            ready = self.sampler.sampled(session.node_id, {topic for topic, _ in admission.unsampled})
            session.wait_for(ready, lambda: self._admitted(session, exchange, header, body, acks, guarded, denied))
            return
        self._pass(session, exchange, header, body, acks, guarded, {**admission.refusals}, denied)

    def _admitted(
        self,
        session: Session,
        exchange: Exchange,
        header: RequestHeader,
        body: ProduceRequestData,
        acks: int,
        guarded: Mapping[Partition, Requirement],
        denied: Mapping[Partition, PartitionProduceResponse],
    ) -> None:
        admission = self._guard.admit(session.node_id, guarded, self._loop.time(), final=True)
        self._pass(session, exchange, header, body, acks, guarded, {**admission.refusals}, denied)

    def _pass(
        self,
        session: Session,
        exchange: Exchange,
        header: RequestHeader,
        body: ProduceRequestData,
        acks: int,
        guarded: Mapping[Partition, Requirement],
        refusals: Mapping[Partition, Refusal],
        denied: Mapping[Partition, PartitionProduceResponse],
    ) -> None:
        if self._guard.settings.refuses_before:
            refusals = self._in_order(session, exchange.version, body, guarded, refusals)
            named = {*refusals, *(partition for partition, one in denied.items() if one.error_code == POLICY_VIOLATION)}
            unknown = self._rights.unknown(session, {topic for topic, _ in named}, self._loop.time())
            if unknown:
                session.wait_for(
                    session.run(self._rights.read(session, unknown, self._loop.time())),
                    lambda: self._pass(session, exchange, header, body, acks, guarded, refusals, denied),
                )
                return
            denied = {**denied, **self._unauthorized(session, named)}
            refusals = {partition: one for partition, one in refusals.items() if partition not in denied}
        self._count(session, refusals.values())
        if not self._guard.settings.refuses_before:
            refusals = {}
        if not refusals and not denied:
            parts = None
        else:
            response = _Response(self, session, exchange, header, {**_responses(self, refusals), **denied})
            left = self._without(exchange.version, body, response.ready)
            if not left:
                session.respond(exchange, None if acks == 0 else response.written(ProduceResponseData()))
                return
            body.topic_data = left
            parts = write_request(ApiKey.PRODUCE, exchange.version, exchange.correlation_id, header.client_id, body)
        held = {
            partition: one
            for partition, one in guarded.items()
            if partition not in refusals and partition not in denied
        }
        hold = self._guard.forwarded(session.node_id, held)
        if hold is not None or parts is not None:
            ready = {} if parts is None else response.ready
            deltas = {} if hold is None else self._last_offset_deltas(exchange.version, body, held)
            exchange.on_response = _Response(self, session, exchange, header, ready, hold, deltas).received
        session.forward(exchange, parts, responds=acks != 0)

    def _unauthorized(
        self, session: Session, partitions: Iterable[Partition]
    ) -> dict[Partition, PartitionProduceResponse]:
        return {
            partition: _failed(partition[1], TOPIC_AUTHORIZATION_FAILED, None)
            for partition in partitions
            if not self._rights.may_write(session, partition[0])
        }

    def _in_order(
        self,
        session: Session,
        version: int,
        body: ProduceRequestData,
        guarded: Mapping[Partition, Requirement],
        refusals: Mapping[Partition, Refusal],
    ) -> Mapping[Partition, Refusal]:
        """These refusals, and those of batches behind one that was refused."""
        if not refusals and session not in self._refused:
            return refusals
        sequences = self._refused.setdefault(session, RefusedSequences())
        now = self._loop.time()
        behind: dict[Partition, Refusal] = {}
        for topic in body.topic_data:
            name = self._name(version, topic)
            for data in topic.partition_data:
                if name is None or (name, data.index) not in guarded:
                    continue
                partition, batch = (name, data.index), producer_batch(data.records)
                if batch is None:
                    continue
                if not sequences.admits(partition, batch, now):
                    behind[partition] = out_of_order(partition)
                elif partition in refusals:
                    sequences.refuse(partition, batch, now)
        return {**behind, **refusals}

    def _last_offset_deltas(
        self, version: int, body: ProduceRequestData, held: Mapping[Partition, Requirement]
    ) -> dict[Partition, int | None]:
        """How far behind the first record of its batch each partition's last one is."""
        return {
            (name, data.index): last_offset_delta(data.records)
            for topic in body.topic_data
            if (name := self._name(version, topic)) is not None
            for data in topic.partition_data
            if (name, data.index) in held
        }

    # Which partitions are checked, and which denied.

    def _name(self, version: int, topic: TopicProduceData | TopicProduceResponse) -> str | None:
        if version < _IDS_SINCE:
            return topic.name
        return self.names.get(topic.topic_id) if topic.topic_id is not None else None

    def _guarded(self, broker: int, version: int, body: ProduceRequestData) -> dict[Partition, Requirement]:
        guarded: dict[Partition, Requirement] = {}
        for topic in body.topic_data:
            name = self._name(version, topic)
            requirement = None if name is None else self._policies.requirement(name, broker)
            if name is not None and requirement is not None:
                guarded.update(((name, data.index), requirement) for data in topic.partition_data)
        return guarded

    def _denied(
        self, broker: int, version: int, body: ProduceRequestData, acks: int
    ) -> dict[Partition, PartitionProduceResponse]:
        denied: dict[Partition, PartitionProduceResponse] = {}
        for topic in body.topic_data:
            name = self._name(version, topic)
            if name is None:
                error = UNKNOWN_TOPIC_ID, "no broker knows this topic id"
                name = str(topic.topic_id)
            elif name == self._config_topic:
                error = TOPIC_AUTHORIZATION_FAILED, f"{name} is written by gateways alone; alter configs instead"
            elif self.deny_weak_acks and acks != ACKS_ALL and self._policies.requirement(name, broker) is not None:
                error = POLICY_VIOLATION, f"{name} has min.insync.racks, which holds for acks=all alone"
            else:
                continue
            for data in topic.partition_data:
                denied[name, data.index] = _failed(data.index, error[0], error[1])
        return denied

    def _without(
        self, version: int, body: ProduceRequestData, taken_out: Mapping[Partition, object]
    ) -> list[TopicProduceData]:
        left = []
        for topic in body.topic_data:
            name = self._name(version, topic) or str(topic.topic_id)
            data = [one for one in topic.partition_data if (name, one.index) not in taken_out]
            if data:
                left.append(TopicProduceData(name=topic.name, topic_id=topic.topic_id, partition_data=data))
        return left

    # Verification.

    def hold(self, response: "_Response", hold: Hold, end_offsets: Mapping[Partition, int | None]) -> bool:
        """Whether nothing has to be waited for."""
        if self._guard.acknowledged(hold, end_offsets, self._loop.time()):
            return True
        self._held[hold] = response
        self.sampler.wake(hold.broker)
        self.log_reader.wake()
        return False

    def complete(self, holds: Iterable[Hold]) -> None:
        """Holds that are over, after every sample and every log end: what is held longer may have to be read elsewhere."""
        self.log_reader.wake()
        now = self._loop.time()
        for hold in holds:
            response = self._held.pop(hold, None)
            if response is not None:
                self.verified += 1
                self.hold_seconds += now - hold.acknowledged_at
                self._count(response.session, hold.refusals.values())
                response.release()

    def _count(self, session: Session, refusals: Iterable[Refusal]) -> None:
        by_racks = False
        for refusal in refusals:
            after = refusal.verdict in _AFTER
            topic, partition = refusal.partition
            key = topic, partition, refusal.cause, after, ",".join(refusal.isr_racks)
            if key not in self.refusals and len(self.refusals) >= _MOST_COUNTED:
                key = _OTHERS, -1, refusal.cause, after, ""
            self.refusals[key] += 1
            by_racks = by_racks or refusal.cause not in (Cause.REPLICAS, Cause.ORDER)
            self.refusal_log.write(refusal, "after" if after else "before", session.peer)
        if by_racks:
            self.rack_check_failures[session.node_id] += 1

    def code(self, verdict: ProduceVerdict) -> int:
        code = ERROR_CODES[verdict]
        return code if self.extended_error_codes else _CODE_FOR_OLD_CLIENTS.get(code, code)


_AFTER: Final = frozenset(
    {ProduceVerdict.NOT_ENOUGH_RACKS_AFTER_APPEND, ProduceVerdict.NOT_ENOUGH_REPLICAS_AFTER_APPEND}
)


def _end_offset(response: PartitionProduceResponse, delta: int | None) -> int | None:
    """The offset after the last record; None where the response to a repeated batch does not name its offset."""
    return (
        None
        if delta is None or response.error_code != 0 or response.base_offset < 0
        else response.base_offset + delta + 1
    )


def _failed(index: int, code: int, message: str | None) -> PartitionProduceResponse:
    return PartitionProduceResponse(index=index, error_code=code, base_offset=-1, error_message=message)


def _responses(
    handler: ProduceHandler, refusals: Mapping[Partition, Refusal]
) -> dict[Partition, PartitionProduceResponse]:
    return {
        partition: _failed(partition[1], handler.code(refusal.verdict), refusal.message)
        for partition, refusal in refusals.items()
    }


class _Response:
    """The response to one Produce request: the broker's, with what was refused before and after it."""

    __slots__ = ("_deltas", "_exchange", "_handler", "_header", "_hold", "_produced", "ready", "session")

    def __init__(
        self,
        handler: ProduceHandler,
        session: Session,
        exchange: Exchange,
        header: RequestHeader,
        ready: dict[Partition, PartitionProduceResponse],
        hold: Hold | None = None,
        deltas: Mapping[Partition, int | None] = MappingProxyType({}),
    ) -> None:
        self._handler = handler
        self.session = session
        self._exchange = exchange
        self._header = header
        self.ready = ready
        self._hold = hold
        self._deltas = deltas
        self._produced: ProduceResponseData

    def received(self, response: bytes) -> list[Piece] | None:
        """The broker's response; None while it is held. Errors: MalformedRequest, also where it names what was not sent to it."""
        handler, version = self._handler, self._exchange.version
        self._produced = read_response(ApiKey.PRODUCE, version, response)
        for topic in self._produced.responses:
            for one in topic.partition_responses:
                if (handler._name(version, topic), one.index) in self.ready:
                    # Passed on, it could be an acknowledgement of a record that was refused.
                    raise MalformedRequest(f"a Produce response for partition {one.index} that was not sent on")
        set_endpoints(self._produced, handler._addresses)
        if self._hold is not None:
            acknowledged = {
                (name, one.index): _end_offset(one, self._deltas.get((name, one.index)))
                for topic in self._produced.responses
                if (name := handler._name(version, topic)) is not None
                for one in topic.partition_responses
                if one.error_code in _ACKNOWLEDGED and (name, one.index) in self._hold.requirements
            }
            if acknowledged and not handler.hold(self, self._hold, acknowledged):
                return None
        handler.acknowledged += 1
        return self.written(self._produced)

    def release(self) -> None:
        """The hold is over."""
        handler, version = self._handler, self._exchange.version
        refused = {} if self._hold is None else _responses(handler, self._hold.refusals)
        for topic in self._produced.responses:
            name = handler._name(version, topic)
            topic.partition_responses = [refused.get((name or "", one.index), one) for one in topic.partition_responses]
        handler.acknowledged += 1
        self.session.complete(self._exchange, self.written(self._produced))

    def written(self, produced: ProduceResponseData) -> list[Piece]:
        """With what never reached the broker."""
        version = self._exchange.version
        topics = {self._handler._name(version, topic): topic for topic in produced.responses}
        added: dict[str, TopicProduceResponse] = {}
        for (name, _), partition in self.ready.items():
            topic = topics.get(name) or added.setdefault(name, self._topic(name))
            topic.partition_responses = [*topic.partition_responses, partition]
        produced.responses = [*produced.responses, *added.values()]
        return [*write_response(self._header, produced)]

    def _topic(self, name: str) -> TopicProduceResponse:
        if self._exchange.version < _IDS_SINCE:
            return TopicProduceResponse(name=name)
        ids = {known: topic_id for topic_id, known in self._handler.names.items()}
        return TopicProduceResponse(name=name, topic_id=ids.get(name) or UUID(name))
