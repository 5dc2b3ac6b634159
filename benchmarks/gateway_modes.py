"""What each acknowledgement mode of the gateway costs before real Kafka, beside the same Kafka direct and a proxy that only passes on.

Time to an acknowledgement at each of RATES records a second, a request each, from the time a record was due; processor time of the proxy
meanwhile; and throughput of a producer that keeps many requests in flight. Rounds go in turns. The client, three brokers, their
controller and all proxies share the machine's cores, and a proxy that is not measured does nothing.

python -m benchmarks.gateway_modes [ROUNDS]
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from statistics import median
from typing import Final

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from benchmarks._cluster_clients import run_client
from benchmarks._cluster_servers import Server
from benchmarks._gateways import KROXYLICIOUS, KROXYLICIOUS_VERSION, Started, gateway, kroxylicious
from benchmarks._measure import machine
from rackspan.kafka_process import KafkaCluster

ROUNDS: Final = 5
MEGABYTES: Final = 60
RATES: Final = (100, 1000)
LATENCY_SECONDS: Final = 5
DIRECT: Final = "direct"
MODES: Final = ("off", "pre", "verified", "strict")
PATHS: Final = (DIRECT, KROXYLICIOUS, *MODES)


@dataclass(frozen=True, slots=True)
class Latency:
    """Milliseconds, and processor seconds of the proxy for each second."""

    p50: float
    p99: float
    processors: float


def main(rounds: int = ROUNDS) -> None:
    print(f"{machine()}; load {os.getloadavg()[0]:.1f}")
    latencies: dict[tuple[int, str], list[Latency]] = {}
    speeds: dict[str, list[float]] = {}
    with ExitStack() as stack:
        cluster = stack.enter_context(KafkaCluster(racks=("A", "A", "B"), brokers=3, controllers={101: None}))
        paths = {DIRECT: Server(DIRECT, cluster.bootstrap_servers, os.getpid())}
        for path, proxy in _proxies(cluster).items():
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            paths[path] = stack.enter_context(proxy(folder, cluster.bootstrap_servers)).server
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
        for number in range(rounds + 1):
            _round(paths, admin, number, latencies, speeds)
    print(
        f"median of {rounds} rounds after one that warms up; three brokers in racks A, A, B, two racks required; "
        f"Kroxylicious {KROXYLICIOUS_VERSION} without filters; load {os.getloadavg()[0]:.1f}"
    )
    for rate in RATES:
        for path in PATHS:
            measured = latencies[rate, path][1:]
            p50, p99, processors = (median(getattr(one, name) for one in measured) for name in Latency.__slots__)
            cost = "" if path == DIRECT else f"  processors {processors:.3f}"
            print(f"  {rate:>5}/s {path:<12} p50 {p50:6.2f} ms  p99 {p99:7.2f} ms{cost}")
    for path in PATHS:
        ratio = median(own / direct for own, direct in zip(speeds[path][1:], speeds[DIRECT][1:], strict=True))
        print(f"  throughput {path:<12} {ratio:.2f} of direct")


def _proxies(cluster: KafkaCluster) -> dict[str, Callable[[Path, str], AbstractContextManager[Started]]]:
    return {
        KROXYLICIOUS: partial(kroxylicious, brokers=4),
        **{mode: partial(gateway, lines=_lines(mode, cluster)) for mode in MODES},
    }


def _lines(mode: str, cluster: KafkaCluster) -> str:
    lines = f'acknowledgements.mode = "{mode}"\n'
    if mode != "off":
        lines += 'acknowledgements.min.insync.racks = 2\nacknowledgements.config.topic = ""\n'
    if mode == "strict":
        lines += f'controllers.bootstrap.servers = "{cluster.bootstrap_controllers}"\n'
    return lines


def _round(
    paths: Mapping[str, Server],
    admin: AdminClient,
    number: int,
    latencies: dict[tuple[int, str], list[Latency]],
    speeds: dict[str, list[float]],
) -> None:
    for path in Random(number).sample(sorted(paths), len(paths)):
        topic = f"{path}-{number}"
        placed = NewTopic(topic, 4, replica_assignment=[[1, 3], [2, 3], [3, 1], [3, 2]])
        admin.create_topics([placed])[topic].result(60)
        for rate in RATES:
            latencies.setdefault((rate, path), []).append(_latency(paths[path], topic, rate))
        seconds = run_client(paths[path].bootstrap, "produce", MEGABYTES, topic)
        speeds.setdefault(path, []).append(MEGABYTES / seconds)
        admin.delete_topics([topic])[topic].result(60)


def _latency(server: Server, topic: str, rate: int) -> Latency:
    words = ["latency", str(LATENCY_SECONDS), topic, str(rate), "0.5", "0.99"]
    command = [sys.executable, "-m", "benchmarks._cluster_clients", server.bootstrap, *words]
    before = server.processor_seconds()
    p50, p99 = subprocess.run(command, check=True, capture_output=True, text=True, timeout=240).stdout.split()
    processors = (server.processor_seconds() - before) / LATENCY_SECONDS
    return Latency(float(p50) * 1000, float(p99) * 1000, processors)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS)
