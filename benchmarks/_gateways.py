"""Proxies before one Kafka cluster, each in a process of its own: the gateway by its config, and Kroxylicious without filters."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks._cluster_servers import Server
from benchmarks._measure import with_bytecode
from tests.compat import ivy

KROXYLICIOUS: Final = "kroxylicious"
KROXYLICIOUS_VERSION: Final = "0.12.0"
"""The last release whose runtime can be had by its Maven coordinates."""

LOOPBACK: Final = "127.0.0.1"
_SOURCE: Final = Path(__file__).parent / "java" / "PassThrough.java"


@dataclass(frozen=True, slots=True)
class Started:
    """A proxy that runs, and how long it took until it listened."""

    server: Server
    seconds: float


@contextmanager
def gateway(folder: Path, bootstrap: str, lines: str) -> Iterator[Started]:
    """`lines` are those of its config beyond the addresses. Its bytecode is kept in `folder`."""
    config = folder / "gateway.toml"
    config.write_text(f'bootstrap.servers = "{bootstrap}"\nlisten.first.port = 0\n{lines}')
    command = [sys.executable, "-m", "rackspan", "gateway", "--config", str(config)]
    with _process(command, with_bytecode(str(folder / "bytecode")), folder / "gateway.log") as (process, line, seconds):
        yield Started(Server("gateway", line.partition("=")[2], process), seconds)


@contextmanager
def kroxylicious(folder: Path, bootstrap: str, brokers: int) -> Iterator[Started]:
    """Without filters. It has no setting for the address that it listens at: all of the machine's."""
    jars = ivy.jars("io.kroxylicious", "kroxylicious-runtime", KROXYLICIOUS_VERSION)
    classes = folder / "classes"
    if not classes.is_dir():
        subprocess.run(["javac", "-d", str(classes), "-cp", f"{jars}/*", str(_SOURCE)], check=True, timeout=120)
    # The first port is for bootstrap, the others for the node ids from 0 on.
    first = _free_range(brokers + 2)
    config = folder / "kroxylicious.yaml"
    config.write_text(
        f"""\
virtualClusters:
  - name: bench
    targetCluster:
      bootstrapServers: {bootstrap}
    gateways:
      - name: plain
        portIdentifiesNode:
          bootstrapAddress: {LOOPBACK}:{first}
          nodeIdRanges:
            - name: brokers
              start: 0
              end: {brokers}
"""
    )
    command = ["java", "-Xmx512m", "-cp", f"{classes}:{jars}/*", "PassThrough", str(config)]
    with _process(command, os.environ, folder / "kroxylicious.log") as (process, _, seconds):
        yield Started(Server(KROXYLICIOUS, f"{LOOPBACK}:{first}", process), seconds)


@contextmanager
def _process(command: list[str], environment: Mapping[str, str], errors: Path) -> Iterator[tuple[int, str, float]]:
    """Its id, its first line, which it prints when it listens, and the seconds until then."""
    with errors.open("w") as log:
        begin = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env=dict(environment))
    assert process.stdout is not None
    try:
        line = process.stdout.readline().strip()
        seconds = time.perf_counter() - begin
        if not line:
            raise RuntimeError(f"{command[0]} did not start: {errors.read_text()[-2000:]}")
        yield process.pid, line, seconds
    finally:
        _end(process)


def _end(process: "subprocess.Popen[str]") -> None:
    process.terminate()
    try:
        process.communicate(timeout=30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()


def _free_range(count: int) -> int:
    """The first of so many ports in a row that nothing listens at."""
    for first in range(21_000, 60_000, count):
        with ExitStack() as held:
            try:
                for port in range(first, first + count):
                    held.enter_context(socket.create_server((LOOPBACK, port)))
            except OSError:
                continue
        return first
    raise RuntimeError(f"no {count} free ports in a row")
