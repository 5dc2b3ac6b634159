"""rackspan restart watch --exec on Apache Kafka: six brokers in three racks, restarted under load."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.kafka_process import KafkaCluster, console_tool
from tests.cli.conftest import Ran
from tests.cli.restarted_brokers import command_that_calls
from tests.counting_proxy import CountingProxy, counting_proxy
from tests.kafka_fixtures import create_topic, started
from tests.kafka_tools import ELECTION_TOOL
from tests.kafka_versions import KAFKA
from tests.waiting import WITHIN_SECONDS, eventually

pytestmark = pytest.mark.kafka

PARTITIONS = 12
RING = [[(first + at) % 6 + 1 for at in range(3)] for first in range(PARTITIONS)]
REFUSED = (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
"""Codes 19 and 20."""


@pytest.fixture
def restarted_kafka() -> Iterator[KafkaCluster]:
    """Of this test alone: brokers 1 to 3 are also the controllers."""
    yield from started(KafkaCluster(racks=("r1", "r2", "r3"), brokers=6, version=KAFKA))


@dataclass
class Load:
    """The delivery reports of a producer with acks=all."""

    delivered: int = 0
    failed: list[str] = field(default_factory=list)

    def report(self, error: object, _: object) -> None:
        if error is None:
            self.delivered += 1
        else:
            self.failed.append(str(error))


@contextmanager
def load_on(servers: str, topic: str) -> Iterator[Load]:
    """A record a hundredth of a second, to each partition in turn, until the block ends; then every report is awaited."""
    load, ended = Load(), threading.Event()
    producer = Producer({"bootstrap.servers": servers, "acks": "all", "linger.ms": 5})

    def produce() -> None:
        sent = 0
        while not ended.wait(0.01):
            producer.produce(topic, b"record", partition=sent % PARTITIONS, on_delivery=load.report)
            producer.poll(0)
            sent += 1

    thread = threading.Thread(target=produce, daemon=True)
    thread.start()
    try:
        yield load
    finally:
        ended.set()
        thread.join()
        assert producer.flush(WITHIN_SECONDS) == 0


@pytest.mark.rest
def test_batches_are_restarted_under_load_and_no_delivery_fails(
    cli: Callable[..., Ran], restarted_kafka: KafkaCluster, tmp_path: Path
) -> None:
    kafka = restarted_kafka
    server, plan = ("--bootstrap-server", kafka.bootstrap_servers), tmp_path / "plan.json"
    load, proxy, batches = restarted_under_load(cli, kafka, tmp_path, lambda brokers: kafka.stop(*brokers))
    assert (load.failed, load.delivered > 0) == ([], True)
    assert [proxy.codes[code] for code in REFUSED] == [0, 0]
    # The load went through the proxy.
    assert proxy.codes[ErrorCode.NONE] > 0
    # A broker that does not come back stops it: the command stops the first batch and does not start it.
    with command_that_calls(lambda brokers: kafka.stop(*brokers), tmp_path) as command:
        again = ("--plan", str(plan), "--journal", str(tmp_path / "again"), "--patience", "3")
        ran = watch(*server, *again, "--exec", command, "--apply")
    assert ran.returncode == 1
    ids = ",".join(map(str, batches[0]))
    assert ran.stderr.splitlines()[-1] == (
        f"rackspan: batch 1 of 3 (brokers {ids}): brokers {ids} have not come back, for 3 s; "
        f"start brokers {ids}, and run the same command again to resume"
    )


@pytest.mark.soak
def test_batches_that_are_killed_under_load_lose_no_delivery(
    cli: Callable[..., Ran], restarted_kafka: KafkaCluster, tmp_path: Path
) -> None:
    kafka = restarted_kafka

    def kill(brokers: list[int]) -> None:
        """A broker that is back as soon as its session has ended is not observed to stop: the cluster has to show it."""
        kafka.kill(*brokers)
        eventually(lambda: not listed(kafka) & set(brokers), "the killed brokers are fenced")
        time.sleep(2.0)

    load, proxy, _ = restarted_under_load(cli, kafka, tmp_path, kill)
    print(f"delivered {load.delivered}, failed {len(load.failed)}, responses by code {dict(proxy.codes)}")
    assert (load.failed, load.delivered > 0) == ([], True)


def restarted_under_load(
    cli: Callable[..., Ran], kafka: KafkaCluster, folder: Path, stop: Callable[[list[int]], None]
) -> tuple[Load, CountingProxy, list[list[int]]]:
    """A rolling restart by --exec of all brokers; each batch is stopped by `stop`. The batches of plan.json, too."""
    stopped = list[list[int]]()
    create_topic(kafka, "orders", assignment=RING, config={"min.insync.replicas": "2"})
    server = ("--bootstrap-server", kafka.bootstrap_servers)
    plan = folder / "plan.json"
    planned = cli("restart", "plan", *server, "-o", "json")
    plan.write_text(planned.out)
    batches = [batch["brokers"] for batch in planned.document["batches"]]
    assert sorted(batches) == [[1, 4], [2, 5], [3, 6]]

    def restart(brokers: list[int]) -> None:
        stopped.append(brokers)
        stop(brokers)
        kafka.restart(*brokers)

    with (
        counting_proxy(kafka.bootstrap_servers) as proxy,
        load_on(proxy.bootstrap_servers, "orders") as load,
        command_that_calls(restart, folder) as command,
    ):
        ran = watch(*server, "--plan", str(plan), "--exec", command, "--apply", "-o", "json")
    assert ran.returncode == 0, ran.stderr
    assert stopped == batches
    assert json.loads(ran.stdout.splitlines()[-1])["event"] == "done"
    return load, proxy, batches


def test_a_batch_that_is_not_safe_refuses_the_partitions_foretold_and_no_other(
    cli: Callable[..., Ran], kafka: KafkaCluster
) -> None:
    topic, stopped = "forbidden", [4, 5]
    create_topic(kafka, topic, assignment=RING, config={"min.insync.replicas": "2"})
    judged = cli("restart", "safe", "--bootstrap-server", kafka.bootstrap_servers, "--broker", "4,5", "-o", "json")
    assert judged.code == 2
    named = [partition for partition in judged.document["refuses_writes"] if partition["topic"] == topic]
    foretold = {partition["partition"] for partition in named}
    assert foretold == {partition for partition, held in enumerate(RING) if {4, 5} <= set(held)}
    with counting_proxy(kafka.bootstrap_servers) as proxy:
        kafka.stop(*stopped)
        eventually(lambda: len(in_sync_without(kafka, topic, stopped)) == PARTITIONS, "no stopped broker is in sync")
        settings = {"bootstrap.servers": proxy.bootstrap_servers, "acks": "all", "message.timeout.ms": 10_000}
        producer = Producer({**settings, "retries": 0, "log_level": 0})
        for partition in range(PARTITIONS):
            producer.produce(topic, b"record", partition=partition)
        producer.flush(WITHIN_SECONDS)
        kafka.restart(*stopped)
    refused = set().union(*(proxy.partitions_of.get(code, set()) for code in REFUSED))
    assert (refused, proxy.partitions_of[ErrorCode.NONE]) == (foretold, set(range(PARTITIONS)) - foretold)


def listed(kafka: KafkaCluster) -> set[int]:
    """The brokers that are up and not fenced."""
    return set(
        AdminClient({"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0})
        .list_topics(timeout=WITHIN_SECONDS)
        .brokers
    )


def in_sync_without(kafka: KafkaCluster, topic: str, brokers: list[int]) -> list[int]:
    """The partitions with a leader and an ISR that has none of these brokers."""
    found = AdminClient({"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0}).list_topics(
        topic, WITHIN_SECONDS
    )
    partitions = found.topics[topic].partitions
    return [at for at, shown in partitions.items() if shown.leader > 0 and not set(shown.isrs) & set(brokers)]


def test_leaders_are_in_the_required_racks_after_one_command_and_after_a_restart(
    cli: Callable[..., Ran], kafka: KafkaCluster, tmp_path: Path
) -> None:
    """Brokers 1 and 4 are in rack r1: each partition has a replica on one of them."""
    topic = "led-in-required-racks"
    create_topic(kafka, topic, assignment=RING, config={"min.insync.replicas": "2"})
    (tmp_path / "rackspan.toml").write_text(f'[topics."{topic}"]\nleader.racks = ["r1"]\n')
    server = ("--bootstrap-server", kafka.bootstrap_servers)

    def leaders() -> list[int]:
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0})
        return sorted(
            shown.leader for shown in admin.list_topics(topic, WITHIN_SECONDS).topics[topic].partitions.values()
        )

    assert cli("reassign", "plan", *server, "--leaders", "--out", "leaders.json").code == 2
    applied = cli("reassign", "apply", *server, "--plan", "leaders.json", "--apply")
    assert applied.code == 0, applied.err
    eventually(lambda: leaders() == [1] * 6 + [4] * 6, "partitions are led from rack r1, as level as can be")
    assert cli("reassign", "plan", *server, "--leaders").code == 0
    kafka.stop(4)
    eventually(lambda: 4 not in leaders(), "broker 4 leads nothing")
    kafka.restart(4)
    eventually(lambda: replicas_in_sync(kafka, topic) == 3 * PARTITIONS, "every replica is in sync")
    console_tool(kafka, ELECTION_TOOL, "--election-type", "preferred", "--all-topic-partitions")
    eventually(lambda: leaders() == [1] * 6 + [4] * 6, "partitions are led from rack r1 again")
    undone = cli("reassign", "undo", *server, "--plan", "leaders.json", "--apply")
    assert undone.code == 0, undone.err
    eventually(lambda: leaders() == sorted(held[0] for held in RING), "partitions are led as before")


def replicas_in_sync(kafka: KafkaCluster, topic: str) -> int:
    found = AdminClient({"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0}).list_topics(
        topic, WITHIN_SECONDS
    )
    return sum(len(shown.isrs) for shown in found.topics[topic].partitions.values())


def watch(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "rackspan", "restart", "watch", *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
