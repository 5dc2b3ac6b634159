"""Prometheus metrics of brokers and of a watch. Their names and help texts: acks/metrics.py; they are served by server.py.

Series have the labels `broker` and `rack`. One series per partition is served only on request: a cluster has few brokers
and may have very many partitions.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.core import Metric as Family

from rackspan.acks.metrics import (
    METADATA_METRICS,
    WATCH_METRICS,
    Metric,
    MetricKind,
    MetricScope,
    partition_values,
)
from rackspan.model.ids import NO_BROKER, BrokerId, RackId

if TYPE_CHECKING:
    # It needs NumPy, which a gateway with metrics need not import.
    from rackspan.acks.watch import ClusterIsr, Watch

_LABELS: Final[Mapping[MetricScope, tuple[str, ...]]] = {
    MetricScope.CLUSTER: (),
    MetricScope.BROKER: ("broker", "rack"),
    MetricScope.PARTITION: ("broker", "rack", "topic", "partition"),
}
_FAMILIES: Final[Mapping[MetricKind, type[GaugeMetricFamily] | type[CounterMetricFamily]]] = {
    MetricKind.GAUGE: GaugeMetricFamily,
    MetricKind.COUNTER: CounterMetricFamily,
}


@dataclass(frozen=True, slots=True)
class BrokerMetrics:
    """The values of one broker, and on request of the partitions that it leads: topic, partition number, values.

    `broker` None: the partitions without a leader.
    """

    broker: BrokerId | None
    rack: RackId | None
    values: Mapping[str, int]
    partitions: Sequence[tuple[str, int, Mapping[str, int]]] = ()


def broker_families(
    metrics: Iterable[Metric], brokers: Sequence[BrokerMetrics], *, partitions: bool
) -> Iterator[Family]:
    """The families of brokers, and on request of partitions."""
    scopes = (MetricScope.BROKER, MetricScope.PARTITION) if partitions else (MetricScope.BROKER,)
    return (_family(metric, brokers) for metric in metrics if metric.scope in scopes)


def cluster_family(metric: Metric, value: float) -> Family:
    """A family of a single series."""
    family = _empty(metric)
    family.add_metric((), value)
    return family


def _empty(metric: Metric) -> GaugeMetricFamily | CounterMetricFamily:
    return _FAMILIES[metric.kind](metric.name, metric.help, labels=_LABELS[metric.scope])


def _family(metric: Metric, brokers: Iterable[BrokerMetrics]) -> Family:
    family = _empty(metric)
    for broker in brokers:
        labels = ("" if broker.broker is None else str(broker.broker), broker.rack or "")
        if metric.scope is MetricScope.PARTITION:
            for topic, partition, values in broker.partitions:
                family.add_metric((*labels, topic, str(partition)), values[metric.name])
        elif broker.broker is not None:
            family.add_metric(labels, broker.values[metric.name])
    return family


def watch_families(watch: "Watch", *, partitions: bool, cluster_name: str | None = None) -> Iterator[Family]:
    """The families of a watch: its own always, the cluster's while readings succeed. `cluster_name`: of rackspan.toml."""
    # Imported here, since it needs NumPy, and a gateway with metrics does not.
    from rackspan.prometheus_metrics.rack_losses import ClusterLosses, rack_loss_families

    values = _watch_values(watch)
    yield from (cluster_family(metric, values[metric.name]) for metric in WATCH_METRICS if metric.name in values)
    if watch.latest is not None:
        yield from broker_families(METADATA_METRICS, _broker_metrics(watch.latest, partitions), partitions=partitions)
        latest = watch.latest
        yield from rack_loss_families([ClusterLosses(latest.cluster_id, cluster_name, latest.losses, latest.taken_at)])


def _watch_values(watch: "Watch") -> dict[str, float]:
    always = {
        "rackspan_watch_up": float(watch.latest is not None),
        "rackspan_watch_readings_total": watch.readings,
        "rackspan_watch_failures_total": watch.failures,
        "rackspan_watch_under_min_rack_isr_seconds_total": watch.under_seconds,
    }
    if watch.latest is None:
        return always
    return always | {
        "rackspan_watch_unread": len(watch.latest.partial),
        "rackspan_watch_leaderless_partitions": watch.latest.leaderless,
    }


def _broker_metrics(reading: "ClusterIsr", partitions: bool) -> list[BrokerMetrics]:
    led: dict[int, list[tuple[str, int, Mapping[str, int]]]] = {}
    for partition in reading.partitions() if partitions else ():
        # A leader that is not known is no label.
        led.setdefault(max(partition.leader, NO_BROKER), []).append(
            (partition.topic, partition.partition, partition_values(partition.isr_racks, partition.required))
        )
    brokers = [
        BrokerMetrics(
            leader.broker,
            leader.rack,
            {"rackspan_under_min_rack_isr_partitions": leader.under, "rackspan_at_min_rack_isr_partitions": leader.at},
            led.get(leader.broker, ()),
        )
        for leader in reading.leaders
    ]
    return [*brokers, BrokerMetrics(None, None, {}, led.get(NO_BROKER, ()))]
