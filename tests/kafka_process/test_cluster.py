"""Real Kafka starts, loses racks, gets them back, and leaves nothing behind."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rackspan.errors import KafkaProcessFailed, UsageError
from rackspan.kafka_process import KafkaCluster, console_tool
from rackspan.kafka_process.release.runtime import SERVER
from tests.kafka_fixtures import TOPIC_TOOL, create_topic
from tests.kafka_versions import KAFKA
from tests.processes import alive, gone_within, running
from tests.waiting import WITHIN_SECONDS, eventually

pytestmark = pytest.mark.kafka

OWNER = """
import sys, tempfile, time
tempfile.tempdir = sys.argv[1]
from rackspan.kafka_process import KafkaCluster
with KafkaCluster(racks=("r1",), brokers=2, controllers={1: "r1"}) as cluster:
    print(*cluster.pids.values(), flush=True)
    time.sleep(1000)
"""


def describe(cluster: KafkaCluster, topic: str) -> str:
    return console_tool(cluster, TOPIC_TOOL, "--describe", "--topic", topic)


def isr(cluster: KafkaCluster, topic: str) -> set[int]:
    """The in-sync replicas of the topic's one partition: Kafka 4.3 sorts them, Kafka 4.1 puts the ones that join last."""
    return set(map(int, re.findall(r"Isr: ([\d,]+)", describe(cluster, topic))[0].split(",")))


def test_every_broker_is_in_its_rack(kafka: KafkaCluster) -> None:
    output = console_tool(kafka, "org.apache.kafka.tools.BrokerApiVersionsCommand")
    for index, (broker, address) in enumerate(zip(kafka.brokers, kafka.bootstrap_servers.split(","), strict=True)):
        assert (kafka.address(broker), kafka.rack(broker)) == (address, f"r{index % 3 + 1}")
        assert f"{address} (id: {broker} rack: {kafka.rack(broker)} isFenced: false)" in output


def test_a_lost_rack_leaves_the_isr_and_comes_back(kafka: KafkaCluster) -> None:
    create_topic(kafka, "lost", assignment=[[5, 6, 4]])
    pids = kafka.pids
    kafka.lose_rack("r2")
    assert gone_within(WITHIN_SECONDS, pids[2], pids[5])
    assert kafka.pids.keys() == {1, 3, 4, 6}
    eventually(
        lambda: isr(kafka, "lost") == {4, 6} and "Leader: 6" in describe(kafka, "lost"), "broker 5 is out of the ISR"
    )
    kafka.restore_rack("r2")
    eventually(lambda: isr(kafka, "lost") == {4, 5, 6}, "broker 5 is in sync again")


@pytest.mark.rest
def test_an_orderly_stop_hands_its_leaders_over_first(kafka: KafkaCluster) -> None:
    create_topic(kafka, "handed", assignment=[[6, 4, 5]])
    kafka.stop(6)
    assert isr(kafka, "handed") == {4, 5}
    assert "Leader: 4" in describe(kafka, "handed")
    kafka.restart(6)
    eventually(lambda: isr(kafka, "handed") == {4, 5, 6}, "broker 6 is in sync again")


def test_controllers_may_be_processes_of_their_own(kafka3: KafkaCluster) -> None:
    assert kafka3.pids.keys() == {1, 2, 101}
    quorum = console_tool(kafka3, "org.apache.kafka.tools.MetadataQuorumCommand", "describe", "--status")
    assert '"id": 101' in quorum or "[101]" in quorum


def test_a_rack_or_node_that_is_not_there_is_named(kafka: KafkaCluster) -> None:
    with pytest.raises(UsageError, match=r"no rack 'r9'.*r1, r2, r3"):
        kafka.lose_rack("r9")
    with pytest.raises(UsageError, match="no node 99"):
        kafka.kill(99)


@pytest.mark.rest
def test_a_data_folder_of_the_users_own_is_the_same_cluster_the_next_time(kafka: KafkaCluster, tmp_path: Path) -> None:
    def again() -> KafkaCluster:
        return KafkaCluster(racks=("r1",), brokers=1, version=KAFKA, data_dir=tmp_path)

    with again() as first:
        create_topic(first, "kept")
    with again() as second:
        assert second.cluster_id == first.cluster_id
        assert "Topic: kept\tPartition: 0\tLeader: 1" in describe(second, "kept")


def test_a_setting_that_kafka_refuses_is_reported_in_one_line_with_the_log(kafka: KafkaCluster) -> None:
    with pytest.raises(KafkaProcessFailed, match=r"broker 1 .*num\.io\.threads") as failure:
        KafkaCluster(racks=("r1",), brokers=1, version=KAFKA, config={"num.io.threads": "many"}).__enter__()
    assert "\n" not in str(failure.value)
    assert "ConfigException" in failure.value.log_tail


def test_classes_come_from_the_archive_that_the_first_start_wrote(kafka: KafkaCluster) -> None:
    command = kafka.runtime.command(SERVER, "no-such.properties")
    command = [word for word in command if word != "-Xlog:disable"]
    listed = subprocess.run([command[0], "-Xlog:class+load", *command[1:]], capture_output=True, text=True, check=False)
    archived = re.findall(r"(\S+) source: shared objects file \(top\)", listed.stdout)
    assert SERVER + "$" in archived
    # Only the class that logs that there is no such file.
    assert set(re.findall(r"(kafka\.\S+) source: (?:jar|file):", listed.stdout)) <= {"kafka.utils.Logging$"}
    assert b"kafka/server/BrokerServer" in kafka.runtime.class_archive.read_bytes()


def test_a_console_tool_that_fails_says_why(kafka: KafkaCluster) -> None:
    with pytest.raises(KafkaProcessFailed, match="TopicCommand ended with status 1"):
        console_tool(kafka, TOPIC_TOOL, "--describe", "--topic", "no-such-topic")


@pytest.mark.rest
def test_nothing_runs_on_when_the_owner_is_killed(kafka: KafkaCluster, tmp_path: Path) -> None:
    with running([sys.executable, "-c", OWNER, str(tmp_path)], stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        pids = [int(pid) for pid in owner.stdout.readline().split()]
        assert len(pids) == 2
        assert all(map(alive, pids))
        os.kill(owner.pid, signal.SIGKILL)
        assert gone_within(WITHIN_SECONDS, *pids)
