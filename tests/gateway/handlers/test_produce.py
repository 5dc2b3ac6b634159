"""Produce requests before the embedded cluster: refused partitions taken out, the rest forwarded, acknowledgements held."""

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from socket import MSG_PEEK, socket
from struct import pack
from typing import Any
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackspan.acks.isr_samples import Partition, Sample, SampledPartition
from rackspan.acks.min_insync_racks import ProduceVerdict, Thresholds, rack_bits
from rackspan.acks.produce_errors import Cause, Refusal
from rackspan.acks.verification import Requirement
from rackspan.client.brokers import addresses
from rackspan.cluster import EmbeddedCluster
from rackspan.errors import MalformedRequest
from rackspan.gateway.backend import Backend
from rackspan.gateway.config import parse_config
from rackspan.gateway.core.acknowledgement.guard import AcknowledgementGuard, GuardSettings, Hold
from rackspan.gateway.core.apis import Treatment
from rackspan.gateway.core.policies import Entry, Scope, record
from rackspan.gateway.handlers.produce import BOUNDS_SECONDS, Durations, ProduceHandler
from rackspan.gateway.handlers.produce_request import ProduceRequest
from rackspan.gateway.metrics import families
from rackspan.gateway.net.byte_flow import Exchange
from rackspan.model import Broker, BrokerId, RackId
from rackspan.wire.apis import ApiKey
from rackspan.wire.codec import read_response, write_request
from rackspan.wire.messages.api_versions import ApiVersionsRequestData
from rackspan.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequestData,
    ProduceResponseData,
    TopicProduceData,
    TopicProduceResponse,
)
from tests.cluster.raw import request_frame
from tests.conformance.wire import batch, connected, received, send
from tests.gateway.frames import encoded
from tests.gateway.running import RunningGateway, document, running
from tests.kafka_fixtures import records_in
from tests.waiting import WITHIN_SECONDS, eventually

NOT_ENOUGH_REPLICAS, NOT_ENOUGH_REPLICAS_AFTER_APPEND, POLICY_VIOLATION, TOPIC_AUTHORIZATION_FAILED = 19, 20, 44, 29


@pytest.fixture(scope="module")
def lossy() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(racks=3, brokers=3, seed=4) as cluster:
        yield cluster


@contextmanager
def guarded(
    cluster: EmbeddedCluster, *topics: str, racks: int = 2, **acknowledgements: Any
) -> Iterator[RunningGateway]:
    tables = {topic: {"min": {"insync": {"racks": racks}}} for topic in topics}
    with running(cluster.bootstrap_servers, topics=tables, acknowledgements=acknowledgements) as gateway:
        yield gateway


def new_topics(cluster: EmbeddedCluster, count: int) -> list[str]:
    """Led by broker 1, with a replica in each rack."""
    names = [f"topic-{uuid4().hex[:8]}" for _ in range(count)]
    for name in names:
        cluster.create_topic(name, replicas=[[1, 2, 3]])
    return names


def produce(
    gateway: RunningGateway, topics: list[str], version: int = 9, acks: int = -1, timeout_ms: int = 5000
) -> dict[str, tuple[int, str | None]]:
    """Error code and message for each topic, of one request with a record for each."""
    data = [
        {"name": topic, "partition_data": [{"index": 0, "records": batch(f"{topic}!".encode())}]} for topic in topics
    ]
    body = {"transactional_id": None, "acks": acks, "timeout_ms": timeout_ms, "topic_data": data}
    address = "{}:{}".format(*gateway.address(1))
    response = send(address, "Produce", version, body)
    return {
        one["name"]: (partition["error_code"], partition.get("error_message"))
        for one in response["responses"]
        for partition in one["partition_responses"]
    }


@contextmanager
def two_racks_lost(cluster: EmbeddedCluster) -> Iterator[None]:
    for rack in ("r2", "r3"):
        cluster.lose_rack(rack)
    time.sleep(0.2)
    try:
        yield
    finally:
        for rack in ("r2", "r3"):
            cluster.restore_rack(rack)
        cluster.wait_for_isr()


