"""The two clusters, each as a Subject."""

from collections.abc import Iterator
from contextlib import contextmanager

from rackspan.cluster import EmbeddedCluster
from rackspan.kafka_process import KafkaCluster
from tests.conformance.marks import Marks
from tests.conformance.subject import CONFIG, LOST, RACKS, Subject
from tests.kafka_versions import KAFKA

KAFKA_CONFIG = {
    # Its first check of retention comes 30 s after its start whatever the interval, in the middle of the behaviours on a slow machine.
    "log.initial.task.delay.ms": CONFIG["log.retention.check.interval.ms"],
    # A test that loses a broker waits for its session to end; a machine under load must not end another one.
    "broker.session.timeout.ms": "6000",
    "broker.heartbeat.interval.ms": "500",
    # Who leads is for behaviours to say.
    "auto.leader.rebalance.enable": "false",
}


@contextmanager
def embedded() -> Iterator[Subject]:
    with EmbeddedCluster(racks=tuple(RACKS.values()), brokers=len(RACKS), config=CONFIG, seed=1) as cluster:
        rack = RACKS[LOST]
        yield Subject(
            "embedded", cluster.bootstrap_servers, lambda: cluster.lose_rack(rack), lambda: cluster.restore_rack(rack)
        )


def kafka_cluster() -> KafkaCluster:
    """Broker 1 alone is the controller, so that broker 3 is lost without an election of controllers."""
    return KafkaCluster(
        racks=tuple(RACKS.values()),
        brokers=len(RACKS),
        controllers={1: "r1"},
        version=KAFKA,
        config={**CONFIG, **KAFKA_CONFIG},
    )


def kafka_subject(cluster: KafkaCluster) -> Subject:
    return Subject(
        f"Apache Kafka {cluster.version}",
        cluster.bootstrap_servers,
        lambda: cluster.kill(LOST),
        lambda: cluster.restart(LOST),
        settled=Marks().await_applied,
    )
