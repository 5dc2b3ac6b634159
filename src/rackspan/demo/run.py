"""Runs the demo step by step, and reports what rackspan predicts and what the clients observe."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rackspan import api
from rackspan.audit import RackLoss, RackPolicy
from rackspan.demo.clients import DemoClients, Tally, confluent_kafka, handles
from rackspan.demo.clusters import DemoCluster, ReportLine, embedded, real_kafka
from rackspan.demo.topics import BROKERS, LEDGER, LOST_RACK, RACKS, TOPICS, DemoTopic
from rackspan.demo.two_racks_lost import TwoRacksLost, lose_two_racks
from rackspan.ends import END_SECONDS, joined_within
from rackspan.errors import RackspanError
from rackspan.java import find_java
from rackspan.model.ids import shown
from rackspan.text import count_noun

COLLECT_SECONDS: Final = 2.0
IN_SYNC_SECONDS: Final = 60.0
PAUSE_SECONDS: Final = 0.2
READ_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class DemoResult:
    """`predicted` is the outage report before the rack was lost, `missing` has the lost acknowledged records.

    `two_racks` is None where the cluster does not have min.insync.racks.
    """

    report: Path
    warehouse: Path
    predicted: RackLoss
    acknowledged: int
    missing: tuple[str, ...]
    snapshots: int
    two_racks: TwoRacksLost | None


def run_demo(out: Path, report: ReportLine, *, kafka: bool = False) -> DemoResult:
    """Run the whole demo, on real Kafka if `kafka` is set. `report` gets one line per step.

    Errors: MissingRequirement without Java, Spark or librdkafka.
    """
    confluent_kafka()
    # Spark runs last. A missing Java is reported before anything starts.
    find_java()
    with (real_kafka if kafka else embedded)(report) as cluster:
        report(f"{BROKERS} brokers in racks {', '.join(RACKS)} at {cluster.bootstrap_servers}")
        topics = (*TOPICS, LEDGER) if cluster.under_min_racks else TOPICS
        _create_topics(cluster.bootstrap_servers, topics, report)
        warehouse = out / "warehouse"
        partitions = {topic.name: len(topic.replicas) for topic in topics}
        with DemoClients(cluster.bootstrap_servers, partitions, report) as clients:
            with _collecting(cluster.bootstrap_servers, warehouse, report) as collected:
                predicted, two_racks = _lose_racks(cluster, clients, report)
            clients.stop()
            missing = tuple(clients.missing())
        report(
            f"{count_noun(clients.acknowledged, 'record', ',')} acknowledged, {count_noun(len(missing), 'partition')} with records missing; "
            f"{count_noun(len(collected), 'snapshot')} collected"
        )
    page = _write_report(out, warehouse, report)
    return DemoResult(page, warehouse, predicted, clients.acknowledged, missing, len(collected), two_racks)


def _create_topics(bootstrap_servers: str, topics: tuple[DemoTopic, ...], report: ReportLine) -> None:
    client = confluent_kafka()
    admin = handles().AdminClient({"bootstrap.servers": bootstrap_servers})
    new_topics = [
        client.admin.NewTopic(
            topic.name,
            num_partitions=len(topic.replicas),
            replica_assignment=[list(replicas) for replicas in topic.replicas],
            config=dict(topic.config),
        )
        for topic in topics
    ]
    for topic, created in zip(topics, admin.create_topics(new_topics).values(), strict=True):
        created.result(30)
        report(f"  topic {topic.name}: {topic.why}")


def _lose_racks(cluster: DemoCluster, clients: DemoClients, report: ReportLine) -> tuple[RackLoss, TwoRacksLost | None]:
    predicted = _lose_and_restore(cluster, clients, report)
    if cluster.under_min_racks is None:
        return predicted, None
    return predicted, lose_two_racks(
        cluster, cluster.under_min_racks, clients, lambda when, tally: _report_tally(report, when, tally), report
    )


def _lose_and_restore(cluster: DemoCluster, clients: DemoClients, report: ReportLine) -> RackLoss:
    clients.wait_until_acknowledged()
    time.sleep(cluster.quiet_seconds)
    _report_tally(report, "all racks up", clients.take_tally())
    predicted = _predict(cluster.bootstrap_servers, report)
    report(f"rack {LOST_RACK} loses power")
    cluster.lose_rack(LOST_RACK)
    time.sleep(cluster.outage_seconds)
    _report_tally(report, f"without {LOST_RACK}", clients.take_tally())
    report(f"rack {LOST_RACK} comes back")
    cluster.restore_rack(LOST_RACK)
    _report_tally(report, "while it starts", clients.take_tally())
    time.sleep(cluster.quiet_seconds)
    _report_tally(report, "all racks up again", clients.take_tally())
    return predicted


def _predict(bootstrap_servers: str, report: ReportLine) -> RackLoss:
    source = api.live_cluster(bootstrap_servers, None, 30.0)
    snapshot, until = source.read().snapshot, time.monotonic() + IN_SYNC_SECONDS
    # On a busy machine followers fall behind at the start, and a loss would take more than it does of a cluster in sync.
    while any(len(row.isr) < len(row.replicas) for row in snapshot.partitions) and time.monotonic() < until:
        time.sleep(PAUSE_SECONDS)
        snapshot = source.read().snapshot
    _, (loss,) = api.outage(snapshot, RackPolicy(), lose=(LOST_RACK,))
    harmed = [f"{topic.topic} {', '.join(_states(topic.offline, topic.under_min_isr))}" for topic in loss.topics]
    report(f"rackspan outage --lose {shown(loss.racks[0])} predicts: {'; '.join(harmed) or 'no harm'}")
    return loss


def _states(offline: int, under_min_isr: int) -> Iterator[str]:
    if offline:
        yield f"{offline} offline"
    if under_min_isr:
        yield f"{under_min_isr} refusing acks=all"


def _report_tally(report: ReportLine, when: str, tally: Tally) -> None:
    refused = ", ".join(f"{topic} {count:,}" for topic, count in sorted(tally.refused.items()) if count)
    report(f"  {when}: {tally.acknowledged.total():,} records acknowledged; refused: {refused or 'none'}")


@contextmanager
def _collecting(bootstrap_servers: str, warehouse: Path, report: ReportLine) -> Iterator[list[str]]:
    """Snapshots into the warehouse every few seconds, as `rackspan pipeline collect --every` takes them."""
    source = api.live_cluster(bootstrap_servers, None, READ_SECONDS)
    stored: list[str] = []
    stop = threading.Event()

    def collect_until_stopped() -> None:
        while not stop.wait(COLLECT_SECONDS):
            for collected in api.collect([source], warehouse):
                # A snapshot that fails while brokers restart is replaced by the next one.
                if not isinstance(collected.error, RackspanError) and collected.stored is not None:
                    stored.append(collected.stored.snapshot_id)

    thread = threading.Thread(target=collect_until_stopped, daemon=True)
    thread.start()
    try:
        yield stored
    finally:
        stop.set()
    joined_within("the collector of snapshots", thread, READ_SECONDS + END_SECONDS, say=report)


def _write_report(out: Path, warehouse: Path, report: ReportLine) -> Path:
    report("Spark judges every snapshot (a few seconds to start)")
    api.run_pipeline(warehouse, RackPolicy())
    page = out / "report.html"
    api.report(warehouse, RackPolicy(), page)
    return page
