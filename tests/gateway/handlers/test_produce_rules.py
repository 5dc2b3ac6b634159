"""What the gateway does with a Produce request and the broker's response to it, by clients and samples of few lines without a network."""

import asyncio
import gc
import tracemalloc
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from functools import partial
from struct import pack
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import pytest

from rackspan.acks.isr_samples import LogEnd, LogEnds, Partition, Sample, SampledPartition
from rackspan.acks.min_insync_racks import rack_bits
from rackspan.acks.produce_errors import Cause
from rackspan.errors import MalformedRequest
from rackspan.gateway.backend import Backend
from rackspan.gateway.config import parse_config
from rackspan.gateway.core.acknowledgement.guard import (
    HOLD_BYTES,
    HOLD_PARTITION_BYTES,
    AcknowledgementGuard,
    AcknowledgementMode,
    GuardSettings,
)
from rackspan.gateway.core.acknowledgement.order import ProducerBatch, RefusedSequences
from rackspan.gateway.core.apis import Treatment
from rackspan.gateway.core.policies import FilePolicies
from rackspan.gateway.handlers.produce import AdvisingHandler, ProduceHandler
from rackspan.gateway.net.byte_flow import Exchange
from rackspan.model import Broker, BrokerId, RackId
from rackspan.wire.apis import ApiKey
from rackspan.wire.codec import read_body, read_header, read_response, write_request
from rackspan.wire.framing import Piece
from rackspan.wire.messages.metadata import MetadataResponseData, MetadataResponseTopic
from rackspan.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequestData,
    ProduceResponseData,
    ProduceResponseNodeEndpoint,
    TopicProduceData,
    TopicProduceResponse,
)
from tests.conformance.wire import batch
from tests.gateway.core.addresses import renamed
from tests.gateway.frames import encoded
from tests.gateway.running import document

WRITE = 1 << 4
VERSION = 10

Outcome = tuple[int, str | None]
"""Error code and message of one partition."""

NONE: Outcome = 0, None
NO_RIGHT: Outcome = 29, None
BY_GATEWAYS: Outcome = 29, "__rackspan_configs is written by gateways only; alter configs instead"


