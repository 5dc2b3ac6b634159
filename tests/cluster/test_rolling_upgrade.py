"""KIP-36's rolling upgrade step by step, and the racks of a locator, in one embedded cluster each."""

from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from rackspan.cluster import EmbeddedCluster
from rackspan.cluster.zookeeper_era import (
    Registration,
    RegistrationReader,
    read_registration,
    registration_version,
    write_registration,
)
from rackspan.errors import PartialRacks, UnreadableRegistration, UsageError
from rackspan.model.ids import RackId
from rackspan.placement import usable
from rackspan.placement.rack_modes import RackAwareMode, aware
from tests.conformance.wire import send
from tests.waiting import WITHIN_SECONDS

OLD, NEW = "0.9.0.X", "0.10.0"


def racks_in_metadata(cluster: EmbeddedCluster, version: int = 1, broker: int = 1) -> dict[int, str | None]:
    response = send(cluster.address(broker), "Metadata", version, {"topics": []})
    return {broker["node_id"]: broker.get("rack") for broker in response["brokers"]}


def created_by_itself(cluster: EmbeddedCluster, topic: str) -> int:
    """The error of a topic for which a client sends only a Metadata request."""
    body = {"topics": [{"name": topic}], "allow_auto_topic_creation": True}
    return int(send(cluster.address(1), "Metadata", 9, body)["topics"][0]["error_code"])


def create(cluster: EmbeddedCluster, topic: str, partitions: int = 6, factor: int = 3) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    admin.create_topics([NewTopic(topic, partitions, factor)])[topic].result(WITHIN_SECONDS)


def tools_take_racks(cluster: EmbeddedCluster) -> bool:
    """Whether a tool that requires racks accepts the brokers. Errors: PartialRacks."""
    return aware(usable(cluster.snapshot().brokers), RackAwareMode.ENFORCED)


def test_the_rolling_upgrade_step_by_step() -> None:
    config = {"inter.broker.protocol.version": OLD, "replica.placer.class.name": "rack-alternated"}
    registered = Registration("host1", 9092, ("PLAINTEXT://host1:9092",), RackId("r1"))

    # 1. Update the file on all brokers: inter.broker.protocol.version is the old one.
    with EmbeddedCluster(racks=3, brokers=3, config=config, seed=1) as cluster:
        assert set(racks_in_metadata(cluster).values()) == {None}

        # 2. Upgrade the code, a broker at a time: registrations have the oldest version, racks are ignored.
        for broker in cluster.brokers:
            cluster.stop(broker)
            cluster.restart(broker)
            assert (
                read_registration(
                    write_registration(registered, registration_version(OLD)), RegistrationReader.V0_9_0_0
                ).rack
                is None
            )
        assert set(racks_in_metadata(cluster).values()) == {None}
        assert tools_take_racks(cluster) is False

        # 3. Once the whole cluster is upgraded, bump the protocol version; 4. restart the brokers one by one.
        cluster.change_protocol_version(1, NEW)
        assert racks_in_metadata(cluster) == {1: "r1", 2: None, 3: None}
        # Brokers of the old version receive UpdateMetadata 1: they work with the new one, and have no rack of it.
        assert [set(racks_in_metadata(cluster, broker=old).values()) for old in (2, 3)] == [{None}, {None}]
        # In between only some racks are registered: topics are still created automatically, tools refuse.
        assert created_by_itself(cluster, "halfway") == 0
        with pytest.raises(PartialRacks):
            tools_take_racks(cluster)
        with pytest.raises(KafkaException, match="rack information"):
            create(cluster, "by-hand")
        cluster.change_protocol_version(2, NEW)
        assert racks_in_metadata(cluster, broker=2) == {1: "r1", 2: "r2", 3: None}
        assert set(racks_in_metadata(cluster, broker=3).values()) == {None}
        cluster.change_protocol_version(3, NEW)

        # Only now is the rack-aware feature used. A reader that is not upgraded would fail.
        for broker in cluster.brokers:
            assert racks_in_metadata(cluster, broker=broker) == {1: "r1", 2: "r2", 3: "r3"}
        assert tools_take_racks(cluster) is True
        create(cluster, "spread")
        cluster.wait_for_isr("spread")
        now = write_registration(registered, registration_version(NEW))
        assert read_registration(now, RegistrationReader.V0_9_0_1).rack is None
        with pytest.raises(UnreadableRegistration):
            read_registration(now, RegistrationReader.V0_9_0_0)


def test_metadata_version_0_never_has_a_rack() -> None:
    with EmbeddedCluster(racks=3, brokers=3) as cluster:
        assert set(racks_in_metadata(cluster, 0).values()) == {None}
        assert set(racks_in_metadata(cluster, 1).values()) == {"r1", "r2", "r3"}


@pytest.mark.parametrize("version", [0, 1])
def test_metadata_names_every_broker_with_its_id_host_and_port(version: int) -> None:
    """Brokers without a rack among them."""
    with EmbeddedCluster(racks=3, brokers=3, config={"inter.broker.protocol.version": OLD}) as cluster:
        cluster.change_protocol_version(2, NEW)
        brokers = send(cluster.address(2), "Metadata", version, {"topics": []})["brokers"]
        addresses = {broker["node_id"]: f"{broker['host']}:{broker['port']}" for broker in brokers}
        assert addresses == {broker: cluster.address(broker) for broker in (1, 2, 3)}
        racks = [broker.get("rack") for broker in sorted(brokers, key=lambda broker: broker["node_id"])]
        assert racks == ([None, None, None] if version == 0 else [None, "r2", None])


def test_an_invalid_protocol_version_is_refused() -> None:
    with pytest.raises(UsageError, match="no version of Kafka"):
        EmbeddedCluster(3, 3, config={"inter.broker.protocol.version": "soon"})
    with EmbeddedCluster(1, 1) as cluster, pytest.raises(UsageError, match="no version of Kafka"):
        cluster.change_protocol_version(1, "later")


def spread(cluster: EmbeddedCluster, topic: str, halls: dict[int, str]) -> set[int]:
    replicas = [cluster.replicas(topic, partition) for partition in range(6)]
    return {len({halls[broker] for broker in row}) for row in replicas}


def test_the_rack_locator_is_called_at_every_creation(tmp_path: Path) -> None:
    """Its mapping differs from the registered racks, and changes between two creations."""
    halls = tmp_path / "halls.properties"
    first = {1: "x", 2: "x", 3: "y", 4: "y"}
    second = {1: "x", 2: "y", 3: "y", 4: "x"}
    config = {"rack.locator.class": "file", "rack.locator.properties": f"path={halls}"}
    halls.write_text("".join(f"{broker}={hall}\n" for broker, hall in first.items()))
    with EmbeddedCluster(racks=2, brokers=4, config=config, seed=3) as cluster:
        create(cluster, "one", factor=2)
        assert spread(cluster, "one", first) == {2}
        halls.write_text("".join(f"{broker}={hall}\n" for broker, hall in second.items()))
        create(cluster, "two", factor=2)
        assert spread(cluster, "two", second) == {2}
        # Clients receive the registered racks.
        assert set(racks_in_metadata(cluster).values()) == {"r1", "r2"}
        halls.unlink()
        with pytest.raises(KafkaException):
            create(cluster, "three", factor=2)


def test_a_missing_locator_prevents_the_start_of_the_cluster() -> None:
    with pytest.raises(UsageError, match="nobody"):
        EmbeddedCluster(1, 1, config={"rack.locator.class": "nobody"}).start()
