"""Five brokers of Apache Kafka behind toxiproxy, as sarama's functional tests expect them, without containers.

The tests reach broker N by 127.0.0.1:2909N, where toxiproxy breaks connections at their command, and run `docker compose` to
stop and start brokers, to read their logs and for Kafka's console tools. Here toxiproxy is a program that Go has made, and a
program named docker, in a folder of PATH, hands its words to this process. Used by client_suites.py.
"""

import json
import os
import re
import socket
import socketserver
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from http.client import HTTPConnection
from pathlib import Path
from typing import Final

from rackspan.kafka_process import KafkaCluster
from rackspan.testing import READS_IN_RACK
from tests.gateway.process import free_ports, gateway_process

_BROKERS: Final = range(1, 6)
_LISTENER: Final = "LISTENER_LOCAL"
_CONFIG: Final[Mapping[str, str]] = {
    "default.replication.factor": "2",
    "offsets.topic.replication.factor": "2",
    "transaction.state.log.replication.factor": "2",
    "transaction.state.log.min.isr": "1",
    **READS_IN_RACK,
}
"""Where docker-compose.yml of sarama, and what Kafka comes with, differ from what a KafkaCluster has."""

_TOOLS: Final = {
    "kafka-console-producer.sh": "org.apache.kafka.tools.ConsoleProducer",
    "kafka-console-consumer.sh": "org.apache.kafka.tools.consumer.ConsoleConsumer",
}
_START_SECONDS: Final = 20.0

_DOCKER: Final = """#!{python}
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as connection:
    connection.connect({address!r})
    connection.sendall(json.dumps(sys.argv[1:]).encode() + b"\\n")
    response = json.loads(connection.makefile().read())
if response["command"]:
    os.execv(response["command"][0], response["command"])
print(response["output"])
sys.exit(response["status"])
"""


@contextmanager
def sarama_cluster(folder: Path, version: str, toxiproxy: Path, gateway: str | None) -> Iterator[dict[str, str]]:
    """The environment variables of the tests. `gateway` has lines of a gateway's config, if it is to be between."""
    racks = [str(number) for number in _BROKERS]
    cluster = KafkaCluster(
        racks,
        len(_BROKERS),
        controllers=dict(zip(_BROKERS, racks, strict=True)),
        version=version,
        data_dir=folder / "kafka",
        config=_CONFIG,
        listeners={_LISTENER: "PLAINTEXT"},
    )
    with (
        cluster,
        _listeners(folder, cluster, gateway) as upstream,
        _toxiproxy(toxiproxy, upstream) as address,
        docker_program(folder, cluster) as programs,
    ):
        path = f"{programs}{os.pathsep}{os.environ['PATH']}"
        yield {"TOXIPROXY_ADDR": f"http://{address}", "KAFKA_VERSION": version, "PATH": path}


@contextmanager
def _listeners(folder: Path, cluster: KafkaCluster, gateway: str | None) -> Iterator[Sequence[str]]:
    """The addresses behind toxiproxy: of the brokers, or of a gateway's listeners. They advertise toxiproxy's."""
    if gateway is None:
        _advertise(cluster, folder / "kafka")
        yield cluster.bootstrap_servers_of(_LISTENER).split(",")
        return
    ports = free_ports(len(_BROKERS))
    tables = "".join(
        f"[brokers.{number}]\nport = {port}\nadvertised.port = {_port(number)}\n"
        for number, port in zip(_BROKERS, ports, strict=True)
    )
    with gateway_process(folder, cluster.bootstrap_servers, f"listen.first.port = 1\n{gateway}{tables}"):
        yield [f"127.0.0.1:{port}" for port in ports]


def _port(broker: int) -> int:
    """Its port in sarama's tests."""
    return 29_090 + broker


def _advertise(cluster: KafkaCluster, data: Path) -> None:
    """Start the brokers anew with toxiproxy's addresses, which a KafkaCluster has no setting for."""
    cluster.kill(*_BROKERS)
    for broker, address in zip(_BROKERS, cluster.bootstrap_servers.split(","), strict=True):
        with (data / f"node-{broker}.properties").open("a") as properties:
            properties.write(f"advertised.listeners=CLIENT://{address},{_LISTENER}://127.0.0.1:{_port(broker)}\n")
    cluster.restart(*_BROKERS)


@contextmanager
def _toxiproxy(program: Path, upstream: Sequence[str]) -> Iterator[str]:
    """Its address, once every broker has a proxy."""
    [port] = free_ports(1)
    address = f"127.0.0.1:{port}"
    process = subprocess.Popen([program, "-port", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _await_listening(port)
        for number, server in zip(_BROKERS, upstream, strict=True):
            proxy = {"name": f"kafka{number}", "listen": f"127.0.0.1:{_port(number)}", "upstream": server}
            connection = HTTPConnection(address, timeout=5)
            connection.request("POST", "/proxies", json.dumps({**proxy, "enabled": True}))
            response = connection.getresponse()
            assert response.status == 201, response.read()
            connection.close()
        yield address
    finally:
        process.kill()
        process.wait()


def _await_listening(port: int) -> None:
    """Errors: OSError."""
    until = time.monotonic() + _START_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)
        else:
            return


@contextmanager
def docker_program(folder: Path, cluster: KafkaCluster) -> Iterator[Path]:
    """The folder of a program named docker, which does to the cluster what its words say."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            response = _compose(cluster, folder / "kafka", json.loads(self.rfile.readline()))
            self.wfile.write(json.dumps(response).encode())

    address = str(folder / "docker.socket")
    programs = folder / "programs"
    programs.mkdir()
    (docker := programs / "docker").write_text(_DOCKER.format(python=sys.executable, address=address))
    docker.chmod(0o755)
    with socketserver.ThreadingUnixStreamServer(address, Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield programs
        server.shutdown()


def _compose(cluster: KafkaCluster, data: Path, words: Sequence[str]) -> dict[str, object]:
    """What `docker` with these words has to do: run a command in its own place, or print and end with a status."""
    output = ""
    match words:
        case ["compose", "stop", service]:
            cluster.stop(_broker(service))
        case ["compose", "start", service]:
            # As of a container, the start of a broker that runs changes nothing.
            if _broker(service) not in cluster.pids:
                cluster.restart(_broker(service))
        case ["compose", "exec", "-T", _, path, *arguments]:
            server = cluster.bootstrap_servers.split(",")[0]
            arguments = [server if word == "kafka-1:9091" else word for word in arguments]
            command = cluster.runtime.command(_TOOLS[Path(path).name], *arguments, log_level="error")
            return {"command": command, "output": "", "status": 0}
        case ["compose", "logs", "--since", since, service]:
            output = _since((data / f"node-{_broker(service)}.log").read_text(), since)
        case _:
            return {"command": None, "output": f"not known here: docker {' '.join(words)}", "status": 1}
    return {"command": None, "output": output, "status": 0}


def _broker(service: str) -> int:
    return int(service.removeprefix("kafka-"))


def _since(log: str, since: str) -> str:
    """The lines of a broker's log from a time of RFC 3339 on; its lines have the hour, in the zone of this machine."""
    first = datetime.fromisoformat(since).astimezone().strftime("%H:%M:%S")
    lines = log.splitlines()
    later = (index for index, line in enumerate(lines) if re.match(r"\d\d:\d\d:\d\d\.", line) and line[:8] >= first)
    return "\n".join(lines[next(later, len(lines)) :])
