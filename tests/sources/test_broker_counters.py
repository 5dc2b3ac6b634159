"""Counters of brokers as three exporters write them, read over HTTP from a server on loopback."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from rackspan.client.cluster import ConnectionSettings
from rackspan.cluster import EmbeddedCluster
from rackspan.errors import ClusterUnreachable, SourceError, UsageError
from rackspan.model import Broker, BrokerId, RackId
from rackspan.sources.broker_counters import by_broker, read_counters
from rackspan.sources.gateway_counters import gateway_counters
from rackspan.sources.live.traffic import read_everything, read_traffic
from rackspan.traffic import bytes_out_between
from tests import raw_server
from tests.raw_server import CUT_SHORT, NOT_HTTP, responding
from tests.streams.groups import cluster

EXAMPLE_RULES = """\
# HELP kafka_server_brokertopicmetrics_bytesout_total Attribute exposed for management
# TYPE kafka_server_brokertopicmetrics_bytesout_total counter
kafka_server_brokertopicmetrics_bytesout_total 1.23456789E9
kafka_server_brokertopicmetrics_bytesout_total{topic="orders",} 5000.0
kafka_server_brokertopicmetrics_bytesout_total{topic="eu.pay_v2-log",} 7.0E10
# TYPE kafka_server_brokertopicmetrics_bytesin_total counter
kafka_server_brokertopicmetrics_bytesin_total{topic="orders",} 9999.0
# TYPE kafka_server_brokertopicmetrics_replicationbytesout_total counter
kafka_server_brokertopicmetrics_replicationbytesout_total 31.0
"""
WITHOUT_RULES = """\
# TYPE kafka_server_BrokerTopicMetrics_Count untyped
kafka_server_BrokerTopicMetrics_Count{name="BytesOutPerSec",} 1.23456789E9
kafka_server_BrokerTopicMetrics_Count{name="BytesOutPerSec",topic="orders",} 5000.0
kafka_server_BrokerTopicMetrics_Count{name="BytesOutPerSec",topic="eu.pay_v2-log",} 7.0E10
kafka_server_BrokerTopicMetrics_Count{name="BytesInPerSec",topic="orders",} 9999.0
# TYPE kafka_server_BrokerTopicMetrics_MeanRate untyped
kafka_server_BrokerTopicMetrics_MeanRate{name="BytesOutPerSec",topic="orders",} 12.5
"""
STRIMZI = """\
# HELP kafka_server_brokertopicmetrics_bytesout_total Attribute exposed for management kafka.server
# TYPE kafka_server_brokertopicmetrics_bytesout_total untyped
kafka_server_brokertopicmetrics_bytesout_total{topic="orders"} 5000.0
kafka_server_brokertopicmetrics_bytesout_total{topic="eu.pay_v2-log"} 7.0E10
kafka_server_brokertopicmetrics_bytesout_total{topic=""} 5.0
# TYPE kafka_server_brokertopicmetrics_bytesoutpersec gauge
kafka_server_brokertopicmetrics_bytesoutpersec{topic="orders"} 88888888.0
"""
BY_NAME_OF_THE_BEAN = """\
# TYPE kafka_server_brokertopicmetrics_bytesoutpersec counter
kafka_server_brokertopicmetrics_bytesoutpersec{topic="orders"} 5000.0
kafka_server_brokertopicmetrics_bytesoutpersec{topic="eu.pay_v2-log"} 7.0E10
"""
COUNTED = """\
# TYPE kafka_server_BrokerTopicMetrics_BytesOutPerSec_Count untyped
kafka_server_BrokerTopicMetrics_BytesOutPerSec_Count{topic="orders"} 5000.0
kafka_server_BrokerTopicMetrics_BytesOutPerSec_Count{topic="eu.pay_v2-log"} 7.0E10
"""
KMINION = """\
# TYPE kminion_kafka_broker_info gauge
kminion_kafka_broker_info{address="b1",broker_id="1",is_controller="true",port="9092",rack_id="r1"} 1
# TYPE kminion_kafka_topic_high_water_mark_sum gauge
kminion_kafka_topic_high_water_mark_sum{topic_name="orders"} 1.512023846873e+12
"""
RATES = """\
# TYPE kafka_server_brokertopicmetrics_bytesoutpersec gauge
kafka_server_brokertopicmetrics_bytesoutpersec{topic="orders"} 12.5
"""
GATEWAY = """\
# TYPE rackspan_gateway_record_bytes_total counter
rackspan_gateway_record_bytes_total{path="produce",topic="orders",client_id="c",software="s",from_rack="r1",to_rack="r2"} 70
"""
SENT = {"orders": 5000, "eu.pay_v2-log": 70_000_000_000}


@contextmanager
def serving(pages: Mapping[str, str]) -> Iterator[str]:
    """A server of these texts by path; others are not found."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            text = pages.get(self.path)
            self.send_response(404 if text is None else 200)
            self.end_headers()
            self.wfile.write((text or "").encode())

        def log_message(self, *_: object) -> None:
            pass

    with raw_server.serving(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as url:
        yield url


@pytest.mark.parametrize("text", [EXAMPLE_RULES, WITHOUT_RULES, STRIMZI, BY_NAME_OF_THE_BEAN, COUNTED])
def test_bytes_out_by_topic_are_those_of_each_exporter(text: str) -> None:
    with serving({"/metrics": text}) as url:
        read = read_counters([f"3={url}/metrics", f"{url}/metrics"])
    assert read.brokers == {f"3={url}/metrics": SENT, f"{url}/metrics": SENT}
    assert not read.gateways


def test_gateways_and_brokers_are_distinguished_by_what_they_count() -> None:
    with serving({"/gateway": GATEWAY, "/broker": STRIMZI}) as url:
        read = read_counters([f"{url}/gateway", f"{url}/broker"])
        assert read.gateways == gateway_counters([f"{url}/gateway"])
        assert [sum(read.gateways[f"{url}/gateway"].values()), read.brokers] == [70, {f"{url}/broker": SENT}]
        with pytest.raises(SourceError, match=r"/broker: has no rackspan_gateway_record_bytes_total"):
            gateway_counters([f"{url}/broker"])


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (KMINION, r"kminion does not count what brokers send; give the metrics of each broker's JMX exporter"),
        (RATES, r"has neither a gateway's counters nor BytesOutPerSec of a broker"),
        ("", r"has neither a gateway's counters nor BytesOutPerSec of a broker"),
        ("not metrics {", r"cannot be read"),
    ],
)
def test_other_metrics_are_refused_in_one_line(text: str, line: str) -> None:
    with serving({"/metrics": text}) as url, pytest.raises(SourceError, match=line) as refused:
        read_counters([f"{url}/metrics"])
    assert "\n" not in str(refused.value)