def test_of_a_mixed_request_the_guarded_partition_is_refused_and_the_other_written(lossy: EmbeddedCluster) -> None:
    strict, plain = new_topics(lossy, 2)
    with guarded(lossy, strict) as gateway, two_racks_lost(lossy):
        outcome = produce(gateway, [strict, plain])
    assert outcome[plain][0] == 0
    assert outcome[strict] == (NOT_ENOUGH_REPLICAS, f"{strict}-0: in-sync racks r1 = 1 < min.insync.racks 2")
    assert (len(records_in(lossy, strict)), len(records_in(lossy, plain))) == (0, 1)


def test_consumers_go_on_while_records_are_refused(lossy: EmbeddedCluster) -> None:
    (strict,) = new_topics(lossy, 1)
    with guarded(lossy, strict) as gateway:
        assert produce(gateway, [strict])[strict][0] == 0
        with two_racks_lost(lossy):
            assert produce(gateway, [strict])[strict][0] == NOT_ENOUGH_REPLICAS
            assert len(records_in(gateway, strict)) == 1


def send_record(link: socket, topic: str, sequence: int, timeout_ms: int = 5000) -> None:
    """One record of producer 77, on a connection that stays open."""
    data = PartitionProduceData(index=0, records=memoryview(batch(b"x", producer=(77, 0), sequence=sequence)))
    body = ProduceRequestData(
        acks=-1, timeout=timeout_ms, topic_data=[TopicProduceData(name=topic, partition_data=[data])]
    )
    request = pack(">hhih", ApiKey.PRODUCE, 9, sequence, -1) + b"\0" + encoded(ApiKey.PRODUCE, 9, body, request=True)
    link.sendall(pack(">i", len(request)) + request)


def error_code(link: socket, topic: str, sequence: int) -> int:
    """The response to one."""
    send_record(link, topic, sequence)
    return received_code(link)


def received_code(link: socket) -> int:
    response = read_response(ApiKey.PRODUCE, 9, received(link))
    code: int = response.responses[0].partition_responses[0].error_code
    return code


def test_batches_behind_a_refused_one_are_refused_until_it_is_sent_again(lossy: EmbeddedCluster) -> None:
    """A broker would respond OUT_OF_ORDER_SEQUENCE_NUMBER to sequence 2, for which librdkafka takes a new epoch."""
    (topic,) = new_topics(lossy, 1)
    with guarded(lossy, topic) as gateway, connected("{}:{}".format(*gateway.address(1))) as link:
        assert error_code(link, topic, 0) == 0
        with two_racks_lost(lossy):
            assert error_code(link, topic, 1) == NOT_ENOUGH_REPLICAS
        eventually(lambda: produce(gateway, [topic])[topic][0] == 0, "the racks are back")
        before = len(records_in(lossy, topic))
        assert [error_code(link, topic, sequence) for sequence in (2, 1, 2, 3)] == [NOT_ENOUGH_REPLICAS, 0, 0, 0]
    assert len(records_in(lossy, topic)) == before + 3


def test_a_request_that_is_refused_whole_gets_a_response_in_its_turn(lossy: EmbeddedCluster) -> None:
    one, other = new_topics(lossy, 2)
    with guarded(lossy, one, other) as gateway, two_racks_lost(lossy):
        assert {code for code, _ in produce(gateway, [one, other]).values()} == {NOT_ENOUGH_REPLICAS}


def test_acks_1_is_not_checked_unless_weak_acks_are_denied(lossy: EmbeddedCluster) -> None:
    (topic,) = new_topics(lossy, 1)
    with two_racks_lost(lossy):
        with guarded(lossy, topic) as gateway:
            assert produce(gateway, [topic], acks=1)[topic][0] == 0
        with guarded(lossy, topic, deny={"weak": {"acks": True}}) as gateway:
            assert produce(gateway, [topic], acks=1)[topic][0] == POLICY_VIOLATION
    assert len(records_in(lossy, topic)) == 1


