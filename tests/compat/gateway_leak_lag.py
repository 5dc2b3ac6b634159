"""Leak trials without a failure: a follower that never catches up, and metadata that comes late. Acknowledgements are judged by B's log.

    python -m tests.compat.gateway_leak_lag slow MODE RUNS
    python -m tests.compat.gateway_leak_lag late MODE RUNS SECONDS [leader|all]

Brokers 1 and 2 are in rack A, 3 in rack B; one partition is on [1, 2, 3] and requires two racks. A record that the gateway
acknowledged and that the log of broker 3 lacks, when that broker is suspended, is held in rack A alone: a leak.

`slow`: broker 3 fetches one batch at a time, so that it acknowledges each record within milliseconds and never reaches the end of
the leader's log. It leaves the ISR for lag in the middle of traffic, and is suspended then. `late`: broker 3 is suspended under
traffic, while the metadata of the leader, or of every broker, reaches it so many seconds late: a relay delays the controllers'
responses to Fetch, and passes on heartbeats and AlterPartition at once.
"""

import asyncio
import re
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from rackspan.kafka_bytes.record_batch import whole_batches
from rackspan.kafka_process import KafkaCluster
from tests.gateway.process import gateway_process
from tests.kafka_versions import KAFKA
from tests.waiting import WITHIN_SECONDS, eventually

LEADER: Final = 1
OF_RACK_B: Final = 3
PRODUCERS: Final = 6
LAG_MAX_SECONDS: Final = 3.0
AFTERWARDS_SECONDS: Final = 1.5
CONFIG: Final = {
    "replica.lag.time.max.ms": str(int(LAG_MAX_SECONDS * 1000)),
    "min.insync.replicas": "2",
    "auto.leader.rebalance.enable": "false",
    # A raft response that is late is no reason to look for another controller.
    "controller.quorum.request.timeout.ms": "60000",
    "controller.quorum.fetch.timeout.ms": "60000",
}
SLOW: Final = {
    "replica.fetch.max.bytes": "1",
    "replica.fetch.min.bytes": "1000000",
    "replica.fetch.wait.max.ms": "5",
}
_FETCH: Final = 1


class TunedCluster(KafkaCluster):
    """A cluster whose nodes have settings of their own, by node id: `settings` is called when ports are known."""

    def __init__(self, settings: Callable[["TunedCluster"], Mapping[int, Mapping[str, str]]]) -> None:
        super().__init__(racks=("A", "A", "B"), brokers=3, controllers={101: None}, config=CONFIG, version=KAFKA)
        self._settings = settings

    def _prepare(self, folder: Path, runtime: object) -> None:
        super()._prepare(folder, runtime)  # type: ignore[arg-type]
        for node_id, own in self._settings(self).items():
            with self._processes[node_id]._config_file.open("a") as config:
                config.writelines(f"{key}={value}\n" for key, value in own.items())

    @property
    def folder(self) -> Path:
        assert self._folder is not None
        return self._folder.path

    def log_end(self, broker: int, topic: str) -> int:
        """The offset after the last record in a broker's files: exact while the broker is suspended."""
        ends = [0]
        for segment in (self.folder / f"node-{broker}" / f"{topic}-0").glob("*.log"):
            for header, _ in whole_batches(segment.read_bytes()):
                ends.append(header.base_offset + header.last_offset_delta + 1)
        return max(ends)


