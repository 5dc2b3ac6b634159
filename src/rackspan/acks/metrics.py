"""The metrics of min.insync.racks: their names in the KIP and in Prometheus, their scopes and help texts."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final


class MetricKind(Enum):
    GAUGE = "gauge"
    COUNTER = "counter"


class MetricScope(Enum):
    PARTITION = "partition"
    """One series per partition, served only where per-partition series are requested."""
    BROKER = "broker"
    CLUSTER = "cluster"
    """The metrics of a watch, which reads a whole cluster's metadata."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric. `proposed` is its name in the KIP, which the help text begins with; empty if the KIP has none."""

    name: str
    scope: MetricScope
    kind: MetricKind
    meaning: str
    proposed: str = ""

    @property
    def help(self) -> str:
        return f"{self.proposed}: {self.meaning}" if self.proposed else self.meaning


METRICS: Final = (
    Metric(
        "rackspan_partition_under_min_rack_isr",
        MetricScope.PARTITION,
        MetricKind.GAUGE,
        "1 while the ISR spans fewer racks than min.insync.racks, else 0",
        "UnderMinRackIsr",
    ),
    Metric(
        "rackspan_partition_at_min_rack_isr",
        MetricScope.PARTITION,
        MetricKind.GAUGE,
        "1 while the ISR spans exactly min.insync.racks racks, else 0",
        "AtMinRackIsr",
    ),
    Metric(
        "rackspan_partition_isr_racks",
        MetricScope.PARTITION,
        MetricKind.GAUGE,
        "distinct racks the ISR spans",
        "IsrRackCount",
    ),
    Metric(
        "rackspan_under_min_rack_isr_partitions",
        MetricScope.BROKER,
        MetricKind.GAUGE,
        "partitions led here whose ISR spans fewer racks than min.insync.racks",
        "UnderMinRackIsrPartitionCount",
    ),
    Metric(
        "rackspan_at_min_rack_isr_partitions",
        MetricScope.BROKER,
        MetricKind.GAUGE,
        "partitions led here whose ISR spans exactly min.insync.racks racks",
        "AtMinRackIsrPartitionCount",
    ),
    Metric(
        "rackspan_rack_check_failures_total",
        MetricScope.BROKER,
        MetricKind.COUNTER,
        "produce requests refused for want of racks, those that timed out waiting for racks included",
        "RackCheckFailureRate",
    ),
)


def partition_values(isr_racks: int, required_racks: int) -> dict[str, int]:
    """The metrics of one partition: the racks that its ISR spans, and the value of min.insync.racks in effect."""
    return {
        "rackspan_partition_under_min_rack_isr": int(isr_racks < required_racks),
        "rackspan_partition_at_min_rack_isr": int(isr_racks == required_racks),
        "rackspan_partition_isr_racks": isr_racks,
    }


def leader_values(partitions: Collection[Mapping[str, int]]) -> dict[str, int]:
    """The counts of one broker, from the metrics of each partition that it leads."""
    return {
        "rackspan_under_min_rack_isr_partitions": sum(
            values["rackspan_partition_under_min_rack_isr"] for values in partitions
        ),
        "rackspan_at_min_rack_isr_partitions": sum(
            values["rackspan_partition_at_min_rack_isr"] for values in partitions
        ),
    }


METADATA_METRICS: Final = tuple(metric for metric in METRICS if metric.proposed != "RackCheckFailureRate")
"""The metrics that a watch can serve from metadata. Only a broker can count the requests that it refused."""

WATCH_METRICS: Final = (
    Metric(
        "rackspan_watch_up",
        MetricScope.CLUSTER,
        MetricKind.GAUGE,
        "1 while the last reading of the cluster succeeded, else 0",
    ),
    Metric("rackspan_watch_readings_total", MetricScope.CLUSTER, MetricKind.COUNTER, "readings that succeeded"),
    Metric("rackspan_watch_failures_total", MetricScope.CLUSTER, MetricKind.COUNTER, "readings that failed"),
    Metric(
        "rackspan_watch_unread",
        MetricScope.CLUSTER,
        MetricKind.GAUGE,
        "what the last reading could not determine, each named on the watch's standard error; other counts may be too low",
    ),
    Metric(
        "rackspan_watch_leaderless_partitions",
        MetricScope.CLUSTER,
        MetricKind.GAUGE,
        "partitions without a leader, which no broker counts among its own",
    ),
    Metric(
        "rackspan_watch_under_min_rack_isr_seconds_total",
        MetricScope.CLUSTER,
        MetricKind.COUNTER,
        "partition-seconds observed with an ISR of fewer racks than min.insync.racks, in place of RackCheckFailureRate: "
        "metadata shows when acks=all would be refused, not how often it was",
    ),
)
"""The metrics of a watch itself and of the whole cluster."""
