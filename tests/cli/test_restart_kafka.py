"""rackspan restart watch --exec on Apache Kafka: six brokers in three racks, restarted under load."""

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from confluent_kafka import Producer

from rackspan.kafka_process import KafkaCluster
from tests.cli.conftest import Ran
from tests.cli.restarted_brokers import command_that_calls
from tests.kafka_fixtures import create_topic, started
from tests.kafka_versions import KAFKA

pytestmark = pytest.mark.kafka

PARTITIONS = 12


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
def load_on(cluster: KafkaCluster, topic: str) -> Iterator[Load]:
    """A record a hundredth of a second, to each partition in turn, until the block ends; then every report is awaited."""
    load, ended = Load(), threading.Event()
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "acks": "all", "linger.ms": 5})

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
        assert producer.flush(60) == 0


def test_batches_are_restarted_under_load_and_no_delivery_fails(
    cli: Callable[..., Ran], restarted_kafka: KafkaCluster, tmp_path: Path
) -> None:
    kafka, stopped = restarted_kafka, list[list[int]]()
    ring = [[(first + at) % 6 + 1 for at in range(3)] for first in range(PARTITIONS)]
    create_topic(kafka, "orders", assignment=ring, config={"min.insync.replicas": "2"})
    server = ("--bootstrap-server", kafka.bootstrap_servers)
    plan = tmp_path / "plan.json"
    planned = cli("restart", "plan", *server, "-o", "json")
    plan.write_text(planned.out)
    batches = [batch["brokers"] for batch in planned.document["batches"]]
    assert sorted(batches) == [[1, 4], [2, 5], [3, 6]]

    def restart(brokers: list[int]) -> None:
        stopped.append(brokers)
        kafka.stop_nodes(brokers)
        kafka.start_nodes(brokers)

    with load_on(kafka, "orders") as load, command_that_calls(restart, tmp_path) as command:
        ran = watch(*server, "--plan", str(plan), "--exec", command, "--apply", "-o", "json")
    assert ran.returncode == 0, ran.stderr
    assert stopped == batches
    assert (load.failed, load.delivered > 0) == ([], True)
    assert json.loads(ran.stdout.splitlines()[-1])["event"] == "done"
    # A broker that does not come back stops it: the command stops the first batch and does not start it.
    with command_that_calls(kafka.stop_nodes, tmp_path) as command:
        again = ("--plan", str(plan), "--journal", str(tmp_path / "again"), "--patience", "3")
        ran = watch(*server, *again, "--exec", command, "--apply")
    assert ran.returncode == 1
    ids = ",".join(map(str, batches[0]))
    assert ran.stderr.splitlines()[-1] == (
        f"rackspan: batch 1 of 3 (brokers {ids}): brokers {ids} have not come back, for 3 s; "
        f"start brokers {ids}, and run the same command again to resume"
    )


def watch(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "rackspan", "restart", "watch", *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
