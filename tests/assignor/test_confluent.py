"""librdkafka's consumers with in_rack's settings read in their own racks."""

from collections.abc import Mapping
from typing import Any

import pytest
from confluent_kafka import Consumer

from rackspan.assignor.confluent import in_rack
from rackspan.cluster import EmbeddedCluster
from rackspan.errors import UsageError
from rackspan.kafka_process import KafkaCluster
from tests.kafka_fixtures import create_topic
from tests.waiting import eventually

LEADERS = [1, 2, 3, 3, 1, 2, 2, 3, 1]
"""Without followers, in an order in which no other assignor gives each rack its own."""


@pytest.mark.slow
@pytest.mark.parametrize("cooperative", [False, True])
def test_members_are_assigned_what_is_in_their_rack(cooperative: bool) -> None:
    with EmbeddedCluster(racks=3, brokers=3) as cluster:
        cluster.create_topic("orders", replicas=[[leader] for leader in LEADERS])
        members = {
            rack: consumer(cluster, in_rack(rack, cooperative=cooperative), "orders") for rack in ("r1", "r2", "r3")
        }
        near = {f"r{broker}": {at for at, leader in enumerate(LEADERS) if leader == broker} for broker in (1, 2, 3)}

        def is_assigned() -> bool:
            for member in members.values():
                member.poll(0.05)
            return near == {rack: {each.partition for each in member.assignment()} for rack, member in members.items()}

        eventually(is_assigned, "every member reads in its rack")
        for member in members.values():
            member.close()


def consumer(cluster: EmbeddedCluster | KafkaCluster, settings: Mapping[str, Any], topic: str) -> Consumer:
    member = Consumer(
        {"bootstrap.servers": cluster.bootstrap_servers, "group.id": "in-rack-readers", "log_level": 0, **settings}
    )
    member.subscribe([topic])
    return member


def test_the_assignor_that_looks_at_racks_is_named() -> None:
    """Not left to librdkafka's default, which may change."""
    for cooperative, assignor in ((False, "range"), (True, "cooperative-sticky")):
        settings = in_rack("r1", cooperative=cooperative)
        assert settings == {"client.rack": "r1", "partition.assignment.strategy": assignor}


def test_the_coordinators_protocol_takes_no_assignor_of_the_client() -> None:
    settings = in_rack("r1", group_protocol="consumer")
    assert settings == {"client.rack": "r1", "group.protocol": "consumer"}
    Consumer({"bootstrap.servers": "127.0.0.1:1", "group.id": "readers", "log_level": 0, **settings}).close()


@pytest.mark.parametrize(
    ("rack", "options"), [("", {}), ("r1", {"group_protocol": "consumer", "cooperative": True}), ("r1", {"group_protocol": "new"})]
)  # fmt: skip
def test_settings_that_contradict_each_other_are_refused(rack: str, options: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        in_rack(rack, **options)


@pytest.mark.kafka
def test_the_coordinators_own_assignors_look_at_no_racks(kafka: KafkaCluster) -> None:
    """What the page says of KIP-848. If this fails, a Kafka looks at racks there, and the page and `clients` should say so."""
    topic = "readers-by-coordinator"
    create_topic(kafka, topic, assignment=[[leader] for leader in LEADERS])
    settings = {rack: in_rack(rack, group_protocol="consumer") for rack in ("r1", "r2", "r3")}
    members = {rack: consumer(kafka, each, topic) for rack, each in settings.items()}

    def assigned() -> dict[str, set[int]]:
        for member in members.values():
            member.poll(0.05)
        return {rack: {each.partition for each in member.assignment()} for rack, member in members.items()}

    eventually(lambda: sorted(map(len, assigned().values())) == [3, 3, 3], "three balanced members")
    found = assigned()
    for member in members.values():
        member.close()
    assert any(f"r{LEADERS[partition]}" != rack for rack, partitions in found.items() for partition in partitions)
