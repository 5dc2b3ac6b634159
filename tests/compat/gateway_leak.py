"""The leak test: racks of real Kafka are frozen or killed under idempotent producers, and acknowledgements are judged by when they came.

    python -m tests.compat.gateway_leak MODE TRIALS [freeze|kill]

Three brokers in three racks; the controller is none of them, so that every broker's metadata is behind it. Both followers of every
partition are suspended, or killed. A record that was sent after that and acknowledged before they go on is held in one rack: a leak.
"""

import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from rackspan.kafka_process import KafkaCluster
from tests.gateway.load import PRODUCER, Load
from tests.gateway.process import gateway_process
from tests.kafka_fixtures import create_topic
from tests.kafka_versions import KAFKA
from tests.waiting import WITHIN_SECONDS, eventually

TOPIC: Final = "leak"
PARTITIONS: Final = 4
PRODUCERS: Final = 8
FOLLOWERS: Final = (2, 3)
LOAD_MIN: Final = 1000
"""Acknowledged records before the first trial, on however slow a machine."""
LAG_MAX_SECONDS: Final = 3.0
CONFIG: Final = {
    "replica.lag.time.max.ms": str(int(LAG_MAX_SECONDS * 1000)),
    "min.insync.replicas": "1",
    "auto.leader.rebalance.enable": "false",
}


@dataclass
class Outcome:
    """`leaked` counts acknowledgements by trial."""

    leaked: list[int] = field(default_factory=list)
    details: list[str] = field(default_factory=list)
    acknowledged: int = 0
    failed: int = 0
    lost: int = 0
    duplicated: int = 0
    out_of_order: int = 0


def probe(load: Load, servers: str, trial: int) -> Producer:
    """A producer that begins after the freeze: its requests wait in the broker when the ISR shrinks."""
    client = Producer({"bootstrap.servers": servers, **PRODUCER, "linger.ms": 0})
    # No more than its requests in flight, as the load.
    for number in range(PARTITIONS):
        load.send(client, PRODUCERS + trial * PARTITIONS + number, number)
        client.poll(0.01)
    return client


def run_trials(mode: str, trials: int, *, kill: bool = False) -> Outcome:
    with leak_cluster(1) as cluster:
        return observed(cluster, mode, trials, kill=kill)


def leak_cluster(controllers: int, version: str = KAFKA, **config: str) -> KafkaCluster:
    """Three brokers in three racks, and controllers from 101 on that stand apart."""
    return KafkaCluster(
        racks=("r1", "r2", "r3"),
        brokers=3,
        controllers=dict.fromkeys(range(101, 101 + controllers)),
        config={**CONFIG, **config},
        version=version,
    )


def observed(
    cluster: KafkaCluster,
    mode: str,
    trials: int,
    disturbance: Callable[[], AbstractContextManager[float]] = lambda: nullcontext(0.0),
    *,
    kill: bool = False,
) -> Outcome:
    """Trials before a running cluster.

    `disturbance` is entered when the followers are frozen and left when they go on: by how many seconds the ISR shrinks later for it.
    """
    controllers = f'controllers.bootstrap.servers = "{cluster.bootstrap_controllers}"\n' if mode == "strict" else ""
    lines = f'{controllers}acknowledgements.mode = "{mode}"\n[topics.{TOPIC}]\nmin.insync.racks = 2\n'
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    if TOPIC in admin.list_topics(timeout=WITHIN_SECONDS).topics:  # Of trials that failed.
        admin.delete_topics([TOPIC])[TOPIC].result(WITHIN_SECONDS)
        eventually(lambda: TOPIC not in admin.list_topics(timeout=WITHIN_SECONDS).topics, "the topic is gone")
    create_topic(cluster, TOPIC, assignment=[[1, 2, 3]] * PARTITIONS)
    with (
        tempfile.TemporaryDirectory() as folder,
        gateway_process(Path(folder), cluster.bootstrap_servers, lines) as gateway,
    ):
        load = Load(gateway.bootstrap_servers, TOPIC, producers=PRODUCERS, partitions=PARTITIONS, pause_seconds=0.001)
        try:
            eventually(lambda: len(load.acknowledged) > LOAD_MIN, "the load is acknowledged")
            probes = [partial(probe, load, gateway.bootstrap_servers, number) for number in range(trials)]
            lost = _killed if kill else _frozen
            frozen = [_trial(lost(cluster), admin, one, disturbance) for one in probes]
        finally:
            load.stop()
        return judged(cluster.bootstrap_servers, load, frozen)


