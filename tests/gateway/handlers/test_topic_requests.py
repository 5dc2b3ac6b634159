"""KIP-660 and KIP-36 through the gateway: the placer's life, its brokers, and errors, as before the embedded cluster's own placer."""

import asyncio
import re
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions, NewTopic

from rackspan.cluster import EmbeddedCluster
from rackspan.errors import ReplicaPlacementException, UsageError
from rackspan.gateway.check import CheckLevel, check_cluster
from rackspan.gateway.config import parse_config
from tests.conformance.wire import send
from tests.gateway.handlers.recording_placer import RecordingPlacer
from tests.gateway.running import RunningGateway, document, running
from tests.waiting import WITHIN_SECONDS, eventually

RECORDING = "tests.gateway.handlers.recording_placer:RecordingPlacer"


def placement(name: str, **configs: str) -> dict[str, Any]:
    return {"replica": {"placer": {"class": {"name": name}}}, "configs": configs}


def admin_of(gateway: RunningGateway) -> AdminClient:
    return AdminClient({"bootstrap.servers": gateway.bootstrap_servers, "log_level": 0})


def created_by_metadata(gateway: RunningGateway, topic: str) -> None:
    """Metadata of a topic that does not exist, with which a client has it created."""
    address = "{}:{}".format(*gateway.address(1))
    send(address, "Metadata", 9, {"topics": [{"name": topic}], "allow_auto_topic_creation": True})


@pytest.fixture
def partial() -> Iterator[EmbeddedCluster]:
    """Brokers 1, 2, 4 and 5 have racks, 3 and 6 have none: a broker upgrade that is not done, or a mistake."""
    with EmbeddedCluster(racks=("a", "b", None, "a", "b", None), brokers=6, seed=7) as cluster:
        yield cluster


@pytest.mark.parametrize("placer", ["striped", "rack-alternated", "balanced", RECORDING])
def test_topics_are_created_automatically_with_partial_racks_as_if_there_were_none(
    partial: EmbeddedCluster, placer: str
) -> None:
    topic = f"automatic-{uuid4().hex[:8]}"
    with running(partial.bootstrap_servers, placement=placement(placer)) as gateway:
        created_by_metadata(gateway, topic)
    assert len(set(partial.replicas(topic, 0))) == 3
    if placer == RECORDING:
        assert [rack for _, rack, _ in RecordingPlacer.offered] == [None] * 6


@pytest.mark.parametrize("others", [(), ("orders",)])
def test_kafkas_own_topics_are_left_to_kafka(others: tuple[str, ...]) -> None:
    """Created as any other they would be one partition, and lose committed offsets after retention.ms."""
    with EmbeddedCluster() as cluster, running(cluster.bootstrap_servers, placement=placement("striped")) as gateway:
        address = "{}:{}".format(*gateway.address(1))
        names = [{"name": name} for name in ("__consumer_offsets", *others)]
        send(address, "Metadata", 9, {"topics": names, "allow_auto_topic_creation": True})
        send(address, "FindCoordinator", 3, {"key": "group", "key_type": 0})
        topics = {str(topic.name): topic for topic in cluster.snapshot().topics}
    assert topics["__consumer_offsets"].config["cleanup.policy"] == "compact"
    assert topics.keys() >= set(others)


def test_topics_that_are_requested_are_placed_by_the_racks_there_are(partial: EmbeddedCluster) -> None:
    with running(partial.bootstrap_servers, placement=placement(RECORDING)) as gateway:
        admin = admin_of(gateway)
        admin.create_topics([NewTopic("orders", 1, 3)])["orders"].result(WITHIN_SECONDS)
    assert [rack for _, rack, _ in RecordingPlacer.offered] == ["a", "b", None, "a", "b", None]


def test_partial_racks_are_warned_of_at_start_where_a_placer_reads_them(partial: EmbeddedCluster) -> None:
    with running(
        partial.bootstrap_servers, placement=placement("striped"), acknowledgements={"mode": "off"}
    ) as gateway:
        (warning,) = gateway.gateway.warnings()
    assert warning.startswith("brokers 3, 6 have no rack")


def test_one_instance_is_configured_once_places_every_topic_and_is_closed_at_the_end(cluster: EmbeddedCluster) -> None:
    RecordingPlacer.diary.clear()
    one, two = (f"topic-{uuid4().hex[:8]}" for _ in range(2))
    with running(cluster.bootstrap_servers, placement=placement(RECORDING, mine="yes")) as gateway:
        assert RecordingPlacer.diary == ["new", "configure yes"]
        admin = admin_of(gateway)
        admin.create_topics([NewTopic(one, 2, 1)])[one].result(WITHIN_SECONDS)
        admin.create_topics([NewTopic(two, 1, 1)])[two].result(WITHIN_SECONDS)
        admin.create_partitions([NewPartitions(one, 5)])[one].result(WITHIN_SECONDS)
    assert RecordingPlacer.diary == ["new", "configure yes", "place 2", "place 1", "place 3", "close"]