class LateFetches:
    """A relay before a controller: responses to Fetch take `seconds` longer, those of other connections none."""

    def __init__(self, port: int) -> None:
        self._to = port
        self.seconds = 0.0
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        started = asyncio.run_coroutine_threadsafe(asyncio.start_server(self._serve, "127.0.0.1", 0), self._loop)
        self.port = int(started.result(WITHIN_SECONDS).sockets[0].getsockname()[1])

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", self._to)
        fetches: set[int] = set()
        requests = self._pass(reader, back, lambda frame: self._request(frame, fetches))
        responses = self._pass(there, writer, lambda frame: self._response(frame, fetches))
        await asyncio.gather(requests, responses, return_exceptions=True)
        for one in (writer, back):
            one.close()

    @staticmethod
    def _request(frame: bytes, fetches: set[int]) -> float:
        if int.from_bytes(frame[:2], "big") == _FETCH:
            fetches.add(int.from_bytes(frame[4:8], "big"))
        return 0.0

    def _response(self, frame: bytes, fetches: set[int]) -> float:
        correlation = int.from_bytes(frame[:4], "big")
        if correlation not in fetches:
            return 0.0
        fetches.discard(correlation)
        return self.seconds

    async def _pass(
        self, source: asyncio.StreamReader, target: asyncio.StreamWriter, delay: Callable[[bytes], float]
    ) -> None:
        while True:
            size = await source.readexactly(4)
            frame = await source.readexactly(int.from_bytes(size, "big"))
            await asyncio.sleep(delay(frame))
            target.write(size + frame)


@dataclass
class Clients:
    """Producers that each wait for one acknowledgement before they send the next record."""

    servers: str
    topic: str
    offsets: list[int] = field(default_factory=list)
    """Of every acknowledgement before `judged`."""
    judged: bool = False
    stopped: bool = False

    def __post_init__(self) -> None:
        self._threads = [threading.Thread(target=self._produce) for _ in range(PRODUCERS)]
        for thread in self._threads:
            thread.start()

    def _produce(self) -> None:
        producer = Producer(
            {
                "bootstrap.servers": self.servers,
                "acks": "all",
                "max.in.flight": 1,
                "linger.ms": 0,
                "log_level": 0,
                "retry.backoff.ms": 20,
            }
        )
        waiting = [0]

        def delivered(error: object, message: object) -> None:
            waiting[0] -= 1
            if error is None and not self.judged:
                self.offsets.append(message.offset())  # type: ignore[attr-defined]

        while not self.stopped:
            producer.produce(self.topic, b"x" * 100, partition=0, on_delivery=delivered)
            waiting[0] += 1
            while waiting[0] and not self.stopped:
                producer.poll(0.05)
        producer.purge()
        producer.flush(WITHIN_SECONDS)

    def stop(self) -> None:
        self.stopped = True
        for thread in self._threads:
            thread.join()


@dataclass
class Outcome:
    """Sums over the runs: acknowledgements by the gateway, and those of records that rack B lacks; of direct producers as well."""

    runs: int = 0
    acknowledged: int = 0
    leaked: list[int] = field(default_factory=list)
    direct: int = 0
    direct_leaked: int = 0
    after_shrink: int = 0
    """Acknowledged by the gateway to requests sent after broker 3 was suspended."""

    def __str__(self) -> str:
        return (
            f"{self.runs} runs: gateway acknowledged {self.acknowledged}, leaked {sum(self.leaked)} in "
            f"{sum(map(bool, self.leaked))} runs; direct acknowledged {self.direct}, in rack A alone {self.direct_leaked}"
        )


def isr(admin: AdminClient, topic: str) -> set[int]:
    partitions = admin.list_topics(topic, timeout=WITHIN_SECONDS).topics[topic].partitions
    return set(partitions[0].isrs) if partitions else set()


def create_topic(admin: AdminClient, topic: str) -> None:
    """Brokers whose metadata is late may not know it, or the client may connect anew, while it is created."""
    for _ in range(20):
        try:
            admin.create_topics([NewTopic(topic, 1, replica_assignment=[[1, 2, 3]])])[topic].result(WITHIN_SECONDS)
        except KafkaException as error:
            if error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS:
                return
            time.sleep(0.5)
        else:
            return


@contextmanager
def gateway(cluster: TunedCluster, mode: str) -> Iterator[str]:
    controllers = f'controllers.bootstrap.servers = "{cluster.bootstrap_controllers}"\n' if mode == "strict" else ""
    lines = f'{controllers}acknowledgements.mode = "{mode}"\n'
    if mode != "off":
        lines += "acknowledgements.min.insync.racks = 2\nacknowledgements.config.topic = ''\n"
    with (
        tempfile.TemporaryDirectory() as folder,
        gateway_process(Path(folder), cluster.bootstrap_servers, lines) as process,
    ):
        yield process.bootstrap_servers
        if "Traceback" in (log := process.log.read_text()):
            print(log[-3000:])


