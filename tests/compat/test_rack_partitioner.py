"""Our partitioner without a bound chooses the same partitions as Kafka's own of KIP-1123, whatever leaders and racks are."""

import subprocess
from pathlib import Path
from random import Random

import pytest

from rackspan.producers.in_rack.partitioner import InRackPartitioner
from tests.compat import ivy
from tests.waiting import WITHIN_SECONDS

pytestmark = [
    pytest.mark.java,
    pytest.mark.skipif(ivy.java() is None, reason="NOT TESTED: Kafka's partitioner needs Java"),
]

FIRST_VERSION = "4.4.0"
"""Of kafka-clients with KIP-1123."""

SOURCE = Path(__file__).parent / "java" / "KafkaRackPartitioner.java"
LAYOUTS = 300

Layout = tuple[str, dict[int, str]]
"""The producer's rack, and that of each partition's leader: "-" is no rack, "!" no leader."""


def layout(rng: Random) -> Layout:
    racks = [f"r{number}" for number in range(rng.randint(1, 4))]
    leaders = {at: rng.choice([*racks, *racks, "-", "!"]) for at in range(rng.randint(1, 12))}
    leaders[0] = rng.choice([*racks, "-"])  # Java fails if no partition has a leader.
    return rng.choice([*racks, "elsewhere"]), leaders


def chosen_here(rng: Random, rack: str, leaders: dict[int, str]) -> set[int]:
    racks = {at: None if leader == "-" else leader for at, leader in leaders.items() if leader != "!"}
    partitioner = InRackPartitioner(rack, rng, skew_max=float("inf"), batch_bytes=1)
    chosen = {partitioner.partition("orders", 1, lambda: racks) for _ in range(200)}
    # None: the client's own partitioner decides, which chooses from all partitions with a leader.
    return set(racks) if chosen == {None} else {at for at in chosen if at is not None}


def test_the_partitions_are_those_of_kafkas_own_partitioner() -> None:
    rng = Random(1123)
    layouts = [layout(rng) for _ in range(LAYOUTS)]
    lines = [" ".join((rack, *(f"{at}={leader}" for at, leader in leaders.items()))) for rack, leaders in layouts]
    jars = ivy.jars("org.apache.kafka", "kafka-clients", FIRST_VERSION)
    command = ["java", "-Xmx256m", "-XX:+UseSerialGC", "-cp", f"{jars}/*", str(SOURCE)]
    done = subprocess.run(
        command, input="\n".join(lines), capture_output=True, text=True, timeout=WITHIN_SECONDS, check=True
    )
    kafkas = [set(map(int, line.split())) for line in done.stdout.splitlines()]
    assert kafkas == [chosen_here(rng, *each) for each in layouts]
    assert any(len(chosen) < len(leaders) for chosen, (_, leaders) in zip(kafkas, layouts, strict=True))