def test_a_reload_with_other_configs_makes_another_instance_and_keeps_the_first_if_that_fails(
    cluster: EmbeddedCluster,
) -> None:
    def config(**configs: str) -> Any:
        return parse_config(document(cluster.bootstrap_servers, placement=placement(RECORDING, **configs)))

    RecordingPlacer.diary.clear()
    topic = f"topic-{uuid4().hex[:8]}"
    with running(cluster.bootstrap_servers, placement=placement(RECORDING)) as gateway:
        gateway.gateway.reload(config())
        assert RecordingPlacer.diary == ["new", "configure None"]
        with pytest.raises(ReplicaPlacementException, match="it is configured to refuse"):
            gateway.gateway.reload(config(refused="yes"))
        assert "close" not in RecordingPlacer.diary
        gateway.gateway.reload(config(mine="new"))
        assert RecordingPlacer.diary[-3:] == ["new", "configure new", "close"]
        RecordingPlacer.diary.clear()
        admin = admin_of(gateway)
        admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(WITHIN_SECONDS)
    assert RecordingPlacer.diary == ["place 1", "close"]


def test_a_gateway_does_not_start_with_a_placer_that_does_not_exist(cluster: EmbeddedCluster) -> None:
    with (
        pytest.raises(UsageError, match=r"replica\.placer\.class\.name is 'nobody', but there is no such placer"),
        running(cluster.bootstrap_servers, placement=placement("nobody")),
    ):
        pass


def test_a_factor_that_cannot_be_reached_is_refused_in_kafkas_code_and_words(cluster: EmbeddedCluster) -> None:
    RecordingPlacer.diary.clear()
    with running(cluster.bootstrap_servers, placement=placement(RECORDING)) as gateway:
        admin = admin_of(gateway)
        words = (
            "Unable to replicate the partition 9 time(s): The target replication factor of 9 cannot be reached because only 3 "
            "broker(s) are registered."
        )
        with pytest.raises(KafkaException, match=f"INVALID_REPLICATION_FACTOR.*{re.escape(words)}"):
            admin.create_topics([NewTopic("orders", 1, 9)])["orders"].result(WITHIN_SECONDS)
        with pytest.raises(KafkaException, match="POLICY_VIOLATION"):
            admin.create_topics([NewTopic("orders", 10_001, 1)])["orders"].result(WITHIN_SECONDS)
    assert not [page for page in RecordingPlacer.diary if page.startswith("place")]


def test_a_fenced_broker_counts_as_registered_and_comes_to_the_placer_as_fenced() -> None:
    with (
        EmbeddedCluster(racks=3, brokers=3, seed=3) as cluster,
        running(cluster.bootstrap_servers, placement=placement(RECORDING)) as gateway,
    ):
        cluster.stop(3)
        eventually(lambda: any(broker.fenced for broker in cluster.snapshot().brokers), "broker 3 is fenced")
        admin = admin_of(gateway)
        admin.create_topics([NewTopic("orders", 1, 3)])["orders"].result(WITHIN_SECONDS)
        assert RecordingPlacer.offered == [(1, "r1", False), (2, "r2", False), (3, "r3", True)]
        assert set(cluster.replicas("orders", 0)) == {1, 2, 3}


def test_another_code_for_a_failed_placement_is_for_clients_that_have_it(cluster: EmbeddedCluster) -> None:
    topic = {"name": "orders", "num_partitions": 7, "replication_factor": 1, "assignments": [], "configs": []}
    body = {"topics": [topic], "timeout_ms": 1000, "validate_only": False}
    extended = {"extended": {"error": {"codes": True}}}
    config = parse_config(
        document(cluster.bootstrap_servers, placement=placement(RECORDING), acknowledgements=extended)
    )
    with running(cluster.bootstrap_servers, placement=placement(RECORDING)) as gateway:
        for code in (-1, 1003):
            (result,) = send("{}:{}".format(*gateway.address(1)), "CreateTopics", 5, body)["topics"]
            assert (result["error_code"], result["error_message"]) == (code, "seven is refused")
            gateway.gateway.reload(config)


def test_check_says_whether_the_placer_works_and_names_brokers_without_racks(partial: EmbeddedCluster) -> None:
    def checked(name: str) -> dict[str, tuple[CheckLevel, str]]:
        tables = {"placement": placement(name), "acknowledgements": {"mode": "off"}}
        results = asyncio.run(check_cluster(parse_config(document(partial.bootstrap_servers, **tables))))
        return {result.check: (result.level, result.reason) for result in results}

    RecordingPlacer.diary.clear()
    found = checked(RECORDING)
    assert found["placer"] == (CheckLevel.OK, RECORDING)
    assert found["racks"][0] is CheckLevel.WARNING
    assert found["racks"][1].startswith("brokers 3, 6 have no rack")
    assert RecordingPlacer.diary == ["new", "configure None", "close"]
    level, reason = checked("nobody")["placer"]
    assert (level, "there is no such placer" in reason) == (CheckLevel.FAILURE, True)
