"""GuardedProducer between `produce` and librdkafka: records wait for the ISR in order, within bounds, and each is reported once."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import pytest
from kafka import KafkaConsumer, TopicPartition

from rackspan.cluster import EmbeddedCluster
from rackspan.errors import ClusterUnreachable, NotEnoughRacks, UsageError
from rackspan.producers import GuardedProducer
from tests.waiting import WITHIN_SECONDS, eventually

NOWHERE = "127.0.0.1:1"


@contextmanager
def guarded(topic: str, servers: str = NOWHERE, **config: Any) -> Iterator[tuple[GuardedProducer, "Reads"]]:
    """A producer of one guarded topic whose reads of the ISR begin and end as the test says."""
    settings = {name.replace("_", "."): value for name, value in config.items()}
    producer = GuardedProducer({"bootstrap.servers": servers, "log_level": 0, **settings}, {topic: 2})
    reads = Reads(producer)
    try:
        yield producer, reads
    finally:
        reads.end()
        producer._producer.purge()
        producer.flush(WITHIN_SECONDS)
        producer._verifier.close()


class Reads:
    """`RecordVerifier.before` that waits until `end`, and then has the error of each record by its partition."""

    def __init__(self, producer: GuardedProducer) -> None:
        self.begun = threading.Event()
        self.errors: dict[int | None, Exception] = {}
        self.failure: Exception | None = None
        self._ended = asyncio.Event()
        self._loop = producer._verifier._loop
        producer._verifier.records.before = self._before  # type: ignore[method-assign, assignment]

    async def _before(self, _topic: str, partition: int | None) -> Exception | None:
        self.begun.set()
        await self._ended.wait()
        if self.failure is not None:
            raise self.failure
        return self.errors.get(partition)

    def end(self) -> None:
        self._loop.call_soon_threadsafe(self._ended.set)


def noting(reports: list[Any]) -> Callable[[Any, Any], None]:
    return lambda error, message: reports.append((type(error), message.value()))


def test_a_record_that_is_refused_is_reported_and_produce_neither_waits_nor_raises() -> None:
    with guarded("orders") as (producer, reads):
        reads.errors = {1: NotEnoughRacks("one rack is in sync")}
        messages = list[Any]()
        producer.produce("orders", "value", "key", partition=1, on_delivery=lambda *report: messages.append(report))
        assert reads.begun.wait(WITHIN_SECONDS)
        # The ISR is being read: nothing is reported, and a flush counts the record.
        assert (messages, producer.flush(0.05)) == ([], 1)
        reads.end()
        assert producer.flush(WITHIN_SECONDS) == 0
    [(error, message)] = messages
    assert error is message.error() is reads.errors[1]
    assert (message.topic(), message.value(), message.key(), message.partition()) == ("orders", b"value", b"key", 1)
    assert (message.offset(), message.headers(), message.latency(), message.leader_epoch()) == (None,) * 4
    assert (message.timestamp(), len(message)) == ((0, 0), 5)


def test_a_flush_counts_a_record_wherever_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that leaves the guard for librdkafka just after that was found empty."""
    with guarded("orders") as (producer, reads):
        reports = list[Any]()
        producer.produce("orders", b"1", on_delivery=lambda error, _: reports.append(error))
        assert reads.begun.wait(WITHIN_SECONDS)
        flushed = producer._producer.flush

        def flush_and_then_read(seconds: float) -> int:
            left = flushed(seconds)
            reads.end()
            eventually(lambda: not len(producer._waiting), "the record is given to librdkafka")
            return left

        monkeypatch.setattr(producer._producer, "flush", flush_and_then_read, raising=False)
        assert producer.flush(0) == 1


_CLOSED_WITH_AN_EVENT = """
from rackspan.producers import GuardedProducer
from tests.waiting import eventually
producer = GuardedProducer({"bootstrap.servers": "127.0.0.1:1", "log_level": 0}, {"orders": 2})
eventually(lambda: len(producer._producer) > 0, "an error that nobody has polled")
producer._producer.flush = lambda _seconds: 0  # the error stays
producer.close()
"""


def test_an_error_of_a_connection_is_no_record_at_the_end_of_the_process() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _CLOSED_WITH_AN_EVENT],
        capture_output=True,
        text=True,
        timeout=WITHIN_SECONDS,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


_CLOSED_WITH_A_RECORD = """
import logging
from rackspan.producers import GuardedProducer, confluent

logging.basicConfig(format="%(message)s")
confluent.FLUSH_SECONDS = 0.05
producer = GuardedProducer(
    {"bootstrap.servers": "127.0.0.1:1", "log_level": 0}, {"orders": 2}, broker_identity="address"
)
producer._unreported.add(object())
producer.close()
import builtins; builtins.kept = producer
"""


def test_a_loss_that_close_has_named_is_not_named_again_at_the_end_of_the_process() -> None:
    """As of a producer that was not closed."""
    done = subprocess.run(
        [sys.executable, "-c", _CLOSED_WITH_A_RECORD],
        capture_output=True,
        text=True,
        timeout=WITHIN_SECONDS,
        check=False,
    )
    lines = "GuardedProducer is closed; at most 1 record not acknowledged\n"
    assert (done.returncode, done.stderr) == (0, lines)


