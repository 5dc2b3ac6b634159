"""What is served, read by Prometheus' own parser; and that the ready-made alerts use what is served."""

import re
from pathlib import Path
from typing import Any

import yaml
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from rackspan.acks.metrics import METADATA_METRICS, METRICS, WATCH_METRICS, MetricKind, MetricScope
from rackspan.acks.watch import Watch, watch_readings
from rackspan.audit import RackPolicy
from rackspan.prometheus_metrics.families import watch_families
from tests.acks.test_watch import GONE, cluster

RULES = Path(__file__).parents[2] / "examples" / "prometheus" / "min-insync-racks.rules.yml"


def watch(*, lost: bool = False) -> Watch:
    """Partition 0 is led by broker 1 and under, 1 by broker 2 and at, 2 by nobody and under."""
    snapshot = cluster([1], [2, 3], [3], leaders=[1, 2, -1], partial=("configs: unknown",))
    readings: list[Any] = [(0, snapshot), (5, snapshot), *([(6, GONE)] if lost else [])]
    return list(watch_readings(readings, RackPolicy(min_insync_racks=2)))[-1]


def series(of: Watch, *, partitions: bool = False) -> dict[tuple[str, ...], float]:
    """By name, then the values of its labels: broker, partition, rack, topic."""

    class Once(Collector):
        def collect(self) -> Any:
            return watch_families(of, partitions=partitions)

    registry = CollectorRegistry(auto_describe=False)
    registry.register(Once())
    return {
        (sample.name, *(sample.labels[label] for label in sorted(sample.labels))): sample.value
        for family in text_string_to_metric_families(generate_latest(registry).decode())
        for sample in family.samples
    }


def test_a_watch_reports_itself_and_every_broker() -> None:
    found = {key: value for key, value in series(watch()).items() if "rack_loss" not in key[0]}
    assert found == {
        ("rackspan_watch_up",): 1,
        ("rackspan_watch_readings_total",): 2,
        ("rackspan_watch_failures_total",): 0,
        ("rackspan_watch_unread",): 1,
        ("rackspan_watch_leaderless_partitions",): 1,
        ("rackspan_watch_under_min_rack_isr_seconds_total",): 10,
        ("rackspan_under_min_rack_isr_partitions", "1", "r1"): 1,
        ("rackspan_under_min_rack_isr_partitions", "2", "r2"): 0,
        ("rackspan_under_min_rack_isr_partitions", "3", "r3"): 0,
        ("rackspan_at_min_rack_isr_partitions", "1", "r1"): 0,
        ("rackspan_at_min_rack_isr_partitions", "2", "r2"): 1,
        ("rackspan_at_min_rack_isr_partitions", "3", "r3"): 0,
    }


def test_a_series_a_partition_has_its_leader_or_nobody() -> None:
    found = series(watch(), partitions=True)
    assert found["rackspan_partition_isr_racks", "1", "0", "r1", "orders"] == 1
    assert found["rackspan_partition_at_min_rack_isr", "2", "1", "r2", "orders"] == 1
    assert found["rackspan_partition_under_min_rack_isr", "", "2", "", "orders"] == 1


def test_while_the_cluster_cannot_be_read_nothing_is_reported_of_it() -> None:
    names = {name: value for (name, *_), value in series(watch(lost=True), partitions=True).items()}
    assert names["rackspan_watch_up"] == 0
    assert names["rackspan_watch_failures_total"] == 1
    assert names["rackspan_watch_under_min_rack_isr_seconds_total"] == 10
    assert not {metric.name for metric in METRICS} & names.keys()
    assert "rackspan_watch_unread" not in names
    assert not [name for name in names if "rack_loss" in name]


def test_every_metric_of_metadata_is_served_and_no_other() -> None:
    required = {metric.name for metric in (*METADATA_METRICS, *WATCH_METRICS)}
    served = {name for name, *_ in series(watch(), partitions=True)}
    assert {name for name in served if "rack_loss" not in name} == required
    assert {metric.name for metric in METRICS} - required == {"rackspan_rack_check_failures_total"}


def rules() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    found: list[dict[str, Any]] = group["rules"]
    return found


def test_alerts_use_metrics_that_are_served_each_in_its_kind() -> None:
    kinds = {metric.name: metric.kind for metric in (*METRICS, *WATCH_METRICS)}
    for rule in rules():
        requested = re.findall(r"rackspan_\w+", rule["expr"])
        assert requested
        for name in requested:
            assert ("rate(" in rule["expr"]) == (kinds[name] is MetricKind.COUNTER), rule["alert"]
        assert rule["annotations"]["summary"]


def test_there_is_an_alert_for_every_metric_of_a_whole_broker_or_cluster_that_says_something_is_wrong() -> None:
    """mir-066 and mir-068: alert on these metrics. Those a partition are summed in a broker's."""
    requested = {name for rule in rules() for name in re.findall(r"rackspan_\w+", rule["expr"])}
    of_brokers = {metric.name for metric in METRICS if metric.scope is MetricScope.BROKER}
    assert (
        of_brokers
        | {
            "rackspan_watch_up",
            "rackspan_watch_unread",
            "rackspan_watch_leaderless_partitions",
        }
        == requested
    )


def test_a_simple_alert_holds_where_it_should() -> None:
    """Those of the form `metric == n`, `… or absent(metric)` and `sum by (instance) (metric) > n`, by hand; Prometheus itself is not there."""
    fine = list(watch_readings([(0, cluster([1, 2, 3]))], RackPolicy(min_insync_racks=2)))[-1]
    assert firing(series(fine)) == set()
    assert firing(series(watch())) == {"UnderMinRackIsr", "LeaderlessPartitions", "RackWatchPartlyBlind"}
    assert firing(series(watch(lost=True))) == {"RackWatchBlind"}
    assert firing({}) == {"RackWatchBlind"}


def firing(found: dict[tuple[str, ...], float]) -> set[str]:
    form = re.compile(r"(?:sum by \(instance\) \()?(rackspan_\w+)\)? (>|==) 0( or absent\(\1\))?")
    simple = {rule["alert"]: match for rule in rules() if (match := form.fullmatch(rule["expr"].strip()))}
    alerts = set()
    for alert, match in simple.items():
        values = [value for (name, *_), value in found.items() if name == match[1]]
        holds = bool(values) and (sum(values) > 0 if match[2] == ">" else sum(values) == 0)
        if holds or (match[3] and not values):
            alerts.add(alert)
    return alerts
