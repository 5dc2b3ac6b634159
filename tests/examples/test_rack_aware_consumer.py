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
from tests.waiting import WITHIN_SECONDS, eventually

EXAMPLES = Path(__file__).parents[2] / "examples"
HANGS = "threading.Event().wait()"
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


STUCK = """
import {client}, runpy, sys, threading

class Stuck:
    def __init__(self, *_, **__): pass
    def __iter__(self): raise KeyboardInterrupt
    def __aiter__(self): raise KeyboardInterrupt
    async def start(self): pass
    async def stop(self): await forever()
    def close(self): {close}
    def __del__(self): {destroy}

async def forever():
    import asyncio
    while True:
        try:
            await asyncio.sleep(1)
        except asyncio.CancelledError:
            pass

{client}.{consumer} = Stuck
sys.argv = [{example!r}, "127.0.0.1:1", "group", "topic", "rack"]
runpy.run_path({example!r}, run_name="__main__")
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("example", "client", "consumer", "close", "destroy", "line"),
    [
        (NAMES[0], "kafka", "KafkaConsumer", HANGS, "pass", "Stuck did not end in 4 s and is left behind"),
        (NAMES[0], "kafka", "KafkaConsumer", "pass", HANGS, ""),
        (
            NAMES[1],
            "aiokafka",
            "AIOKafkaConsumer",
            "pass",
            "pass",
            "AIOKafkaConsumer did not end in 4 s and is left behind",
        ),
    ],
    ids=["close", "destruction", "asyncio"],
)
def test_an_example_ends_although_its_client_never_does(
    example: str, client: str, consumer: str, close: str, destroy: str, line: str
) -> None:
    script = STUCK.format(
        example=str(EXAMPLES / example), client=client, consumer=consumer, close=close, destroy=destroy
    )
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=WITHIN_SECONDS
    )
    assert "KeyboardInterrupt" in ran.stderr
    assert (line in ran.stderr.splitlines()) == bool(line), ran.stderr


@pytest.mark.parametrize("example", NAMES)
def test_an_example_stays_short(example: str) -> None:
    assert len((EXAMPLES / example).read_text().splitlines()) < 30