def test_records_reach_the_log_in_the_order_of_their_calls(cluster: EmbeddedCluster) -> None:
    """Those that waited, and those that were produced after them."""
    cluster.create_topic(topic := f"in-order-{uuid4().hex[:8]}", replicas=[[1, 2, 3]])
    values = [str(number).encode() for number in range(200)]
    with guarded(topic, cluster.bootstrap_servers) as (producer, reads):
        for value in values[:100]:
            producer.produce(topic, value)
        assert reads.begun.wait(WITHIN_SECONDS)
        reads.end()
        for value in values[100:]:
            producer.produce(topic, value)
        assert producer.flush(WITHIN_SECONDS) == 0
    consumer = KafkaConsumer(bootstrap_servers=cluster.bootstrap_servers, consumer_timeout_ms=1000 * WITHIN_SECONDS)
    consumer.assign([TopicPartition(topic, 0)])
    consumer.seek_to_beginning()
    assert [next(consumer).value for _ in values] == values
    consumer.close()


@pytest.mark.parametrize("failure", [ClusterUnreachable("no broker responds"), RuntimeError("unexpected")])
def test_records_that_wait_for_one_read_share_its_failure(failure: Exception) -> None:
    with guarded("orders") as (producer, reads):
        reports, reads.failure = list[Any](), failure
        for value in (b"1", b"2", b"3"):
            producer.produce("orders", value, on_delivery=noting(reports))
        assert reads.begun.wait(WITHIN_SECONDS)
        reads.end()
        assert producer.flush(WITHIN_SECONDS) == 0
    assert reports == [(type(failure), value) for value in (b"1", b"2", b"3")]


@pytest.mark.parametrize(
    ("bound", "value"),
    [({"queue_buffering_max_messages": 40}, b"x"), ({"queue_buffering_max_kbytes": "40"}, b"x" * 1024)],
)
def test_only_so_many_records_wait_as_librdkafka_may_queue(bound: dict[str, Any], value: bytes) -> None:
    with guarded("orders", **bound) as (producer, reads):
        reads.errors = {None: NotEnoughRacks("one rack is in sync")}
        # librdkafka counts what it has to report itself too, such as a broker that is down.
        produce_many(producer, value, 30)
        with pytest.raises(BufferError, match=r"records wait, .*; poll, and produce it again"):
            produce_many(producer, value, 11)
        reads.end()
        assert producer.flush(WITHIN_SECONDS) == 0
        producer.produce("orders", value)
        assert producer.flush(WITHIN_SECONDS) == 0


def produce_many(producer: GuardedProducer, value: bytes, count: int) -> None:
    for _ in range(count):
        producer.produce("orders", value)


def test_a_queue_without_a_limit_has_none() -> None:
    with guarded("orders", queue_buffering_max_messages=0) as (producer, reads):
        reads.errors = {None: NotEnoughRacks("one rack is in sync")}
        producer.produce("orders", b"x")


def test_a_record_waits_until_the_queue_of_librdkafka_has_space() -> None:
    """It may be filled by other topics meanwhile. The ISR is read again before the record is sent."""
    with guarded("orders") as (producer, reads):
        given, full = list[bytes](), threading.Event()

        def hand_over(record: object, _topic: str, value: bytes, *_others: object) -> None:
            given.append(value)
            if not full.is_set():
                raise BufferError("Local: Queue full")
            producer._unreported.discard(record)

        producer._hand_over = hand_over  # type: ignore[method-assign, assignment]
        reads.end()
        for value in (b"1", b"2"):
            producer.produce("orders", value)
        eventually(lambda: len(given) >= 2, "the record is given to librdkafka once more")
        assert (set(given), len(producer._waiting)) == ({b"1"}, 2)
        full.set()
        assert producer.flush(WITHIN_SECONDS) == 0
        assert given[-2:] == [b"1", b"2"]


def test_what_librdkafka_refuses_at_once_is_reported_too() -> None:
    with guarded("orders", message_max_bytes=1_000) as (producer, reads):
        reports = list[Any]()
        reads.end()
        producer.produce("orders", b"x" * 2_000, on_delivery=lambda error, _: reports.append(error.name()))
        assert producer.flush(WITHIN_SECONDS) == 0
    assert reports == ["MSG_SIZE_TOO_LARGE"]


def test_a_value_of_a_wrong_type_is_raised_at_once() -> None:
    with guarded("orders") as (producer, _):
        with pytest.raises(TypeError, match="value is int; give bytes or str"):
            producer.produce("orders", 7)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="key is list; give bytes or str"):
            producer.produce("orders", b"x", [])  # type: ignore[arg-type]


def test_a_record_that_a_closed_producer_refuses_waits_nowhere() -> None:
    producer = GuardedProducer({"bootstrap.servers": NOWHERE, "log_level": 0}, {"orders": 2})
    producer._verifier.close()
    with pytest.raises(UsageError, match="the producer is closed"):
        producer.produce("orders", b"x")
    assert (len(producer._waiting), producer._waiting._bytes) == (0, 0)
