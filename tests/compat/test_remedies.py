"""Remedies of an audit on real Kafka: a registration that is left over is removed, and a cancel that does harm is left out.

Each command is run as it is printed. Of what rackspan says about Kafka, Kafka itself is the judge.
"""

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource

from rackspan.kafka_process import KafkaCluster, console_tool
from tests.kafka_fixtures import create_topic
from tests.kafka_tools import described
from tests.waiting import WITHIN_SECONDS, eventually

pytestmark = pytest.mark.kafka

CLUSTER_TOOL = "org.apache.kafka.tools.ClusterTool"
REASSIGN_TOOL = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"


def rackspan(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "rackspan", *words], capture_output=True, text=True, timeout=WITHIN_SECONDS
    )


def found(cluster: KafkaCluster, constraint: str, *words: str) -> list[dict[str, Any]]:
    audited = rackspan("audit", "--bootstrap-server", cluster.bootstrap_servers, *words, "-o", "json")
    return [one for one in json.loads(audited.stdout)["findings"] if one["constraint"] == constraint]


def test_the_registration_of_a_broker_that_holds_nothing_is_removed_as_printed(
    uneven_kafka: KafkaCluster, tmp_path: Path
) -> None:
    properties = tmp_path / "client.properties"
    properties.write_text("client.id=remedies\n")
    create_topic(uneven_kafka, "held", assignment=[[1, 3]])
    for broker in (3, 5):
        uneven_kafka.kill(broker)
    login = ("--command-config", str(properties))
    eventually(lambda: len(found(uneven_kafka, "fenced-broker")) == 2, "3 and 5 are fenced")
    holding, empty = sorted((one["remedy"] for one in found(uneven_kafka, "fenced-broker", *login)), key=len)
    assert holding == "bring back broker 3", "it holds a replica"
    command = empty.removeprefix("bring back broker 5; if it is no broker any more: ")
    tool, *arguments = shlex.split(command)
    assert tool == "kafka-cluster.sh"
    output = uneven_kafka.runtime.run_tool(CLUSTER_TOOL, *arguments)
    assert "Broker 5 is no longer registered." in output
    eventually(lambda: [one["remedy"] for one in found(uneven_kafka, "fenced-broker")] == [holding], "5 is removed")
    for broker in (3, 5):
        uneven_kafka.restart(broker)
    eventually(lambda: not found(uneven_kafka, "fenced-broker"), "both are registered again")


def test_a_cancel_that_would_stop_writes_is_left_out_until_a_broker_is_back(
    uneven_kafka: KafkaCluster, tmp_path: Path
) -> None:
    """In flight from 2,3 to 4,5 with 4 in sync, 5 held back, and 3 killed: writes pass by 2 and 4."""
    cluster, topic = uneven_kafka, "on-its-way"
    create_topic(cluster, topic, assignment=[[2, 3]], config={"min.insync.replicas": "2"})
    hold_back(cluster, topic, 5)
    reassignment = json.dumps({"version": 1, "partitions": [{"topic": topic, "partition": 0, "replicas": [4, 5]}]})
    file = tmp_path / "move.json"
    file.write_text(reassignment)
    console_tool(cluster, REASSIGN_TOOL, "--reassignment-json-file", str(file), "--execute")
    eventually(lambda: isr(cluster, topic) == {2, 3, 4}, "4 is in sync")
    cluster.kill(3)
    eventually(lambda: isr(cluster, topic) == {2, 4}, "3 is out of sync")
    assert refused(cluster, topic) is None
    (in_progress,) = found(cluster, "reassignment-in-progress")
    assert in_progress["remedy"] == "wait for it"
    cancel = ("reassign", "cancel", "--in-flight", "--bootstrap-server", cluster.bootstrap_servers)
    left_out = rackspan(*cancel, "--apply")
    assert (left_out.returncode, isr(cluster, topic)) == (2, {2, 4}), left_out.stderr
    assert f"{topic}-0: broker 2 left in sync, min.insync.replicas requires 2" in left_out.stdout
    assert refused(cluster, topic) is None
    allowed = rackspan(*cancel, "--apply", "--allow-refused-writes")
    assert allowed.returncode == 0, allowed.stderr
    # What the line says is what Kafka does.
    assert (isr(cluster, topic), refused(cluster, topic)) == ({2}, KafkaError.NOT_ENOUGH_REPLICAS)
    cluster.restart(3)
    eventually(lambda: isr(cluster, topic) == {2, 3}, "3 is back")
    assert refused(cluster, topic) is None


def hold_back(cluster: KafkaCluster, topic: str, broker: int) -> None:
    """Records that are copied to this broker as slowly as Kafka can."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "acks": "all"})
    for _ in range(200):
        producer.produce(topic, bytes(100_000), partition=0)
        producer.poll(0)
    assert producer.flush(WITHIN_SECONDS) == 0
    slow = [
        (ConfigResource.Type.TOPIC, topic, "follower.replication.throttled.replicas", f"0:{broker}"),
        (ConfigResource.Type.BROKER, str(broker), "follower.replication.throttled.rate", "1"),
    ]
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    for kind, name, key, value in slow:
        entry = ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(kind, name, incremental_configs=[entry])
        admin.incremental_alter_configs([resource])[resource].result(WITHIN_SECONDS)


def isr(cluster: KafkaCluster, topic: str) -> set[int]:
    return set(described(cluster)[topic, 0].isr)


def refused(cluster: KafkaCluster, topic: str) -> int | None:
    """The code of the error of one record with acks=all and no second try; None for an acknowledgement."""
    errors: list[KafkaError | None] = []
    once = {"bootstrap.servers": cluster.bootstrap_servers, "acks": "all", "retries": 0}
    producer = Producer(once)
    producer.produce(topic, b"one", partition=0, on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(WITHIN_SECONDS) == 0
    (error,) = errors
    return None if error is None else error.code()
