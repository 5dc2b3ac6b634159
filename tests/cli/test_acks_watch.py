"""rackspan acks watch, as a process beside an embedded cluster whose own brokers are the judges of what it serves."""

import json
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice

import pytest
from prometheus_client.parser import text_string_to_metric_families

from rackspan import api
from rackspan.acks.watch import ClusterIsr, Watch
from rackspan.audit import RackPolicy
from rackspan.cluster import EmbeddedCluster
from rackspan.kafka_process import KafkaCluster
from tests.cli.conftest import Ran
from tests.cluster import raw
from tests.gateway.process import free_ports
from tests.kafka_fixtures import create_topic
from tests.processes import running
from tests.waiting import WITHIN_SECONDS, eventually


class Watching:
    """A watch that runs: where it serves, and what it says on either stream."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        self.output: list[str] = []
        self.noted: list[str] = []
        for stream, lines in ((process.stdout, self.output), (process.stderr, self.noted)):
            assert stream is not None
            threading.Thread(target=lines.extend, args=(stream,), daemon=True).start()

    @property
    def address(self) -> str:
        eventually(
            lambda: any('"metrics"' in line for line in self.output) or self.process.poll() is not None,
            "it prints its address",
        )
        assert self.process.poll() is None, self.noted
        return str(next(line for line in self.output if '"metrics"' in line).split('"')[3])

    def series(self) -> dict[tuple[str, ...], float]:
        return series(self.address)

    def total(self, name: str) -> float:
        return sum(value for key, value in self.series().items() if key[0] == name)

    def await_total(self, name: str, wanted: float) -> None:
        eventually(lambda: self.total(name) == wanted, f"{name} is {wanted}")


def series(address: str) -> dict[tuple[str, ...], float]:
    """The value of each series, by its name and its labels' values."""
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=WITHIN_SECONDS) as response:
        families = text_string_to_metric_families(response.read().decode())
        return {(one.name, *one.labels.values()): one.value for family in families for one in family.samples}