def test_a_refusal_with_acks_0_ends_the_connection_and_what_else_the_request_has_is_sent_on(
    lossy: EmbeddedCluster,
) -> None:
    """As at a broker: else a producer would lose every record without learning of it."""
    denied, other, third = new_topics(lossy, 3)

    def is_ended(address: tuple[str, int], *topics: str) -> bool:
        data = [PartitionProduceData(index=0, records=memoryview(batch(b"x")))]
        named = [TopicProduceData(name=topic, partition_data=data) for topic in topics]
        request = request_frame(ApiKey.PRODUCE, 9, ProduceRequestData(acks=0, timeout=5000, topic_data=named))
        versions = request_frame(ApiKey.API_VERSIONS, 0, ApiVersionsRequestData())
        with connected("{}:{}".format(*address)) as link:
            link.sendall(request + versions)
            try:
                return not received(link)
            except ConnectionError:
                return True

    with guarded(lossy, denied, deny={"weak": {"acks": True}}) as gateway:
        address = gateway.address(1)
        assert [is_ended(address, *topics) for topics in ([denied], [denied, other], [third])] == [True, True, False]
        eventually(lambda: [len(records_in(lossy, one)) for one in (denied, other, third)] == [0, 1, 1], "appended")


def test_a_record_that_waits_meets_the_value_that_is_in_force_when_it_is_acknowledged(lossy: EmbeddedCluster) -> None:
    """More racks than there are, from when the broker acknowledges it."""
    (topic,) = new_topics(lossy, 1)
    with guarded(lossy, topic) as gateway:
        with raised_when_acknowledged(gateway, topic):
            refused = produce(gateway, [topic], timeout_ms=1000)[topic]
        assert refused == (20, f"{topic}-0: in-sync racks r1,r2,r3 = 3 < min.insync.racks 4")


@contextmanager
def raised_when_acknowledged(gateway: RunningGateway, topic: str) -> Iterator[Callable[[], None]]:
    """More racks are required than there are, from when the broker acknowledges a record. What is given ends that."""
    guarding, policies = gateway.gateway.guarding, gateway.gateway.policies
    assert guarding is not None
    acknowledged = guarding.guard.acknowledged

    def raised(hold: Hold, end_offsets: Mapping[Partition, int | None], now: float) -> bool:
        if (topic, 0) in end_offsets:
            policies.replay(*record(Scope.TOPIC, topic, Entry(4)))
        return acknowledged(hold, end_offsets, now)

    def lowered() -> None:
        guarding.guard.acknowledged = acknowledged  # type: ignore[method-assign]
        policies.replay(*record(Scope.TOPIC, topic, Entry(2)))

    guarding.guard.acknowledged = raised  # type: ignore[method-assign]
    yield lowered


def is_silent(link: socket) -> bool:
    """Whether nothing has arrived."""
    link.setblocking(False)
    try:
        link.recv(1, MSG_PEEK)
    except BlockingIOError:
        return True
    finally:
        link.settimeout(WITHIN_SECONDS)
    return False


def test_a_request_that_waits_for_a_rack_holds_up_its_own_connection_alone(lossy: EmbeddedCluster) -> None:
    """Those behind it are judged when it has its response, as a broker handles one request of a connection at a time."""
    topic, plain, other = new_topics(lossy, 3)
    with (
        guarded(lossy, topic, other) as gateway,
        connected("{}:{}".format(*gateway.address(1))) as link,
        raised_when_acknowledged(gateway, topic) as lowered,
    ):
        assert gateway.gateway.guarding is not None
        guard = gateway.gateway.guarding.guard
        send_record(link, topic, 0, timeout_ms=60_000)
        eventually(lambda: guard.stalled_bytes > 0, "a rack is missing")
        send_record(link, topic, 1)
        assert {code for code, _ in produce(gateway, [plain, other]).values()} == {0}
        assert produce(gateway, [topic])[topic][0] == NOT_ENOUGH_REPLICAS
        assert gateway.gateway.clients.shared.frames.used == 0
        assert is_silent(link)
        lowered()
        assert [received_code(link), received_code(link), error_code(link, topic, 2)] == [0, 0, 0]
        assert (guard.held, guard.stalled_bytes) == (0, 0)
    assert len(records_in(lossy, topic)) == 3


def test_a_request_whose_client_closes_its_connection_is_held_no_more(lossy: EmbeddedCluster) -> None:
    (topic,) = new_topics(lossy, 1)
    with guarded(lossy, topic) as gateway, raised_when_acknowledged(gateway, topic):
        guarding = gateway.gateway.guarding
        assert guarding is not None
        with connected("{}:{}".format(*gateway.address(1))) as link:
            send_record(link, topic, 0, timeout_ms=60_000)
            eventually(lambda: guarding.guard.stalled_bytes > 0, "a rack is missing")
        eventually(lambda: guarding.guard.held == 0, "its client is gone")
        assert (guarding.guard.stalled_bytes, guarding.produce.dropped, guarding.produce.holds.count) == (0, 1, 0)


