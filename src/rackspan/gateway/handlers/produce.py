"""Produce requests, in three ways: forwarded as they come, judged and forwarded, or subject to the guard.

Guarded, refused partitions are taken out, the rest is forwarded, and the responses are merged. A ProduceRequest has what is known of a
request from step to step.
"""

import asyncio
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Final
from uuid import UUID
from weakref import WeakKeyDictionary

from rackspan.acks.isr_samples import Partition
from rackspan.acks.min_insync_racks import ACKS_ALL
from rackspan.acks.produce_errors import ERROR_CODES, Refusal
from rackspan.acks.verification import Requirement
from rackspan.errors import MalformedRequest
from rackspan.gateway.backend import Backend
from rackspan.gateway.core.acknowledgement.guard import (
    AcknowledgementGuard,
    Hold,
    out_of_order,
    unleased_refusal,
)
from rackspan.gateway.core.acknowledgement.order import RefusedSequences, producer_batch
from rackspan.gateway.core.endpoints import Addresses, set_endpoints, with_addresses
from rackspan.gateway.handlers.produce_request import MOST_ELEMENTS, ProduceRequest, failed
from rackspan.gateway.handlers.refusals import Refusals
from rackspan.gateway.handlers.rights import WriteRights
from rackspan.gateway.net.byte_flow import Exchange
from rackspan.gateway.net.session import ClientSession
from rackspan.gateway.upstream.guard_readers import IsrSampler, IsrSource, LogEndReader, finish
from rackspan.kafka_bytes.error_codes import ErrorCode, error_code
from rackspan.wire.apis import ApiKey
from rackspan.wire.codec import read_body, read_header
from rackspan.wire.framing import Piece
from rackspan.wire.messages.produce import PartitionProduceResponse, ProduceRequestData

BOUNDS_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""From an acknowledgement that is verified at once to one that waits for a client's timeout, which is 10 or 30 s in most."""


def forward_produce(session: ClientSession, exchange: Exchange, request: memoryview) -> None:
    """Forward a request as it came, and count its bytes. With acks=0 no response comes. Errors: MalformedRequest."""
    header = read_header(request)
    body: ProduceRequestData = read_body(request, header, MOST_ELEMENTS)
    session.count_produced(header.client_id, body.topic_data)
    session.forward(exchange, responds=body.acks != 0)


