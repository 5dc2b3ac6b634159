"""GuardedKafkaProducer between `send` and kafka-python: nothing waits in the caller's thread, in order and within a bound."""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

import pytest
from kafka import KafkaProducer
from kafka.errors import KafkaTimeoutError
from kafka.serializer import JsonSerializer

from rackspan.errors import ClusterUnreachable, UsageError
from rackspan.producers import GuardedAIOKafkaProducer, GuardedKafkaProducer, GuardedProducer
from rackspan.producers import kafka_python as module
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.base import WireStruct
from rackspan.wire.messages.metadata import MetadataRequestData, MetadataResponseBroker, MetadataResponseData
from tests.client.fake_broker import FakeBroker
from tests.waiting import WITHIN_SECONDS, eventually


class SilentAboutTopics:
    """A broker that lists itself and never responds to Metadata of a topic. `required` is set once somebody requires it."""

    def __init__(self) -> None:
        self.required = threading.Event()
        self._broker = FakeBroker()
        self._broker.handles[ApiKey.METADATA] = self._metadata
        self._loop = asyncio.new_event_loop()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._broker.port}"

    async def _metadata(self, request: MetadataRequestData) -> WireStruct | None:
        if request.topics:
            self.required.set()
            return await asyncio.Event().wait()  # type: ignore[return-value]  # Never.
        itself = MetadataResponseBroker(node_id=1, host="127.0.0.1", port=self._broker.port, rack="a")
        return MetadataResponseData(brokers=(itself,), cluster_id="fake", controller_id=1, topics=())

    @contextmanager
    def running(self) -> Iterator["SilentAboutTopics"]:
        thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        thread.start()
        asyncio.run_coroutine_threadsafe(self._broker.start(), self._loop).result(WITHIN_SECONDS)
        try:
            yield self
        finally:
            asyncio.run_coroutine_threadsafe(self._broker.close(), self._loop).result(WITHIN_SECONDS)
            self._loop.call_soon_threadsafe(self._loop.stop)
            thread.join()


@pytest.fixture
def silent() -> Iterator[SilentAboutTopics]:
    with SilentAboutTopics().running() as broker:
        yield broker


def returned(call: Callable[..., Any], *arguments: Any) -> Any:
    """The result of a call that must not wait, in a thread of its own: one that waits for ever fails the test only."""
    result: Future[Any] = Future()

    def carry_out() -> None:
        try:
            result.set_result(call(*arguments))
        except BaseException as error:
            result.set_exception(error)

    threading.Thread(target=carry_out, daemon=True).start()
    eventually(result.done, "the call returns")
    return result.result()


async def read(_topic: str, _partition: int | None) -> None:
    """The ISR is read, and nothing is refused."""


