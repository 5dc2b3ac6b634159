"""What Kafka's own console tools say about a cluster, as values to compare with."""

import json
import re
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Producer

from rackspan.cluster import EmbeddedCluster
from rackspan.kafka_process import KafkaCluster, KafkaVersion, console_tool
from tests.kafka_fixtures import TOPIC_TOOL
from tests.kafka_versions import KAFKA
from tests.waiting import WITHIN_SECONDS

ELECTION_TOOL = "org.apache.kafka.tools.LeaderElectionCommand"
LOG_DIRS_TOOL = "org.apache.kafka.tools.LogDirsCommand"
REASSIGN_TOOL = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"


def config_tool(version: KafkaVersion) -> str:
    """The class of `kafka-configs`, which Kafka 4.4 has moved."""
    return "kafka.admin.ConfigCommand" if version < KafkaVersion(4, 4, 0) else "org.apache.kafka.tools.ConfigCommand"


CONFIG_TOOL = config_tool(KafkaVersion.parse(KAFKA))


@dataclass(frozen=True, slots=True)
class Described:
    """One partition as `kafka-topics --describe` prints it; leader -1 for its "none"."""

    topic_id: str
    leader: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


def described(cluster: KafkaCluster) -> dict[tuple[str, int], Described]:
    """Every partition of every topic, internal ones included."""
    topic_ids: dict[str, str] = {}
    found: dict[tuple[str, int], Described] = {}
    for line in console_tool(cluster, TOPIC_TOOL, "--describe").splitlines():
        output = {
            key.strip(): value for key, _, value in (field.partition(": ") for field in line.split("\t") if field)
        }
        if "TopicId" in output:
            topic_ids[output["Topic"]] = output["TopicId"]
        elif "Partition" in output:
            found[output["Topic"], int(output["Partition"])] = Described(
                topic_id=topic_ids[output["Topic"]],
                leader=-1 if output["Leader"] == "none" else int(output["Leader"]),
                replicas=_ids(output["Replicas"]),
                isr=_ids(output["Isr"]),
                adding=_ids(output.get("Adding Replicas", "")),
                removing=_ids(output.get("Removing Replicas", "")),
            )
    return found


def effective_min_insync_replicas(cluster: KafkaCluster) -> dict[str, str]:
    """By topic, as `kafka-configs --describe --all` has it."""
    output = console_tool(cluster, config_tool(cluster.version), "--describe", "--all", "--entity-type", "topics")
    sections = re.split(r"^All configs for topic (\S+) are:$", output, flags=re.M)[1:]
    found = {}
    for topic, section in zip(sections[::2], sections[1::2], strict=True):
        match = re.search(r"^\s*min\.insync\.replicas=(\d+)", section, re.M)
        assert match, section
        found[topic] = match.group(1)
    return found


def largest_log(cluster: KafkaCluster) -> dict[tuple[str, int], int]:
    """Bytes of the largest replica of each partition, as `kafka-log-dirs` has them."""
    output = console_tool(cluster, LOG_DIRS_TOOL, "--describe")
    response = json.loads(next(line for line in output.splitlines() if line.startswith("{")))
    sizes: dict[tuple[str, int], int] = {}
    for broker in response["brokers"]:
        for log_dir in broker["logDirs"]:
            for one in log_dir["partitions"]:
                topic, _, partition = one["partition"].rpartition("-")
                place = topic, int(partition)
                sizes[place] = max(one["size"], sizes.get(place, 0))
    return sizes


def produce(cluster: KafkaCluster | EmbeddedCluster, topic: str, partitions: int, bytes_each: int) -> None:
    """Records to every partition, by librdkafka, acknowledged by all in sync; returns when all are."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "acks": "all"})
    refused: list[object] = []
    value = bytes(10_000)
    for partition in range(partitions):
        for _ in range(max(1, bytes_each // len(value))):
            producer.produce(
                topic, value, partition=partition, on_delivery=lambda error, _: refused.append(error) if error else None
            )
    assert producer.flush(WITHIN_SECONDS) == 0
    assert refused == []


def reassign(cluster: KafkaCluster, folder: Path, action: str, *arguments: str, **replicas: list[int]) -> str:
    """`kafka-reassign-partitions`; `replicas` by "topic_partition", such as orders_0=[1, 2]."""
    plan = folder / "reassignment.json"
    if replicas:
        rows = [(name.rpartition("_"), wanted) for name, wanted in replicas.items()]
        partitions = [
            {"topic": topic, "partition": int(partition), "replicas": wanted} for (topic, _, partition), wanted in rows
        ]
        plan.write_text(json.dumps({"version": 1, "partitions": partitions}))
    return console_tool(cluster, REASSIGN_TOOL, action, "--reassignment-json-file", str(plan), *arguments)


def _ids(text: str) -> tuple[int, ...]:
    return tuple(int(one) for one in text.split(",") if one.strip())
