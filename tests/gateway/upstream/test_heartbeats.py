"""Registrations of gateways, before brokers that refuse them, and between gateways of an embedded cluster."""

import asyncio
import json
import logging
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from rackspan.client.login import Login
from rackspan.cluster import EmbeddedCluster
from rackspan.errors import UsageError
from rackspan.gateway.config import parse_config
from rackspan.gateway.confirm import confirm
from rackspan.gateway.core.acknowledgement.guard import AcknowledgementMode
from rackspan.gateway.core.gateways import registrations
from rackspan.gateway.core.gateways.differences import differences
from rackspan.gateway.metrics import _readiness
from rackspan.gateway.upstream import heartbeats
from rackspan.gateway.upstream.cluster import UpstreamCluster
from rackspan.gateway.upstream.config_topic import ConfigTopic
from rackspan.gateway.upstream.heartbeats import Heartbeats
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.kafka_bytes.record_batch import read_records
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.metadata import MetadataResponseData, MetadataResponseTopic
from tests.client.fake_broker import FakeBroker, Handle
from tests.gateway.core.gateways.test_differences import key_of, written
from tests.gateway.running import RunningGateway, document, running
from tests.gateway.test_metrics import values
from tests.gateway.upstream.test_config_topic import CONFIGS, Leader, brokers, cluster_of, followed, until
from tests.gateway.upstream.test_config_writer import refusing
from tests.waiting import WITHIN_SECONDS, eventually

NOT_ENOUGH_REPLICAS = 19
TOPIC = "__rackspan_configs"
OFF, VERIFIED = AcknowledgementMode.OFF, AcknowledgementMode.VERIFIED


async def responsive() -> list[int]:
    return []


@asynccontextmanager
async def registering(
    log: Leader, mode: AcknowledgementMode = VERIFIED
) -> AsyncIterator[tuple[Heartbeats, ConfigTopic, FakeBroker]]:
    async with followed(log) as (topic, _, leader):
        beats = Heartbeats(CONFIGS, "gw", mode, topic._cluster, Login())
        # The leader alone is there to respond.
        beats._writer.unresponsive = responsive  # type: ignore[method-assign]
        try:
            yield beats, topic, leader
        finally:
            beats.close()


def records_of(log: Leader) -> list[tuple[Any, Any]]:
    """Keys and values in the log, parsed."""
    found = [record for batch in log.batches for _, record in read_records(batch)]
    return [(json.loads(key or b""), None if value is None else json.loads(value)) for key, value in found]


def test_a_gateway_registers_until_its_end_and_leaves_a_tombstone() -> None:
    async def scenario() -> None:
        log = Leader()
        async with registering(log) as (beats, topic, _):
            assert await beats.register()
            assert await beats.register()
            await until(lambda: list(topic.gateways.gateways) == ["gw"])
            await beats.end()
            assert await beats.register()
            await until(lambda: not topic.gateways.gateways)
        (key, first), (_, second), (gone, nothing) = records_of(log)
        assert key == gone == {"type": "gateway", "name": "gw", "optional": True}
        assert nothing is None, "and nothing is written after the end"
        assert (first["mode"], first["lease_seconds"], first["incarnation_id"]) == (
            "verified",
            3.0,
            second["incarnation_id"],
        )
        assert 0 <= first["uptime_seconds"] <= second["uptime_seconds"]

    asyncio.run(scenario())


def test_while_a_replica_in_sync_does_not_respond_nothing_is_registered() -> None:
    """The record would not be committed until the ISR is without it, and end every gateway's lease meanwhile: it could be a value."""

    async def scenario() -> None:
        log = Leader()
        async with followed(log) as (topic, _, _leader):
            beats = Heartbeats(CONFIGS, "gw", VERIFIED, topic._cluster, Login())
            assert not await beats.register()
            assert (beats.failures, log.batches) == (1, [])
            beats.close()

    asyncio.run(scenario())


def test_a_gateway_that_has_not_registered_removes_nothing() -> None:
    async def scenario() -> None:
        log = Leader()
        async with registering(log) as (beats, _, _):
            await beats.end()
        assert log.batches == []

    asyncio.run(scenario())


