"""What real Kafka cannot do is refused by name, before anything starts. Its faults: test_faults.py."""

import pytest

from rackspan.cluster import EmbeddedCluster
from rackspan.errors import UsageError
from rackspan.practice.kafka import PracticeKafka

ALSO_ON_KAFKA = {
    *("address", "brokers", "bootstrap_servers", "close", "cluster_id", "rack", "racks", "start", "status"),
    *("alter_topic", "create_topic", "isr", "leader", "replicas", "wait_for_isr"),
    *("kill", "lose_rack", "pause", "restart", "restore_rack", "resume", "stop", "undo_faults"),
}

EMBEDDED_ONLY = sorted(name for name in set(dir(EmbeddedCluster)) - ALSO_ON_KAFKA if not name.startswith("_"))


def test_faults_of_links_clocks_and_disks_are_among_them() -> None:
    assert {"lag", "cut", "heal", "fence", "unfence", "isolate_rack", "slow_disk", "traffic", "reset"} < set(
        EMBEDDED_ONLY
    )


@pytest.mark.parametrize("name", EMBEDDED_ONLY)
def test_a_method_of_the_embedded_cluster_alone_is_refused_by_its_name(name: str) -> None:
    with pytest.raises(
        UsageError, match=rf"^{name}: Apache Kafka \d.* cannot do this; run this on the embedded cluster"
    ):
        getattr(PracticeKafka(), name)


def test_the_others_are_there() -> None:
    for name in ALSO_ON_KAFKA - {"bootstrap_servers"}:
        assert hasattr(PracticeKafka(), name), name


def test_what_neither_has_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'PracticeKafka' object has no attribute 'loose_rack'"):
        PracticeKafka().loose_rack("r1")


@pytest.mark.parametrize(
    "key",
    [
        *("min.insync.racks", "extended.error.codes", "replica.placer.class.name"),
        *("rack.locator.class", "rack.locator.properties", "inter.broker.protocol.version"),
    ],
)
def test_a_config_that_kafka_would_ignore_is_refused(key: str) -> None:
    with pytest.raises(UsageError, match=f"config {key}: Apache Kafka .* has no such config and would ignore it"):
        PracticeKafka(config={key: "2"})


def test_a_power_loss_is_refused() -> None:
    with pytest.raises(UsageError, match=r"kill\(power_loss=True\): Apache Kafka .* cannot do this"):
        PracticeKafka().kill(1, power_loss=True)


def test_its_controller_is_outside_the_racks() -> None:
    cluster = PracticeKafka(racks=("a", None), brokers=4)
    assert [(node.id, node.rack) for node in cluster.nodes if node.is_controller] == [(3000, None)]
    assert cluster.nodes_in(None) == (2, 4), "without a rack, only brokers"