def test_a_url_that_is_none_and_one_that_does_not_respond_are_refused() -> None:
    with pytest.raises(UsageError, match=r"--counters broker:9404: expected"):
        read_counters(["broker:9404"])
    with serving({}) as url, pytest.raises(SourceError, match="404"):
        read_counters([f"1={url}/metrics"])


@pytest.mark.parametrize("content", [NOT_HTTP, CUT_SHORT], ids=["https", "ended"])
def test_what_responds_with_something_else_is_refused(content: bytes) -> None:
    with responding(content) as url, pytest.raises(SourceError, match=rf"--counters {url}/metrics: cannot be read: "):
        read_counters([f"{url}/metrics"])
    with pytest.raises(SourceError, match=r"--counters http://broker:port/m: cannot be read: nonnumeric port"):
        read_counters(["http://broker:port/m"])


def test_a_count_that_is_no_number_is_left_out() -> None:
    with serving({"/metrics": f'{STRIMZI}kafka_server_brokertopicmetrics_bytesout_total{{topic="new"}} NaN\n'}) as url:
        assert read_counters([f"{url}/metrics"]).brokers == {f"{url}/metrics": SENT}


@pytest.mark.parametrize("other", [4_000, 6_000])
def test_of_two_names_of_one_counter_the_greater_counts(other: int) -> None:
    twice = COUNTED + f'kafka_server_brokertopicmetrics_bytesout_total{{topic="orders"}} {other}\n'
    with serving({"/metrics": twice}) as url:
        read = read_counters([f"{url}/metrics"]).brokers[f"{url}/metrics"]
    assert read == {**SENT, "orders": max(5_000, other)}