@contextmanager
def watching(bootstrap_servers: str, *more: str) -> Iterator[Watching]:
    command = [
        *(sys.executable, "-m", "rackspan", "acks", "watch", "--bootstrap-server", bootstrap_servers),
        *("--metrics-listen", "127.0.0.1:0", "--every", "0.2", "--timeout", "3000", "-o", "json", *more),
    ]
    with running(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        yield Watching(process)


def brokers_say(cluster: EmbeddedCluster, metric: str) -> int:
    return sum(values[metric] for values in cluster.metrics().values())


NOT_ENOUGH_REPLICAS = 19
UNDER, AT = "rackspan_under_min_rack_isr_partitions", "rackspan_at_min_rack_isr_partitions"


@pytest.mark.slow
def test_a_lost_rack_raises_the_gauge_and_its_return_lowers_it() -> None:
    with EmbeddedCluster(racks=3, brokers=3) as cluster:
        cluster.create_topic("orders", 2, 3, config={"min.insync.racks": "3"})
        cluster.create_topic("notes", 1, 3, config={"min.insync.racks": "2"})
        with watching(cluster.bootstrap_servers, "--metrics-partitions") as watch:
            assert (watch.total(UNDER), watch.total(AT)) == (0, 2)
            cluster.lose_rack("r2")
            watch.await_total(UNDER, 2)
            assert (brokers_say(cluster, UNDER), brokers_say(cluster, AT)) == (2, 1)
            assert watch.total(AT) == 1
            assert watch.total("rackspan_partition_under_min_rack_isr") == 2
            assert (UNDER, "2", "r2") not in watch.series()
            cluster.restore_rack("r2")
            cluster.wait_for_isr()
            watch.await_total(UNDER, 0)
            assert watch.total(AT) == brokers_say(cluster, AT) == 2
            assert watch.total("rackspan_watch_under_min_rack_isr_seconds_total") > 0
            changes = json.loads("[" + "".join(watch.output).replace("}\n{", "},{") + "]")
            assert [one["under_min_rack_isr"] for one in changes][:1] == [0]
            assert 2 in [one["under_min_rack_isr"] for one in changes]


@pytest.mark.slow
def test_an_external_tool_lowers_the_value_by_the_watch_and_restores_it() -> None:
    """The proposal's procedure: nothing lowers it by itself, and no broker restarts."""
    with EmbeddedCluster(racks=3, brokers=3) as cluster:
        cluster.create_topic("orders", 1, 3, config={"min.insync.racks": "3"})
        with watching(cluster.bootstrap_servers) as watch:
            cluster.lose_rack("r1")
            watch.await_total(UNDER, 1)
            assert produced(cluster) == NOT_ENOUGH_REPLICAS
            cluster.alter_topic("orders", min_insync_racks=2)
            assert produced(cluster) == 0
            watch.await_total(UNDER, 0)
            cluster.restore_rack("r1")
            cluster.wait_for_isr()
            cluster.alter_topic("orders", min_insync_racks=3)
            assert produced(cluster) == 0
            watch.await_total(AT, 1)
            assert watch.total(UNDER) == 0


def produced(cluster: EmbeddedCluster) -> int:
    leader = cluster.leader("orders", 0)
    assert leader is not None
    return int(raw.produced(cluster.address(leader), "orders").error_code)


@pytest.mark.slow
def test_a_lost_cluster_is_reported_once_and_read_again_when_it_is_back() -> None:
    with EmbeddedCluster(racks=2, brokers=2) as cluster:
        cluster.create_topic("orders", 1, 2)
        with watching(cluster.bootstrap_servers, "--min-insync-racks", "2") as watch:
            assert watch.total("rackspan_watch_up") == 1
            for rack in ("r1", "r2"):
                cluster.lose_rack(rack)
            eventually(lambda: watch.total("rackspan_watch_failures_total") >= 2, "two failures are counted")
            assert (watch.total("rackspan_watch_up"), (UNDER, "1", "r1") in watch.series()) == (0, False)
            assert sum("the cluster cannot be read" in line for line in watch.noted) == 1
            for rack in ("r1", "r2"):
                cluster.restore_rack(rack)
            cluster.wait_for_isr()
            watch.await_total("rackspan_watch_up", 1)
            eventually(lambda: any("can be read again" in line for line in watch.noted), "it says that it reads again")


@pytest.mark.slow
@pytest.mark.parametrize("ended_by", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_cleanly(ended_by: signal.Signals) -> None:
    with EmbeddedCluster(racks=1, brokers=1) as cluster, watching(cluster.bootstrap_servers) as watch:
        assert watch.address
        watch.process.send_signal(ended_by)
        assert watch.process.wait(WITHIN_SECONDS) == 0
        eventually(lambda: watch.noted[-1:] == ["ended\n"], "its last line is read")
        assert "Traceback" not in "".join(watch.noted)


def test_a_cluster_that_is_not_there_is_one_line_and_1(cli: Callable[..., Ran]) -> None:
    ran = cli("acks", "watch", "--bootstrap-server", "127.0.0.1:1", "--timeout", "2000")
    assert (ran.code, ran.out, ran.err.count("\n")) == (1, "", 1)


@pytest.mark.parametrize("listen", [":9404", "127.0.0.1", "127.0.0.1:many"])
def test_an_address_that_is_none_is_refused(listen: str, cli: Callable[..., Ran]) -> None:
    ran = cli("acks", "watch", "--bootstrap-server", "127.0.0.1:1", "--metrics-listen", listen)
    assert (ran.code, ran.err.count("\n")) == (1, 1)
    assert "metrics listener" in ran.err


def test_metrics_are_served_from_the_first_reading_on(cli: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch) -> None:
    # A scrape before it would say that the cluster is down.
    (port,) = free_ports(1)
    scraped: list[float] = []

    def readings(*_: object, **__: object) -> Iterator[Watch]:
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port)).close()
        for number in (1, 2):
            yield Watch(readings=number)
            scraped.append(series(f"127.0.0.1:{port}")["rackspan_watch_readings_total",])

    monkeypatch.setattr(api, "watch", readings)
    ran = cli("acks", "watch", "--bootstrap-server", "127.0.0.1:1", "--metrics-listen", f"127.0.0.1:{port}")
    assert (ran.code, ran.err, scraped) == (0, "", [1, 2])


@pytest.mark.kafka
def test_of_real_kafka_it_sees_what_its_metadata_says(kafka: KafkaCluster) -> None:
    create_topic(kafka, "watched", assignment=[[1, 2], [4, 1], [5, 2]])
    policy = RackPolicy(topic_min_insync_racks={"watched": 2})
    source = api.live_cluster(kafka.bootstrap_servers, None, 30, sizes=False)
    # Brokers 1 and 4 share rack r1, 2 and 5 rack r2.
    wanted = {0: (1, 2, 2), 1: (4, 1, 2), 2: (5, 1, 2)}
    # The broker that responds may lag, and the topic is new.
    watches = islice(api.watch(source, policy, 0.5), 60)
    watch = next(
        (one.latest for one in watches if one.latest is not None and racks_of(one.latest, "watched") == wanted), None
    )
    assert watch is not None
    assert [one.broker for one in watch.leaders] == [1, 2, 3, 4, 5, 6]
    assert watch.partial == ()


def racks_of(watch: ClusterIsr, topic: str) -> dict[int, tuple[int, int, int]]:
    """By partition: its leader, the racks its ISR spans, the racks required."""
    return {
        one.partition: (one.leader, one.isr_racks, one.required) for one in watch.partitions() if one.topic == topic
    }
