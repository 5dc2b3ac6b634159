"""Consumers of one process of librdkafka_closes.py, by the confluent-kafka that PYTHONPATH names.

    python tools/librdkafka_readers.py BOOTSTRAP-SERVERS TOPICS PARTITIONS STAYING CONSUMERS CLOSE-SECONDS

Prints `reading` and the version when every partition was read. After a line on stdin the consumers go on for some seconds, and close.
No call of theirs holds Python's lock while it waits for librdkafka's, as list_topics does: in a deadlock it would hold every thread.
STAYING is a topic of a broker that stays. Prints the counts as JSON, and ends when stdin does: without an orderly end, which a consumer that hangs would hold up.
"""

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, Final

from confluent_kafka import Consumer, TopicPartition, libversion

STEP_SECONDS: Final = 30.0
_POLL_SECONDS: Final = 0.05
_DECOMMISSION_SECONDS: Final = 3.0
"""librdkafka requests the leaders of topics every second, and the response lists the brokers that are left."""


class Reader:
    """One consumer in a thread."""

    def __init__(self, servers: str, partitions: list[Any], group: str) -> None:
        self.read = 0
        self.closing = False
        self.fenced = threading.Event()
        self._consumer = Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": group,
                "enable.auto.commit": False,
                "fetch.wait.max.ms": 100,
                "log_level": 0,
                "error_cb": lambda _: None,
            }
        )
        self._consumer.assign(partitions)
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        while not self.fenced.is_set():
            message = self._consumer.poll(_POLL_SECONDS)
            self.read += message is not None and message.error() is None
        # A handle that is being destroyed gives the requests in flight another error, after which no thread needs both locks.
        until = time.monotonic() + _DECOMMISSION_SECONDS
        while time.monotonic() < until:
            self._consumer.poll(_POLL_SECONDS)
        self.closing = True
        self._consumer.close()


def _wait_for(done: Callable[[], bool]) -> None:
    until = time.monotonic() + STEP_SECONDS
    while not done():
        if time.monotonic() > until:
            raise SystemExit(f"not every partition was read in {STEP_SECONDS:g} s")
        time.sleep(_POLL_SECONDS)


def main() -> None:
    servers, topics, partitions, staying, consumers, close_seconds = sys.argv[1:]
    count = int(topics) * int(partitions)
    places = [TopicPartition(f"topic-{t}", p, 0) for t in range(int(topics)) for p in range(int(partitions))]
    places.append(TopicPartition(staying, 0, 0))
    readers = [Reader(servers, places, f"closes-{number}") for number in range(int(consumers))]
    _wait_for(lambda: all(reader.read >= count for reader in readers))
    print("reading", libversion()[0], flush=True)
    sys.stdin.readline()
    for reader in readers:
        reader.fenced.set()
    until = time.monotonic() + float(close_seconds)
    for reader in readers:
        reader.thread.join(max(0.0, until - time.monotonic()))
    hung = sum(reader.closing and reader.thread.is_alive() for reader in readers)
    print(
        json.dumps({"tried": sum(reader.closing for reader in readers), "hung": hung}),
        flush=True,
    )
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main()