@contextmanager
def _frozen(cluster: KafkaCluster) -> Iterator[None]:
    """Without the followers of every partition, which are suspended."""
    for broker in FOLLOWERS:
        cluster.pause(broker)
    try:
        yield
    finally:
        for broker in FOLLOWERS:
            cluster.resume(broker)


@contextmanager
def _killed(cluster: KafkaCluster) -> Iterator[None]:
    """Without the followers of every partition, which are killed and started again."""
    cluster.kill(*FOLLOWERS)
    try:
        yield
    finally:
        cluster.restart(*FOLLOWERS)


def _trial(
    without_followers: AbstractContextManager[None],
    admin: AdminClient,
    started: Callable[[], Producer],
    disturbance: Callable[[], AbstractContextManager[float]],
) -> tuple[float, float]:
    """Take both followers away until the ISR is the leader alone and requests have had time to leak. From when to when."""
    eventually(lambda: smallest_isr(admin) == 3, "every ISR is whole")
    time.sleep(1.0)
    with without_followers:
        frozen_at = time.monotonic() + 0.02
        with disturbance() as more_seconds:
            time.sleep(LAG_MAX_SECONDS / 2)
            client = started()
            rest = time.monotonic() + LAG_MAX_SECONDS + 1.5 + more_seconds  # short: the trial itself
            while time.monotonic() < rest:
                client.poll(0.05)
            until = time.monotonic()
    client.flush(WITHIN_SECONDS)
    return frozen_at, until


def smallest_isr(admin: AdminClient) -> int:
    return min(
        len(one.isrs) for one in admin.list_topics(TOPIC, timeout=WITHIN_SECONDS).topics[TOPIC].partitions.values()
    )


def judged(servers: str, load: Load, frozen: list[tuple[float, float]]) -> Outcome:
    outcome = Outcome(acknowledged=len(load.acknowledged), failed=load.failed)
    for begin, end in frozen:
        leaked = [one for one in load.acknowledged if begin < one.sent_at and one.acknowledged_at < end]
        outcome.leaked.append(len(leaked))
        if leaked:
            at = sorted(one.acknowledged_at - begin for one in leaked)
            sent = sorted(one.sent_at - begin for one in leaked)
            outcome.details.append(
                f"sent {sent[0]:.3f} to {sent[-1]:.3f} s, acknowledged {at[0]:.3f} to {at[-1]:.3f} s after the freeze"
            )
    kept = _log(servers)
    counted = Counter(record for partition in kept for record in partition)
    outcome.lost = sum(1 for one in load.acknowledged if counted[one.producer, one.number] == 0)
    outcome.duplicated = sum(1 for count in counted.values() if count > 1)
    for partition in kept:
        last: dict[int, int] = {}
        for producer, number in partition:
            outcome.out_of_order += number <= last.get(producer, -1)
            last[producer] = number
    return outcome


def _log(servers: str) -> list[list[tuple[int, int]]]:
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "judge", "auto.offset.reset": "earliest"})
    kept: list[list[tuple[int, int]]] = [[] for _ in range(PARTITIONS)]
    ends = [
        consumer.get_watermark_offsets(TopicPartition(TOPIC, one), timeout=WITHIN_SECONDS)[1]
        for one in range(PARTITIONS)
    ]
    consumer.assign([TopicPartition(TOPIC, one, 0) for one in range(PARTITIONS)])
    until = time.monotonic() + WITHIN_SECONDS
    while sum(map(len, kept)) < sum(ends) and time.monotonic() < until:
        for message in consumer.consume(5000, 0.5):
            if message.error() is None:
                producer, _, number = (message.value() or b"").decode().partition(":")
                kept[message.partition() or 0].append((int(producer), int(number)))
    consumer.close()
    return kept


if __name__ == "__main__":
    print(run_trials(sys.argv[1], int(sys.argv[2]), kill=sys.argv[3:] == ["kill"]))
