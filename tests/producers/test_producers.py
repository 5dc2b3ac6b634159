"""Guarded producers of three libraries before the embedded cluster, which itself requires nothing of racks."""

import asyncio
import re
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, TypeVar
from unittest.mock import Mock
from uuid import uuid4

import pytest
from confluent_kafka import Producer
from kafka import KafkaConsumer, TopicPartition
from kafka.errors import KafkaTimeoutError

from rackspan.client.login import Login
from rackspan.cluster import EmbeddedCluster
from rackspan.errors import ClusterUnreachable, NotEnoughRacks, NotEnoughRacksAfterAppend, UsageError
from rackspan.producers import GuardedAIOKafkaProducer, GuardedKafkaProducer, GuardedProducer, verifier
from rackspan.producers import aiokafka as aiokafka_producers
from rackspan.producers import confluent as guarded
from rackspan.producers import kafka_python as kafka_python_module
from rackspan.producers import kafka_python as kafka_python_producers
from rackspan.producers.logins import librdkafka_login, server_list
from rackspan.producers.verifier import VERIFY_SECONDS, RecordVerifier
from tests.waiting import WITHIN_SECONDS, eventually

T = TypeVar("T")

BRIEF_SECONDS = 3.0
"""For a verification that is to fail."""


def meanwhile_verifies(records: RecordVerifier, meanwhile: Callable[[], None]) -> None:
    """Have something happen between an acknowledgement and its verification."""
    verify = records.verify

    async def later(end_offsets: Any) -> Any:
        await asyncio.to_thread(meanwhile)
        return await verify(end_offsets)

    records.verify = later  # type: ignore[method-assign]


