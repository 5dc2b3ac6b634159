"""The story, step by step: what happens, what rackspan says of it, and what the clients saw."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rackspan import verbs
from rackspan.audit import RackLoss, RackPolicy
from rackspan.demo.topics import BROKERS, LOST_RACK, RACKS, TOPICS
from rackspan.demo.traffic import Tally, Traffic, confluent_kafka
from rackspan.errors import RackspanError
from rackspan.kafka_process import KafkaCluster
from rackspan.model.racks import shown

Say = Callable[[str], None]

QUIET_SECONDS: Final = 8.0
OUTAGE_SECONDS: Final = 14.0
"""Longer than the brokers' session, so that the controller fences the lost rack and clients feel it."""

COLLECT_SECONDS: Final = 2.0

CONFIG: Final = {"broker.session.timeout.ms": "3000", "broker.heartbeat.interval.ms": "500"}
"""A demo is short: three seconds instead of Kafka's nine until a silent broker is fenced."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How the demo ended. `foretold` is what outage said before the rack was lost; `missing` acknowledged records."""

    report: Path
    warehouse: Path
    foretold: RackLoss
    acknowledged: int
    missing: tuple[str, ...]
    snapshots: int


def tell(out: Path, say: Say) -> Outcome:
    """Run the whole demo; `say` gets a line a step. Errors: MissingRequirement without Java, Spark or librdkafka."""
    confluent_kafka()
    with KafkaCluster(racks=RACKS, brokers=BROKERS, config=CONFIG, progress=say) as cluster:
        say(f"{BROKERS} brokers in racks {', '.join(RACKS)} at {cluster.bootstrap_servers}")
        _create_topics(cluster.bootstrap_servers, say)
        warehouse = out / "warehouse"
        with Traffic(cluster.bootstrap_servers, {topic.name: len(topic.replicas) for topic in TOPICS}) as traffic:
            with _collecting(cluster.bootstrap_servers, warehouse) as collected:
                foretold = _lose_and_restore(cluster, traffic, say)
            traffic.stop()
            missing = tuple(traffic.missing())
        say(
            f"{traffic.acknowledged:,} records acknowledged, {len(missing)} partitions miss any; {len(collected)} snapshots collected"
        )
    return Outcome(_report(out, warehouse, say), warehouse, foretold, traffic.acknowledged, missing, len(collected))


def _create_topics(bootstrap_servers: str, say: Say) -> None:
    client = confluent_kafka()
    admin = client.admin.AdminClient({"bootstrap.servers": bootstrap_servers})
    wanted = [
        client.admin.NewTopic(
            topic.name,
            num_partitions=len(topic.replicas),
            replica_assignment=[list(replicas) for replicas in topic.replicas],
            config={"min.insync.replicas": str(topic.min_insync_replicas)},
        )
        for topic in TOPICS
    ]
    for topic, created in zip(TOPICS, admin.create_topics(wanted).values(), strict=True):
        created.result(30)
        say(f"  topic {topic.name}: {topic.why}")


def _lose_and_restore(cluster: KafkaCluster, traffic: Traffic, say: Say) -> RackLoss:
    traffic.wait_until_acknowledged()
    time.sleep(QUIET_SECONDS)
    _say_tally(say, "all racks up", traffic.phase())
    foretold = _foretell(cluster, say)
    say(f"rack {LOST_RACK} loses power")
    cluster.lose_rack(LOST_RACK)
    time.sleep(OUTAGE_SECONDS)
    _say_tally(say, f"without {LOST_RACK}", traffic.phase())
    say(f"rack {LOST_RACK} comes back")
    cluster.start_rack(LOST_RACK)
    _say_tally(say, "while it starts", traffic.phase())
    time.sleep(QUIET_SECONDS)
    _say_tally(say, "all racks up again", traffic.phase())
    return foretold


def _foretell(cluster: KafkaCluster, say: Say) -> RackLoss:
    source = verbs.live_cluster(cluster.bootstrap_servers, None, 30.0)
    _, (loss,) = verbs.outage(source.read().snapshot, RackPolicy(), lose=(LOST_RACK,))
    harmed = [f"{topic.topic} {', '.join(_states(topic.offline, topic.under_min_isr))}" for topic in loss.topics]
    say(f"rackspan outage --lose {shown(loss.racks[0])} foretells: {'; '.join(harmed) or 'no harm'}")
    return loss


def _states(offline: int, under_min_isr: int) -> Iterator[str]:
    if offline:
        yield f"{offline} offline"
    if under_min_isr:
        yield f"{under_min_isr} refusing acks=all"


def _say_tally(say: Say, when: str, tally: Tally) -> None:
    words = [
        f"{topic.name} {tally.acknowledged[topic.name]} acknowledged"
        + (f" and {tally.refused[topic.name]} refused" if tally.refused[topic.name] else "")
        for topic in TOPICS
    ]
    say(f"  {when}: {', '.join(words)}")


@contextmanager
def _collecting(bootstrap_servers: str, warehouse: Path) -> Iterator[list[Path]]:
    """Snapshots into the warehouse every few seconds, as `rackspan pipeline collect --every` takes them."""
    source = verbs.live_cluster(bootstrap_servers, None, 10.0)
    kept: list[Path] = []
    stop = threading.Event()

    def go_on() -> None:
        while not stop.wait(COLLECT_SECONDS):
            for one in verbs.collect([source], warehouse):
                # A snapshot missed while brokers come and go is made up for by the next one.
                if not isinstance(one.error, RackspanError) and one.stored is not None:
                    kept.append(one.stored.path)

    thread = threading.Thread(target=go_on, daemon=True)
    thread.start()
    try:
        yield kept
    finally:
        stop.set()
        thread.join()


def _report(out: Path, warehouse: Path, say: Say) -> Path:
    say("Spark judges every snapshot (a few seconds to start)")
    verbs.run_pipeline(warehouse, RackPolicy())
    report = out / "report.html"
    verbs.report(warehouse, RackPolicy(), report)
    return report
