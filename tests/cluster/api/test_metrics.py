"""The metrics of min.insync.racks as Prometheus reads them; its own parser is the judge."""

import urllib.request
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer
from prometheus_client.parser import text_string_to_metric_families

from rackspan.acks.metrics import METRICS, MetricScope
from rackspan.cluster import EmbeddedCluster
from rackspan.errors import UsageError
from tests.waiting import WITHIN_SECONDS


@pytest.fixture
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(racks=3, brokers=3) as started:
        started.create_topic("orders", 2, config={"min.insync.racks": "2"})
        yield started


def scraped(address: str) -> str:
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=WITHIN_SECONDS) as response:
        return str(response.read().decode())


def series(address: str) -> dict[tuple[str, str, str], float]:
    """By name, broker, and partition ("" where it is of the broker)."""
    return {
        (sample.name, sample.labels["broker"], sample.labels.get("partition", "")): sample.value
        for family in text_string_to_metric_families(scraped(address))
        for sample in family.samples
    }


def test_every_broker_reports_its_own_metrics_and_the_help_has_the_proposals_names(cluster: EmbeddedCluster) -> None:
    address = cluster.serve_metrics()
    assert cluster.metrics_address == address
    text = scraped(address)
    of_brokers = [metric for metric in METRICS if metric.scope is MetricScope.BROKER]
    assert {name for name, _, _ in series(address)} == {metric.name for metric in of_brokers}
    assert {broker for _, broker, _ in series(address)} == {"1", "2", "3"}
    assert all(f"# HELP {metric.name} {metric.proposed}: " in text for metric in of_brokers)
    assert 'rack="r2"' in text


def test_series_for_each_partition_only_where_they_are_enabled(cluster: EmbeddedCluster) -> None:
    found = series(cluster.serve_metrics(partitions=True))
    assert {name for name, _, _ in found} == {metric.name for metric in METRICS}
    for index in range(2):
        assert found["rackspan_partition_isr_racks", str(cluster.leader("orders", index)), str(index)] == 3


def test_the_loss_of_two_racks_is_reported_and_the_refusals_are_counted(cluster: EmbeddedCluster) -> None:
    address = cluster.serve_metrics(partitions=True)
    cluster.lose_rack("r1")
    assert {value for (name, _, _), value in series(address).items() if "_at_min_" in name} >= {1.0}
    cluster.lose_rack("r2")
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "message.timeout.ms": 1500, "log_level": 0})
    producer.produce("orders", b"x", partition=0)
    producer.flush(WITHIN_SECONDS)
    found = series(address)
    assert {broker for _, broker, _ in found} == {"3"}
    assert found["rackspan_under_min_rack_isr_partitions", "3", ""] == 2
    assert found["rackspan_at_min_rack_isr_partitions", "3", ""] == 0
    assert found["rackspan_partition_under_min_rack_isr", "3", "0"] == 1
    assert found["rackspan_partition_isr_racks", "3", "0"] == 1
    assert found["rackspan_rack_check_failures_total", "3", ""] >= 1


def test_metrics_end_with_their_cluster() -> None:
    with EmbeddedCluster(brokers=1) as cluster:
        address = cluster.serve_metrics()
        with pytest.raises(UsageError, match="serves its metrics already"):
            cluster.serve_metrics()
    assert cluster.metrics_address is None
    with pytest.raises(OSError, match="refused"):
        scraped(address)


@pytest.mark.parametrize(
    "listen", ["no-such-host.invalid:9404", ":9404", "127.0.0.1", "127.0.0.1:x", "127.0.0.1:70000"]
)
def test_metrics_are_not_served_at_an_invalid_address(cluster: EmbeddedCluster, listen: str) -> None:
    with pytest.raises(UsageError, match="metrics listener"):
        cluster.serve_metrics(listen)


def test_a_port_in_use_is_an_error(cluster: EmbeddedCluster) -> None:
    used_address = cluster.address(1)
    with pytest.raises(UsageError, match="in use; choose another port"):
        cluster.serve_metrics(used_address)
