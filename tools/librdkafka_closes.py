"""Counts closes of librdkafka's consumers that never return, by version, while brokers leave a cluster (librdkafka's issue 5476).

    pip install --no-deps --target FOLDER confluent-kafka==VERSION
    python -m tools.librdkafka_closes FOLDER... [--cycles N] [--consumers N] [--busy N] [--stacks FILE]

Each folder holds one version. A cycle is an embedded cluster and a process of that version, whose consumers have read every
partition of two brokers when the first is killed: they send OffsetForLeaderEpoch to the second one, which holds its responses back.
It leaves the cluster, the consumers decommission it while those requests are in flight, and close. A close that has not returned
after CLOSE_SECONDS counts as hung. Where it hangs is a race of two of librdkafka's threads: it is lost more often beside busy
processes, and FILE gets the threads of the first process that hangs, by gdb.
"""

import argparse
import asyncio
import inspect
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random
from typing import Any, Final
from unittest import mock

from confluent_kafka import Producer

from rackspan.cluster import EmbeddedCluster, net
from rackspan.cluster.context import Call
from rackspan.cluster.handlers import HANDLERS
from rackspan.wire.apis import ApiKey
from tools import librdkafka_readers

TOPICS: Final = 20
PARTITIONS: Final = 5
"""Of each topic. A consumer loses the leader of all of them at once: the more, the wider is the window."""

STAYING: Final = "staying"
"""A topic of the third broker, to which every consumer has a connection."""

CLOSE_SECONDS: Final = 10.0
"""A close takes milliseconds on an idle machine."""

STEP_SECONDS: Final = 30.0
_POLL_SECONDS: Final = 0.05


