"""What each acknowledgement mode of the gateway costs before real Kafka, beside the same Kafka direct.

Time to an acknowledgement at 1,000 records/s with linger 0, median and 99th percentile, and throughput of a producer that keeps many
requests in flight. Rounds go in turns. The client, three brokers, their controller and the gateways share the machine's cores.

python -m benchmarks.gateway_modes [ROUNDS]
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from random import Random
from statistics import median
from typing import Final

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from benchmarks._cluster_clients import run_client
from benchmarks._gateways import gateway
from benchmarks._measure import machine
from rackspan.kafka_process import KafkaCluster

ROUNDS: Final = 5
MEGABYTES: Final = 60
LATENCY_SECONDS: Final = 5
DIRECT: Final = "direct"
MODES: Final = ("off", "pre", "verified", "strict")


def main(rounds: int = ROUNDS) -> None:
    print(f"{machine()}; load {os.getloadavg()[0]:.1f}")
    latencies: dict[str, list[tuple[float, float]]] = {}
    speeds: dict[str, list[float]] = {}
    with ExitStack() as stack:
        racks = ("A", "A", "B")
        cluster = stack.enter_context(KafkaCluster(racks=racks, brokers=3, controllers={101: None}))
        paths = {DIRECT: cluster.bootstrap_servers}
        for mode in MODES:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            started = stack.enter_context(gateway(folder, cluster.bootstrap_servers, _lines(mode, cluster)))
            paths[mode] = started.server.bootstrap
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
        for number in range(rounds + 1):
            _round(paths, admin, number, latencies, speeds)
    print(f"median of {rounds} rounds after one that warms up; three brokers in racks A, A, B, two racks required")
    for path in (DIRECT, *MODES):
        p50, p99 = (median(one[at] for one in latencies[path][1:]) * 1000 for at in (0, 1))
        ratio = median(own / direct for own, direct in zip(speeds[path][1:], speeds[DIRECT][1:], strict=True))
        print(f"  {path:<9} p50 {p50:6.2f} ms  p99 {p99:7.2f} ms  throughput {ratio:.2f} of direct")


def _lines(mode: str, cluster: KafkaCluster) -> str:
    lines = f'acknowledgements.mode = "{mode}"\n'
    if mode != "off":
        lines += 'acknowledgements.min.insync.racks = 2\nacknowledgements.config.topic = ""\n'
    if mode == "strict":
        lines += f'controllers.bootstrap.servers = "{cluster.bootstrap_controllers}"\n'
    return lines


def _round(
    paths: Mapping[str, str],
    admin: AdminClient,
    number: int,
    latencies: dict[str, list[tuple[float, float]]],
    speeds: dict[str, list[float]],
) -> None:
    for path in Random(number).sample(sorted(paths), len(paths)):
        topic = f"{path}-{number}"
        placed = NewTopic(topic, 4, replica_assignment=[[1, 3], [2, 3], [3, 1], [3, 2]])
        admin.create_topics([placed])[topic].result(60)
        latencies.setdefault(path, []).append(_latency(paths[path], topic))
        speeds.setdefault(path, []).append(MEGABYTES / run_client(paths[path], "produce", MEGABYTES, topic))
        admin.delete_topics([topic])[topic].result(60)


def _latency(bootstrap: str, topic: str) -> tuple[float, float]:
    words = ["latency", str(LATENCY_SECONDS), topic, "0.5", "0.99"]
    command = [sys.executable, "-m", "benchmarks._cluster_clients", bootstrap, *words]
    p50, p99 = subprocess.run(command, check=True, capture_output=True, text=True, timeout=240).stdout.split()
    return float(p50), float(p99)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS)