def test_a_registration_that_is_under_way_at_the_end_is_removed_too() -> None:
    async def scenario() -> None:
        log, begun, go_on = Leader(), asyncio.Event(), asyncio.Event()

        async def produce(request: Any) -> Any:
            begun.set()
            await go_on.wait()
            return await log.produce(request)

        async with registering(log) as (beats, _, leader):
            leader.handles[ApiKey.PRODUCE] = produce
            registration = asyncio.create_task(beats.register())
            await begun.wait()
            end = asyncio.create_task(beats.end())
            await asyncio.sleep(0)
            go_on.set()
            await end
            assert await registration
        assert [value is None for _, value in records_of(log)] == [False, True]

    asyncio.run(scenario())


def test_a_registration_that_fails_is_counted_and_a_warning_once_it_is_silence(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, heartbeats.__name__)

    async def scenario() -> None:
        log = Leader()
        async with registering(log) as (beats, _, leader):
            leader.handles[ApiKey.PRODUCE] = refusing(log, *[(NOT_ENOUGH_REPLICAS, "too few")] * 2)
            assert [await beats.register(), await beats.register()] == [False, False]
            assert (beats.failures, list(beats.warnings())) == (2, [])
            beats._registered_at -= 91
            (warning,) = beats.warnings()
            assert "other gateways cannot see its mode and release" in warning
            assert "which of them are silent: too few; look at" in warning
            assert await beats.register()
            beats._registered_at -= 91
            assert (beats.failures, list(beats.warnings())) == (2, [])

    asyncio.run(scenario())
    assert [line for line in caplog.messages if "register" in line] == [
        "this gateway could not register in the config topic configs: too few",
        "this gateway registers in the config topic configs again",
    ]


def test_a_registration_without_a_response_holds_up_no_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeats, "WRITE_SECONDS", 2 * WITHIN_SECONDS)
    monkeypatch.setattr("rackspan.gateway.upstream.config_writer._PRODUCE_MS", int(2000 * WITHIN_SECONDS))

    async def scenario() -> None:
        log, waits = Leader(), asyncio.Event()

        async def produce(request: Any) -> Any:
            if b"gateway" in bytes(request.topic_data[0].partition_data[0].records):
                waits.set()
                await asyncio.Event().wait()
            return await log.produce(request)

        async with registering(log) as (beats, topic, leader):
            leader.handles[ApiKey.PRODUCE] = produce
            registration = asyncio.create_task(beats.register())
            await waits.wait()
            await topic.write(b"a", b"1")
            assert not registration.done()
            registration.cancel()

    asyncio.run(scenario())