def one_run(
    cluster: TunedCluster,
    servers: str,
    number: int,
    outcome: Outcome,
    shrink: Callable[[AdminClient, str], None],
    direct: bool,
) -> None:
    """Traffic until `shrink` has suspended broker 3, and for a while after it."""
    topic = f"leak-{number}"
    # By broker 2, whose metadata is not the leader's.
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers.split(",")[1], "log_level": 0})
    create_topic(admin, topic)
    eventually(lambda: isr(admin, topic) == {1, 2, 3}, "the ISR is whole")
    by_gateway = Clients(servers, topic)
    beside = Clients(cluster.bootstrap_servers, topic) if direct else None
    try:
        shrink(admin, topic)
        time.sleep(AFTERWARDS_SECONDS)
        end = cluster.log_end(OF_RACK_B, topic)
    finally:
        for clients in filter(None, (by_gateway, beside)):
            clients.judged = True
        cluster.resume(OF_RACK_B)
        for clients in filter(None, (by_gateway, beside)):
            clients.stop()
    outcome.runs += 1
    outcome.acknowledged += len(by_gateway.offsets)
    outcome.leaked.append(sum(offset >= end for offset in by_gateway.offsets))
    if beside is not None:
        outcome.direct += len(beside.offsets)
        outcome.direct_leaked += sum(offset >= end for offset in beside.offsets)
    print(f"run {outcome.runs}: {len(by_gateway.offsets)} acknowledged, {outcome.leaked[-1]} leaked", flush=True)


def slow_follower(mode: str, runs: int) -> Outcome:
    outcome = Outcome()

    def shrink(admin: AdminClient, topic: str) -> None:
        until = time.monotonic() + WITHIN_SECONDS
        while isr(admin, topic) != {1, 2}:
            assert time.monotonic() < until, "broker 3 did not leave the ISR"
            time.sleep(0.005)
        cluster.pause(OF_RACK_B)

    with ExitStack() as stack:
        cluster = TunedCluster(lambda _: {OF_RACK_B: SLOW})
        stack.enter_context(cluster)
        servers = stack.enter_context(gateway(cluster, mode))
        for number in range(runs):
            one_run(cluster, servers, number, outcome, shrink, direct=True)
    return outcome


def late_metadata(mode: str, runs: int, seconds: float, who: str) -> Outcome:
    outcome, relays = Outcome(), {}

    def settings(cluster: TunedCluster) -> Mapping[int, Mapping[str, str]]:
        port = int(re.split(":", cluster.bootstrap_controllers)[1])
        relays.update({one: LateFetches(port) for one in ((LEADER,) if who == "leader" else (1, 2, 3))})
        return {one: {"controller.quorum.voters": f"101@127.0.0.1:{relay.port}"} for one, relay in relays.items()}

    def shrink(_admin: AdminClient, _topic: str) -> None:
        time.sleep(1.0)
        for relay in relays.values():
            relay.seconds = seconds
        time.sleep(0.1)
        cluster.pause(OF_RACK_B)
        time.sleep(LAG_MAX_SECONDS * 1.5 + seconds)

    with ExitStack() as stack:
        cluster = TunedCluster(settings)
        stack.enter_context(cluster)
        servers = stack.enter_context(gateway(cluster, mode))
        for number in range(runs):
            for relay in relays.values():
                relay.seconds = 0.0
            one_run(cluster, servers, number, outcome, shrink, direct=False)
    return outcome


if __name__ == "__main__":
    kind, mode, runs, *rest = sys.argv[1:]
    began = time.monotonic()
    if kind == "slow":
        result = slow_follower(mode, int(runs))
    else:
        result = late_metadata(mode, int(runs), float(rest[0]), rest[1] if rest[1:] else "leader")
    print(f"{' '.join(sys.argv[1:])}: {result} ({time.monotonic() - began:.0f} s)")
