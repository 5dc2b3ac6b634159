"""The six system tests of min.insync.racks (Test Plan), by librdkafka and by Kafka's own producer and kafka-configs.sh.

They know what they test as a `Subject`: the embedded cluster here; a gateway is another one.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from rackspan.cluster import EmbeddedCluster
from rackspan.errors import MissingRequirement
from rackspan.java import find_java
from rackspan.kafka_process.release.jars import resolve_jars
from rackspan.kafka_process.release.runtime import KafkaRuntime
from rackspan.kafka_process.release.versions import DEFAULT_VERSION, KafkaVersion
from tests.compat.min_insync_racks import Client, Delivery, JavaProducer, Librdkafka, Subject

NOT_ENOUGH_REPLICAS = {"NOT_ENOUGH_REPLICAS", "NotEnoughReplicasException"}
"""As librdkafka names the error, and as Java does."""


class Embedded:
    """The embedded cluster, as a subject."""

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self._cluster = cluster
        self.bootstrap_servers = cluster.bootstrap_servers
        self.lose_rack = cluster.lose_rack
        self.restore_rack = cluster.restore_rack

    def wait_for_isr(self) -> None:
        self._cluster.wait_for_isr(seconds=20)

    def rack_check_failures(self) -> int:
        return sum(one["rackspan_rack_check_failures_total"] for one in self._cluster.metrics().values())


@pytest.fixture(scope="module", params=["embedded"])
def subject(request: pytest.FixtureRequest) -> Iterator[Subject]:
    with EmbeddedCluster(racks=3, brokers=6, seed=8) as cluster:
        yield Embedded(cluster)


@pytest.fixture(scope="module", params=["librdkafka", pytest.param("java", marks=pytest.mark.java)])
def client(request: pytest.FixtureRequest, subject: Subject) -> Iterator[Client]:
    if request.param == "librdkafka":
        yield Librdkafka(subject)
        return
    try:
        java = find_java()
        runtime = KafkaRuntime(java, resolve_jars(KafkaVersion.parse(DEFAULT_VERSION), lambda _: None, java=java))
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
    admin.create_topics([NewTopic(topic, 1, 3, config=values)])[topic].result(30)
    subject.wait_for_isr()
    return topic


@contextmanager
def without(subject: Subject, *racks: str) -> Iterator[None]:
    for rack in racks:
        subject.lose_rack(rack)
    try:
        yield
    finally:
        for rack in racks:
            subject.restore_rack(rack)
        subject.wait_for_isr()


def refused(output: Delivery) -> bool:
    return output.error in NOT_ENOUGH_REPLICAS


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
        assert refused(client.once(topic))
        assert subject.rack_check_failures() > before


def test_lowering_the_value_resumes_producers_without_a_restart(subject: Subject, client: Client) -> None:
    topic = created(subject, min_insync_racks=3)
    with without(subject, "r3"):
        assert refused(client.once(topic))
        waiting = client.patient(topic)
        client.alter(topic, {"min.insync.racks": "2"})
        assert waiting.result(90) == Delivery(None)
        assert client.once(topic) == Delivery(None)
    client.alter(topic, {"min.insync.racks": "3"})
    assert client.once(topic) == Delivery(None)


def test_both_thresholds_are_independent_each_with_its_own_error(subject: Subject, client: Client) -> None:
    by_replicas = created(subject, min_insync_replicas=3)
    by_racks = created(subject, min_insync_racks=3)
    by_both = created(subject, min_insync_replicas=3, min_insync_racks=3)
    with without(subject, "r1"):
        before = subject.rack_check_failures()
        assert refused(client.once(by_replicas))
        assert refused(client.once(by_both))
        assert subject.rack_check_failures() == before
        by_name = client.once(by_racks)
        assert refused(by_name)
        assert subject.rack_check_failures() == before + 1
        if isinstance(client, JavaProducer):
            # librdkafka does not pass the broker's own words on.
            assert by_name.message == f"{by_racks}-0: in-sync racks r2,r3 = 2 < min.insync.racks 3"


def test_the_default_changes_nothing(subject: Subject, client: Client) -> None:
    plain, held = created(subject), created(subject, min_insync_replicas=2)
    with without(subject, "r1", "r2"):
        before = subject.rack_check_failures()
        assert client.once(plain) == Delivery(None)
        assert refused(client.once(held))
        assert subject.rack_check_failures() == before
    assert client.once(held) == Delivery(None)


def test_producers_recover_when_the_rack_is_back(subject: Subject, client: Client) -> None:
    topic = created(subject, min_insync_racks=2)
    with without(subject, "r1", "r3"):
        assert refused(client.once(topic))
        waiting = client.patient(topic)
    assert waiting.result(90) == Delivery(None)
    assert client.once(topic) == Delivery(None)
