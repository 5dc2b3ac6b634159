"""Guarded producers of three libraries before the embedded cluster, which itself requires nothing of racks."""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import pytest
from kafka import KafkaConsumer

from rackspan.cluster import EmbeddedCluster
from rackspan.errors import NotEnoughRacks, NotEnoughRacksAfterAppend, UsageError
from rackspan.gateway.guard import GuardedAIOKafkaProducer, GuardedKafkaProducer, GuardedProducer


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(racks=3, brokers=3, seed=5) as cluster:
        yield cluster


def confluent(cluster: EmbeddedCluster, topic: str, meanwhile: Callable[[], None]) -> Exception | None:
    producer = GuardedProducer(
        {"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0}, {topic: 2}, settle_seconds=0.02
    )
    errors: list[Any] = []
    judge = producer._report

    def judge_later(*arguments: Any) -> None:
        meanwhile()
        judge(*arguments)

    producer._report = judge_later  # type: ignore[method-assign, assignment]
    try:
        producer.produce(topic, b"x", on_delivery=lambda error, _: errors.append(error))
        assert producer.flush(20) == 0
    except NotEnoughRacks as error:
        return error
    finally:
        producer.close()
    result: Exception | None = errors[0]
    return result


def kafka_python(cluster: EmbeddedCluster, topic: str, meanwhile: Callable[[], None]) -> BaseException | None:
    # Its clients take long to leave a lost broker for the next address; broker 1 is never lost.
    producer = GuardedKafkaProducer({topic: 2}, settle_seconds=0.02, bootstrap_servers=cluster.address(1))
    read = producer._read_after

    def read_later(name: str, not_before: float) -> Any:
        meanwhile()
        return read(name, not_before)

    producer._read_after = read_later  # type: ignore[method-assign, assignment]
    try:
        return producer.send(topic, b"x").exception(20)
    except NotEnoughRacks as error:
        return error
    finally:
        producer.close()


def aiokafka(cluster: EmbeddedCluster, topic: str, meanwhile: Callable[[], None]) -> Exception | None:
    async def work() -> Exception | None:
        # Its admin client takes any broker, a lost one too, and waits for it this long: 40 s by default.
        producer = GuardedAIOKafkaProducer(
            {topic: 2}, settle_seconds=0.02, bootstrap_servers=cluster.bootstrap_servers, request_timeout_ms=2_000
        )
        await producer.start()
        inner = producer._producer.send_and_wait

        async def then_meanwhile(*arguments: Any, **named: Any) -> Any:
            metadata = await inner(*arguments, **named)
            await asyncio.to_thread(meanwhile)
            return metadata

        producer._producer.send_and_wait = then_meanwhile
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
        error = library(cluster, topic, lose)
    assert isinstance(error, NotEnoughRacksAfterAppend)
    # Weaker than a broker that holds the high watermark back: readers see what was refused.
    assert records(cluster, topic) == 1


@pytest.mark.parametrize("library", [confluent, kafka_python])
def test_a_record_whose_verification_fails_unexpectedly_is_reported(library: Any, cluster: EmbeddedCluster) -> None:
    def fail() -> None:
        raise RuntimeError("no client raises this")

    assert isinstance(library(cluster, new_topic(cluster), fail), NotEnoughRacksAfterAppend)


def records(cluster: EmbeddedCluster, topic: str) -> int:
    consumer = KafkaConsumer(
        topic, bootstrap_servers=cluster.bootstrap_servers, auto_offset_reset="earliest", consumer_timeout_ms=500
    )
    count = len(list(consumer))
    consumer.close()
    return count


@pytest.mark.parametrize("acks", [0, 1, "1"])
def test_weak_acks_are_refused(acks: object) -> None:
    with pytest.raises(UsageError, match="holds for acks=all alone"):
        GuardedProducer({"bootstrap.servers": "127.0.0.1:1", "acks": acks}, {})
