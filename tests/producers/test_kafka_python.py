"""GuardedKafkaProducer between `send` and kafka-python: nothing waits in the caller's thread, in order and within a bound."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

import pytest
from kafka.errors import KafkaTimeoutError

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


class Acknowledged:
    """The client's future of a record that is acknowledged already."""

    def __init__(self, topic: str, offset: int) -> None:
        self.topic, self.partition, self.offset = topic, 0, offset

    def add_errback(self, _: object) -> None:
        """It does not fail."""

    def add_callback(self, callback: Callable[[Any], None]) -> None:
        callback(self)


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Iterator[GuardedKafkaProducer]:
    monkeypatch.setattr(module, "KafkaProducer", SlowClient)
    producer = GuardedKafkaProducer({"orders": 2}, bootstrap_servers="127.0.0.1:1")
    monkeypatch.setattr(producer._verifier.records, "before", read)
    monkeypatch.setattr(producer._verifier, "when_verified", lambda _topic, _partition, _offset, report: report(None))
    yield producer
    producer._producer.goes_on.set()
    producer._verifier.close()


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


def test_a_value_of_a_wrong_type_is_raised_at_once_unless_it_is_to_be_serialized(
    slow: GuardedKafkaProducer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(TypeError, match="value is str; give bytes, or a serializer to the producer"):
        slow.send("orders", "x")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="key is int; give bytes, or a serializer to the producer"):
        slow.send("orders", b"x", 7)  # type: ignore[arg-type]
    slow._producer.goes_on.set()
    serializing = GuardedKafkaProducer({"orders": 2}, bootstrap_servers="127.0.0.1:1", value_serializer=str)
    serializing._producer.goes_on.set()
    monkeypatch.setattr(serializing._verifier.records, "before", read)
    monkeypatch.setattr(serializing._verifier, "when_verified", lambda *of_record: of_record[-1](None))
    assert serializing.send("orders", {"a": 1}).result(WITHIN_SECONDS).offset == 1  # type: ignore[arg-type]
    serializing._verifier.close()


def test_a_record_that_a_closed_producer_refuses_waits_nowhere(slow: GuardedKafkaProducer) -> None:
    slow._verifier.close()
    with pytest.raises(UsageError, match="the producer is closed"):
        slow.send("orders", b"x")
    assert (len(slow._waiting), slow._unverified) == (0, set())