@pytest.mark.parametrize("waits", ["the guard", "the client"])
def test_send_returns_though_metadata_never_comes(
    silent: SilentAboutTopics, waits: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    forever_ms = int(2 * WITHIN_SECONDS * 1000)
    producer = GuardedKafkaProducer({"orders": 2}, bootstrap_servers=silent.address, max_block_ms=forever_ms)
    if waits == "the client":
        monkeypatch.setattr(producer._verifier.records, "before", read)
    sent = returned(producer.send, "orders", b"x")
    assert silent.required.wait(WITHIN_SECONDS)
    if waits == "the guard":
        assert isinstance(sent.exception(WITHIN_SECONDS), ClusterUnreachable)
    else:
        assert not sent.done()
        with pytest.raises(KafkaTimeoutError, match="1 record not verified in 0 s"):
            producer.flush(0)
    producer._verifier.close()


def test_produce_of_confluent_returns_though_metadata_never_comes(silent: SilentAboutTopics) -> None:
    producer, errors = (
        GuardedProducer({"bootstrap.servers": silent.address, "log_level": 0}, {"orders": 2}),
        list[Any](),
    )
    returned(lambda: producer.produce("orders", b"x", on_delivery=lambda error, _: errors.append(error)))
    assert silent.required.wait(WITHIN_SECONDS)
    eventually(lambda: errors != [], "the record is reported")
    assert isinstance(errors[0], ClusterUnreachable)
    producer._verifier.close()


def test_send_and_wait_of_aiokafka_holds_up_no_other_coroutine_though_metadata_never_comes(
    silent: SilentAboutTopics, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        producer = GuardedAIOKafkaProducer({"orders": 2}, bootstrap_servers=silent.address)
        monkeypatch.setattr(producer._records, "before", read)
        await producer.start()
        sending = asyncio.ensure_future(producer.send_and_wait("orders", b"x"))
        while not silent.required.is_set():
            await asyncio.sleep(0.01)
        assert not sending.done()
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        await producer.stop()

    asyncio.run(asyncio.wait_for(scenario(), WITHIN_SECONDS))


class SlowClient:
    """A KafkaProducer whose `send` waits until `goes_on`, as for metadata; a value `bad` is refused by it."""

    _serialize = KafkaProducer._serialize

    def __init__(self, **_: Any) -> None:
        self.goes_on = threading.Event()
        self.given: list[bytes] = []

    def send(self, topic: str, value: bytes, **_: Any) -> Any:
        self.goes_on.wait(WITHIN_SECONDS)
        if value == b"bad":
            raise KafkaTimeoutError("no metadata")
        self.given.append(value)
        return Acknowledged(topic, len(self.given))

    def flush(self, _seconds: float) -> None:
        """Nothing is held back."""

    def close(self, _seconds: float) -> None:
        """It has no threads."""


class Acknowledged:
    """The client's future of a record that is acknowledged already."""

    def __init__(self, topic: str, offset: int) -> None:
        self.topic, self.partition, self.offset = topic, 0, offset

    def add_errback(self, _: object) -> None:
        """It does not fail."""

    def add_callback(self, callback: Callable[[Any], None]) -> None:
        callback(self)


Making = Callable[..., GuardedKafkaProducer]


@pytest.fixture
def making(monkeypatch: pytest.MonkeyPatch) -> Iterator[Making]:
    """Makes a producer with this config of its client, a SlowClient. What it acknowledges is verified."""
    monkeypatch.setattr(module, "KafkaProducer", SlowClient)
    made = list[GuardedKafkaProducer]()

    def make(**config: Any) -> GuardedKafkaProducer:
        producer = GuardedKafkaProducer({"orders": 2, "payments": 2}, bootstrap_servers="127.0.0.1:1", **config)
        made.append(producer)
        monkeypatch.setattr(producer._verifier.records, "before", read)
        monkeypatch.setattr(
            producer._verifier, "when_verified", lambda _topic, _partition, _offset, report: report(None)
        )
        return producer

    yield make
    for producer in made:
        producer._producer.goes_on.set()
        producer._verifier.close()


@pytest.fixture
def slow(making: Making) -> GuardedKafkaProducer:
    return making()


def test_records_that_wait_are_sent_in_the_order_of_the_calls_and_flush_waits_for_them(
    slow: GuardedKafkaProducer,
) -> None:
    values = [str(number).encode() for number in range(50)]
    sent = [returned(slow.send, "orders", value) for value in values]
    assert not any(future.done() for future in sent)
    slow._producer.goes_on.set()
    slow.flush(WITHIN_SECONDS)
    assert [future.result(0).offset for future in sent] == list(range(1, 51))
    assert slow._producer.given == values


def test_what_the_client_refuses_is_an_error_of_the_future_and_waits_nowhere(slow: GuardedKafkaProducer) -> None:
    sent = slow.send("orders", b"bad")
    slow._producer.goes_on.set()
    assert isinstance(sent.exception(WITHIN_SECONDS), KafkaTimeoutError)
    slow.flush(WITHIN_SECONDS)
    assert len(slow._waiting) == 0


def test_only_so_many_bytes_wait(slow: GuardedKafkaProducer) -> None:
    half = b"x" * (module.BYTES_MAX // 2)
    for _ in range(2):
        slow.send("orders", half)
    with pytest.raises(BufferError, match="2 records wait, and 100,000 records or 32 MiB are the most; wait for"):
        slow.send("orders", b"x")
    slow._producer.goes_on.set()
    slow.flush(WITHIN_SECONDS)
    slow.send("orders", half)


def test_a_value_of_a_wrong_type_is_raised_at_once(slow: GuardedKafkaProducer, making: Making) -> None:
    with pytest.raises(TypeError, match="value is str; give bytes, or a serializer to the producer"):
        slow.send("orders", "x")
    with pytest.raises(TypeError, match="key is int; give bytes, or a serializer to the producer"):
        slow.send("orders", b"x", 7)
    with pytest.raises(TypeError, match="value is str; give bytes"):
        making(value_serializer=str).send("orders", {"a": 1})


def test_a_record_that_a_closed_producer_refuses_waits_nowhere(slow: GuardedKafkaProducer) -> None:
    slow._verifier.close()
    with pytest.raises(UsageError, match="the producer is closed"):
        slow.send("orders", b"x")
    assert (len(slow._waiting), slow._unverified) == (0, set())


@pytest.mark.parametrize(
    ("serializer", "change"),
    [
        (None, lambda number: bytearray(b"%d" % number)),
        (None, lambda number: memoryview(bytearray(b"%d" % number))),
        (lambda given: json.dumps(given["n"]).encode(), lambda number: {"n": number}),
        (lambda given: given, lambda number: bytearray(b"%d" % number)),
    ],
    ids=["bytearray", "memoryview", "dict", "bytearray of a serializer"],
)
def test_a_value_that_the_caller_changes_afterwards_is_sent_as_it_was(
    making: Making, serializer: Callable[[Any], bytes] | None, change: Callable[[int], Any]
) -> None:
    producer, reused = making(value_serializer=serializer), change(1)
    for number in range(1, 4):
        changed = change(number)
        if isinstance(reused, dict):
            reused.update(changed)
        else:
            reused[:] = changed
        producer.send("orders", reused)
    producer._producer.goes_on.set()
    producer.flush(WITHIN_SECONDS)
    assert producer._producer.given == [b"1", b"2", b"3"]


def test_a_coroutine_that_reuses_a_value_changes_no_record_of_aiokafka(monkeypatch: pytest.MonkeyPatch) -> None:
    given = list[object]()

    async def before(*_: object) -> None:
        await asyncio.sleep(0)

    async def sent(_topic: str, value: object, **_: object) -> Acknowledged:
        given.append(value)
        return Acknowledged("orders", 0)

    async def scenario() -> None:
        producer = GuardedAIOKafkaProducer({"orders": 2}, bootstrap_servers="127.0.0.1:1", value_serializer=bytearray)
        monkeypatch.setattr(producer._records, "before", before)
        monkeypatch.setattr(producer._records, "verified", before)
        monkeypatch.setattr(producer._producer, "send_and_wait", sent)
        reused = [1]
        sending = asyncio.ensure_future(producer.send_and_wait("orders", reused))
        await asyncio.sleep(0)
        reused[0] = 2
        await sending
        producer._producer._closed = True  # It was never started.
        producer._records.close()

    asyncio.run(scenario())
    assert given == [b"\x01"]


def test_serialized_bytes_count_and_one_record_may_be_larger_than_the_bound(making: Making) -> None:
    producer = making(value_serializer=str.encode)
    sent = producer.send("orders", "x" * (module.BYTES_MAX + 1))
    with pytest.raises(BufferError, match="1 record wait"):
        producer.send("orders", "x")
    producer._producer.goes_on.set()
    assert sent.result(WITHIN_SECONDS).offset == 1


def test_flush_waits_for_the_records_before_it_only(making: Making, monkeypatch: pytest.MonkeyPatch) -> None:
    producer, later = making(), list[Future[Any]]()

    def verified(_topic: str, _partition: int, _offset: int, report: Callable[[None], None]) -> None:
        if not later:
            later.append(producer.send("payments", b"y"))
        report(None)

    async def later_never(topic: str, _partition: int | None) -> None:
        if topic == "payments":
            await asyncio.Event().wait()

    monkeypatch.setattr(producer._verifier.records, "before", later_never)
    monkeypatch.setattr(producer._verifier, "when_verified", verified)
    producer.send("orders", b"x")
    producer._producer.goes_on.set()
    producer.flush(WITHIN_SECONDS)
    assert not later[0].done()


def test_flush_flushes_the_client_for_a_record_that_it_gets_meanwhile(
    making: Making, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer, lingering = making(), list[Callable[[], None]]()

    def flush(_seconds: float) -> None:
        producer._producer.goes_on.set()
        while lingering:
            lingering.pop()()

    monkeypatch.setattr(producer._producer, "flush", flush)
    monkeypatch.setattr(
        producer._verifier,
        "when_verified",
        lambda _topic, _partition, _offset, report: lingering.append(lambda: report(None)),
    )
    sent = producer.send("orders", b"x")
    producer.flush(WITHIN_SECONDS)
    assert sent.done()


def test_every_future_ends_with_the_close_and_what_ended_is_not_sent_afterwards(
    making: Making, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer = making()
    monkeypatch.setattr(producer, "flush", lambda flush=producer.flush: flush(0.05))
    sent = [producer.send("orders", value) for value in (b"x", b"y")]
    with pytest.raises(KafkaTimeoutError, match=r"2 records not verified in 0\.05 s"):
        producer.close()
    for record in sent:
        assert str(record.exception(0)).endswith("not verified before the producer was closed; it may be in the log")
    producer._producer.goes_on.set()
    eventually(lambda: len(producer._waiting) == 0, "the records have left")
    # The client had the first one already.
    assert b"y" not in producer._producer.given


@pytest.mark.parametrize("topic", ["orders", "of one rack"])
def test_nothing_is_sent_once_the_close_has_begun(making: Making, monkeypatch: pytest.MonkeyPatch, topic: str) -> None:
    producer, refused = making(), list[UsageError]()

    def send_more() -> None:
        with pytest.raises(UsageError, match="the producer is closed") as error:
            producer.send(topic, b"x")
        refused.append(error.value)

    producer._producer.goes_on.set()
    monkeypatch.setattr(producer, "flush", send_more)
    producer.close()
    assert (len(refused), producer._unverified, producer._producer.given) == (1, set(), [])


def test_serializers_are_closed_with_the_producer_once(making: Making, monkeypatch: pytest.MonkeyPatch) -> None:
    closed, serializer = list[bool](), JsonSerializer()
    monkeypatch.setattr(serializer, "close", lambda: closed.append(True))
    producer = making(value_serializer=serializer)
    producer._producer.goes_on.set()
    assert producer.send("orders", {"n": 1}).result(WITHIN_SECONDS).offset == 1
    producer.close()
    producer.close()
    assert (producer._producer.given, closed) == ([b'{"n": 1}'], [True])


def test_a_future_that_its_owner_has_ended_is_left_as_it_is() -> None:
    result: Future[Any] = Future()
    assert result.cancel()
    module._end(result, "metadata", None)
    module._end(result, None, KafkaTimeoutError())
    assert result.cancelled()