def test_at_the_end_of_the_gateway_what_waits_for_a_rack_is_refused_and_its_client_receives_that(
    lossy: EmbeddedCluster,
) -> None:
    (topic,) = new_topics(lossy, 1)
    with (
        guarded(lossy, topic) as gateway,
        connected("{}:{}".format(*gateway.address(1))) as link,
        raised_when_acknowledged(gateway, topic),
    ):
        guarding = gateway.gateway.guarding
        assert guarding is not None
        send_record(link, topic, 0, timeout_ms=600_000)
        eventually(lambda: guarding.guard.stalled_bytes > 0, "a rack is missing")
        assert gateway.run(gateway.gateway.drain(3)) == 0, "no connection is cut off"
        assert received_code(link) == NOT_ENOUGH_REPLICAS_AFTER_APPEND


@pytest.mark.parametrize("beside", [False, True])
def test_a_record_that_waits_is_subject_to_a_value_that_its_topic_did_not_have_when_it_was_sent(
    lossy: EmbeddedCluster, beside: bool
) -> None:
    """Whether another partition of its request was refused, so that the request was written anew, or not."""
    topic, refused = new_topics(lossy, 2)
    tables = {refused: {"min": {"insync": {"racks": 4}}}} if beside else {}
    with running(lossy.bootstrap_servers, topics=tables) as gateway:
        guarding, policies = gateway.gateway.guarding, gateway.gateway.policies
        assert guarding is not None
        receive, sent = ProduceRequest.receive, [topic, refused] if beside else [topic]
        assert produce(gateway, sent)[topic][0] == 0

        def raised(request: ProduceRequest, response: bytes) -> None:
            receive(request, response)
            policies.replay(*record(Scope.TOPIC, topic, Entry(4)))

        with pytest.MonkeyPatch.context() as patch:
            if beside:
                patch.setattr(ProduceRequest, "receive", raised)
            else:
                as_sent = guarding.produce._received_as_sent

                def received(request: ProduceRequest, changes: int, response: bytes) -> Any:
                    policies.replay(*record(Scope.TOPIC, topic, Entry(4)))
                    return as_sent(request, changes, response)

                patch.setattr(guarding.produce, "_received_as_sent", received)
            outcome = produce(gateway, sent, timeout_ms=1000)[topic]
        assert outcome == (20, f"{topic}-0: in-sync racks r1,r2,r3 = 3 < min.insync.racks 4")
        assert (guarding.produce.holds.count, guarding.produce.verified) == (1, 0)
        policies.replay(*record(Scope.TOPIC, topic, Entry(2)))
        assert produce(gateway, sent)[topic][0] == 0


