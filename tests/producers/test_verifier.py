"""The guard's own connections: rounds, pauses, brokers that do not respond, and the end of its thread."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from rackspan.acks.isr_samples import LogEnds, LogRead, Sample, SampledPartition
from rackspan.acks.min_insync_racks import rack_bits
from rackspan.acks.verification import RecordVerification
from rackspan.client.identity import IdentityMode
from rackspan.client.login import Login
from rackspan.errors import ClusterUnreachable, NotEnoughRacksAfterAppend, OtherBroker, UnprovableBroker, UsageError
from rackspan.model import Broker, BrokerId, RackId
from rackspan.producers import GuardedAIOKafkaProducer, GuardedKafkaProducer, kafka_python, logins, verifier
from rackspan.producers.verifier import RecordVerifier, VerifierThread, _responses
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.metadata import (
    MetadataResponseBroker,
    MetadataResponseData,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from tests.client.fake_broker import ProvingBroker, configs_of
from tests.waiting import WITHIN_SECONDS, eventually

CLUSTER_AUTHORIZATION_FAILED = 31
ORDERS = ("orders", 0)
RACKS = rack_bits([Broker(BrokerId(1), RackId("r1")), Broker(BrokerId(2), RackId("r2"))])
IN_TWO_RACKS = SampledPartition(1, 0, (BrokerId(1), BrokerId(2)))


def made(**options: Any) -> RecordVerifier:
    return RecordVerifier("127.0.0.1:1", Login(), {"orders": 2}, **{"identity": IdentityMode.ADDRESS, **options})


def test_rounds_are_repeated_at_longer_pauses_until_the_time_is_over() -> None:
    pauses: list[float] = []

    async def work() -> dict[Any, Exception]:
        records, loop, clock = made(), asyncio.get_running_loop(), [100.0]

        async def observed(*_: object) -> None:
            """No broker reports anything."""

        async def sleep(seconds: float) -> None:
            pauses.append(seconds)
            clock[0] += seconds

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(records, "_observe_isr", observed)
            patch.setattr(records, "_observe_logs", observed)
            patch.setattr(asyncio, "sleep", sleep)
            patch.setattr(loop, "time", lambda: clock[0])
            return dict(await records.verify({ORDERS: 1}))

    errors = asyncio.run(work())
    assert isinstance(errors[ORDERS], NotEnoughRacksAfterAppend)
    assert pauses[:7] == [0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.2]
    assert set(pauses[7:]) == {0.2}
    assert 30 <= sum(pauses) < 30.2


def test_a_record_after_the_verification_of_others_is_verified_too() -> None:
    async def work() -> list[Any]:
        records, verified = made(), list[Any]()

        async def verify(ends: Any) -> dict[Any, Any]:
            verified.append(dict(ends))
            await asyncio.sleep(0)
            return {}

        setattr(records, "verify", verify)  # noqa: B010 - its type has another name of an argument
        await asyncio.wait_for(
            asyncio.gather(*(records.verified("orders", 0, offset) for offset in (4, 9, 7))), WITHIN_SECONDS
        )
        await asyncio.wait_for(records.verified("orders", 0, 11), WITHIN_SECONDS)
        await asyncio.wait_for(
            asyncio.gather(records.verified("orders", 0, 12), records.verified("orders", 0, -1)), WITHIN_SECONDS
        )
        await asyncio.wait_for(records.verified("orders", 0, 0), WITHIN_SECONDS)
        return verified

    assert asyncio.run(work()) == [{ORDERS: 10}, {ORDERS: 12}, {ORDERS: None}, {ORDERS: 1}]


def test_records_that_are_acknowledged_during_a_verification_share_the_next_one() -> None:
    async def work() -> list[Any]:
        records, verified, begun, go_on = made(), list[Any](), asyncio.Event(), asyncio.Event()

        async def verify(ends: Any) -> dict[Any, Any]:
            verified.append(dict(ends))
            begun.set()
            await go_on.wait()
            return {}

        setattr(records, "verify", verify)  # noqa: B010 - as above
        waiting = [asyncio.ensure_future(records.verified("orders", 0, 4))]
        await begun.wait()
        for partition in (0, 1, 0):
            waiting.append(asyncio.ensure_future(records.verified("orders", partition, 7)))
            for _turn in range(3):
                await asyncio.sleep(0)
        go_on.set()
        await asyncio.wait_for(asyncio.gather(*waiting), WITHIN_SECONDS)
        return verified

    assert asyncio.run(work()) == [{ORDERS: 5}, {ORDERS: 8, ("orders", 1): 8}]


def test_records_that_wait_for_a_rack_hold_up_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verifier, "_SHARED_SECONDS", 0.01)

    async def work() -> tuple[bool, object, object]:
        records, rack_is_back = made(), asyncio.Event()

        async def verify(ends: Any) -> dict[Any, Any]:
            if ORDERS in ends:
                await rack_is_back.wait()
            return {}

        setattr(records, "verify", verify)  # noqa: B010 - as above
        waiting = asyncio.ensure_future(records.verified("orders", 0, 4))
        await asyncio.sleep(0)
        other = await asyncio.wait_for(records.verified("orders", 1, 7), WITHIN_SECONDS)
        waits = not waiting.done()
        rack_is_back.set()
        return waits, other, await asyncio.wait_for(waiting, WITHIN_SECONDS)

    assert asyncio.run(work()) == (True, None, None)


def test_a_caller_that_no_longer_waits_holds_up_no_other() -> None:
    async def work() -> list[Any]:
        records, begun, go_on = made(), asyncio.Event(), asyncio.Event()

        async def verify(_ends: Any) -> dict[Any, Any]:
            begun.set()
            await go_on.wait()
            return {}

        setattr(records, "verify", verify)  # noqa: B010 - as above
        waiting = [asyncio.ensure_future(records.verified("orders", 0, offset)) for offset in (4, 9)]
        await begun.wait()
        waiting[0].cancel()
        await asyncio.sleep(0)
        go_on.set()
        await asyncio.wait(waiting, timeout=WITHIN_SECONDS)
        found = [one.cancelled() or one.result() for one in waiting]
        return [*found, await asyncio.wait_for(records.verified("orders", 0, 11), WITHIN_SECONDS)]

    assert asyncio.run(work()) == [True, None, None]


def test_responses_are_those_that_come_in_time_and_a_fault_of_ours_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verifier, "_RESPONSE_SECONDS", 0.05)

    async def responds(value: int) -> int:
        return value

    async def fails(error: Exception) -> int:
        raise error

    async def work() -> dict[int, int]:
        down = {2: fails(ConnectionResetError()), 3: fails(TimeoutError()), 4: fails(ClusterUnreachable("down"))}
        found = await _responses({1: responds(7), **down, 5: asyncio.sleep(60, 8)})
        with pytest.raises(ZeroDivisionError):
            await _responses({1: responds(7), 2: fails(ZeroDivisionError())})
        assert await _responses({}) == {}
        assert len(asyncio.all_tasks()) == 1
        return found

    assert asyncio.run(work()) == {1: 7}


def test_when_no_replica_responds_the_cluster_is_looked_for_again() -> None:
    async def work() -> dict[Any, str]:
        records, failures = made(), dict[Any, str]()
        pending = [RecordVerification(ORDERS, records._requirement("orders"), 1, 0.0)]
        records._cluster.record(1, "127.0.0.1", 1)
        records._replicas[ORDERS] = frozenset({1})

        async def sample(*_: object) -> None:
            raise ConnectionResetError

        records._sample = sample  # type: ignore[assignment, method-assign]
        await records._observe_isr(pending, failures)
        assert (failures, records._replicas, records._cluster.by_id) == ({}, {}, {})
        await records._observe_isr(pending, failures)
        return failures

    assert asyncio.run(work())[ORDERS].startswith("no broker responds: ")


def test_the_isr_is_read_before_a_record_unless_it_was_read_within_a_second() -> None:
    async def work() -> list[int]:
        records, loop, clock, read = made(), asyncio.get_running_loop(), [100.0], list[str]()

        async def any_broker() -> tuple[int, None]:
            return 1, None

        async def sample(_broker: int, topics: frozenset[str]) -> Sample:
            [topic] = topics
            read.append(topic)
            return Sample(1, clock[0], topics=topics, racks=RACKS, partitions={(topic, 0): IN_TWO_RACKS})

        records._cluster.any_broker = any_broker  # type: ignore[assignment, method-assign]
        records._sample = sample  # type: ignore[assignment, method-assign]
        counts = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(loop, "time", lambda: clock[0])
            for seconds, topic in ((0.0, "orders"), (0.9, "orders"), (0.0, "payments"), (0.2, "orders")):
                clock[0] += seconds
                assert await records.before(topic, 0) is None
                counts.append(len(read))
        return counts

    assert asyncio.run(work()) == [1, 1, 2, 3]


def test_an_isr_that_cannot_be_read_before_a_record_is_an_error() -> None:
    async def work() -> None:
        records = made()

        async def any_broker() -> tuple[int, None]:
            return 1, None

        async def sample(*_: object) -> None:
            raise ConnectionResetError("closed")

        records._cluster.any_broker = any_broker  # type: ignore[assignment, method-assign]
        records._sample = sample  # type: ignore[assignment, method-assign]
        with pytest.raises(ClusterUnreachable, match="the ISR of topic orders cannot be read: closed"):
            await records.before("orders", 0)

    asyncio.run(work())


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (29, "broker 2 refuses to let its log be read: error 29; grant READ on the topic"),
        (1, "broker 2 refuses to let its log be read: error 1"),
    ],
)
def test_a_log_that_may_not_be_read_is_named_in_the_error(code: int, words: str) -> None:
    async def work() -> Exception | None:
        records, failures = made(), dict[Any, str]()
        record = RecordVerification(ORDERS, records._requirement("orders"), 1, 0.0)
        log_read = LogRead(ORDERS, None, 0)

        async def read(replica: Any, reads: Any) -> Any:
            return LogEnds(replica, 0.0, reads, {}), {log_read: code}

        records._read = read  # type: ignore[method-assign]
        record.reads = {BrokerId(2): (0.0, log_read)}
        await records._observe_logs([record], failures)
        record.expire()
        assert ";" not in str(verifier._error(record, None))
        return verifier._error(record, failures[ORDERS])

    assert str(asyncio.run(work())).endswith(f"; {words}")


def test_closing_the_thread_ends_what_is_verified_and_the_connections() -> None:
    records, reported, closed, ended = made(), list[object](), list[bool](), list[bool]()
    close, begun = records.close, threading.Event()

    def close_and_record() -> None:
        closed.append(True)
        close()

    records.close = close_and_record  # type: ignore[method-assign]
    thread = VerifierThread(records)

    async def never(_: object) -> dict[Any, Any]:
        begun.set()
        try:
            await asyncio.sleep(3600)
        finally:
            for _turn in range(1_000):
                await asyncio.sleep(0)
            ended.append(True)
        return {}

    setattr(records, "verify", never)  # noqa: B010 - as above
    assert thread._thread.name == "rackspan-guard"
    thread.when_verified("orders", 0, 1, reported.append)
    assert begun.wait(WITHIN_SECONDS)
    thread.close()
    assert ended == [True]
    assert (reported, closed, thread._thread.is_alive(), thread._loop.is_closed()) == ([], [True], False, True)


@pytest.mark.parametrize(("value", "checked"), [("none", False), ("https", True), ("HTTPS", True)])
def test_the_guard_checks_host_names_as_librdkafka_is_set_to(
    monkeypatch: pytest.MonkeyPatch, value: str, checked: bool
) -> None:
    settings: list[dict[str, Any]] = []
    monkeypatch.setattr(logins, "login_of", settings.append)
    logins.librdkafka_login({"security.protocol": "ssl", "ssl.endpoint.identification.algorithm": value})
    assert settings[0]["security_protocol"] == "SSL"
    assert settings[0]["ssl_context"].check_hostname is checked


def test_every_setting_of_a_login_has_its_name_of_kafka_python(monkeypatch: pytest.MonkeyPatch) -> None:
    settings: list[dict[str, Any]] = []
    monkeypatch.setattr(logins, "login_of", settings.append)
    given = {"sasl.mechanisms": "SCRAM-SHA-512", "sasl.username": "u", "sasl.password": "p", "client.id": "x"}
    logins.librdkafka_login({"security.protocol": "sasl_plaintext", **given})
    assert settings == [
        {
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "SCRAM-SHA-512",
            "sasl_plain_username": "u",
            "sasl_plain_password": "p",
        }
    ]


def test_a_producer_of_aiokafka_delivers_before_its_connections_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []

    async def stop() -> None:
        steps.append("client stopped")

    async def work() -> None:
        producer = GuardedAIOKafkaProducer({"orders": 2}, bootstrap_servers="127.0.0.1:1")
        monkeypatch.setattr(producer._producer, "stop", stop)
        monkeypatch.setattr(producer._records, "close", lambda: steps.append("connections closed"))
        await producer.stop()
        monkeypatch.undo()
        producer._records.close()
        producer._producer._closed = True  # It was never started.

    asyncio.run(work())
    assert steps == ["client stopped", "connections closed"]


@pytest.mark.parametrize("acks", ["all", "-1", -1])
def test_a_producer_waits_for_all_replicas_whichever_way_that_is_written(acks: object) -> None:
    async def work() -> object:
        producer = GuardedAIOKafkaProducer({"orders": 2}, bootstrap_servers="127.0.0.1:1", acks=acks)
        producer._records.close()
        producer._producer._closed = True
        return producer._producer._sender._acks

    assert asyncio.run(work()) == -1
    for key in ("acks", "request.required.acks"):
        verifier.refuse_weak_acks({key: acks}, "acks", "request.required.acks")
        with pytest.raises(UsageError, match=f"{key} is 1, and min.insync.racks applies to acks=all only"):
            verifier.refuse_weak_acks({key: 1}, "acks", "request.required.acks")


def test_only_replicas_are_read_once_they_are_known() -> None:
    async def work() -> list[list[int]]:
        records, rounds = made(), list[list[int]]()

        async def sample(broker: int, topics: frozenset[str]) -> Sample:
            rounds[-1].append(broker)
            return Sample(broker, 0.0, racks=RACKS, topics=topics, partitions={})

        records._sample = sample  # type: ignore[method-assign]
        for broker in (1, 2, 3):
            records._cluster.record(broker, "127.0.0.1", broker)
        for replicas in (None, frozenset({2})):
            if replicas is not None:
                records._replicas[ORDERS] = replicas
            rounds.append([])
            await records._observe_isr([RecordVerification(ORDERS, records._requirement("orders"), 1, 0.0)], {})
        return [sorted(brokers) for brokers in rounds]

    assert asyncio.run(work()) == [[1, 2, 3], [2]]


def test_a_sample_names_the_brokers_and_replicas_of_its_topics(monkeypatch: pytest.MonkeyPatch) -> None:
    brokers = [MetadataResponseBroker(node_id=broker, host="127.0.0.1", port=broker) for broker in (1, 2)]
    state = MetadataResponsePartition(
        partition_index=3, leader_id=2, leader_epoch=5, replica_nodes=(2, 7), isr_nodes=(2,)
    )
    topics = [MetadataResponseTopic(name="orders", partitions=[state])]

    async def metadata(_connection: object, requested: frozenset[str]) -> MetadataResponseData:
        assert requested == {"orders"}
        return MetadataResponseData(brokers=brokers, topics=topics)

    async def work() -> None:
        records = made()
        monkeypatch.setattr(records._cluster, "connection", lambda _broker: asyncio.sleep(0))
        monkeypatch.setattr(verifier, "read_metadata", metadata)
        sample = await records._sample(1, frozenset({"orders"}))
        assert sample.partitions == {("orders", 3): SampledPartition(2, 5, (BrokerId(2),), 2)}
        assert {broker: (at.host, at.port) for broker, at in records._cluster.by_id.items()} == {
            1: ("127.0.0.1", 1),
            2: ("127.0.0.1", 2),
        }
        assert records._replicas == {("orders", 3): {2, 7}}

    asyncio.run(work())


def test_a_record_of_kafka_python_is_verified_if_its_topic_requires_it(monkeypatch: pytest.MonkeyPatch) -> None:
    verified: list[str] = []

    class Sent:
        def __init__(self, topic: str) -> None:
            self._topic = topic

        def add_errback(self, _: Any) -> None:
            """It does not fail."""

        def add_callback(self, callback: Any) -> None:
            callback(SimpleNamespace(topic=self._topic, partition=0, offset=5))

    class Client:
        def __init__(self, **_: Any) -> None:
            """No connection."""

        def send(self, topic: str, **_: Any) -> Sent:
            return Sent(topic)

    monkeypatch.setattr(kafka_python, "KafkaProducer", Client)
    producer = GuardedKafkaProducer({"orders": 2}, bootstrap_servers="127.0.0.1:1")

    def when_verified(topic: str, _partition: int, _offset: int, report: Any) -> None:
        verified.append(topic)
        report(None)

    monkeypatch.setattr(producer._verifier, "when_verified", when_verified)
    monkeypatch.setattr(producer._verifier, "when_read", lambda _topic, _partition, send: send(None))
    assert [producer.send(topic).result(WITHIN_SECONDS).topic for topic in ("payments", "orders")] == [
        "payments",
        "orders",
    ]
    assert verified == ["orders"]
    producer._verifier.close()


async def started_before(broker: ProvingBroker, racks: int, start: Callable[[RecordVerifier], Awaitable[None]]) -> None:
    """Errors: those of the start of a verifier before this broker, whose metadata has no other."""
    await broker.start()
    broker.reported = [MetadataResponseBroker(node_id=1, host="127.0.0.1", port=broker.port)]
    try:
        await start(RecordVerifier(f"127.0.0.1:{broker.port}", Login(), {"orders": racks}))
    finally:
        await broker.close()


def unprovable() -> ProvingBroker:
    broker = ProvingBroker(1, release=(4, 3))
    broker.handles[ApiKey.DESCRIBE_CONFIGS] = configs_of(lambda _: CLUSTER_AUTHORIZATION_FAILED)
    return broker


def test_a_verifier_starts_where_brokers_prove_themselves_or_no_log_is_read() -> None:
    asyncio.run(started_before(ProvingBroker(1), 2, lambda records: records.start()))
    none_needed = unprovable()
    asyncio.run(started_before(none_needed, 1, lambda records: records.start()))
    assert none_needed.connections == 0
    with pytest.raises(
        UnprovableBroker, match=r"^broker 1 gives no proof which one it is, so that its log cannot count"
    ):
        asyncio.run(started_before(unprovable(), 2, lambda records: records.start()))


def test_a_verification_ends_where_a_broker_can_give_no_proof() -> None:
    """It began again at every pause until its time was over, with connections of its own each time."""

    async def verified() -> tuple[str, int]:
        broker = unprovable()
        await broker.start()
        broker.reported = [MetadataResponseBroker(node_id=1, host="127.0.0.1", port=broker.port)]
        records = RecordVerifier(f"127.0.0.1:{broker.port}", Login(), {"orders": 2}, seconds=WITHIN_SECONDS)
        errors = await records.verify({ORDERS: 5})
        records.close()
        await broker.close()
        return str(errors[ORDERS]), broker.connections

    message, connections = asyncio.run(verified())
    assert "broker 1 gives no proof which one it is" in message
    # One to the bootstrap server, and one that gave no proof.
    assert connections == 2


def misplaced() -> ProvingBroker:
    """It responds at the address of broker 1."""
    return ProvingBroker(2, release=(4, 3))


def test_a_verifier_starts_after_the_proofs_of_three_brokers_of_many() -> None:
    """Each task of a job starts one: every broker would get a connection of every task."""

    async def opened() -> int:
        brokers = [ProvingBroker(number) for number in range(1, 9)]
        for broker in brokers:
            await broker.start()
        reported = [MetadataResponseBroker(node_id=each.broker, host="127.0.0.1", port=each.port) for each in brokers]
        for broker in brokers:
            broker.reported = reported
        records = RecordVerifier(f"127.0.0.1:{brokers[0].port}", Login(), {"orders": 2})
        await records.start()
        usable = records._cluster._brokers.usable()
        records.close()
        for broker in brokers:
            await broker.close()
        return len(usable)

    assert asyncio.run(opened()) == 3


@pytest.mark.parametrize(("broker", "error"), [(unprovable, UnprovableBroker), (misplaced, OtherBroker)])
def test_the_thread_of_a_verifier_that_cannot_start_ends(
    broker: Callable[[], ProvingBroker], error: type[Exception]
) -> None:
    made_threads: list[VerifierThread] = []

    async def start(records: RecordVerifier) -> None:
        made_threads.append(VerifierThread(records))
        await asyncio.to_thread(made_threads[0].start)

    with pytest.raises(error, match=r", or set broker\.identity "):
        asyncio.run(started_before(broker(), 2, start))
    assert not made_threads[0]._thread.is_alive()


def test_a_record_that_comes_while_the_last_one_has_just_been_sent_is_sent_once() -> None:
    class Read:
        async def before(self, _topic: str, _partition: int | None) -> None:
            await asyncio.sleep(0)

    sent: list[str] = []
    thread = VerifierThread(cast("Any", Read()))

    def send_second(_error: Exception | None) -> bool:
        sent.append("second")
        return True

    def send_first(_error: Exception | None) -> bool:
        sent.append("first")
        thread._loop.call_soon(thread._queue, "orders", None, send_second)
        return True

    thread.when_read("orders", None, send_first)
    eventually(lambda: "second" in sent and not thread._sending, "nothing is being sent any more")
    thread._loop.call_soon_threadsafe(thread._loop.stop)
    assert sent == ["first", "second"]
