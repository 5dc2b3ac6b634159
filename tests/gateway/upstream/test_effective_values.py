"""The values of min.insync.racks in the config topic, as `rackspan restart` counts them at the brokers."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from confluent_kafka import Producer

from rackspan.cli import main
from rackspan.client.cluster import ConnectionSettings
from rackspan.cluster import EmbeddedCluster
from rackspan.gateway.core.policies import Entry, Scope, record
from rackspan.gateway.upstream import effective_values
from rackspan.gateway.upstream.cluster import UpstreamCluster
from rackspan.gateway.upstream.config_topic import ConfigTopic
from rackspan.model import GATEWAY_CONFIG_TOPIC
from tests.waiting import WITHIN_SECONDS

Safe = Callable[[], tuple[int, dict[str, list[str]]]]


@pytest.fixture
def cluster() -> Iterator[EmbeddedCluster]:
    """Broker 2 is the only one in rack r2; brokers 1 and 4 are in r1. The brokers enforce no racks."""
    with EmbeddedCluster(racks=3, brokers=6) as cluster:
        config = {"min.insync.replicas": "1"}
        cluster.create_topic("orders", replicas=[[1, 4, 2]], config=config)
        cluster.create_topic("clicks", replicas=[[1, 4, 2]], config=config)
        yield cluster


@pytest.fixture
def safe(
    cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Safe:
    """The exit code of `restart safe --broker 2`, and the topics of each list with what could not be read."""
    monkeypatch.chdir(tmp_path)

    def run() -> tuple[int, dict[str, list[str]]]:
        words = ("--bootstrap-server", cluster.bootstrap_servers, "--broker", "2", "-o", "json")
        code = main(["restart", "safe", *words])
        document = json.loads(capsys.readouterr().out)
        return code, {
            "refuses": [partition["topic"] for partition in document["refuses_writes"]],
            "partial": document["partial"],
        }

    return run


def keep(cluster: EmbeddedCluster, *values: tuple[Scope, str, Entry | None]) -> None:
    """What gateways have written to their config topic."""
    cluster.create_topic(GATEWAY_CONFIG_TOPIC, replicas=[[1, 2, 3]], config={"cleanup.policy": "compact"})
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers})
    for scope, name, entry in values:
        key, value = record(scope, name, entry)
        producer.produce(GATEWAY_CONFIG_TOPIC, value, key)
    assert producer.flush(WITHIN_SECONDS) == 0


@pytest.mark.slow
def test_without_the_config_topic_only_the_brokers_configs_count(safe: Safe) -> None:
    assert safe() == (0, {"refuses": [], "partial": []})


def test_the_last_value_of_a_topic_counts(cluster: EmbeddedCluster, safe: Safe) -> None:
    values = (("orders", Entry(3)), ("clicks", Entry(2)), ("orders", Entry(2)), ("clicks", None))
    keep(cluster, *((Scope.TOPIC, topic, entry) for topic, entry in values))
    assert safe() == (2, {"refuses": ["orders"], "partial": []})


def test_the_highest_value_of_a_broker_counts_for_topics_without_one(cluster: EmbeddedCluster, safe: Safe) -> None:
    keep(cluster, (Scope.BROKER, "4", Entry(2)), (Scope.TOPIC, "clicks", Entry(1)))
    code, found = safe()
    assert (code, found["refuses"]) == (2, ["orders"])


def test_the_value_of_an_earlier_topic_of_the_name_does_not_count(cluster: EmbeddedCluster, safe: Safe) -> None:
    keep(cluster, (Scope.TOPIC, "orders", Entry(2, uuid4())), (Scope.TOPIC, "clicks", Entry(2, UUID(int=0))))
    assert safe() == (0, {"refuses": [], "partial": []})


def test_a_record_that_cannot_be_read_requires_more_racks_than_there_are(cluster: EmbeddedCluster, safe: Safe) -> None:
    keep(cluster, (Scope.TOPIC, "orders", Entry(2**31 - 1, readable=False)))
    assert safe() == (2, {"refuses": ["orders"], "partial": []})


@pytest.mark.slow
def test_nothing_is_safe_if_the_config_topic_cannot_be_read(
    cluster: EmbeddedCluster, safe: Safe, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(cluster, (Scope.TOPIC, "orders", Entry(2)))
    cluster.stop(1)
    cluster.stop(2)
    cluster.stop(3)
    monkeypatch.setattr(effective_values, "READ_SECONDS", 0.5)
    code, found = safe()
    assert code == 1
    assert found["partial"] == [
        "min.insync.racks of the gateways: unknown, __rackspan_configs could not be read in 0.5 s; "
        "if it has a leader, this user needs Read on Topic __rackspan_configs"
    ]


def test_a_higher_config_of_the_brokers_is_kept_and_no_connection_left_open(
    cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed: list[str] = []
    for opened in (ConfigTopic, UpstreamCluster):

        def close(self: Any, plain: Callable[[Any], None] = opened.close) -> None:
            closed.append(type(self).__name__)
            plain(self)

        monkeypatch.setattr(opened, "close", close)
    cluster.create_topic("strict", replicas=[[1, 2, 3]], config={"min.insync.racks": "3"})
    keep(cluster, (Scope.TOPIC, "strict", Entry(2)))
    settings = ConnectionSettings(cluster.bootstrap_servers)
    found = effective_values.with_gateway_values(cluster.snapshot(), settings)
    assert [topic.config["min.insync.racks"] for topic in found.topics if topic.name == "strict"] == ["3"]
    assert closed == ["ConfigTopic", "UpstreamCluster"]
