"""Where the demo plays: the embedded cluster, or real Apache Kafka. The story is the same up to what only one can do."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Final

from rackspan.demo.topics import BROKERS, RACKS
from rackspan.errors import MissingRequirement
from rackspan.model.ids import BrokerId

Say = Callable[[str], None]

SESSION_CONFIG: Final = {"broker.session.timeout.ms": "3000", "broker.heartbeat.interval.ms": "500"}
"""A demo is short: three seconds instead of Kafka's nine until a silent broker is fenced."""


@dataclass(frozen=True, slots=True)
class Stage:
    """`outage_seconds` is how long a rack stays lost: longer than it takes the cluster to notice, and clients to feel it.

    `under_min_racks` reads the metric of min.insync.racks, cluster-wide; None where the cluster does not know the config.
    """

    bootstrap_servers: str
    lose_rack: Callable[[str], None]
    restore_rack: Callable[[str], None]
    quiet_seconds: float
    outage_seconds: float
    under_min_racks: Callable[[], int] | None = None


@contextmanager
def embedded(say: Say) -> Iterator[Stage]:
    """Errors: MissingRequirement without kio."""
    if find_spec("kio") is None:
        raise MissingRequirement("the embedded cluster needs kio; install it with pip install 'rackspan[cluster]'")
    from rackspan.cluster import EmbeddedCluster

    with EmbeddedCluster(RACKS, BROKERS) as cluster:
        say("the embedded cluster is up: in memory, for development and tests (--kafka takes real Apache Kafka)")
        yield Stage(
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
def real_kafka(say: Say) -> Iterator[Stage]:
    """Errors: MissingRequirement without Java."""
    from rackspan.kafka_process import KafkaCluster

    with KafkaCluster(racks=RACKS, brokers=BROKERS, config=SESSION_CONFIG, progress=say) as cluster:
        yield Stage(
            cluster.bootstrap_servers, cluster.lose_rack, cluster.start_rack, quiet_seconds=8.0, outage_seconds=14.0
        )