def test_a_record_of_a_topic_that_is_guarded_meanwhile_is_acknowledged_when_its_racks_hold_it(
    lossy: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    (topic,) = new_topics(lossy, 1)
    with guarded(lossy) as gateway:
        guarding, policies = gateway.gateway.guarding, gateway.gateway.policies
        assert guarding is not None
        as_sent: Any = guarding.produce._received_as_sent

        def received(request: ProduceRequest, changes: int, response: bytes) -> Any:
            policies.replay(*record(Scope.TOPIC, topic, Entry(2)))
            return as_sent(request, changes, response)

        monkeypatch.setattr(guarding.produce, "_received_as_sent", received)
        assert produce(gateway, [topic])[topic] == (0, None)
        assert guarding.produce.holds.count == 1


def test_the_new_codes_are_sent_where_they_are_configured(lossy: EmbeddedCluster) -> None:
    (topic,) = new_topics(lossy, 1)
    with guarded(lossy, topic, extended={"error": {"codes": True}}) as gateway, two_racks_lost(lossy):
        assert produce(gateway, [topic])[topic][0] == 1001


def test_advisory_counts_and_refuses_nothing(lossy: EmbeddedCluster) -> None:
    (topic,) = new_topics(lossy, 1)
    with guarded(lossy, topic, mode="advisory") as gateway, two_racks_lost(lossy):
        assert produce(gateway, [topic])[topic][0] == 0
        assert gateway.rack_check_failures() == 1


def test_the_config_topic_is_written_by_gateways_alone(lossy: EmbeddedCluster) -> None:
    with guarded(lossy) as gateway:
        leader = lossy.leader("__rackspan_configs", 0)
        body = {
            "transactional_id": None,
            "acks": 1,
            "timeout_ms": 5000,
            "topic_data": [{"name": "__rackspan_configs", "partition_data": [{"index": 0, "records": batch(b"x")}]}],
        }
        assert leader is not None
        response = send("{}:{}".format(*gateway.address(leader)), "Produce", 9, body)
    assert response["responses"][0]["partition_responses"][0]["error_code"] == TOPIC_AUTHORIZATION_FAILED


def test_an_acknowledgement_is_held_until_it_is_verified(lossy: EmbeddedCluster) -> None:
    (topic,) = new_topics(lossy, 1)
    with guarded(lossy, topic) as gateway:
        assert produce(gateway, [topic])[topic][0] == 0
        assert produce(gateway, [topic])[topic][0] == 0
        assert gateway.gateway.guarding is not None
        assert gateway.gateway.guarding.produce.holds.count == 2

        async def metrics() -> dict[str, float]:
            samples = (sample for family in families(gateway.gateway) for sample in family.samples)
            return {f"{sample.name} {sample.labels.get('le', '')}".strip(): sample.value for sample in samples}

        found = gateway.run(metrics())
        assert found["rackspan_gateway_hold_seconds_bucket +Inf"] == found["rackspan_gateway_hold_seconds_count"] == 2
        assert 0 < found["rackspan_gateway_hold_seconds_sum"] < 60
        assert found["rackspan_gateway_verified_responses_total"] == 2


def test_a_broker_cannot_acknowledge_what_was_not_sent_to_it() -> None:
    """A broker with a fault, found by mutated frames: without this the client gets its acknowledgement beside the refusal."""
    exchange = Exchange(ApiKey.PRODUCE, 9, 7, Treatment.WHOLE)
    sent = b"".join(write_request(ApiKey.PRODUCE, 9, 7, None, ProduceRequestData(acks=-1, topic_data=[])))
    session: Any = None
    produce = ProduceRequest(session, exchange, memoryview(sent), {}, 0.0)
    produce.responses = {("orders", 0): PartitionProduceResponse(index=0, error_code=NOT_ENOUGH_REPLICAS)}

    def response(*topics: str) -> bytes:
        accepted = [PartitionProduceResponse(index=0)]
        body = ProduceResponseData(
            responses=[TopicProduceResponse(name=one, partition_responses=accepted) for one in topics]
        )
        return pack(">i", 7) + b"\0" + encoded(ApiKey.PRODUCE, 9, body, request=False)

    produce.receive(response("plain"))
    merged = read_response(ApiKey.PRODUCE, 9, b"".join(map(bytes, produce.response())))
    assert [(one.name, one.partition_responses[0].error_code) for one in merged.responses] == [
        ("plain", 0),
        ("orders", NOT_ENOUGH_REPLICAS),
    ]
    with pytest.raises(MalformedRequest, match="partition 0 that was not sent on"):
        produce.receive(response("plain", "orders"))


def test_a_topic_whose_id_no_broker_reports_has_no_name_and_no_requirement() -> None:
    known, unknown = UUID(int=1), UUID(int=2)
    data = [PartitionProduceData(index=0, records=memoryview(b""))]
    topics = [TopicProduceData(topic_id=one, partition_data=data) for one in (unknown, known)]
    sent = b"".join(write_request(ApiKey.PRODUCE, 13, 7, None, ProduceRequestData(acks=-1, topic_data=topics)))
    session: Any = None
    exchange = Exchange(ApiKey.PRODUCE, 13, 7, Treatment.WHOLE)
    produce = ProduceRequest(session, exchange, memoryview(sent), {known: "orders"}, 0.0)
    assert produce.unknown_ids() == {unknown}
    assert [name for name, _ in produce.named_topics()] == ["orders"]
    assert [produce.partitions(topic) for topic in produce.body.topic_data] == [[(str(unknown), 0)], [("orders", 0)]]


@pytest.mark.parametrize("requested", [1, 2])
def test_a_refusal_has_the_topic_id_of_its_request_though_the_topic_was_created_anew(requested: int) -> None:
    """A client finds its batch by that id, and does not know the other one yet, or any more."""
    data = [PartitionProduceData(index=0, records=memoryview(b""))]
    body = ProduceRequestData(acks=-1, topic_data=[TopicProduceData(topic_id=UUID(int=requested), partition_data=data)])
    sent = b"".join(write_request(ApiKey.PRODUCE, 13, 7, None, body))
    names = {UUID(int=number): "orders" for number in (1, 2)}
    session: Any = None
    produce = ProduceRequest(session, Exchange(ApiKey.PRODUCE, 13, 7, Treatment.WHOLE), memoryview(sent), names, 0.0)
    produce.responses = {("orders", 0): PartitionProduceResponse(index=0, error_code=NOT_ENOUGH_REPLICAS)}
    (topic,) = read_response(ApiKey.PRODUCE, 13, b"".join(map(bytes, produce.response()))).responses
    assert topic.topic_id == UUID(int=requested)


def test_a_topic_with_an_empty_name_is_refused_as_any_other() -> None:
    """Found by mutated frames: its partitions were looked up by another key than they are guarded by."""
    topics = [TopicProduceData(name="", partition_data=[PartitionProduceData(index=0, records=memoryview(b""))])]
    sent = b"".join(write_request(ApiKey.PRODUCE, 9, 7, None, ProduceRequestData(acks=-1, topic_data=topics)))
    session: Any = None
    produce = ProduceRequest(session, Exchange(ApiKey.PRODUCE, 9, 7, Treatment.WHOLE), memoryview(sent), {}, 0.0)
    ((name, topic),) = produce.named_topics()
    assert produce.partitions(topic) == [(name, 0)]
    produce.responses = {(name, 0): PartitionProduceResponse(index=0, error_code=NOT_ENOUGH_REPLICAS)}
    assert produce.is_refused


class Peer:
    """A client's session, as far as refused sequences are remembered for it."""


def test_a_batch_behind_a_refused_one_is_refused_until_that_one_is_sent_again() -> None:
    orders = ("orders", 0)
    refusal = Refusal(orders, ProduceVerdict.NOT_ENOUGH_RACKS, Cause.RACKS, "too few", ("a",))
    parts: Any = None

    async def scenario() -> list[list[Cause]]:
        backend = Backend(parse_config(document("127.0.0.1:1")))
        handler = ProduceHandler(AcknowledgementGuard(GuardSettings()), backend, parts, parts)
        session: Any = Peer()

        def judged(sequence: int, *refusals: Refusal) -> list[Cause]:
            data = [PartitionProduceData(index=0, records=memoryview(batch(b"x", producer=(77, 0), sequence=sequence)))]
            body = ProduceRequestData(acks=-1, topic_data=[TopicProduceData(name="orders", partition_data=data)])
            sent = b"".join(write_request(ApiKey.PRODUCE, 9, 7, None, body))
            produce = ProduceRequest(
                session, Exchange(ApiKey.PRODUCE, 9, 7, Treatment.WHOLE), memoryview(sent), {}, 0.0
            )
            produce.requirements = {orders: Requirement(Thresholds(1, 2))}
            return [one.cause for one in handler._in_order(produce, {one.partition: one for one in refusals}).values()]

        return [judged(0), judged(1, refusal), judged(2), judged(1), judged(2)]

    assert asyncio.run(scenario()) == [[], [Cause.RACKS], [Cause.ORDER], [], []]


class Forwarding(Peer):
    """A client's session with broker 1: how many requests were forwarded, and how many wait for samples."""

    broker = 1

    def __init__(self) -> None:
        self.forwarded = self.waiting = 0

    def count_produced(self, *_: object) -> None:
        """Only metrics show it."""

    def forward(self, _exchange: Exchange, _parts: object, *, responds: bool) -> None:
        assert responds
        self.forwarded += 1

    def wait_for(self, _ready: object, _then: object) -> None:
        self.waiting += 1


@pytest.mark.parametrize("source", [1, 2])
def test_a_request_is_forwarded_at_once_if_its_own_broker_was_sampled_just_now(source: int) -> None:
    parts: Any = None
    bits = rack_bits([Broker(BrokerId(one), RackId(f"r{one}")) for one in (1, 2)])

    async def scenario() -> tuple[int, int]:
        tables = {"topics": {"orders": {"min": {"insync": {"racks": 2}}}}}
        backend = Backend(parse_config(document("127.0.0.1:1", **tables)))
        guard = AcknowledgementGuard(GuardSettings(refresh_seconds=60))
        handler, forwarding = ProduceHandler(guard, backend, parts, parts), Forwarding()
        session: Any = forwarding
        state = SampledPartition(1, 5, (BrokerId(1), BrokerId(2)))
        now = asyncio.get_running_loop().time()
        guard.observe(Sample(source, now, bits, frozenset({"orders"}), {("orders", 0): state}))
        data = [PartitionProduceData(index=0, records=memoryview(batch(b"x")))]
        body = ProduceRequestData(acks=-1, topic_data=[TopicProduceData(name="orders", partition_data=data)])
        sent = b"".join(write_request(ApiKey.PRODUCE, 9, 7, None, body))
        handler.take(session, Exchange(ApiKey.PRODUCE, 9, 7, Treatment.WHOLE), memoryview(sent))
        handler.close()
        return forwarding.forwarded, forwarding.waiting

    assert asyncio.run(scenario()) == ((1, 0) if source == 1 else (0, 1))


def produced_by_id(gateway: RunningGateway, topic_id: UUID, racks: int = 1) -> tuple[UUID | None, int, str | None]:
    """Topic id, error code and message of the response to one record, by version 13, which names topics by id."""
    data = PartitionProduceData(index=0, records=memoryview(batch(b"x")))
    topics = [TopicProduceData(topic_id=topic_id, partition_data=[data])]
    body = ProduceRequestData(acks=-1, timeout=5000, topic_data=topics)
    request = pack(">hhih", ApiKey.PRODUCE, 13, 3, -1) + b"\0" + encoded(ApiKey.PRODUCE, 13, body, request=True)
    with connected("{}:{}".format(*gateway.address(1))) as link:
        link.sendall(pack(">i", len(request)) + request)
        (topic,) = read_response(ApiKey.PRODUCE, 13, received(link)).responses
    (partition,) = topic.partition_responses
    return topic.topic_id, partition.error_code, partition.error_message


def test_a_topic_is_guarded_by_its_id_too_and_an_id_that_no_broker_reports_is_refused(lossy: EmbeddedCluster) -> None:
    (topic,) = new_topics(lossy, 1)
    address = "{}:{}".format(*next(iter(addresses("", lossy.bootstrap_servers))))
    (found,) = send(address, "Metadata", 12, {"topics": [{"topic_id": None, "name": topic}]})["topics"]
    topic_id = UUID(str(found["topic_id"]))
    with guarded(lossy, topic) as gateway:
        assert produced_by_id(gateway, topic_id) == (topic_id, 0, None)
        assert gateway.gateway.guarding is not None
        assert gateway.gateway.guarding.produce.holds.count == 1
        unknown = UUID(int=5)
        assert produced_by_id(gateway, unknown) == (unknown, 100, "no broker reports this topic id")
    with guarded(lossy, topic, racks=4) as gateway:
        shown = topic_id, NOT_ENOUGH_REPLICAS, f"{topic}-0: in-sync racks r1,r2,r3 = 3 < min.insync.racks 4"
        assert produced_by_id(gateway, topic_id) == shown


@given(st.lists(st.sampled_from([*BOUNDS_SECONDS, 0.0, 0.0011, 3.0, 60.0]), max_size=30))
def test_each_bucket_counts_the_durations_up_to_its_bound(seconds: list[float]) -> None:
    durations = Durations()
    for duration in seconds:
        durations.add(duration)
    expected = [(str(bound), sum(duration <= bound for duration in seconds)) for bound in BOUNDS_SECONDS]
    assert list(durations.buckets()) == [*expected, ("+Inf", len(seconds))]
    assert (durations.count, durations.sum_seconds) == (len(seconds), sum(seconds))
