"""Programs in Java and Go that lose a rack of a practice cluster and get it back, by HTTP of their standard libraries."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from rackspan.cluster import EmbeddedCluster
from rackspan.java import find_java
from rackspan.practice.control import ControlServer

HERE = Path(__file__).parent


@pytest.fixture
def controlled() -> Iterator[tuple[EmbeddedCluster, ControlServer]]:
    with (
        EmbeddedCluster(racks=("a", "b", "c"), brokers=3) as cluster,
        closing(ControlServer(cluster, "embedded")) as server,
    ):
        yield cluster, server


def loses_a_rack_and_gets_it_back(
    command: list[str], controlled: tuple[EmbeddedCluster, ControlServer], **environment: str
) -> None:
    cluster, server = controlled
    words = [*command, server.address, server.token, "b", cluster.address(2)]
    ran = subprocess.run(
        words, capture_output=True, text=True, timeout=300, check=False, env={**os.environ, **environment}
    )
    assert ran.stdout.splitlines() == ["before true", "/lose 200", "lost false", "/restore 200", "restored true"], (
        ran.stderr
    )


@pytest.mark.java
def test_a_java_program_loses_a_rack_and_gets_it_back(controlled: tuple[EmbeddedCluster, ControlServer]) -> None:
    loses_a_rack_and_gets_it_back([str(find_java().executable), str(HERE / "java" / "LoseRack.java")], controlled)


@pytest.mark.slow
def test_a_go_program_loses_a_rack_and_gets_it_back(
    controlled: tuple[EmbeddedCluster, ControlServer],
) -> None:
    go = shutil.which("go")
    if go is None:
        pytest.skip("NOT TESTED from Go: there is no go on PATH")
    # With Go's own cache: compiling its HTTP takes a minute of processor, each time without one.
    own = {"GOFLAGS": "-mod=mod", "GOTOOLCHAIN": "local"}
    loses_a_rack_and_gets_it_back([go, "run", str(HERE / "go" / "lose_rack.go")], controlled, **own)
