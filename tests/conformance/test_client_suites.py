"""The public suites of clients fail in nothing that has no reason (tools/client_suites.py)."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.kafka_versions import KAFKA
from tools.client_suites import GATEWAYS, SuiteResult, run_suite
from tools.sarama_cluster import docker_program

NEEDS_GO = pytest.mark.skipif(shutil.which("go") is None, reason="Go, which compiles the suite, is not installed here")

SOURCES = {
    "aiokafka": os.environ.get("RACKSPAN_AIOKAFKA_SOURCE"),
    "librdkafka": os.environ.get("RACKSPAN_LIBRDKAFKA_SOURCE"),
}


@pytest.mark.soak
@pytest.mark.parametrize(("suite", "least"), [("kgo", 400), ("aiokafka", 900), ("librdkafka", 20)])
def test_nothing_fails_in_a_clients_own_suite_but_for_a_reason(suite: str, least: int, tmp_path: Path) -> None:
    source = SOURCES.get(suite)
    if suite == "kgo" and shutil.which("go") is None:
        pytest.skip("kgo needs Go, which is not installed here")
    if suite != "kgo" and source is None:
        pytest.skip(f"RACKSPAN_{suite.upper()}_SOURCE names no copy of {suite}'s repository")
    result = run_suite(suite, Path(source) if source else None, tmp_path)
    assert result.unexpected == ()
    assert result.passed >= least


@pytest.mark.soak
@pytest.mark.timeout(3_600)
@NEEDS_GO
def test_kgos_suite_is_the_same_through_a_gateway_in_every_mode(tmp_path: Path) -> None:
    results = {}
    for gateway in GATEWAYS:
        (folder := tmp_path / gateway).mkdir()
        result = run_suite("kgo", None, folder, gateway=gateway)
        assert result.unexpected == ()
        results[gateway] = (result.passed, result.skipped)
    assert len({*results.values()}) == 1
    assert results["off"][0] >= 400


def test_a_failure_without_a_reason_is_unexpected() -> None:
    assert SuiteResult(1, 0, ("do_test_CreateAcls", "TestProduce")).unexpected == ("TestProduce",)


@pytest.mark.soak
@pytest.mark.kafka
@pytest.mark.timeout(7_200)
@NEEDS_GO
@pytest.mark.parametrize("gateway", [None, "verified"])
def test_nothing_fails_in_saramas_functional_tests(gateway: str | None, tmp_path: Path) -> None:
    result = run_suite("sarama", None, tmp_path, KAFKA, gateway)
    assert result.unexpected == ()
    assert result.passed >= 60


def test_saramas_tests_stop_and_start_brokers_and_read_their_logs_by_a_program_in_place_of_docker(
    tmp_path: Path,
) -> None:
    class Cluster:
        def __init__(self) -> None:
            self.calls = list[str]()
            self.pids = {1: 101}

        def stop(self, broker: int) -> None:
            self.calls.append(f"stop {broker}")

        def restart(self, broker: int) -> None:
            self.calls.append(f"restart {broker}")

    def run(*words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run([programs / "docker", *words], check=False, capture_output=True, text=True)

    (tmp_path / "kafka").mkdir()
    (tmp_path / "kafka" / "node-2.log").write_text("10:00:01.500 early\n  of it\n10:00:05.000 late\n  of it\n")
    cluster: Any = Cluster()
    with docker_program(tmp_path, cluster) as programs:
        assert run("compose", "stop", "kafka-2").returncode == 0
        assert run("compose", "start", "kafka-3").returncode == 0
        assert run("compose", "start", "kafka-1").returncode == 0
        logs = run("compose", "logs", "--since", "2026-11-26T10:00:02", "kafka-2")
        assert logs.stdout == "10:00:05.000 late\n  of it\n"
        other = run("compose", "up")
    assert cluster.calls == ["stop 2", "restart 3"]
    assert (other.returncode, other.stdout) == (1, "not known here: docker compose up\n")
