"""Kafka's own console tools, as they are shipped with Kafka 4, against the embedded cluster."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from rackspan.cluster import EmbeddedCluster
from tests.kafka_tools import CONFIG_TOOL, ELECTION_TOOL, LOG_DIRS_TOOL, REASSIGN_TOOL

pytestmark = pytest.mark.java

RunTool = Callable[..., str]
TOPICS = "org.apache.kafka.tools.TopicCommand"
PRODUCER = "org.apache.kafka.tools.ConsoleProducer"
CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
OFFSETS = "org.apache.kafka.tools.GetOffsetShell"
DELETE_RECORDS = "org.apache.kafka.tools.DeleteRecordsCommand"


def test_the_topics_tool_creates_grows_describes_and_deletes(cluster: EmbeddedCluster, run_tool: RunTool) -> None:
    run_tool(TOPICS, "--create", "--topic", "jt", "--partitions", "2", "--replication-factor", "3")
    run_tool(TOPICS, "--alter", "--topic", "jt", "--partitions", "3")
    rows = re.findall(
        r"Partition: (\d+)\tLeader: (\d+)\tReplicas: (\S+)", run_tool(TOPICS, "--describe", "--topic", "jt")
    )
    assert [(int(index), int(leader), tuple(map(int, listed.split(",")))) for index, leader, listed in rows] == [
        (index, cluster.leader("jt", index), cluster.replicas("jt", index)) for index in range(3)
    ]
    run_tool(TOPICS, "--delete", "--topic", "jt")
    assert "jt" not in run_tool(TOPICS, "--list").split()


def test_a_console_consumer_of_a_group_reads_what_the_console_producer_writes(
    cluster: EmbeddedCluster, run_tool: RunTool
) -> None:
    lines = [f"line-{number}" for number in range(50)]
    run_tool(PRODUCER, "--topic", "jlines", stdin="\n".join(lines) + "\n")
    output = run_tool(
        *(CONSUMER, "--topic", "jlines", "--from-beginning", "--group", "jreaders"),
        *("--max-messages", "50", "--timeout-ms", "30000"),
    )
    assert sorted(re.findall(r"^line-\d+$", output, re.M)) == sorted(lines)
    assert re.search(r"jreaders +jlines +0 +50 +50 +0", run_tool(GROUPS, "--describe", "--group", "jreaders"))
    assert "jlines:0:50" in run_tool(OFFSETS, "--topic", "jlines")
    run_tool(GROUPS, "--delete", "--group", "jreaders")
    assert "jreaders" not in run_tool(GROUPS, "--list")


def test_the_config_tool_sets_min_insync_racks_of_topics_and_brokers(
    cluster: EmbeddedCluster, run_tool: RunTool
) -> None:
    run_tool(TOPICS, "--create", "--topic", "jconf", "--partitions", "1", "--replication-factor", "3")
    topic = ("--entity-type", "topics", "--entity-name", "jconf")
    run_tool(CONFIG_TOOL, "--alter", *topic, "--add-config", "min.insync.racks=2,retention.ms=1000")
    run_tool(CONFIG_TOOL, "--alter", *topic, "--delete-config", "retention.ms")
    output = run_tool(CONFIG_TOOL, "--describe", *topic)
    assert "min.insync.racks=2 " in output
    assert "retention.ms=1000" not in output
    everyone = ("--entity-type", "brokers", "--entity-default")
    run_tool(CONFIG_TOOL, "--alter", *everyone, "--add-config", "min.insync.replicas=2")
    assert "min.insync.replicas=2 " in run_tool(CONFIG_TOOL, "--describe", *everyone)
    run_tool(CONFIG_TOOL, "--alter", *everyone, "--delete-config", "min.insync.replicas")


@pytest.mark.rest
def test_the_config_tool_keeps_credentials_and_quotas_of_users(cluster: EmbeddedCluster, run_tool: RunTool) -> None:
    user = ("--entity-type", "users", "--entity-name", "jane")
    run_tool(CONFIG_TOOL, "--alter", *user, "--add-config", "SCRAM-SHA-256=[iterations=8192,password=secret]")
    run_tool(CONFIG_TOOL, "--alter", *user, "--add-config", "producer_byte_rate=1024,request_percentage=12.5")
    output = run_tool(CONFIG_TOOL, "--describe", *user)
    assert "SCRAM credential configs for user-principal 'jane' are SCRAM-SHA-256=iterations=8192" in output
    (quotas,) = re.findall(r"Quota configs for user-principal 'jane' are (.*)", output)
    assert set(quotas.split(", ")) == {"producer_byte_rate=1024.0", "request_percentage=12.5"}
    run_tool(CONFIG_TOOL, "--alter", *user, "--delete-config", "SCRAM-SHA-256")
    run_tool(CONFIG_TOOL, "--alter", *user, "--delete-config", "producer_byte_rate,request_percentage")
    assert "jane" not in run_tool(CONFIG_TOOL, "--describe", "--entity-type", "users")


def test_the_config_tool_keeps_configs_of_groups(cluster: EmbeddedCluster, run_tool: RunTool) -> None:
    group = ("--entity-type", "groups", "--entity-name", "jgroup")
    run_tool(CONFIG_TOOL, "--alter", *group, "--add-config", "consumer.session.timeout.ms=50000")
    assert "consumer.session.timeout.ms=50000 " in run_tool(CONFIG_TOOL, "--describe", *group)


def test_replicas_are_reassigned_and_preferred_leaders_elected(
    cluster: EmbeddedCluster, run_tool: RunTool, tmp_path: Path
) -> None:
    run_tool(TOPICS, "--create", "--topic", "jmove", "--replica-assignment", "1:2:3")
    run_tool(PRODUCER, "--topic", "jmove", stdin="one\ntwo\n")
    plan = tmp_path / "plan.json"
    plan.write_text(
        json.dumps({"version": 1, "partitions": [{"topic": "jmove", "partition": 0, "replicas": [4, 5, 6]}]})
    )
    run_tool(REASSIGN_TOOL, "--reassignment-json-file", str(plan), "--execute")
    cluster.wait_for_isr("jmove")
    assert "is completed" in run_tool(REASSIGN_TOOL, "--reassignment-json-file", str(plan), "--verify")
    assert cluster.replicas("jmove", 0) == (4, 5, 6)
    run_tool(ELECTION_TOOL, "--election-type", "preferred", "--topic", "jmove", "--partition", "0")
    assert cluster.leader("jmove", 0) == 4
    output = run_tool(CONSUMER, "--topic", "jmove", "--from-beginning", "--max-messages", "2")
    assert re.findall(r"^(?:one|two)$", output, re.M) == ["one", "two"]


@pytest.mark.rest
def test_log_sizes_are_described_and_records_deleted(
    cluster: EmbeddedCluster, run_tool: RunTool, tmp_path: Path
) -> None:
    run_tool(PRODUCER, "--topic", "jcut", stdin="x" * 1000 + "\nlast\n")
    output = run_tool(LOG_DIRS_TOOL, "--describe", "--topic-list", "jcut")
    log_dirs = json.loads(next(line for line in output.splitlines() if line.startswith("{")))
    sizes = [
        partition["size"]
        for broker in log_dirs["brokers"]
        for folder in broker["logDirs"]
        for partition in folder["partitions"]
    ]
    assert len(sizes) == 3
    assert min(sizes) > 1000
    cut = tmp_path / "cut.json"
    cut.write_text(json.dumps({"version": 1, "partitions": [{"topic": "jcut", "partition": 0, "offset": 1}]}))
    assert "low_watermark: 1" in run_tool(DELETE_RECORDS, "--offset-json-file", str(cut))
    assert "jcut:0:1" in run_tool(OFFSETS, "--topic", "jcut", "--time", "-2")