def missing() -> Handle:
    async def respond(_request: Any) -> MetadataResponseData:
        topic = MetadataResponseTopic(name=CONFIGS, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return MetadataResponseData(topics=[topic])

    return respond


@pytest.mark.parametrize(("mode", "failures"), [(OFF, 0), (VERIFIED, 1)])
def test_without_a_config_topic_nobody_is_there_to_whom_a_gateway_in_mode_off_is_named(
    mode: AcknowledgementMode, failures: int
) -> None:
    async def scenario() -> None:
        async with brokers(1) as (broker,):
            broker.handles[ApiKey.METADATA] = missing()
            cluster = cluster_of(broker.port)
            beats = Heartbeats(CONFIGS, "gw", mode, cluster, Login())
            assert await beats.register() is (mode is OFF)
            assert beats.failures == failures
            assert ApiKey.CREATE_TOPICS not in broker.received
            beats.close()
            cluster.close()

    asyncio.run(scenario())


def test_a_new_warning_is_logged_once_and_again_after_it_was_gone(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(heartbeats, "HEARTBEAT_SECONDS", 0)
    found = iter([["old"], ["old", "b is off"], ["old", "b is off"], ["old"], ["b is off"]])
    done = asyncio.Event()

    def warnings() -> list[str]:
        shown = next(found, None)
        if shown is None:
            done.set()
        return shown or ["b is off"]

    async def scenario() -> None:
        async with registering(Leader()) as (beats, _, _):
            following = asyncio.create_task(beats.follow(warnings))
            await done.wait()
            following.cancel()

    asyncio.run(scenario())
    assert [entry.getMessage() for entry in caplog.records if entry.name == heartbeats.__name__] == ["b is off"] * 2


def kept(servers: str) -> dict[bytes, list[bytes | None]]:
    """The values of each key in the config topic, by a client of Kafka."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "t", "enable.partition.eof": False, "log_level": 0})
    partition = TopicPartition(TOPIC, 0, 0)
    _, end = consumer.get_watermark_offsets(partition, WITHIN_SECONDS)
    consumer.assign([partition])
    found: dict[bytes, list[bytes | None]] = {}
    offset = 0
    while offset < end:
        message = consumer.poll(1)
        if message is not None and message.error() is None:
            offset = (message.offset() or 0) + 1
            found.setdefault(message.key() or b"", []).append(message.value())
    consumer.close()
    return found


@pytest.fixture
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    """Periods of 0.3 s."""
    monkeypatch.setattr(heartbeats, "HEARTBEAT_SECONDS", 0.3)
    monkeypatch.setattr(registrations, "HEARTBEAT_SECONDS", 0.3)


@pytest.fixture
def fresh() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(racks=3, brokers=3) as cluster:
        yield cluster


def readiness(gateway: RunningGateway) -> tuple[int, str]:
    async def read() -> tuple[int, str]:
        return _readiness(gateway.gateway)

    return gateway.run(read())


def warned(gateway: RunningGateway, words: str) -> Callable[[], bool]:
    return lambda: words in readiness(gateway)[1]


@pytest.mark.slow
def test_a_forgotten_gateway_is_named_by_the_other_one(fresh: EmbeddedCluster, fast: None) -> None:
    servers, off = fresh.bootstrap_servers, {"gateway.id": "forgotten", "acknowledgements.mode": "off"}
    with running(servers, **{"gateway.id": "guarding"}) as guarding:
        named = "rackspan_gateway_differing_gateways forgotten,"
        assert not any(name.startswith(named) for name in values(guarding))
        with running(servers, **off) as forgotten:
            eventually(warned(guarding, "warning: gateway forgotten is in mode off"), "it is in mode off")
            assert readiness(guarding)[0] == 200
            both = {f"{named}mode": 1, "rackspan_gateway_registered_gateways": 2}
            # A busy machine may take longer than a registration lasts here.
            eventually(lambda: both.items() <= values(guarding).items(), "both are registered")
            assert "forgotten" not in readiness(forgotten)[1]
            forgotten.run(forgotten.gateway.drain(0))
        eventually(lambda: not warned(guarding, "forgotten")(), "it has ended")
        assert values(guarding)["rackspan_gateway_registered_gateways"] == 1
        # One that is killed leaves its registration behind.
        with running(servers, **off):
            eventually(warned(guarding, "forgotten is in mode off"), "it is there again")
        eventually(warned(guarding, "gateway forgotten has not registered for 3 periods"), "it is silent")
        assert values(guarding)[f"{named}silent"] == 1
        config = parse_config(document(servers))
        content = asyncio.run(confirm(config, ["forgotten"], apply=False))
        assert (content.confirmed, content.gateways["forgotten"].registration is not None) == (False, True)
        assert warned(guarding, "forgotten")()
        asyncio.run(confirm(config, ["forgotten"], apply=True))
        eventually(lambda: readiness(guarding) == (200, "ready\n"), "it is removed, and the topic is confirmed")


@pytest.mark.slow
def test_garbled_and_later_records_in_the_topic_stop_nobody(fresh: EmbeddedCluster) -> None:
    servers = fresh.bootstrap_servers
    producer = Producer({"bootstrap.servers": servers, "log_level": 0})
    with running(servers, **{"gateway.id": "guarding"}) as guarding:
        later = json.dumps({"type": "later", "optional": True}).encode()
        for key, value in (
            (key_of("later"), written("later", 0, version=2)[1]),
            (key_of("garbled"), b"\xff{"),
            (key_of("old"), written("old", 0, release="0.1.0")[1]),
            (later, b"\x00"),
            (key_of("not a name"), b""),
        ):
            producer.produce(TOPIC, value, key)
        assert producer.flush(WITHIN_SECONDS) == 0
        eventually(warned(guarding, "gateway old is of release 0.1.0"), "the older release is named")
        status, page = readiness(guarding)
        assert status == 200
        for name in ("later", "garbled"):
            assert f"warning: gateway {name} has a registration that cannot be read here" in page
        found = values(guarding)
        assert (found["rackspan_gateway_unreadable_records"], found["rackspan_gateway_config_topic_current"]) == (0, 1)


@pytest.mark.slow
def test_a_clock_that_steps_makes_nobody_silent(fresh: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """The wall clock of every gateway jumps a year to and fro with each record."""
    monkeypatch.setattr(heartbeats, "HEARTBEAT_SECONDS", 0.1)
    steps, real = [0], time.time_ns
    year_ns = 366 * 86_400 * 10**9

    def stepping() -> int:
        steps[0] += 1
        return real() + (year_ns if steps[0] % 2 else -year_ns)

    monkeypatch.setattr("rackspan.gateway.upstream.config_writer.time.time_ns", stepping)
    servers = fresh.bootstrap_servers
    with running(servers, **{"gateway.id": "a"}) as one, running(servers, **{"gateway.id": "b"}) as other:
        eventually(lambda: len(kept(servers).get(key_of_format("a"), [])) > 8, "a has registered for a while")
        for gateway in (one, other):
            assert "has not registered" not in readiness(gateway)[1]
        assert steps[0] > 16


def key_of_format(name: str) -> bytes:
    return f'{{"name": "{name}", "optional": true, "type": "gateway"}}'.encode()


@pytest.mark.slow
def test_a_hundred_restarts_leave_one_key_in_the_topic(fresh: EmbeddedCluster) -> None:
    servers = fresh.bootstrap_servers

    async def restarts() -> ConfigTopic:
        cluster = UpstreamCluster(servers, Login(), Random(1))
        await cluster.refresh()
        topic = ConfigTopic(TOPIC, cluster, Login(), lambda _key, _value: None)
        await topic.start()
        for number in range(100):
            beats = Heartbeats(TOPIC, "gw", VERIFIED, cluster, Login())
            assert await beats.register()
            if number % 3 == 0:
                await beats.end()
            beats.close()
        reader = ConfigTopic(TOPIC, cluster, Login(), lambda _key, _value: None)
        await reader.read()
        reader.close()
        topic.close()
        cluster.close()
        return reader

    reader = asyncio.run(restarts())
    found = kept(servers)
    assert [*found] == [key_of_format("gw")], "compaction keeps one record of each key"
    assert len(found[key_of_format("gw")]) == 100 + 34
    assert differences(reader.gateways.gateways, "gw", "0.0", VERIFIED, 3.0) == [], "a restart is no second gateway"


@pytest.mark.slow
def test_a_start_that_created_the_config_topic_and_failed_is_remembered(fresh: EmbeddedCluster) -> None:
    """A port is in use: the first start ends after it has created the topic. The second one finds it."""
    servers = fresh.bootstrap_servers
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(UsageError, match=str(port)), running(servers, brokers={"1": {"port": port}}):
            pass
    assert TOPIC in AdminClient({"bootstrap.servers": servers}).list_topics(timeout=WITHIN_SECONDS).topics
    assert kept(servers) == {}, "a gateway that serves nobody is not registered"
    for _ in range(2):
        with running(servers) as second:
            status, page = readiness(second)
            assert status == 200
            assert (
                "warning: the config topic __rackspan_configs was created, and its values of min.insync.racks are not confirmed"
                in page
            )
            assert values(second)["rackspan_gateway_config_topic_created"] == 1
    asyncio.run(confirm(parse_config(document(servers)), [], apply=True))
    with running(servers) as third:
        assert "are not confirmed" not in readiness(third)[1]
        assert values(third)["rackspan_gateway_config_topic_created"] == 0
