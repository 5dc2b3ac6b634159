"""One consumer in a process of its own: `python -m tests.assignor.member CLIENT BOOTSTRAP GROUP TOPICS RACK CLIENT_ID [OPTION…]`.

It reads until its standard input ends, then leaves its group. Warnings of rackspan go to standard error. Options:
`cooperative`, `range` (offers Range too), `only-range`, `leader` (no fetching from followers), and `later` (sends user data of
a later version). RACK `-` is none.
"""

import asyncio
import logging
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from aiokafka import AIOKafkaConsumer
from aiokafka.coordinator.assignors.range import RangePartitionAssignor as AiokafkaRange
from kafka import KafkaConsumer
from kafka.coordinator.assignors.range import RangePartitionAssignor as KafkaPythonRange

from rackspan.assignor import aiokafka, kafka_python
from rackspan.consumers import member_data

TIMES = {"session_timeout_ms": 6000, "heartbeat_interval_ms": 300, "metadata_max_age_ms": 2000}


def read_with_kafka_python(common: Mapping[str, Any], topics: Sequence[str], strategy: Mapping[str, Any]) -> None:
    stdin_ends = threading.Thread(target=sys.stdin.read, daemon=True)
    stdin_ends.start()
    consumer = KafkaConsumer(*topics, **common, **strategy)
    while stdin_ends.is_alive():
        consumer.poll(timeout_ms=1000)
    consumer.close()


def read_with_aiokafka(common: Mapping[str, Any], topics: Sequence[str], strategy: Mapping[str, Any]) -> None:
    asyncio.run(_aiokafka(common, topics, strategy))


async def _aiokafka(common: Mapping[str, Any], topics: Sequence[str], strategy: Mapping[str, Any]) -> None:
    consumer = AIOKafkaConsumer(*topics, **common, **strategy)
    await consumer.start()
    try:
        left = asyncio.create_task(asyncio.to_thread(sys.stdin.read))
        while not left.done():
            await consumer.getmany(timeout_ms=200)
    finally:
        await consumer.stop()


def strategy(client: str, rack: str, options: Sequence[str]) -> Mapping[str, Any]:
    plain = KafkaPythonRange if client == "kafka-python" else AiokafkaRange
    if "only-range" in options:
        return {"partition_assignment_strategy": [plain]}
    arguments: dict[str, Any] = {"also": [plain] if "range" in options else [], "followers": "leader" not in options}
    if "cooperative" in options:
        arguments["cooperative"] = True
    in_rack: Callable[..., Mapping[str, Any]] = (kafka_python if client == "kafka-python" else aiokafka).in_rack
    return in_rack(rack.strip("-"), **arguments)


READERS: Mapping[str, Callable[[Mapping[str, Any], Sequence[str], Mapping[str, Any]], None]] = {
    "kafka-python": read_with_kafka_python,
    "aiokafka": read_with_aiokafka,
}


def main(client: str, bootstrap: str, group: str, topics: str, rack: str, client_id: str, *options: str) -> None:
    logging.basicConfig(level=logging.ERROR, format="%(message)s")
    logging.getLogger("rackspan.assignor").setLevel(logging.WARNING)
    if "later" in options:
        member_data.VERSION = 2  # type: ignore[misc]
    common = {"bootstrap_servers": bootstrap, "group_id": group, "client_id": client_id, **TIMES}
    READERS[client](common, topics.split(","), strategy(client, rack, options))


if __name__ == "__main__":
    main(*sys.argv[1:])
