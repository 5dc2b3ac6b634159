"""The cluster of the demo: the embedded one, or real Apache Kafka. Only the embedded one has min.insync.racks."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from rackspan.demo.topics import BROKERS, RACKS
from rackspan.model.ids import BrokerId

ReportLine = Callable[[str], None]
"""Called with each line of the demo's output."""

SESSION_CONFIG: Final = {"broker.session.timeout.ms": "3000", "broker.heartbeat.interval.ms": "500"}
"""A demo is short: a broker without heartbeats is fenced after three seconds instead of Kafka's nine."""


@dataclass(frozen=True, slots=True)
class DemoCluster:
    """A running cluster. `outage_seconds` is how long a rack stays lost: long enough for brokers to be fenced and clients to fail.

    `under_min_racks` reads the metric of min.insync.racks, cluster-wide; None where the cluster does not have the config.
    """

    bootstrap_servers: str
    lose_rack: Callable[[str], None]
    restore_rack: Callable[[str], None]
    quiet_seconds: float
    outage_seconds: float
    under_min_racks: Callable[[], int] | None = None


@contextmanager
def embedded(report: ReportLine) -> Iterator[DemoCluster]:
    from rackspan.cluster import EmbeddedCluster

    with EmbeddedCluster(RACKS, BROKERS) as cluster:
        report("the embedded cluster is up: in memory, for development and tests (--kafka takes real Apache Kafka)")
        yield DemoCluster(
            cluster.bootstrap_servers,
            cluster.lose_rack,
            cluster.restore_rack,
            quiet_seconds=4.0,
            outage_seconds=7.0,
            under_min_racks=lambda: _summed(cluster.metrics(), "rackspan_under_min_rack_isr_partitions"),
        )


def _summed(metrics: Mapping[BrokerId, Mapping[str, int]], name: str) -> int:
    return sum(broker[name] for broker in metrics.values())


@contextmanager
def real_kafka(report: ReportLine) -> Iterator[DemoCluster]:
    """Errors: MissingRequirement without Java."""
    from rackspan.kafka_process import KafkaCluster

    with KafkaCluster(racks=RACKS, brokers=BROKERS, config=SESSION_CONFIG, progress=report) as cluster:
        yield DemoCluster(
            cluster.bootstrap_servers, cluster.lose_rack, cluster.restore_rack, quiet_seconds=8.0, outage_seconds=14.0
        )
