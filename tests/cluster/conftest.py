"""One embedded cluster for all tests that leave it whole. Each test has its own topics."""

import subprocess
from collections.abc import Callable, Iterator

import pytest

from rackspan.cluster import EmbeddedCluster
from rackspan.errors import MissingRequirement
from rackspan.java import find_java
from rackspan.kafka_process.release.jars import resolve_jars
from rackspan.kafka_process.release.runtime import KafkaRuntime
from rackspan.kafka_process.release.versions import KafkaVersion
from tests.kafka_versions import KAFKA
from tests.waiting import WITHIN_SECONDS

RunTool = Callable[..., str]


@pytest.fixture(scope="session")
def cluster() -> Iterator[EmbeddedCluster]:
    """Six brokers in three racks. A test that injects a fault undoes it.

    Sessions of 1 s are allowed, so that the group of a member that crashes goes on soon.
    """
    config = {"group.min.session.timeout.ms": "1000"}
    with EmbeddedCluster(racks=3, brokers=6, config=config, seed=1) as started:
        yield started


@pytest.fixture(scope="session")
def runtime() -> KafkaRuntime:
    """Kafka's jars and a Java to run them."""
    try:
        java = find_java()
        return KafkaRuntime(java, resolve_jars(KafkaVersion.parse(KAFKA), lambda _: None, java=java))
    except MissingRequirement as missing:
        pytest.skip(f"NOT TESTED against Kafka's console tools: {missing}")


@pytest.fixture(scope="session")
def run_tool(cluster: EmbeddedCluster, runtime: KafkaRuntime) -> RunTool:
    """Kafka's own console tools against the embedded cluster: (class, *arguments) to what they print."""

    def run(main_class: str, *arguments: str, stdin: str | None = None, seconds: float = WITHIN_SECONDS) -> str:
        command = (main_class, "--bootstrap-server", cluster.bootstrap_servers, *arguments)
        if stdin is None:
            return runtime.run_tool(*command, seconds=seconds)
        return subprocess.run(
            runtime.command(*command, log_level="error"),
            input=stdin, capture_output=True, text=True, timeout=seconds, check=True,
        ).stdout  # fmt: skip

    return run