def main() -> int:
    """Print the table. Exits with 0 whatever it counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--cycles", type=int, default=10, help="of each version")
    parser.add_argument("--consumers", type=int, default=6, help="of each cycle")
    parser.add_argument("--busy", type=int, default=0, help="processes that only use the processor, beside all cycles")
    parser.add_argument("--no-pauses", action="store_true", help="librdkafka's threads run as they are")
    parser.add_argument("--stacks", type=Path, metavar="FILE")
    options = parser.parse_args()
    for folder in options.folders:
        if not (folder / "confluent_kafka").is_dir():
            parser.error(f"{folder} holds no confluent_kafka; install it there by pip's --target")
    tried: Counter[str] = Counter()
    hung: Counter[str] = Counter()
    with _busy(options.busy), _pausing(enabled=not options.no_pauses) as pause:
        for cycle in range(1, options.cycles + 1):
            for folder in options.folders:
                stacks = None if hung.total() else options.stacks
                result = _closes(folder, options.consumers, stacks, pause)
                tried[result["version"]] += result["tried"]
                hung[result["version"]] += result["hung"]
                print(f"cycle {cycle}, {folder.name}: {result['hung']} of {result['tried']} hung", flush=True)
    print("\nlibrdkafka  closes  hung")
    for version, closes in tried.items():
        print(f"{version:<10}  {closes:>6}  {hung[version]:>4}")
    return 0


@contextmanager
def _busy(count: int) -> Iterator[None]:
    with ExitStack() as started:
        for _ in range(count):
            process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
            started.callback(process.wait)
            started.callback(process.kill)
        yield


@contextmanager
def _pausing(*, enabled: bool) -> Iterator[Path | None]:
    """The library of librdkafka_pause.c, for LD_PRELOAD."""
    if not enabled:
        yield None
        return
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "pause.so"
        source = Path(__file__).with_name("librdkafka_pause.c")
        subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", str(library), str(source), "-ldl"], check=True)
        yield library


def _closes(folder: Path, consumers: int, stacks: Path | None, pause: Path | None) -> dict[str, Any]:
    """Closes of one process. Errors: RuntimeError if its consumers did not come so far."""
    with _cluster() as (cluster, held), ExitStack() as end:
        arguments = [cluster.bootstrap_servers, TOPICS, PARTITIONS, STAYING, consumers, CLOSE_SECONDS]
        process = subprocess.Popen(
            [sys.executable, librdkafka_readers.__file__, *map(str, arguments)],
            env={**os.environ, "PYTHONPATH": str(folder), **({} if pause is None else {"LD_PRELOAD": str(pause)})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        end.callback(process.wait)
        end.callback(process.kill)
        requests, lines = process.stdin, process.stdout
        assert requests is not None
        assert lines is not None
        reading, _, version = lines.readline().strip().partition(" ")
        if reading != "reading":
            raise RuntimeError(f"{folder}: the consumers did not read every partition")
        end.callback(held.apis.clear)
        # The second broker leads every partition again, in an epoch that the consumers have not validated.
        held.apis |= {ApiKey.METADATA, ApiKey.OFFSET_FOR_LEADER_EPOCH}
        cluster.fence(2)
        cluster.unfence(2)
        cluster.wait_for_isr(seconds=STEP_SECONDS)
        cluster.kill(1)
        held.apis.remove(ApiKey.METADATA)
        _wait_for(lambda: held.requests >= consumers * TOPICS * PARTITIONS)
        _wait_for(lambda: time.monotonic() - held.metadata_at > 2.5)
        cluster.fence(2)
        print("fenced", file=requests, flush=True)
        # A deadlock that holds Python's own lock too gives no result.
        frozen = threading.Timer(CLOSE_SECONDS + STEP_SECONDS, process.kill)
        end.callback(frozen.cancel)
        frozen.start()
        result: dict[str, Any] = json.loads(lines.readline() or json.dumps({"tried": consumers, "hung": consumers}))
        result["version"] = version
        if stacks is not None and result["hung"]:
            with stacks.open("w") as file:
                command = ["gdb", "-p", str(process.pid), "-batch", "-ex", "thread apply all bt"]
                subprocess.run(command, stdout=file, stderr=file, check=False, timeout=STEP_SECONDS)
        return result


class _Held:
    """The APIs whose responses are held back."""

    def __init__(self) -> None:
        self.apis: set[ApiKey] = set()
        self.requests = 0
        """Requests for the end of an epoch that were held back."""
        self.metadata_at = 0.0

    def handler(self, api: ApiKey) -> Callable[[Call[Any]], Any]:
        handle = HANDLERS[api]

        async def respond_later(call: Call[Any]) -> Any:
            if api is ApiKey.METADATA:
                self.metadata_at = time.monotonic()
                while api in self.apis:
                    await asyncio.sleep(_POLL_SECONDS)
            elif api in self.apis:
                # No response at all: later requests of the connection get theirs.
                self.requests += 1
                return None
            response = handle(call)
            return await response if inspect.isawaitable(response) else response

        return respond_later


@contextmanager
def _cluster() -> Iterator[tuple[EmbeddedCluster, _Held]]:
    held = _Held()
    handlers = {api: held.handler(api) for api in (ApiKey.METADATA, ApiKey.OFFSET_FOR_LEADER_EPOCH)}
    with (
        mock.patch.dict(HANDLERS, handlers),
        # More requests than a connection has in flight otherwise.
        mock.patch.object(net, "MAX_IN_FLIGHT", 2 * TOPICS * PARTITIONS),
        EmbeddedCluster(["r1", "r2", "r3"], 3) as cluster,
    ):
        # The order in which a broker's partitions came to it, and in which they are validated, differ.
        rng = Random(1)
        for number in range(TOPICS):
            cluster.create_topic(f"topic-{number}", replicas=[rng.sample((1, 2), 2) for _ in range(PARTITIONS)])
        cluster.create_topic(STAYING, replicas=[[3]])
        cluster.wait_for_isr(seconds=STEP_SECONDS)
        _produce(cluster.bootstrap_servers)
        yield cluster, held


def _wait_for(reached: Callable[[], bool]) -> None:
    until = time.monotonic() + STEP_SECONDS
    while not reached():
        if time.monotonic() > until:
            raise RuntimeError(f"the consumers did not validate their positions within {STEP_SECONDS:g} s")
        time.sleep(_POLL_SECONDS)


def _produce(bootstrap_servers: str) -> None:
    """One record in each partition: only a position with an epoch is validated."""
    producer = Producer({"bootstrap.servers": bootstrap_servers, "acks": "all"})
    errors: list[object] = []
    for number in range(TOPICS):
        for partition in range(PARTITIONS):
            producer.produce(
                f"topic-{number}",
                b"record",
                partition=partition,
                on_delivery=lambda error, _: errors.append(error) if error is not None else None,
            )
    late = producer.flush(STEP_SECONDS)
    assert not late, f"{late} records without a response"
    assert not errors, errors


if __name__ == "__main__":
    sys.exit(main())
