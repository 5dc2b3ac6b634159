"""Both examples in one group on real Kafka, started as their first lines say."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

from rackspan.kafka_process import KafkaCluster
from tests.kafka_fixtures import create_topic
from tests.kafka_tools import produce
from tests.waiting import eventually

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = ("rack_aware_consumer.py", "rack_aware_consumer_asyncio.py")


@contextmanager
def running(example: str, kafka: KafkaCluster, rack: str, output: IO[str]) -> Iterator[None]:
    words = (str(EXAMPLES / example), kafka.bootstrap_servers, "example-readers", "example", rack)
    process = subprocess.Popen([sys.executable, *words], stdout=output)
    try:
        yield
    finally:
        process.kill()
        process.wait()


@pytest.mark.java
@pytest.mark.kafka
def test_the_examples_read_together_each_what_is_in_its_rack(kafka: KafkaCluster, tmp_path: Path) -> None:
    create_topic(kafka, "example", assignment=[[1], [2], [1], [2]])
    printed = tmp_path / "output"
    with printed.open("a") as output, running(NAMES[0], kafka, "r1", output), running(NAMES[1], kafka, "r2", output):

        def both_read_their_own() -> bool:
            produce(kafka, "example", partitions=4, bytes_each=1)
            lines = printed.read_text().splitlines()[-8:]
            return {line.rpartition(" ")[0] for line in lines} == {
                *("r1 example-0", "r2 example-1", "r1 example-2", "r2 example-3")
            }

        eventually(both_read_their_own, "each reads the two partitions of its rack")


@pytest.mark.parametrize("example", NAMES)
def test_an_example_stays_short(example: str) -> None:
    assert len((EXAMPLES / example).read_text().splitlines()) < 30
