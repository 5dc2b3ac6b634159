"""The six system tests of min.insync.racks (Test Plan), by librdkafka and by Kafka's own producer and kafka-configs.sh.

They know what they test as a `Subject`: the embedded cluster, and a gateway before it and before Apache Kafka.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from uuid import uuid4

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from rackspan.cluster import EmbeddedCluster
from rackspan.errors import MissingRequirement
from rackspan.java import find_java
from rackspan.kafka_process import KafkaCluster
from rackspan.kafka_process.release.jars import resolve_jars
from rackspan.kafka_process.release.runtime import KafkaRuntime
from rackspan.kafka_process.release.versions import KafkaVersion
from tests.compat.min_insync_racks import Client, Delivery, JavaProducer, Librdkafka, Subject
from tests.gateway.running import RunningGateway, running
from tests.kafka_fixtures import started
from tests.kafka_versions import KAFKA, OLDEST
from tests.waiting import WITHIN_SECONDS, eventually

NOT_ENOUGH_REPLICAS = frozenset({"NOT_ENOUGH_REPLICAS", "NotEnoughReplicasException"})
AFTER_APPEND = frozenset({"NOT_ENOUGH_REPLICAS_AFTER_APPEND", "NotEnoughReplicasAfterAppendException"})
"""As librdkafka names the error, and as Java does."""


class Embedded:
    """The embedded cluster, as a subject."""

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self._cluster = cluster
        self.bootstrap_servers = cluster.bootstrap_servers
        self.lose_rack = cluster.lose_rack
        self.restore_rack = cluster.restore_rack

    def wait_for_isr(self) -> None:
        self._cluster.wait_for_isr(seconds=WITHIN_SECONDS)

    def rack_check_failures(self) -> int:
        return sum(one["rackspan_rack_check_failures_total"] for one in self._cluster.metrics().values())


class BehindGateway(Embedded):
    """A gateway before the embedded cluster, whose own min.insync.racks is never set."""

    def __init__(self, cluster: EmbeddedCluster, gateway: RunningGateway) -> None:
        super().__init__(cluster)
        self.bootstrap_servers = gateway.bootstrap_servers
        self._gateway = gateway
        self.rack_check_failures = gateway.rack_check_failures  # type: ignore[method-assign]

    def wait_for_isr(self) -> None:
        super().wait_for_isr()
        self._gateway.wait_for_isr()


class KafkaBehindGateway:
    """A gateway before Apache Kafka."""

    def __init__(self, cluster: KafkaCluster, gateway: RunningGateway) -> None:
        self._cluster = cluster
        self._gateway = gateway
        self.bootstrap_servers = gateway.bootstrap_servers
        self.rack_check_failures = gateway.rack_check_failures
        self._admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})

    def lose_rack(self, rack: str) -> None:
        lost = set(self._cluster.nodes_in(rack))
        self._cluster.lose_rack(rack)
        eventually(lambda: self._each(lambda _, isr: not lost & set(isr)), f"{rack} is out of every ISR")

    def restore_rack(self, rack: str) -> None:
        self._cluster.restore_rack(rack)

    def wait_for_isr(self) -> None:
        eventually(lambda: self._each(lambda replicas, isr: len(isr) == len(replicas)), "every ISR is whole")
        self._gateway.wait_for_isr()

    def _each(self, holds: Callable[[list[int], list[int]], bool]) -> bool:
        """Whether that holds for replicas and ISR of each partition, by a broker that responds: one that was just killed does not."""
        try:
            listed = self._admin.list_topics(timeout=3)  # short: the next request goes to another broker
        except KafkaException:
            return False
        return all(
            holds(one.replicas, one.isrs) for topic in listed.topics.values() for one in topic.partitions.values()
        )


KAFKA_CONFIG = {
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    "auto.create.topics.enable": "false",
    "offsets.topic.num.partitions": "2",
}


@contextmanager
def kafka_subject(version: str) -> Iterator[Subject]:
    """Three brokers in three racks; the controller is in none of them."""
    cluster = KafkaCluster(
        racks=("r1", "r2", "r3"), brokers=3, controllers={101: None}, version=version, config=KAFKA_CONFIG
    )
    with contextmanager(started)(cluster), running(cluster.bootstrap_servers) as gateway:
        yield KafkaBehindGateway(cluster, gateway)


EMBEDDED, GATEWAY = "embedded", "gateway"
CASES = [
    (EMBEDDED, "librdkafka"),
    pytest.param((EMBEDDED, "java"), marks=pytest.mark.java),
    (GATEWAY, "librdkafka"),
    pytest.param((GATEWAY, "java"), marks=pytest.mark.java),
    pytest.param((KAFKA, "librdkafka"), marks=pytest.mark.kafka),
    # The same through Kafka's own producer and tools takes three minutes each.
    pytest.param((KAFKA, "java"), marks=[pytest.mark.kafka, pytest.mark.soak]),
    pytest.param((OLDEST, "librdkafka"), marks=[pytest.mark.kafka, pytest.mark.soak]),
    pytest.param((OLDEST, "java"), marks=[pytest.mark.kafka, pytest.mark.soak]),
]
"""Subjects, a Kafka version for a gateway before it, with each client."""


@pytest.fixture(scope="module", params=CASES, ids="-".join)
def case(request: pytest.FixtureRequest) -> tuple[str, str]:
    subject, client = request.param
    return subject, client


@pytest.fixture(scope="module")
def subject(case: tuple[str, str]) -> Iterator[Subject]:
    if case[0] not in (EMBEDDED, GATEWAY):
        with kafka_subject(case[0]) as kafka:
            yield kafka
        return
    with EmbeddedCluster(racks=3, brokers=6, seed=8) as cluster:
        if case[0] == EMBEDDED:
            yield Embedded(cluster)
            return
        with running(cluster.bootstrap_servers) as gateway:
            yield BehindGateway(cluster, gateway)


@pytest.fixture(scope="module")
def client(case: tuple[str, str], subject: Subject) -> Iterator[Client]:
    if case[1] == "librdkafka":
        yield Librdkafka(subject)
        return
    try:
        java = find_java()
        runtime = KafkaRuntime(java, resolve_jars(KafkaVersion.parse(KAFKA), lambda _: None, java=java))
    except MissingRequirement as missing:
        pytest.skip(f"NOT TESTED with Kafka's own producer: {missing}")
    producer = JavaProducer(subject, runtime)
    yield producer
    producer.close()


def created(subject: Subject, **config: int) -> str:
    """A topic with a replica in each rack; the ISR is whole."""
    topic = f"orders-{uuid4().hex[:8]}"
    values = {key.replace("_", "."): str(value) for key, value in config.items()}
    admin = AdminClient({"bootstrap.servers": subject.bootstrap_servers, "log_level": 0})
    admin.create_topics([NewTopic(topic, 1, 3, config=values)])[topic].result(WITHIN_SECONDS)
    subject.wait_for_isr()
    return topic


@contextmanager
def without(subject: Subject, *racks: str) -> Iterator[None]:
    try:
        for rack in racks:
            subject.lose_rack(rack)
        yield
    finally:
        for rack in racks:
            subject.restore_rack(rack)
        subject.wait_for_isr()


def refused(subject: Subject, output: Delivery) -> bool:
    """A broker has its ISR at hand. A gateway may learn of a loss only after the append: the record is not acknowledged either way."""
    after_append = AFTER_APPEND if isinstance(subject, BehindGateway | KafkaBehindGateway) else frozenset()
    return output.error in NOT_ENOUGH_REPLICAS | after_append


def test_acks_all_succeeds_when_the_isr_spans_enough_racks(subject: Subject, client: Client) -> None:
    topic = created(subject, min_insync_racks=2)
    assert client.once(topic) == Delivery(None)
    with without(subject, "r1"):
        assert client.once(topic) == Delivery(None)


def test_acks_all_is_rejected_when_a_rack_is_shut_down(subject: Subject, client: Client) -> None:
    topic = created(subject)
    client.alter(topic, {"min.insync.racks": "3"})
    assert client.once(topic) == Delivery(None)
    with without(subject, "r2"):
        before = subject.rack_check_failures()
        assert refused(subject, client.once(topic))
        assert subject.rack_check_failures() > before


def test_lowering_the_value_resumes_producers_without_a_restart(subject: Subject, client: Client) -> None:
    topic = created(subject, min_insync_racks=3)
    with without(subject, "r3"):
        assert refused(subject, client.once(topic))
        waiting = client.patient(topic)
        client.alter(topic, {"min.insync.racks": "2"})
        assert waiting.result(WITHIN_SECONDS) == Delivery(None)
        assert client.once(topic) == Delivery(None)
    client.alter(topic, {"min.insync.racks": "3"})
    assert client.once(topic) == Delivery(None)


def test_both_thresholds_are_independent_each_with_its_own_error(subject: Subject, client: Client) -> None:
    by_replicas = created(subject, min_insync_replicas=3)
    by_racks = created(subject, min_insync_racks=3)
    by_both = created(subject, min_insync_replicas=3, min_insync_racks=3)
    with without(subject, "r1"):
        before = subject.rack_check_failures()
        assert refused(subject, client.once(by_replicas))
        assert refused(subject, client.once(by_both))
        assert subject.rack_check_failures() == before
        by_name = client.once(by_racks)
        assert refused(subject, by_name)
        assert subject.rack_check_failures() == before + 1
        if isinstance(client, JavaProducer):
            # librdkafka does not pass the broker's own words on.
            assert by_name.message == f"{by_racks}-0: in-sync racks r2,r3 = 2 < min.insync.racks 3"


def test_the_default_changes_nothing(subject: Subject, client: Client) -> None:
    # Of two lost racks a gateway cannot know that no value was set meanwhile: one rack is lost.
    plain, held = created(subject), created(subject, min_insync_replicas=3)
    with without(subject, "r1"):
        before = subject.rack_check_failures()
        assert client.once(plain) == Delivery(None)
        assert refused(subject, client.once(held))
        assert subject.rack_check_failures() == before
    assert client.once(held) == Delivery(None)


def test_producers_recover_when_the_rack_is_back(subject: Subject, client: Client) -> None:
    topic = created(subject, min_insync_racks=2)
    with without(subject, "r1", "r3"):
        assert refused(subject, client.once(topic))
        waiting = client.patient(topic)
    assert waiting.result(WITHIN_SECONDS) == Delivery(None)
    assert client.once(topic) == Delivery(None)
