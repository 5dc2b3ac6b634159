"""rackspan cluster up, as a process that is interrupted, and its faults from other processes."""

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from rackspan import kafka_process
from rackspan.cli import cluster, main
from rackspan.cluster import EmbeddedCluster
from rackspan.errors import MissingRequirement
from tests.kafka_versions import KAFKA
from tests.processes import running
from tests.waiting import WITHIN_SECONDS


@contextmanager
def cluster_up(state: Path, *words: str) -> Iterator[tuple[dict[str, Any], "subprocess.Popen[str]"]]:
    """A cluster that runs meanwhile, and what it printed; its file is in the folder `state`."""
    command = [sys.executable, "-m", "rackspan", "cluster", "up", *words, "-o", "json"]
    environment = {**os.environ, "XDG_STATE_HOME": str(state)}
    with running(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        output = ""
        while not output.rstrip().endswith("\n}"):
            line = process.stdout.readline()
            assert line, "it ended by itself"
            output += line
        yield json.loads(output), process


@pytest.mark.parametrize("ended_by", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)])
def test_a_cluster_comes_up_says_where_it_is_and_ends_cleanly(ended_by: signal.Signals, tmp_path: Path) -> None:
    words = ("--racks", "2", "--brokers", "4", "--metrics-listen", "127.0.0.1:0")
    with cluster_up(tmp_path, *words) as (found, process):
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
    assert not list(tmp_path.rglob("*.json")), "the file with the token is gone"
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
    words: list[str], served: list[tuple[str, bool]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
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
        ("--racks", "-1"),
        ("--racks", "a,,b"),
        ("--racks", "a,b,c", "--brokers", "2"),
        ("--config", "num.partitions"),
        ("--config", "no.such.config=1"),
        ("--kafka", "4.3.1", "--config", "min.insync.racks=2"),
        ("--brokers", "0"),
        ("--kafka", "four"),
        ("--metrics-listen", ":9404"),
        ("--metrics-listen", "127.0.0.1:many"),
        ("--kafka", "4.1.0", "--metrics-listen", "127.0.0.1:0"),
    ],
)
def test_what_cannot_come_up_is_one_line(
    wrong: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
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


Cli = Callable[..., Any]


def states(ran: Any) -> dict[int, list[str]]:
    return {broker["id"]: broker["states"] for broker in ran.document["brokers"]}


def refuses(address: str) -> bool:
    host, port = address.split(":")
    try:
        socket.create_connection((host, int(port)), WITHIN_SECONDS).close()
    except ConnectionRefusedError:
        return True
    return False


LOST = ["down", "fenced"]


def test_racks_and_brokers_of_a_cluster_that_is_up_are_lost_and_come_back(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    up = ["up"]
    with cluster_up(tmp_path, "--racks", "a,b,c", "--brokers", "3") as (found, _):
        assert [broker["rack"] for broker in found["brokers"]] == ["a", "b", "c"]
        (file,) = tmp_path.rglob("*.json")
        control = found["control"]
        assert control["file"] == str(file)
        written = json.loads(file.read_text())
        assert (written["address"], written["token"]) == (control["address"], control["token"])

        assert states(cli("cluster", "lose", "a", "c", "-o", "json")) == {1: LOST, 2: up, 3: LOST}
        assert [refuses(broker["address"]) for broker in found["brokers"]] == [True, False, True]
        assert states(cli("cluster", "restore", "a", "-o", "json")) == {1: up, 2: up, 3: LOST}
        assert not refuses(found["brokers"][0]["address"])
        assert states(cli("cluster", "kill", "1", "-o", "json")) == {1: LOST, 2: up, 3: LOST}
        assert states(cli("cluster", "restart", "1,3", "-o", "json")) == {1: up, 2: up, 3: up}
        assert states(cli("cluster", "pause", "2", "-o", "json")) == {1: up, 2: ["paused"], 3: up}
        assert states(cli("cluster", "resume", "2", "-o", "json")) == {1: up, 2: up, 3: up}
        assert states(cli("cluster", "lose", "a,b", "-o", "json")) == {1: LOST, 2: LOST, 3: up}
        assert "down, fenced" in cli("cluster", "status").out
        assert states(cli("cluster", "undo", "-o", "json")) == {1: up, 2: up, 3: up}
        assert cli("cluster", "lose", "z").err == "rackspan: rack 'z': this cluster has a, b, c\n"
        assert cli("cluster", "lose", "a,").err == "rackspan: RACK a,: a name is empty; list racks such as a,b\n"
        assert (
            cli("cluster", "kill", "one").err
            == "rackspan: BROKER one: 'one' is not a broker id; list ids such as 3,4\n"
        )
        assert cli("cluster", "status", "--control", "127.0.0.1:1").code == 1


@pytest.mark.slow
def test_of_two_clusters_one_is_named_and_one_that_was_killed_is_in_nobodys_way(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    small = ("--racks", "1", "--brokers", "1")
    with cluster_up(tmp_path, *small) as (one, _), cluster_up(tmp_path, *small) as (other, killed):
        assert "2 practice clusters are up" in cli("cluster", "lose", "r1").err
        ran = cli("cluster", "lose", "r1", "--control", other["control"]["address"], "-o", "json")
        assert states(ran) == {1: LOST}
        assert not refuses(one["bootstrap_servers"])
        killed.kill()
        killed.wait(WITHIN_SECONDS)
        assert states(cli("cluster", "lose", "r1", "-o", "json")) == {1: LOST}
        assert refuses(one["bootstrap_servers"])


@pytest.mark.kafka
@pytest.mark.rest
def test_racks_of_real_kafka_are_lost_and_come_back(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with cluster_up(tmp_path, "--kafka", KAFKA, "--racks", "a,b,c", "--brokers", "3") as (found, _):
        assert found["kind"] == f"kafka {KAFKA}"
        assert states(cli("cluster", "lose", "c", "-o", "json")) == {1: ["up"], 2: ["up"], 3: LOST}
        assert [refuses(broker["address"]) for broker in found["brokers"]] == [False, False, True]
        assert states(cli("cluster", "restore", "c", "-o", "json")) == {1: ["up"], 2: ["up"], 3: ["up"]}
        assert not refuses(found["brokers"][2]["address"])