def confluent(
    cluster: EmbeddedCluster, topic: str, meanwhile: Callable[[], None], seconds: float = VERIFY_SECONDS
) -> Exception | None:
    config = {"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0}
    producer = GuardedProducer(config, {topic: 2}, verify_seconds=seconds)
    meanwhile_verifies(producer._verifier.records, meanwhile)
    errors: list[Any] = []
    try:
        producer.produce(topic, b"x", on_delivery=lambda error, _: errors.append(error))
        assert producer.flush(WITHIN_SECONDS) == 0
    finally:
        producer.close()
    result: Exception | None = errors[0]
    return result


def kafka_python(
    cluster: EmbeddedCluster, topic: str, meanwhile: Callable[[], None], seconds: float = VERIFY_SECONDS
) -> BaseException | None:
    # Its clients take long to leave a lost broker for the next address; broker 1 is never lost.
    producer = GuardedKafkaProducer({topic: 2}, verify_seconds=seconds, bootstrap_servers=cluster.address(1))
    meanwhile_verifies(producer._verifier.records, meanwhile)
    try:
        return producer.send(topic, b"x").exception(WITHIN_SECONDS)
    finally:
        producer.close()


def aiokafka(
    cluster: EmbeddedCluster, topic: str, meanwhile: Callable[[], None], seconds: float = VERIFY_SECONDS
) -> Exception | None:
    async def work() -> Exception | None:
        servers = cluster.bootstrap_servers
        producer = GuardedAIOKafkaProducer({topic: 2}, verify_seconds=seconds, bootstrap_servers=servers)
        meanwhile_verifies(producer._records, meanwhile)
        await producer.start()
        try:
            await producer.send_and_wait(topic, b"x")
        except (NotEnoughRacks, NotEnoughRacksAfterAppend) as error:
            return error
        finally:
            await producer.stop()
        return None

    return asyncio.run(work())


LIBRARIES = [confluent, kafka_python, aiokafka]


def new_topic(cluster: EmbeddedCluster) -> str:
    topic = f"topic-{uuid4().hex[:8]}"
    cluster.create_topic(topic, replicas=[[1, 2, 3]])
    return topic


@contextmanager
def restored(cluster: EmbeddedCluster) -> Iterator[Callable[[], None]]:
    """Gives a function that loses two racks; they are back afterwards."""

    def lose() -> None:
        for rack in ("r2", "r3"):
            cluster.lose_rack(rack)
        # Until every broker's metadata has it.
        time.sleep(0.1)

    try:
        yield lose
    finally:
        for rack in ("r2", "r3"):
            cluster.restore_rack(rack)
        cluster.wait_for_isr()


def nothing() -> None:
    """Nothing happens between the acknowledgement and its verification."""


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_record_in_enough_racks_is_acknowledged(library: Any, cluster: EmbeddedCluster) -> None:
    assert library(cluster, new_topic(cluster), nothing) is None


@pytest.mark.parametrize("library", LIBRARIES)
def test_too_few_racks_refuse_before_anything_is_sent(library: Any, cluster: EmbeddedCluster) -> None:
    topic = new_topic(cluster)
    with restored(cluster) as lose:
        lose()
        assert isinstance(library(cluster, topic, nothing), NotEnoughRacks)
    assert records(cluster, topic) == 0


@pytest.mark.parametrize("library", LIBRARIES)
def test_racks_lost_before_the_second_look_refuse_a_record_that_stays_in_the_log(
    library: Any, cluster: EmbeddedCluster
) -> None:
    topic = new_topic(cluster)
    with restored(cluster) as lose:
        error = library(cluster, topic, lose, BRIEF_SECONDS)
    assert isinstance(error, NotEnoughRacksAfterAppend)
    # Weaker than a broker that holds the high watermark back: readers see what was refused.
    assert records(cluster, topic) == 1


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_record_whose_racks_are_back_in_time_is_acknowledged(library: Any, cluster: EmbeddedCluster) -> None:
    """As by a broker, which lets it wait for as long as its request's timeout says."""
    back = threading.Timer(1.0, lambda: [cluster.restore_rack(rack) for rack in ("r2", "r3")])

    def lose_for_a_while() -> None:
        for rack in ("r2", "r3"):
            cluster.lose_rack(rack)
        eventually(lambda: cluster.isr(topic, 0) == {1}, "one rack is in sync")
        back.start()

    topic = new_topic(cluster)
    try:
        assert library(cluster, topic, lose_for_a_while) is None
    finally:
        back.join()
        cluster.wait_for_isr()


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_record_whose_verification_fails_unexpectedly_is_reported(library: Any, cluster: EmbeddedCluster) -> None:
    def fail() -> None:
        raise RuntimeError("no client raises this")

    assert isinstance(library(cluster, new_topic(cluster), fail), NotEnoughRacksAfterAppend)


def records(cluster: EmbeddedCluster, topic: str) -> int:
    """As many as readers see: up to the high watermark."""
    consumer = KafkaConsumer(bootstrap_servers=cluster.bootstrap_servers)
    (end,) = consumer.end_offsets([TopicPartition(topic, 0)]).values()
    consumer.close()
    return int(end)


@pytest.mark.parametrize(
    "config",
    [
        {"acks": 0},
        {"acks": 1},
        {"acks": "1"},
        {"acks": "all", "topic.acks": 0},
        {"default.topic.config": {"request.required.acks": 0}},
    ],
)
def test_weak_acks_are_refused(config: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="applies to acks=all only"):
        GuardedProducer({"bootstrap.servers": "127.0.0.1:1", **config}, {})


@pytest.mark.parametrize("acks", [0, 1, "1"])
@pytest.mark.parametrize("producer", [GuardedAIOKafkaProducer, GuardedKafkaProducer])
def test_weak_acks_are_refused_before_there_is_a_connection(producer: Any, acks: object) -> None:
    with pytest.raises(UsageError, match=f"^acks is {acks!r}, and min.insync.racks applies to acks=all only"):
        producer({"orders": 2}, bootstrap_servers="127.0.0.1:1", acks=acks)


def test_a_login_that_the_guard_cannot_use_is_refused() -> None:
    for config in ({"ssl.keystore.location": "k"}, {"security.protocol": "SASL_SSL", "sasl.mechanism": "GSSAPI"}):
        with pytest.raises(UsageError, match="the guard"):
            librdkafka_login(config)


def test_servers_are_one_text() -> None:
    assert server_list(["SASL_SSL://a:1", "b"]) == server_list("SASL_SSL://a:1,b") == "SASL_SSL://a:1,b"


def test_the_end_waits_for_records_before_it_closes_what_verifies_them(
    cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic, order = new_topic(cluster), list[str]()
    producer = GuardedKafkaProducer({topic: 2}, bootstrap_servers=cluster.address(1))
    for owner, name, step in (
        (producer._producer, "flush", "flushed"),
        (producer._producer, "close", "client closed"),
        (producer._verifier.records, "close", "connections closed"),
    ):
        monkeypatch.setattr(owner, name, _noting(getattr(owner, name), step, order))
    sent = producer.send(topic, b"x")
    sent.add_done_callback(lambda _: order.append("verified"))
    producer.close()
    assert sent.result(0).offset == 0
    assert order.index("flushed") < order.index("client closed")
    # Its close flushes again.
    assert [step for step in order if step != "flushed"] == ["verified", "client closed", "connections closed"]


def _noting(call: Callable[..., Any], step: str, order: list[str]) -> Callable[..., Any]:
    def noted(*words: Any) -> Any:
        order.append(step)
        return call(*words)

    return noted


def test_a_topic_that_requires_one_rack_is_not_verified_and_a_callback_that_fails_holds_up_no_other(
    cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    guarded, other, reported = new_topic(cluster), new_topic(cluster), list[str]()
    producer = GuardedProducer({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0}, {guarded: 2})
    verified, when_verified = list[str](), producer._verifier.when_verified

    def noted(topic: str, *others: Any) -> None:
        verified.append(topic)
        when_verified(topic, *others)

    monkeypatch.setattr(producer._verifier, "when_verified", noted)

    def fail(_error: object, _message: object) -> None:
        raise RuntimeError("a callback of the user")

    producer.produce(guarded, b"x", on_delivery=fail)
    for topic in (guarded, other):
        producer.produce(topic, b"x", on_delivery=lambda _, message: reported.append(message.topic()))
    assert producer.flush(WITHIN_SECONDS) == 0
    producer.close()
    assert sorted(reported) == sorted([guarded, other])
    assert verified == [guarded, guarded]


def test_a_callback_may_send_records_itself(cluster: EmbeddedCluster) -> None:
    """As one that sends a refused record again."""
    topic, offsets = new_topic(cluster), list[int]()
    producer = GuardedProducer({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0}, {topic: 2})

    def again(error: object, message: Any) -> None:
        offsets.append(message.offset())
        if len(offsets) < 3:
            producer.produce(topic, b"x", on_delivery=again)

    producer.produce(topic, b"x", on_delivery=again)
    # Not closed before the look: with a callback that waits for its own thread that would never end.
    eventually(lambda: producer.flush(0.1) == 0 and offsets == [0, 1, 2], "each callback has produced the next record")
    producer.close()


@pytest.mark.parametrize("only_errors", [False, True, "true"])
def test_records_are_verified_if_only_errors_are_reported(cluster: EmbeddedCluster, only_errors: object) -> None:
    """By the callback of the config too, where the record has none."""
    topic, of_record, of_config = new_topic(cluster), list[object](), list[object]()
    config = {"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0}
    settings = {"delivery.report.only.error": only_errors, "on_delivery": lambda error, _: of_config.append(error)}
    producer = GuardedProducer(config | settings, {topic: 2}, verify_seconds=BRIEF_SECONDS)
    with restored(cluster) as lose:
        for meanwhile in (nothing, lose):
            meanwhile_verifies(producer._verifier.records, meanwhile)
            producer.produce(topic, b"x", on_delivery=lambda error, _: of_record.append(error))
            producer.produce(topic, b"x")
            assert producer.flush(WITHIN_SECONDS) == 0
    producer.close()
    for errors in (of_record, of_config):
        assert [type(error) for error in errors] == [*[type(None)] * (not only_errors), NotEnoughRacksAfterAppend]


def test_the_future_of_a_record_may_send_another(cluster: EmbeddedCluster) -> None:
    topic = new_topic(cluster)
    producer = GuardedKafkaProducer({topic: 2}, bootstrap_servers=cluster.address(1))
    second: Future[Any] = Future()
    first = producer.send(topic, b"x")
    first.add_done_callback(lambda _: second.set_result(producer.send(topic, b"y")))
    assert second.result(WITHIN_SECONDS).result(WITHIN_SECONDS).offset == 1
    producer.close()


def test_a_future_of_kafka_python_has_every_error_of_the_guard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_python_module, "KafkaProducer", Mock())
    producer = GuardedKafkaProducer({"orders": 2}, bootstrap_servers="127.0.0.1:1")
    outcomes: dict[int, Exception] = {0: NotEnoughRacks("one rack"), 1: ClusterUnreachable("no broker")}

    async def before(_topic: str, partition: int) -> Exception:
        if partition == 1:
            raise outcomes[1]
        return outcomes[0]

    monkeypatch.setattr(producer._verifier.records, "before", before)
    sent = [producer.send("orders", b"x", partition=partition) for partition in (0, 1)]
    assert [future.exception(WITHIN_SECONDS) for future in sent] == [outcomes[0], outcomes[1]]
    producer.flush(WITHIN_SECONDS)
    producer._verifier.close()
    assert not producer._producer.send.called


def test_the_end_does_not_wait_for_a_record_that_the_client_refused_at_once(cluster: EmbeddedCluster) -> None:
    topic = new_topic(cluster)
    producer = GuardedKafkaProducer({topic: 2}, bootstrap_servers=cluster.address(1))
    with pytest.raises(TypeError):
        producer.send(topic, "no bytes")
    closing = threading.Thread(target=producer.close, daemon=True)
    closing.start()
    closing.join(WITHIN_SECONDS)
    assert not closing.is_alive()


def test_a_producer_that_was_closed_sends_nothing_and_says_so_and_may_be_closed_again(cluster: EmbeddedCluster) -> None:
    topic = new_topic(cluster)
    producer = GuardedProducer({"bootstrap.servers": cluster.bootstrap_servers}, {topic: 2})
    producer.close()
    # As in a process that was forked, where the thread of the guard does not run either.
    with pytest.raises(UsageError, match="or was made before a fork"):
        producer.produce(topic, b"x")
    errors: list[Any] = []
    producer._verifier.when_verified(topic, 0, 5, errors.append)
    assert [type(error) for error in errors] == [NotEnoughRacksAfterAppend]
    producer.close()


def test_a_record_that_is_acknowledged_without_an_offset_is_verified(cluster: EmbeddedCluster) -> None:
    topic, errors = new_topic(cluster), list[Any]()
    producer = GuardedProducer({"bootstrap.servers": cluster.bootstrap_servers}, {topic: 2})
    producer.produce(topic, b"x")
    assert producer.flush(WITHIN_SECONDS) == 0
    producer._unreported.add(record := object())
    delivered = producer._delivered(record, lambda error, _: errors.append(error))
    # As confluent-kafka has it of a repeated batch.
    delivered(None, SimpleNamespace(topic=lambda: topic, partition=lambda: 0, offset=lambda: None))
    assert producer.flush(WITHIN_SECONDS) == 0
    producer.close()
    assert errors == [None]


def test_a_flush_waits_until_records_are_verified(cluster: EmbeddedCluster) -> None:
    topic, go_on = new_topic(cluster), threading.Event()
    producer = GuardedKafkaProducer({topic: 2}, bootstrap_servers=cluster.address(1))

    def wait() -> None:
        assert go_on.wait(WITHIN_SECONDS)

    meanwhile_verifies(producer._verifier.records, wait)
    sent = producer.send(topic, b"x")
    with pytest.raises(KafkaTimeoutError, match=r"1 record not verified in 0\.1 s"):
        producer.flush(0.1)
    go_on.set()
    producer.flush()
    assert sent.done()
    producer.close()


def test_a_flush_without_a_limit_waits_until_records_are_verified(cluster: EmbeddedCluster) -> None:
    topic, errors = new_topic(cluster), list[Any]()
    producer = GuardedProducer({"bootstrap.servers": cluster.bootstrap_servers}, {topic: 2})
    meanwhile_verifies(producer._verifier.records, lambda: time.sleep(0.2))
    producer.produce(topic, b"x", on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(-1) == 0
    assert errors == [None]
    producer.close()


def test_a_client_that_cannot_deliver_is_closed_all_the_same(
    cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer = GuardedKafkaProducer({}, bootstrap_servers=cluster.address(1))
    monkeypatch.setattr(producer._producer, "flush", Mock(side_effect=KafkaTimeoutError("60 s")))
    with pytest.raises(KafkaTimeoutError):
        # The client's own close flushes first, too.
        producer.close()
    monkeypatch.undo()
    assert not producer._verifier._thread.is_alive()
    producer.close()


@pytest.fixture(scope="module")
def two_racks() -> Iterator[EmbeddedCluster]:
    """One partition has replicas in both racks, the other in one."""
    with EmbeddedCluster(racks=2, brokers=4, seed=6) as cluster:
        cluster.create_topic("orders", replicas=[[1, 2], [1, 3]])
        producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "acks": "all", "log_level": 0})
        for partition in (0, 1):
            producer.produce("orders", b"x", partition=partition)
        assert producer.flush(WITHIN_SECONDS) == 0
        yield cluster


def verifying(two_racks: EmbeddedCluster, work: Callable[[RecordVerifier], Coroutine[Any, Any, T]]) -> T:
    async def run() -> T:
        records = RecordVerifier(two_racks.bootstrap_servers, Login(), {"orders": 2})
        try:
            return await work(records)
        finally:
            records.close()

    return asyncio.run(run())


def test_a_guarded_producer_is_closed_though_a_callback_never_returns(
    cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(verifier, "END_SECONDS", 0.1)
    monkeypatch.setattr(guarded, "FLUSH_SECONDS", 1.0)
    topic, called = new_topic(cluster), threading.Event()

    def hang(*_: object) -> None:
        called.set()
        threading.Event().wait()

    producer = GuardedProducer({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0}, {topic: 2})
    for _ in range(2):
        producer.produce(topic, b"x", on_delivery=hang)
    while not called.is_set():
        producer.poll(0.1)
    producer.close()
    assert caplog.messages == [
        "GuardedProducer is closed; at most 2 records not acknowledged",
        "the verifier of a guarded producer did not end in 0.1 s and is left behind; at most 2 records not acknowledged",
    ]


def test_a_flush_without_a_limit_says_that_it_goes_on(
    cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(guarded, "_PROGRESS_SECONDS", 0.0)
    producer = GuardedProducer({"bootstrap.servers": "127.0.0.1:1", "log_level": 0, "message.timeout.ms": 1500}, {})
    producer.produce("orders", b"x")
    assert producer.flush(-1) == 0
    # librdkafka counts the error of its connection too.
    assert re.fullmatch(r"flush continues after \d s; at most \d records? not acknowledged", caplog.messages[0])
    producer.close()


def test_a_kafka_python_producer_that_never_closes_is_left_behind(
    cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    producer = GuardedKafkaProducer({}, bootstrap_servers=cluster.address(1))
    monkeypatch.setattr(kafka_python_producers, "END_SECONDS", 0.1)
    with monkeypatch.context() as planted:
        planted.setattr(producer._producer, "close", lambda *_: threading.Event().wait())
        producer.close()
    assert [record.message for record in caplog.records if record.name == "rackspan.ends"] == [
        "KafkaProducer did not end in 0.1 s and is left behind"
    ]
    producer._producer.close()


def test_an_aiokafka_producer_that_never_stops_is_left_behind(
    cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(aiokafka_producers, "STOP_SECONDS", 0.1)

    async def never() -> None:
        await asyncio.Event().wait()

    async def work() -> None:
        producer = GuardedAIOKafkaProducer({}, bootstrap_servers=cluster.bootstrap_servers)
        await producer.start()
        with monkeypatch.context() as planted:
            planted.setattr(producer._producer, "stop", never)
            await producer.stop()
        await producer._producer.stop()

    asyncio.run(work())
    assert caplog.messages == ["AIOKafkaProducer did not end in 0.1 s and is left behind"]


def test_topics_without_an_entry_require_what_others_do() -> None:
    records = RecordVerifier("127.0.0.1:1", Login(), {"orders": 1}, others=2)
    assert [records.requires(topic) for topic in ("orders", "payments")] == [False, True]


def test_a_record_is_refused_by_the_racks_of_its_own_partition(two_racks: EmbeddedCluster) -> None:
    """And the second time by what was read the first time."""

    async def errors(records: RecordVerifier) -> list[object]:
        return [await records.before("orders", partition) for partition in (0, 1, 0, 1)]

    found = verifying(two_racks, errors)
    assert [type(error) for error in found] == [type(None), NotEnoughRacks] * 2


def test_a_record_of_a_partition_that_was_never_read_is_verified(two_racks: EmbeddedCluster) -> None:
    async def errors(records: RecordVerifier) -> list[object]:
        return [await records.verified("orders", partition, -1) for partition in (0, 1)]

    enough, too_few = verifying(two_racks, errors)
    assert (enough, too_few is None) == (None, False)


def test_a_request_that_gets_no_response_has_ended_when_the_others_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verifier, "_RESPONSE_SECONDS", 0.01)
    ended: list[str] = []

    async def silent() -> str:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append("silent")
        return ""

    async def prompt() -> str:
        return "response"

    async def run() -> None:
        assert await verifier._responses({1: prompt(), 2: silent()}) == {1: "response"}
        assert ended == ["silent"]

    asyncio.run(run())