def test_a_broker_is_the_one_that_is_named_or_has_the_host() -> None:
    snapshot = cluster({"orders": [[1]]})
    brokers = tuple(
        Broker(BrokerId(number), RackId("r1"), host=host) for number, host in enumerate(("a.x", "B.x", "c", "c"), 1)
    )
    snapshot = replace(snapshot, brokers=brokers)
    read = {"http://a.x:9404/metrics": {"t": 1}, "http://b.x:9404/metrics": {"t": 2}, "4=http://c:9405/m": {"t": 3}}
    assert by_broker(read, snapshot) == {1: {"t": 1}, 2: {"t": 2}, 4: {"t": 3}}
    for option, line in (
        ("http://c:1/m", r"2 brokers have the host c; name the broker: --counters ID=http://c:1/m"),
        ("http://d/m", r"0 brokers have the host d"),
        ("7=http://a.x/m", r"the cluster has no broker 7; it has \[1, 2, 3, 4\]"),
    ):
        with pytest.raises(SourceError, match=line):
            by_broker({option: {}}, snapshot)
    with pytest.raises(SourceError, match=r"broker 1 has counters of another URL too"):
        by_broker({"1=http://a.x/m": {}, "http://a.x/m": {}}, snapshot)


@pytest.mark.slow
def test_readings_of_a_cluster_have_the_counters_of_its_brokers() -> None:
    pages = {"/1": STRIMZI, "/2": EXAMPLE_RULES}
    with EmbeddedCluster(racks=2, brokers=2) as embedded, serving(pages) as url:
        embedded.create_topic("orders", partitions=1)
        settings = ConnectionSettings(embedded.bootstrap_servers)
        options = [f"1={url}/1", f"2={url}/2"]

        def later(_seconds: float) -> None:
            pages["/2"] = EXAMPLE_RULES.replace("5000.0", "5600.0")

        reading = read_traffic(settings, 1.0, later, counters=options)
        sent = bytes_out_between(reading.before.bytes_out, reading.after.bytes_out)
        assert sent == {1: {"orders": 0, "eu.pay_v2-log": 0}, 2: {"orders": 600, "eu.pay_v2-log": 0}}
        everything = read_everything(settings, 60, [*options, f"3={url}/1", f"2={url}/none"])
    assert everything.bytes_out == {1: SENT, 2: {**SENT, "orders": 5600}}
    assert [line.split(": ")[1] for line in everything.partial if "--counters" in line] == [
        "the cluster has no broker 3; it has [1, 2]",
        "cannot be read",
    ]


def test_counters_of_brokers_are_refused_for_advice_before_the_cluster_is_read() -> None:
    unreachable = ConnectionSettings("127.0.0.1:1", timeout_seconds=0.1)
    with serving({"/gateway": GATEWAY, "/broker": STRIMZI}) as url:
        options = [f"{url}/gateway", f"2={url}/broker"]
        with pytest.raises(UsageError, match=r"--counters 2=.*: advice does not depend on what brokers count"):
            read_traffic(unreachable, 1.0, lambda _: None, counters=options, of_brokers=False)
        for counters, of_brokers in ((options[:1], False), (options, True)):
            with pytest.raises(ClusterUnreachable):
                read_traffic(unreachable, 1.0, lambda _: None, counters=counters, of_brokers=of_brokers)
