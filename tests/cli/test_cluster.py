"""rackspan cluster up, as a process that is interrupted."""

import json
import signal
import socket
import subprocess
import sys
import urllib.request

import pytest

from rackspan import kafka_process
from rackspan.cli import cluster, main
from rackspan.cluster import EmbeddedCluster
from rackspan.errors import MissingRequirement
from tests.processes import running
from tests.waiting import WITHIN_SECONDS


@pytest.mark.parametrize("ended_by", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)])
def test_a_cluster_comes_up_says_where_it_is_and_ends_cleanly(ended_by: signal.Signals) -> None:
    command = [
        *(sys.executable, "-m", "rackspan", "cluster", "up", "--racks", "2", "--brokers", "4"),
        *("--metrics-listen", "127.0.0.1:0", "-o", "json"),
    ]
    with running(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        output = ""
        while not output.rstrip().endswith("\n}"):
            line = process.stdout.readline()
            assert line, "it ended by itself"
            output += line
        found = json.loads(output)
        assert [one["rack"] for one in found["brokers"]] == ["r1", "r2", "r1", "r2"]
        for address in found["bootstrap_servers"].split(","):
            host, port = address.split(":")
            assert host == "127.0.0.1"
            socket.create_connection((host, int(port)), WITHIN_SECONDS).close()
        with urllib.request.urlopen(f"http://{found['metrics']}/metrics", timeout=WITHIN_SECONDS) as scraped:
            assert b'rackspan_rack_check_failures_total{broker="4",rack="r2"} 0' in scraped.read()
        process.send_signal(ended_by)
        _, notes = process.communicate(timeout=WITHIN_SECONDS)
    assert process.returncode == 0
    assert "development and tests" in notes
    assert "Traceback" not in notes


@pytest.mark.parametrize(
    ("words", "served"),
    [
        ([], []),
        (["--metrics-listen", "127.0.0.1:0"], [("127.0.0.1:0", False)]),
        (["--metrics-listen", "127.0.0.1:0", "--metrics-partitions"], [("127.0.0.1:0", True)]),
    ],
)
def test_metrics_of_a_cluster_are_served_where_and_as_it_is_wanted(
    words: list[str], served: list[tuple[str, bool]], monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[tuple[str, bool]] = []
    started: list[cluster.StartedCluster] = []

    def serve_metrics(_cluster: EmbeddedCluster, listen: str, *, partitions: bool) -> str:
        found.append((listen, partitions))
        return "h:2"

    def shown(cluster: cluster.StartedCluster, _output_format: object) -> None:
        started.append(cluster)
        raise KeyboardInterrupt

    monkeypatch.setattr(EmbeddedCluster, "serve_metrics", serve_metrics)
    monkeypatch.setattr(cluster, "_show", shown)
    main(["cluster", "up", "--racks", "1", "--brokers", "1", *words])
    assert found == served
    assert [one.get("metrics") for one in started] == ["h:2" if served else None]


@pytest.mark.parametrize(
    "wrong",
    [
        ("--racks", "0"),
        ("--brokers", "0"),
        ("--kafka", "four"),
        ("--metrics-listen", ":9404"),
        ("--metrics-listen", "127.0.0.1:many"),
        ("--kafka", "4.1.0", "--metrics-listen", "127.0.0.1:0"),
    ],
)
def test_what_cannot_come_up_is_one_line(wrong: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cluster", "up", *wrong]) == 1
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "version"),
    [
        (("--kafka",), kafka_process.DEFAULT_VERSION),
        (("--kafka", "--racks", "2"), kafka_process.DEFAULT_VERSION),
        (("--racks", "2", "--kafka", "4.1.0"), "4.1.0"),
        (("--kafka=3.9.1",), "3.9.1"),
    ],
)
def test_real_kafka_is_the_newest_that_is_tested_unless_a_version_is_named(
    words: tuple[str, ...], version: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def start(cluster: kafka_process.KafkaCluster) -> None:
        raise MissingRequirement(f"asked for {cluster.version}")

    monkeypatch.setattr(kafka_process.KafkaCluster, "start", start)
    assert main(["cluster", "up", *words]) == 1
    assert f"asked for {version}" in capsys.readouterr().err