class ProduceHandler:
    """Decides every Produce request of a process."""

    def __init__(self, guard: AcknowledgementGuard, backend: Backend, addresses: Addresses, source: IsrSource) -> None:
        self.guard = guard
        guard.on_stalled = self._stall
        self.sampler = IsrSampler(guard, source, self._complete)
        self.log_reader = LogEndReader(guard, backend.cluster, self._complete)
        self.refusals = Refusals()
        self.holds = Durations()
        """How long acknowledgements were held, those that were refused in the end too."""
        self.verified = 0
        """Acknowledgements of which no part was refused in the end."""
        self.dropped = 0
        """Held acknowledgements whose connection was closed."""
        self._backend = backend
        self._policies = backend.policies
        self._addresses = addresses
        self._loop = asyncio.get_running_loop()
        self._held: dict[Hold, ProduceRequest] = {}
        self._lease_waiters: set[asyncio.Future[None]] = set()
        self._unleased_since: float | None = None
        """When the first request waited for a lease that has not begun since."""
        self._rights = WriteRights()
        self._refused: WeakKeyDictionary[ClientSession, RefusedSequences] = WeakKeyDictionary()

    def close(self) -> None:
        self.sampler.close()
        self.log_reader.close()

    # Before a request is forwarded.

    def take(self, session: ClientSession, exchange: Exchange, request: memoryview) -> None:
        """Read a request, and the names of its topics. Errors: MalformedRequest."""
        produce = ProduceRequest(session, exchange, request, self._policies.names, self._loop.time())
        unknown = produce.unknown_ids()
        if unknown:
            # Looked up at the broker itself. An id that it does not report either is refused: its topic could be a guarded one.
            looked_up = self._loop.create_task(self._look_up(session.broker, unknown))
            session.wait_for(looked_up, partial(self._decide, produce))
        else:
            self._decide(produce)

    async def _look_up(self, broker: int, ids: Iterable[UUID]) -> None:
        for topic, topic_id in (await self._backend.cluster.topic_names(broker, ids)).items():
            self._policies.record_topic(topic, topic_id, self._loop.time())

    def _decide(self, produce: ProduceRequest) -> None:
        """Decide about a request once the values of min.insync.racks are leased, or have not been for as long as a sample is waited for."""
        if produce.acks == ACKS_ALL and self._unleased(produce):
            now = self._loop.time()
            self._unleased_since = now if self._unleased_since is None else self._unleased_since
            left_seconds = self._unleased_since + self.guard.settings.sample_timeout_seconds - now
            # One after another they would wait for as long each, and what is behind them on the connection too.
            if left_seconds > 0:
                self._wait_for_lease(produce, left_seconds)
                return
        self._judge(produce)

    def _wait_for_lease(self, produce: ProduceRequest, seconds: float) -> None:
        leased: asyncio.Future[None] = self._loop.create_future()
        self._lease_waiters.add(leased)
        leased.add_done_callback(self._lease_waiters.discard)
        self._loop.call_later(seconds, finish, leased)
        produce.session.wait_for(leased, partial(self._judge, produce))

    def _unleased(self, produce: ProduceRequest) -> list[Partition]:
        """The partitions for which more may be required than is known here."""
        if self.guard.is_leased():
            return []
        return [
            partition
            for name, topic in produce.named_topics()
            if self.guard.is_unleased(name, produce.session.broker)
            for partition in produce.partitions(topic)
        ]

    def leased(self) -> None:
        """The values are leased. Called often, and cheap if nothing waits for it."""
        self._unleased_since = None
        for waiter in tuple(self._lease_waiters):
            finish(waiter)
        if self.guard.waits_for_lease:
            self._complete(self.guard.leased(self._loop.time()))
            for broker in self._backend.cluster.by_id:
                self.sampler.wake(broker)

    def _judge(self, produce: ProduceRequest) -> None:
        """Find the partitions that are denied or guarded, and admit the latter by samples that are fresh."""
        broker = produce.session.broker
        produce.responses = self._denied(produce)
        if produce.acks == ACKS_ALL:
            produce.requirements = self._required(produce)
        admission = self.guard.admit(broker, produce.requirements, self._loop.time())
        if admission.unsampled:
            sampled = self.sampler.sampled(broker, {topic for topic, _ in admission.unsampled})
            produce.session.wait_for(sampled, partial(self._admit, produce))
        else:
            if admission.aging:
                self.sampler.renew(broker, admission.aging)
            self._refuse(produce, admission.refusals)

    def _admit(self, produce: ProduceRequest) -> None:
        """Admit a request that waited for samples."""
        now = self._loop.time()
        admission = self.guard.admit(produce.session.broker, produce.requirements, now, final=True)
        self._refuse(produce, admission.refusals)

    def _refuse(self, produce: ProduceRequest, refusals: Mapping[Partition, Refusal]) -> None:
        """Take the refused partitions out, once it is known which topics the client may write to."""
        session = produce.session
        if produce.acks == ACKS_ALL:
            unleased = {partition: unleased_refusal(partition, after=False) for partition in self._unleased(produce)}
            refusals = {**unleased, **refusals}
        refusals = self._in_order(produce, refusals)
        topics = {topic for topic, _ in refusals} | produce.topics_responded_with(ErrorCode.POLICY_VIOLATION)
        unread = self._rights.unknown(session, topics, self._loop.time()) if topics else ()
        if unread:
            read = session.run(self._rights.read(session, unread, self._loop.time()))
            session.wait_for(read, partial(self._refuse_as_permitted, produce, refusals, topics))
        else:
            self._refuse_as_permitted(produce, refusals, topics)

    def _refuse_as_permitted(
        self, produce: ProduceRequest, refusals: Mapping[Partition, Refusal], topics: Iterable[str]
    ) -> None:
        """A client that may not write to a topic, or whose broker does not know it yet, gets the broker's own error there: a refusal names racks."""
        hidden = {topic: code for topic in topics if (code := self._rights.error(produce.session, topic))}
        if hidden:
            named = {*refusals, *produce.responses}
            produce.responses |= {
                partition: failed(partition[1], hidden[partition[0]], None)
                for partition in named
                if partition[0] in hidden
            }
        shown = {partition: refusal for partition, refusal in refusals.items() if partition not in produce.responses}
        self.refusals.count(produce.session, shown.values())
        produce.responses |= self._responses(shown)
        self._forward(produce)

    def _forward(self, produce: ProduceRequest) -> None:
        """Forward what is left of a request, and hold its acknowledgement if that has to be verified.

        Errors: MalformedRequest for a refusal with acks=0, as a broker closes the connection: else its client would never learn of it.
        """
        session, exchange = produce.session, produce.exchange
        responds = produce.acks != 0
        if produce.is_refused:
            if not responds:
                raise _silent_refusal(produce)
            session.respond(exchange, produce.response())
            return
        session.count_produced(produce.header.client_id, produce.left())
        guarded = produce.requirements.items()
        held = {partition: requirement for partition, requirement in guarded if partition not in produce.responses}
        parts = produce.forwarded(self.guard.forwarded(session.broker, held, produce.until))
        if produce.hold is not None or parts is not None:
            exchange.on_response = partial(self._received, produce)
        elif produce.acks == ACKS_ALL and self.guard.checks_after:
            exchange.on_response = partial(self._received_as_sent, produce, self._policies.changes)
        session.forward(exchange, parts, responds=responds)
        if produce.responses and not responds:
            raise _silent_refusal(produce)

    # The broker's response.

    def _received_as_sent(self, produce: ProduceRequest, changes: int, response: bytes) -> list[Piece] | None:
        """The response to a request without guarded partitions, unless there may be some by now."""
        if changes == self._policies.changes and self.guard.is_leased():
            return with_addresses(ApiKey.PRODUCE, produce.header.api_version, response, self._addresses)
        return self._received(produce, response)

    def _received(self, produce: ProduceRequest, response: bytes) -> list[Piece] | None:
        """The client's response; None while it is held. Errors: MalformedRequest."""
        produce.receive(response)
        set_endpoints(produce.produced, self._addresses)
        if produce.acks == ACKS_ALL and self.guard.checks_after:
            hold = produce.hold or Hold(produce.session.broker, {}, {}, produce.until)
            acknowledged = produce.acknowledged(partial(self._is_held, hold))
            if not self.guard.acknowledged(hold, acknowledged, self._loop.time()):
                self._held[hold] = produce
                produce.exchange.on_dropped = partial(self._drop, hold)
                self.sampler.wake(hold.broker)
                self.log_reader.wake()
                return None
        return produce.response()

    def _is_held(self, hold: Hold, partition: Partition) -> bool:
        """Whether the partition is guarded, or is by now: a record that waits at the broker meets the value in force at the end.

        So does one for which a value may be in force that is not known here.
        """
        topic, broker = partition[0], hold.broker
        is_guarded = partition in hold.requirements or self._policies.requirement(topic, broker) is not None
        return is_guarded or self.guard.is_unleased(topic, broker)

    def _stall(self, hold: Hold) -> None:
        """A request waits for a rack. Those behind it on its connection are judged when it has its response, as by a broker."""
        self._held[hold].session.stalled += 1

    def _drop(self, hold: Hold) -> None:
        """The connection of a request that may be held is closed."""
        if self._held.pop(hold, None) is not None:
            self.dropped += 1
            self.guard.drop(hold)

    def _complete(self, holds: Iterable[Hold]) -> None:
        """Respond to requests whose holds are over. Called after every sample and every log end: reads may be due elsewhere."""
        self.log_reader.wake()
        for broker in self.guard.brokers:
            self.sampler.wake(broker)
        for hold in holds:
            produce, now = self._held.pop(hold, None), self._loop.time()
            if produce is None:
                # A response before it let its client's next request be read, which closed the connection.
                continue
            self.holds.add(now - hold.acknowledged_at)
            self.verified += not hold.refusals
            if hold.refusals:
                self.refusals.count(produce.session, hold.refusals.values())
                produce.refuse(self._responses(hold.refusals))
            produce.session.stalled -= hold.is_stalled
            if produce.session in self._refused:
                self._refused[produce.session].restart(now)
            produce.session.complete(produce.exchange, produce.response())

    # Which partitions are guarded, denied or out of order.

    def _required(self, produce: ProduceRequest) -> dict[Partition, Requirement]:
        broker = produce.session.broker
        required = ((topic, self._policies.requirement(name, broker)) for name, topic in produce.named_topics())
        return {
            partition: requirement
            for topic, requirement in required
            if requirement is not None
            for partition in produce.partitions(topic)
        }

    def _denied(self, produce: ProduceRequest) -> dict[Partition, PartitionProduceResponse]:
        """Responses for topics without a name, for the config topic, and for weak acks if those are denied."""
        denied: dict[Partition, PartitionProduceResponse] = {}
        for topic in produce.body.topic_data:
            name = produce.name(topic)
            if name is None:
                error = ErrorCode.UNKNOWN_TOPIC_ID, "no broker reports this topic id"
            elif name == self._backend.config.config_topic:
                error = (
                    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
                    f"{name} is written by gateways only; alter configs instead",
                )
            elif self._is_weak(produce, name):
                error = ErrorCode.POLICY_VIOLATION, f"{name} has min.insync.racks, which applies to acks=all only"
            else:
                continue
            denied |= {partition: failed(partition[1], *error) for partition in produce.partitions(topic)}
        return denied

    def _is_weak(self, produce: ProduceRequest, topic: str) -> bool:
        if not self._backend.config.deny_weak_acks or produce.acks == ACKS_ALL:
            return False
        return self._policies.requirement(topic, produce.session.broker) is not None

    def _in_order(self, produce: ProduceRequest, refusals: Mapping[Partition, Refusal]) -> Mapping[Partition, Refusal]:
        """These refusals, and those of batches behind one that was refused."""
        if not refusals and produce.session not in self._refused:
            return refusals
        sequences = self._refused.setdefault(produce.session, RefusedSequences())
        now = self._loop.time()
        behind: dict[Partition, Refusal] = {}
        for partition, data in produce.data():
            batch = producer_batch(data.records)
            if batch is None:
                continue
            if not sequences.admits(partition, batch, now):
                behind[partition] = out_of_order(partition)
            elif partition in refusals:
                sequences.refuse(partition, batch, now)
        return {**behind, **refusals}

    def _responses(self, refusals: Mapping[Partition, Refusal]) -> dict[Partition, PartitionProduceResponse]:
        return {
            partition: failed(partition[1], self._code(refusal), refusal.message)
            for partition, refusal in refusals.items()
        }

    def _code(self, refusal: Refusal) -> ErrorCode:
        code = ERROR_CODES[refusal.verdict]
        return code if self._backend.config.extended_error_codes else code.for_every_client


