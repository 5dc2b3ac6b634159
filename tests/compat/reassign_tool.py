"""Kafka's own reassignment tool as an oracle: its classes, run without a cluster."""

import subprocess
from pathlib import Path

from rackspan.java import find_java
from rackspan.kafka_process.release.jars import resolve_jars
from rackspan.kafka_process.release.versions import KafkaVersion
from rackspan.model import ClusterSnapshot
from rackspan.model.partitions import unpadded
from tests.kafka_versions import KAFKA

JVM_FLAGS = ("-Xmx2g",)
Placed = dict[tuple[str, int], tuple[int, ...]]


def parsed(file: Path) -> Placed | str:
    """A reassignment file as --execute reads it, or the words in which it is refused."""
    output = _run("parse", file)
    return output.removeprefix("refused: ").rstrip("\n") if output.startswith("refused: ") else _placed(output)


def generated(snapshot: ClusterSnapshot, scratch: Path) -> tuple[Placed, int]:
    """What --generate proposes for every topic on every broker, and in how many milliseconds, warm."""
    rows, lines = snapshot.partitions, [f"b {broker.id} {broker.rack}" for broker in snapshot.brokers]
    names = [topic.name for topic in snapshot.topics]
    for code, partition, replicas in zip(rows.topic.tolist(), rows.partition.tolist(), rows.replicas, strict=True):
        lines.append(f"p {names[code]} {partition} {','.join(map(str, unpadded(replicas)))}")
    file = scratch / "current.txt"
    file.write_text("\n".join(lines))
    milliseconds, _, output = _run("generate", file).partition("\n")
    return _placed(output), int(milliseconds)


def moves(snapshot: ClusterSnapshot, proposed: Placed) -> int:
    """Replicas a proposal copies."""
    rows, names = snapshot.partitions, [topic.name for topic in snapshot.topics]
    keys = zip(rows.topic.tolist(), rows.partition.tolist(), rows.replicas.tolist(), strict=True)
    return sum(len(set(proposed[names[code], partition]) - set(held)) for code, partition, held in keys)


def _run(request_name: str, file: Path) -> str:
    java, lib = find_java(), resolve_jars(KafkaVersion.parse(KAFKA))
    source = Path(__file__).with_name("KafkaReassign.java")
    words = [str(java.executable), *JVM_FLAGS, "-cp", f"{lib}/*", str(source), request_name, str(file)]
    return subprocess.run(words, capture_output=True, check=True, text=True).stdout


def _placed(output: str) -> Placed:
    placed: Placed = {}
    for line in output.splitlines():
        topic, partition, replicas = line.split(" ")
        placed[topic, int(partition)] = tuple(map(int, replicas.split(",")))
    return placed
