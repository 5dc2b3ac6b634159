"""The metrics of min.insync.racks, by name: the proposal's, and Prometheus' as they are served."""

from dataclasses import dataclass
from enum import Enum
from typing import Final


class Kind(Enum):
    GAUGE = "gauge"
    COUNTER = "counter"


class Scope(Enum):
    PARTITION = "partition"
    """A series a partition, only where per-partition series are asked for."""
    BROKER = "broker"
    CLUSTER = "cluster"
    """Of a watch, which looks at a whole cluster from outside."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric. `proposed` is its name in the proposal, and stands in the help text; empty where it is ours alone."""

    name: str
    proposed: str
    scope: Scope
    kind: Kind
    meaning: str

    @property
    def labels(self) -> tuple[str, ...]:
        return ("topic", "partition") if self.scope is Scope.PARTITION else ()

    @property
    def help(self) -> str:
        return f"{self.proposed}: {self.meaning}" if self.proposed else self.meaning


METRICS: Final = (
    Metric(
        "rackspan_partition_under_min_rack_isr",
        "UnderMinRackIsr",
        Scope.PARTITION,
        Kind.GAUGE,
        "1 while the ISR spans fewer racks than min.insync.racks, else 0",
    ),
    Metric(
        "rackspan_partition_at_min_rack_isr",
        "AtMinRackIsr",
        Scope.PARTITION,
        Kind.GAUGE,
        "1 while the ISR spans exactly min.insync.racks racks, else 0",
    ),
    Metric("rackspan_partition_isr_racks", "IsrRackCount", Scope.PARTITION, Kind.GAUGE, "distinct racks the ISR spans"),
    Metric(
        "rackspan_under_min_rack_isr_partitions",
        "UnderMinRackIsrPartitionCount",
        Scope.BROKER,
        Kind.GAUGE,
        "partitions led here whose ISR spans fewer racks than min.insync.racks",
    ),
    Metric(
        "rackspan_at_min_rack_isr_partitions",
        "AtMinRackIsrPartitionCount",
        Scope.BROKER,
        Kind.GAUGE,
        "partitions led here whose ISR spans exactly min.insync.racks racks",
    ),
    Metric(
        "rackspan_rack_check_failures_total",
        "RackCheckFailureRate",
        Scope.BROKER,
        Kind.COUNTER,
        "produce requests refused for want of racks, those that timed out waiting for racks included",
    ),
)

TOLD_BY_METADATA: Final = tuple(metric for metric in METRICS if metric.proposed != "RackCheckFailureRate")
"""Those that a watch can serve; how many requests a broker has refused is the broker's own to count."""

WATCH_METRICS: Final = (
    Metric(
        "rackspan_watch_up",
        "",
        Scope.CLUSTER,
        Kind.GAUGE,
        "1 while the last reading of the cluster succeeded, else 0",
    ),
    Metric("rackspan_watch_readings_total", "", Scope.CLUSTER, Kind.COUNTER, "readings that succeeded"),
    Metric("rackspan_watch_failures_total", "", Scope.CLUSTER, Kind.COUNTER, "readings that failed"),
    Metric(
        "rackspan_watch_unread",
        "",
        Scope.CLUSTER,
        Kind.GAUGE,
        "things that the last reading could not tell, each named on the watch's standard error; other counts may be too low",
    ),
    Metric(
        "rackspan_watch_leaderless_partitions",
        "",
        Scope.CLUSTER,
        Kind.GAUGE,
        "partitions that nobody leads, and so no broker counts among its own",
    ),
    Metric(
        "rackspan_watch_under_min_rack_isr_seconds_total",
        "",
        Scope.CLUSTER,
        Kind.COUNTER,
        "partition-seconds seen with an ISR of fewer racks than min.insync.racks, in place of RackCheckFailureRate: "
        "metadata tells when acks=all would be refused, not how often it was",
    ),
)
"""What a watch says of itself and of the cluster as a whole."""