def _silent_refusal(produce: ProduceRequest) -> MalformedRequest:
    (topic, number), refused = next(iter(produce.responses.items()))
    reason = refused.error_message or error_code(refused.error_code).name
    return MalformedRequest(f"{topic}-{number}: {reason}; with acks=0 no response can have that")


class AdvisingHandler(ProduceHandler):
    """Refuses nothing by racks: what would be refused is counted and logged."""

    def _refuse(self, produce: ProduceRequest, refusals: Mapping[Partition, Refusal]) -> None:
        self.refusals.count(produce.session, refusals.values())
        self._forward(produce)


class Durations:
    """Durations counted by size, as a histogram of Prometheus has them: how many were at most as long as each bound, and their sum."""

    def __init__(self) -> None:
        self.sum_seconds = 0.0
        self._counts = [0] * (len(BOUNDS_SECONDS) + 1)
        """Of each bound those above the bound before it; the last have no bound."""

    def add(self, seconds: float) -> None:
        self._counts[bisect_left(BOUNDS_SECONDS, seconds)] += 1
        self.sum_seconds += seconds

    @property
    def count(self) -> int:
        return sum(self._counts)

    def buckets(self) -> Iterator[tuple[str, int]]:
        """Each bound as Prometheus writes it, with the number of durations up to it; the last is all of them."""
        total = 0
        for bound, count in zip((*map(str, BOUNDS_SECONDS), "+Inf"), self._counts, strict=True):
            total += count
            yield bound, total