class Client:
    """A client's session with broker 1, and what it may write to: what reached the broker, and what came back."""

    broker, peer, stalled = 1, "127.0.0.1:9", 0

    def __init__(self, *may_write: str) -> None:
        self._may_write = may_write
        self.unknown: set[str] = set()
        """Topics that the broker's metadata does not have yet."""
        self.forwarded: list[tuple[dict[str, list[int]], bool]] = []
        """Partitions by topic of each request that was sent on, and whether the broker is to respond."""
        self.counted: list[tuple[str | None, list[str]]] = []
        self.requested: list[list[str | None]] = []
        """Topics whose rights were requested."""
        self.responses: list[Sequence[Piece]] = []
        self.closed = ""
        """The reason for which the connection was closed."""
        self._sent: ProduceRequestData

    def take(self, handler: ProduceHandler, exchange: Exchange, request: bytes) -> None:
        self._sent = read_body(request, read_header(request))
        self._guarded(lambda: handler.take(cast("Any", self), exchange, memoryview(request)))

    def _guarded(self, step: Callable[[], None]) -> None:
        try:
            step()
        except MalformedRequest as error:
            self.closed = str(error)

    def count_produced(self, client_id: str | None, topics: Iterable[TopicProduceData]) -> None:
        self.counted.append((client_id, [topic.name for topic in topics]))

    def forward(self, _exchange: Exchange, parts: Sequence[Piece] | None = None, *, responds: bool) -> None:
        request = None if parts is None else b"".join(map(bytes, parts))
        body = self._sent if request is None else read_body(request, read_header(request))
        sent = {topic.name: [data.index for data in topic.partition_data] for topic in body.topic_data}
        self.forwarded.append((sent, responds))

    def respond(self, _exchange: Exchange, parts: Sequence[Piece]) -> None:
        self.responses.append(parts)

    complete = respond

    def wait_for(self, ready: "asyncio.Future[None]", then: Callable[[], None]) -> None:
        ready.add_done_callback(lambda _: self._guarded(then))

    def run(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        return asyncio.get_running_loop().create_task(work)

    async def call(self, _key: int, _version: int, _client_id: None, request: Any) -> MetadataResponseData:
        self.requested.append([topic.name for topic in request.topics])
        return MetadataResponseData(
            topics=[
                MetadataResponseTopic(
                    name=topic.name,
                    error_code=3 if topic.name in self.unknown else 0,
                    topic_authorized_operations=WRITE if topic.name in self._may_write else ~WRITE,
                )
                for topic in request.topics
            ]
        )


class Unsampled:
    """A source of samples that never has one, as of a broker that does not respond, or is gone."""

    def __init__(self) -> None:
        self.is_gone = False

    async def prepare(self, _broker: int) -> None:
        if self.is_gone:
            raise ConnectionRefusedError("gone")
        await asyncio.Event().wait()

    def close(self) -> None:
        """Nothing is open."""


def request(topics: Mapping[str, Sequence[int]], acks: int, version: int, timeout_ms: int = 30_000) -> bytes:
    data = [
        TopicProduceData(
            name=topic,
            partition_data=[PartitionProduceData(index=index, records=memoryview(batch(b"x"))) for index in indices],
        )
        for topic, indices in topics.items()
    ]
    body = ProduceRequestData(acks=acks, timeout=timeout_ms, topic_data=data)
    return b"".join(write_request(ApiKey.PRODUCE, version, 7, "shop", body))


def response(errors: Mapping[str, Mapping[int, int]], leaders: Sequence[int] = ()) -> bytes:
    """As a broker responds, with the addresses of new leaders."""
    body = ProduceResponseData(
        responses=[
            TopicProduceResponse(
                name=topic,
                partition_responses=[
                    PartitionProduceResponse(index=index, error_code=error, base_offset=5)
                    for index, error in partitions.items()
                ],
            )
            for topic, partitions in errors.items()
        ],
        node_endpoints=[ProduceResponseNodeEndpoint(node_id=one, host="upstream", port=1) for one in leaders],
    )
    return pack(">i", 7) + b"\0" + encoded(ApiKey.PRODUCE, VERSION, body, request=False)


def read(parts: Sequence[Piece] | None) -> ProduceResponseData:
    assert parts is not None
    found: ProduceResponseData = read_response(ApiKey.PRODUCE, VERSION, b"".join(map(bytes, parts)))
    return found


def outcomes(parts: Sequence[Piece] | None) -> dict[Partition, Outcome]:
    return {
        (topic.name, partition.index): (partition.error_code, partition.error_message)
        for topic in read(parts).responses
        for partition in topic.partition_responses
    }


def sample(isrs: Mapping[Partition, Sequence[int]], requested_at: float, epoch: int = 5) -> Sample:
    """Of broker 1, which leads every partition in this epoch. Broker N is in rack rN."""
    bits = rack_bits([Broker(BrokerId(one), RackId(f"r{one}")) for one in (1, 2, 3)])
    states = {partition: SampledPartition(1, epoch, (*map(BrokerId, isr),)) for partition, isr in isrs.items()}
    return Sample(1, requested_at, bits, frozenset(topic for topic, _ in isrs), states)


class Made:
    """A handler whose clock stands, before a cluster of which this was sampled just now."""

    def __init__(
        self,
        mode: AcknowledgementMode,
        isrs: Mapping[Partition, Sequence[int]],
        lease: Any = None,
        **tables: Any,
    ) -> None:
        topics = {topic: {"min": {"insync": {"racks": 2}}} for topic, _ in isrs if not topic.startswith("__")}
        self.backend = Backend(parse_config(document("127.0.0.1:1", topics=topics, **tables)))
        self.guard = AcknowledgementGuard(
            GuardSettings(mode, refresh_seconds=60),
            required=self.backend.policies.requirement,
            lease=lease,
        )
        self.now = 100.0
        kind = AdvisingHandler if mode is AcknowledgementMode.ADVISORY else ProduceHandler
        self.source = Unsampled()
        self.handler = kind(self.guard, self.backend, renamed(), cast("Any", self.source))
        loop = asyncio.get_running_loop()
        self.handler._loop = cast(
            "Any",
            SimpleNamespace(
                time=lambda: self.now,
                create_task=loop.create_task,
                create_future=loop.create_future,
                call_later=self._call_later,
            ),
        )
        self.timers: list[Callable[[], None]] = []
        """What is called when time has passed."""
        # `expire` alone looks at timeouts.
        self.handler.sampler._expiry = cast("Any", loop.create_future())
        # Fresh until now, so that the next sample counts.
        self.guard.observe(sample(isrs, self.now - self.guard.settings.refresh_seconds))

    def _call_later(self, _seconds: float, call: Callable[..., None], *arguments: Any) -> None:
        self.timers.append(partial(call, *arguments))

    async def sent(
        self, client: Client, topics: Mapping[str, Sequence[int]], acks: int = -1, version: int = VERSION
    ) -> Exchange:
        exchange = Exchange(ApiKey.PRODUCE, version, 7, Treatment.WHOLE)
        client.take(self.handler, exchange, request(topics, acks, version))
        for _ in range(10):
            await asyncio.sleep(0)
        return exchange

    def expire(self, now: float) -> None:
        """Timeouts are looked at."""
        self.now = now
        self.handler._complete(self.guard.expire(now))

    def observe(self, isrs: Mapping[Partition, Sequence[int]], epoch: int = 5) -> None:
        """A sample, and then the logs of the replicas that have to show records: they do."""
        self.handler._complete(self.guard.observe(sample(isrs, self.now, epoch)))
        for replica in self.guard.replicas_to_read():
            reads = self.guard.reads_due(replica, self.now)
            ends = LogEnds(replica, self.now, reads, {read: LogEnd(read.leader_epoch, 99) for read in reads})
            self.handler._complete(self.guard.observe_log_ends(ends))


def received(exchange: Exchange, data: bytes) -> Sequence[Piece] | None:
    assert exchange.on_response is not None
    return exchange.on_response(data)


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    async def ended() -> None:
        await scenario()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()

    asyncio.run(ended())


PRE, VERIFIED, STRICT, ADVISORY = (
    AcknowledgementMode.PRE,
    AcknowledgementMode.VERIFIED,
    AcknowledgementMode.STRICT,
    AcknowledgementMode.ADVISORY,
)
DENIES = {"acknowledgements": {"deny": {"weak": {"acks": True}}}}
WEAK: Outcome = 44, "orders has min.insync.racks, which applies to acks=all only"


def lacking(partition: str) -> Outcome:
    return 19, f"{partition}: in-sync racks r1 = 1 < min.insync.racks 2"


def test_each_partition_that_is_denied_has_its_reason_and_the_others_are_sent_on() -> None:
    async def scenario() -> None:
        made, client = Made(STRICT, {("orders", 0): [1]}, **DENIES), Client("orders")
        topics = {"__rackspan_configs": [0], "orders": [0, 3], "plain": [1, 2]}
        exchange = await made.sent(client, topics, acks=1)
        assert client.forwarded == [({"plain": [1, 2]}, True)]
        assert (client.counted, client.requested) == ([("shop", ["plain"])], [["orders"]])
        merged = received(exchange, response({"plain": {1: 0, 2: 6}}))
        assert outcomes(merged) == {
            ("plain", 1): NONE,
            ("plain", 2): (6, None),
            ("__rackspan_configs", 0): BY_GATEWAYS,
            ("orders", 0): WEAK,
            ("orders", 3): WEAK,
        }
        offsets = [one.base_offset for topic in read(merged).responses for one in topic.partition_responses]
        assert offsets == [5, 5, -1, -1, -1]
        assert (made.handler.refusals.counts, client.closed) == ({}, "")

    run(scenario)


def test_acks_1_of_a_guarded_topic_is_sent_on_as_it_came_and_its_response_is_not_looked_at() -> None:
    async def scenario() -> None:
        made, client = Made(STRICT, {("orders", 0): [1]}), Client()
        assert (await made.sent(client, {"orders": [0]}, acks=1)).on_response is None
        assert (client.forwarded, client.requested) == ([({"orders": [0]}, True)], [])

    run(scenario)


def test_the_response_to_acks_1_is_not_held_for_a_guarded_partition_beside_a_denied_one() -> None:
    async def scenario() -> None:
        made, client = Made(STRICT, {("orders", 0): [1]}), Client()
        exchange = await made.sent(client, {"orders": [0], "__rackspan_configs": [0]}, acks=1)
        merged = received(exchange, response({"orders": {0: 0}}))
        assert outcomes(merged) == {("orders", 0): NONE, ("__rackspan_configs", 0): BY_GATEWAYS}

    run(scenario)


def test_a_request_that_is_denied_whole_gets_its_response_without_the_broker() -> None:
    async def scenario() -> None:
        made, client = Made(STRICT, {("orders", 0): [1]}), Client("orders")
        await made.sent(client, {"orders": [0], "__rackspan_configs": [0]})
        assert (client.forwarded, client.counted) == ([], [])
        assert [outcomes(one) for one in client.responses] == [
            {("orders", 0): lacking("orders-0"), ("__rackspan_configs", 0): BY_GATEWAYS}
        ]

    run(scenario)


def test_the_config_topic_is_denied_and_not_refused_though_every_topic_is_guarded() -> None:
    async def scenario() -> None:
        tables = {"acknowledgements": {"min": {"insync": {"racks": 2}}}}
        made, client = Made(STRICT, {("__rackspan_configs", 0): [1]}, **tables), Client("__rackspan_configs")
        await made.sent(client, {"__rackspan_configs": [0]})
        assert [outcomes(one) for one in client.responses] == [{("__rackspan_configs", 0): BY_GATEWAYS}]
        assert (made.handler.refusals.counts, made.handler.refusals.rack_check_failures) == ({}, {})

    run(scenario)


def test_a_refusal_names_racks_to_those_who_may_write_alone(caplog: pytest.LogCaptureFixture) -> None:
    """The others get the broker's own error, also from the broker where nothing is refused, and count for nothing."""

    async def scenario() -> None:
        isrs = {("orders", 0): [1], ("hidden", 0): [1], ("hidden", 1): [1, 2]}
        made, client = Made(STRICT, isrs), Client("orders")
        exchange = await made.sent(client, {"hidden": [0, 1], "orders": [0]})
        assert (client.requested, client.forwarded) == ([["hidden", "orders"]], [({"hidden": [1]}, True)])
        assert outcomes(received(exchange, response({"hidden": {1: 29}}))) == {
            ("hidden", 1): NO_RIGHT,
            ("hidden", 0): NO_RIGHT,
            ("orders", 0): lacking("orders-0"),
        }
        refusals = made.handler.refusals
        assert refusals.counts == {("orders", 0, Cause.RACKS, False, "r1"): 1}
        assert refusals.rack_check_failures == {1: 1}
        await made.sent(client, {"hidden": [0]})
        assert outcomes(client.responses[0]) == {("hidden", 0): NO_RIGHT}
        assert refusals.rack_check_failures == {1: 1}
        # Kept since the first request.
        assert client.requested == [["hidden", "orders"]]

    run(scenario)
    assert caplog.messages == [
        "refused before append: orders-0: in-sync racks r1 = 1 < min.insync.racks 2 client=127.0.0.1:9 cause=RACKS"
    ]


def test_a_broker_that_does_not_know_a_topic_yet_is_no_missing_right() -> None:
    """Its own error lets clients send again. They give up after TOPIC_AUTHORIZATION_FAILED."""

    async def scenario() -> None:
        made, client = Made(STRICT, {("new", 0): [1]}), Client("new")
        client.unknown = {"new"}
        await made.sent(client, {"new": [0]})
        assert (outcomes(client.responses[0]), client.forwarded) == ({("new", 0): (3, None)}, [])

    run(scenario)


def test_that_a_topic_is_guarded_is_named_to_those_who_may_write_alone() -> None:
    async def scenario() -> None:
        made, client = Made(STRICT, {("orders", 0): [1], ("hidden", 0): [1]}, **DENIES), Client("orders")
        await made.sent(client, {"hidden": [0], "orders": [0]}, acks=1)
        assert [outcomes(one) for one in client.responses] == [{("hidden", 0): NO_RIGHT, ("orders", 0): WEAK}]

    run(scenario)


@pytest.mark.parametrize(
    ("topics", "may_write", "forwarded", "reason"),
    [
        ({"orders": [2]}, ["orders"], [], f"orders-2: {WEAK[1]}; with acks=0 no response can have that"),
        ({"orders": [2]}, [], [], "orders-2: TOPIC_AUTHORIZATION_FAILED; with acks=0 no response can have that"),
        (
            {"plain": [0], "orders": [2]},
            ["orders"],
            [({"plain": [0]}, False)],
            f"orders-2: {WEAK[1]}; with acks=0 no response can have that",
        ),
        ({"plain": [0]}, [], [({"plain": [0]}, False)], ""),
    ],
)
def test_a_denial_with_acks_0_closes_the_connection_behind_what_is_sent_on(
    topics: dict[str, list[int]], may_write: list[str], forwarded: list[object], reason: str
) -> None:
    async def scenario() -> None:
        made, client = Made(STRICT, {("orders", 2): [1, 2]}, **DENIES), Client(*may_write)
        await made.sent(client, topics, acks=0)
        assert (client.forwarded, client.closed, client.responses) == (forwarded, reason, [])

    run(scenario)


@pytest.mark.parametrize("topics", [{"orders": [0]}, {"plain": [0]}])
def test_new_leaders_in_a_response_are_at_the_gateway(topics: dict[str, list[int]]) -> None:
    """Else a client would produce past the gateway from then on. Of a guarded topic and of another one."""

    async def scenario() -> None:
        made, client = Made(STRICT, {("orders", 0): [1, 2]}), Client()
        exchange = await made.sent(client, topics)
        parts = received(exchange, response({topic: {0: 6} for topic in topics}, leaders=[2]))
        (leader,) = read(parts).node_endpoints
        assert (leader.node_id, leader.host, leader.port) == (2, "gateway-2", 9002)
        assert outcomes(parts) == {(topic, 0): (6, None) for topic in topics}

    run(scenario)


def test_an_acknowledgement_is_held_until_a_sample_that_was_requested_later() -> None:
    async def scenario() -> None:
        isrs = {("orders", 0): [1, 2], ("orders", 1): [1, 2]}
        made, client = Made(STRICT, isrs), Client()
        exchange = await made.sent(client, {"orders": [0, 1], "plain": [0]})
        assert client.forwarded == [({"orders": [0, 1], "plain": [0]}, True)]
        made.now = 101.0
        assert received(exchange, response({"orders": {0: 0, 1: 0}, "plain": {0: 0}})) is None
        made.now = 102.5
        made.observe(isrs)
        assert [outcomes(one) for one in client.responses] == [
            {("orders", 0): NONE, ("orders", 1): NONE, ("plain", 0): NONE}
        ]
        handler = made.handler
        assert (handler.holds.count, handler.holds.sum_seconds, handler.verified) == (1, 1.5, 1)
        assert (handler.refusals.counts, client.requested, handler._held) == ({}, [], {})

    run(scenario)


def test_a_record_whose_racks_were_lost_meanwhile_is_refused_and_those_beside_it_are_acknowledged() -> None:
    async def scenario() -> None:
        made, client = Made(STRICT, {("orders", 0): [1, 2], ("orders", 1): [1, 2]}), Client()
        exchange = await made.sent(client, {"orders": [0, 1], "plain": [0]})
        made.now = 101.0
        assert received(exchange, response({"orders": {0: 0, 1: 0}, "plain": {0: 0}})) is None
        made.now = 101.25
        made.observe({("orders", 0): [1, 2], ("orders", 1): [1]})
        assert (client.responses, client.stalled) == ([], 1)
        made.expire(130.25)
        assert client.stalled == 0
        assert [outcomes(one) for one in client.responses] == [
            {
                ("orders", 0): NONE,
                ("orders", 1): (20, "orders-1: in-sync racks r1 = 1 < min.insync.racks 2"),
                ("plain", 0): NONE,
            }
        ]
        handler = made.handler
        assert (handler.holds.count, handler.holds.sum_seconds, handler.verified) == (1, 29.25, 0)
        assert handler.refusals.counts == {("orders", 1, Cause.RACKS, True, "r1"): 1}
        assert handler.refusals.rack_check_failures == {1: 1}

    run(scenario)


def test_a_record_whose_rack_is_back_within_the_timeout_of_its_request_is_acknowledged() -> None:
    async def scenario() -> None:
        made, client = Made(VERIFIED, {("orders", 0): [1, 2]}), Client()
        exchange = await made.sent(client, {"orders": [0]})
        made.guard.settings = GuardSettings(VERIFIED)
        assert received(exchange, response({"orders": {0: 0}})) is None
        made.observe({("orders", 0): [1]})
        made.expire(129.9)
        assert client.responses == []
        made.observe({("orders", 0): [1, 2]})
        assert [outcomes(one) for one in client.responses] == [{("orders", 0): NONE}]
        assert (client.stalled, made.handler.refusals.counts) == (0, {})
        assert made.handler.holds.sum_seconds == pytest.approx(29.9)

    run(scenario)


@pytest.mark.parametrize("partitions", [1, 20])
def test_a_request_that_waits_for_a_rack_takes_no_more_memory_than_is_counted(partitions: int) -> None:
    async def scenario() -> None:
        isrs = {("orders", number): [1, 2] for number in range(partitions)}
        made, client, requests = Made(VERIFIED, isrs), Client(), 200
        client.forward = lambda *_, **__: None  # type: ignore[method-assign]
        sent = [await made.sent(client, {"orders": [*range(partitions)]}) for _ in range(10)]
        acknowledged = response({"orders": dict.fromkeys(range(partitions), 0)})
        gc.collect()
        tracemalloc.start()
        try:
            for _ in range(requests):
                sent.append(await made.sent(client, {"orders": [*range(partitions)]}))
                received(sent[-1], acknowledged)
            made.observe({partition: [1] for partition in isrs})
            gc.collect()
            used, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert (made.guard.held, client.stalled) == (requests, requests)
        assert made.guard.stalled_bytes == requests * (HOLD_BYTES + partitions * HOLD_PARTITION_BYTES)
        assert 0.3 < used / made.guard.stalled_bytes < 1

    run(scenario)


def test_a_timeout_is_counted_from_the_arrival_of_the_request() -> None:
    async def scenario() -> None:
        made, client = Made(VERIFIED, {("orders", 0): [1, 2]}), Client()
        exchange = await made.sent(client, {"orders": [0]})
        # For so long the broker itself has waited for its followers.
        made.now = 129.0
        assert received(exchange, response({"orders": {0: 0}})) is None
        made.observe({("orders", 0): [1]})
        made.expire(130.0)
        assert client.responses == []
        made.expire(130.1)
        assert [outcomes(one)["orders", 0][0] for one in client.responses] == [20]

    run(scenario)


def test_a_refusal_behind_a_response_that_was_held_counts_from_the_end_of_that() -> None:
    """Else a batch behind it would be sent on before the refused one can come again, and the broker would find a gap."""

    async def scenario() -> None:
        made, client, sequences = Made(VERIFIED, {("orders", 0): [1, 2]}), Client(), RefusedSequences()
        assert received(await made.sent(client, {"orders": [0]}), response({"orders": {0: 0}})) is None
        made.observe({("orders", 0): [1]})
        sequences.refuse(("orders", 0), ProducerBatch(7, 0, 5, 0), made.now)
        made.handler._refused[cast("Any", client)] = sequences
        made.expire(130.1)
        assert len(client.responses) == 1
        assert not sequences.admits(("orders", 0), ProducerBatch(7, 0, 6, 0), 131.0)

    run(scenario)


def test_a_request_whose_connection_is_closed_is_held_no_more() -> None:
    async def scenario() -> None:
        made, client = Made(VERIFIED, {("orders", 0): [1, 2]}), Client()
        exchange = await made.sent(client, {"orders": [0]})
        assert received(exchange, response({"orders": {0: 0}})) is None
        made.observe({("orders", 0): [1]})
        assert exchange.on_dropped is not None
        exchange.on_dropped()
        assert (made.guard.held, made.guard.stalled_bytes, made.handler._held, made.handler.dropped) == (0, 0, {}, 1)
        made.observe({("orders", 0): [1, 2]})
        assert client.responses == []

    run(scenario)


def test_a_response_that_ends_another_connection_leaves_the_rest_to_be_completed() -> None:
    """The response lets the next request of its client be read, and that request may close the connection."""

    async def scenario() -> None:
        made, client, last = Made(VERIFIED, {("orders", 0): [1, 2]}), Client(), Client()
        exchanges = [await made.sent(one, {"orders": [0]}) for one in (client, client, last)]
        for exchange in exchanges:
            assert received(exchange, response({"orders": {0: 0}})) is None
        drop = exchanges[1].on_dropped
        assert drop is not None
        client.complete = lambda *_: drop()  # type: ignore[method-assign]
        made.observe({("orders", 0): [1, 2]})
        assert [outcomes(one) for one in last.responses] == [{("orders", 0): NONE}]
        assert (made.guard.held, made.handler.dropped) == (0, 1)

    run(scenario)


def test_the_log_of_another_rack_is_read_at_once_and_not_only_after_the_next_sample() -> None:
    connected: list[int] = []

    async def connection(broker: int) -> None:
        connected.append(broker)
        await asyncio.Event().wait()

    async def scenario() -> None:
        made, client = Made(VERIFIED, {("orders", 0): [1, 2]}), Client()
        made.backend.cluster.connection = connection  # type: ignore[method-assign, assignment]
        assert received(await made.sent(client, {"orders": [0]}), response({"orders": {0: 0}})) is None
        for _ in range(3):
            await asyncio.sleep(0)
        assert connected == [2]

    run(scenario)


def test_a_record_whose_leader_changed_meanwhile_is_refused() -> None:
    async def scenario() -> None:
        made, client = Made(STRICT, {("orders", 0): [1, 2]}), Client()
        assert received(await made.sent(client, {"orders": [0]}), response({"orders": {0: 0}})) is None
        made.observe({("orders", 0): [1, 2]}, epoch=6)
        assert [outcomes(one) for one in client.responses] == [
            {("orders", 0): (20, "orders-0: the leader changed before in-sync racks could be counted")}
        ]
        assert made.handler.refusals.counts == {("orders", 0, Cause.LEADER, True, ""): 1}

    run(scenario)


def test_a_record_of_a_topic_that_is_guarded_no_more_has_to_be_in_one_rack() -> None:
    async def scenario() -> None:
        made, client = Made(STRICT, {("orders", 0): [1, 2]}), Client()
        exchange = await made.sent(client, {"orders": [0]})
        made.backend.policies.replace_file(FilePolicies())
        assert received(exchange, response({"orders": {0: 0}})) is None
        made.observe({("orders", 0): [1]})
        assert [outcomes(one) for one in client.responses] == [{("orders", 0): NONE}]

    run(scenario)


def test_a_request_whose_broker_cannot_be_sampled_is_refused() -> None:
    async def scenario() -> None:
        made, client = Made(STRICT, {("orders", 0): [1, 2]}), Client("orders")
        made.source.is_gone = True
        # The sample that there is has become too old.
        made.now = 200.0
        await made.sent(client, {"orders": [0]})
        unknown = 19, "orders-0: in-sync racks are unknown, no broker reported them in time"
        assert [outcomes(one) for one in client.responses] == [{("orders", 0): unknown}]
        assert client.forwarded == []
        assert made.handler.refusals.counts == {("orders", 0, Cause.UNKNOWN, False, ""): 1}

    run(scenario)


def test_a_response_without_a_guarded_partition_is_passed_on_unread() -> None:
    async def scenario() -> None:
        made, client = Made(STRICT, {("orders", 0): [1, 2]}), Client()
        exchange = await made.sent(client, {"plain": [0]}, version=9)
        assert received(exchange, b"\0\0\0\7 no parser reads this") == [b"\0\0\0\7 no parser reads this"]

    run(scenario)


def test_an_error_of_the_broker_is_passed_on_at_once() -> None:
    async def scenario() -> None:
        made, client = Made(STRICT, {("orders", 0): [1, 2]}), Client()
        exchange = await made.sent(client, {"orders": [0]})
        assert outcomes(received(exchange, response({"orders": {0: 7}}))) == {("orders", 0): (7, None)}
        assert (made.guard.held, made.handler.holds.count) == (0, 0)

    run(scenario)


@pytest.mark.parametrize(
    ("mode", "topics", "looked_at"),
    [
        (PRE, {"orders": [0]}, False),
        (PRE, {"plain": [0]}, False),
        (STRICT, {"orders": [0]}, True),
        (STRICT, {"plain": [0]}, True),
        (VERIFIED, {"plain": [0]}, True),
        (ADVISORY, {"orders": [0]}, False),
    ],
)
def test_the_response_to_a_request_that_is_sent_on_whole_is_looked_at_where_it_may_be_held(
    mode: AcknowledgementMode, topics: dict[str, list[int]], looked_at: bool
) -> None:
    """Of a topic that is not guarded too: it may be by then."""

    async def scenario() -> None:
        made, client = Made(mode, {("orders", 0): [1, 2]}), Client()
        exchange = await made.sent(client, topics)
        assert (exchange.on_response is not None, client.forwarded) == (looked_at, [(topics, True)])

    run(scenario)


def test_mode_advisory_counts_what_would_be_refused_and_sends_it_on_as_it_came() -> None:
    async def scenario() -> None:
        made, client = Made(ADVISORY, {("orders", 0): [1], ("orders", 1): [1, 2]}), Client()
        assert (await made.sent(client, {"orders": [0, 1]})).on_response is None
        assert (client.forwarded, client.requested) == ([({"orders": [0, 1]}, True)], [])
        assert client.counted == [("shop", ["orders"])]
        assert made.handler.refusals.counts == {("orders", 0, Cause.RACKS, False, "r1"): 1}

    run(scenario)


def test_a_request_by_topic_ids_waits_until_they_have_been_looked_up_at_its_broker() -> None:
    """An id that the broker does not report is refused: its topic could be a guarded one."""
    looked_up: list[tuple[int, set[UUID]]] = []
    known, unknown = UUID(int=1), UUID(int=2)

    async def topic_names(broker: int, ids: Iterable[UUID]) -> dict[str, UUID]:
        looked_up.append((broker, {*ids}))
        return {"orders": known}

    async def scenario() -> None:
        made, client = Made(STRICT, {("orders", 0): [1]}), Client("orders")
        made.backend.cluster = cast("Any", SimpleNamespace(topic_names=topic_names))
        data = [PartitionProduceData(index=0, records=memoryview(batch(b"x")))]
        topics = [TopicProduceData(topic_id=one, partition_data=data) for one in (known, unknown)]
        body = ProduceRequestData(acks=-1, topic_data=topics)
        client.take(
            made.handler,
            Exchange(ApiKey.PRODUCE, 13, 7, Treatment.WHOLE),
            b"".join(write_request(ApiKey.PRODUCE, 13, 7, None, body)),
        )
        for _ in range(8):
            await asyncio.sleep(0)
        assert looked_up == [(1, {known, unknown})]
        (parts,) = client.responses
        found = read_response(ApiKey.PRODUCE, 13, b"".join(map(bytes, parts)))
        assert [
            (topic.topic_id, one.error_code, one.error_message)
            for topic in found.responses
            for one in topic.partition_responses
        ] == [(unknown, 100, "no broker reports this topic id"), (known, *lacking("orders-0"))]
        assert made.backend.policies.names == {known: "orders"}

    run(scenario)
