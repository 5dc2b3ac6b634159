"""The trial of [readers]: four clients without a rack read real Kafka through a gateway, while brokers restart, leaders move and a rack is lost.

    python -m tests.compat.gateway_readers SECONDS [SEED]

After each change, and once clients have read their metadata again, nothing may cross racks for a while, by the gateway's counters and by
the brokers' own; at the end every client has read every record once. One exception is counted apart: librdkafka may keep reading
from a former leader, which serves it as a follower, until its own lease of five minutes is over. That happens if the replica it was
sent to becomes the leader before its first fetch there: it reverts to the old leader after the new one was reported.
"""

import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from confluent_kafka import Consumer, ElectionType, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from prometheus_client.parser import text_string_to_metric_families

from benchmarks._broker_bytes import bytes_out
from rackspan.kafka_process import KafkaCluster
from rackspan.sources.gateway_counters import RECORD_BYTES
from tests.compat.gateway_reader import AGE_MS, READERS
from tests.gateway.load import Load
from tests.gateway.process import free_ports, gateway_process
from tests.kafka_versions import KAFKA
from tests.processes import running
from tests.waiting import WITHIN_SECONDS, eventually
from tools.client_suites import KGO, KGO_VERSION

TOPIC: Final = "near"
RACK: Final = "r2"
REPLICAS: Final = [[1, 2, 3], [2, 3, 1], [3, 1, 2], [1, 3, 2], [2, 1, 3], [3, 2, 1]]
SELECTOR: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
CONSOLE_CONSUMER: Final = "org.apache.kafka.tools.consumer.ConsoleConsumer"
WINDOW_SECONDS: Final = 5.0
REST_SECONDS: Final = AGE_MS / 1000 + 6
"""One metadata age, and until the gateway has counted what passed before it."""

GO_SOURCE: Final = Path(__file__).parent / "go" / "reader.go"


@dataclass
class Trial:
    """What was found: bytes by client and racks in each quiet window, and each client's records at the end."""

    changes: list[str] = field(default_factory=list)
    gateway_bytes: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """By client, from rack and to rack."""
    broker_bytes: Counter[str] = field(default_factory=Counter)
    """By the broker's rack."""
    unsettled: list[str] = field(default_factory=list)
    """Windows in which bytes crossed racks."""
    leased: list[str] = field(default_factory=list)
    """Those in which only librdkafka read across racks, from followers."""
    written: int = 0
    read: dict[str, int] = field(default_factory=dict)
    lost: int = 0
    repeated: int = 0


@dataclass
class Reader:
    """A client that runs: its output has a line a record."""

    name: str
    output: Path
    line: "re.Pattern[str]"

    def records(self) -> list[tuple[int, int]]:
        return [
            (int(found[1]), int(found[2])) for found in self.line.finditer(self.output.read_text("utf-8", "replace"))
        ]


def has_go() -> bool:
    return shutil.which("go") is not None


@contextmanager
def readers(cluster: KafkaCluster, servers: str, folder: Path) -> Iterator[list[Reader]]:
    plain = re.compile(r"^(\d+) (\d+)$", re.M)
    commands: dict[str, tuple[Sequence[str | Path], re.Pattern[str]]] = {
        name: ([sys.executable, "-m", "tests.compat.gateway_reader", name, servers, TOPIC, name], plain)
        for name in READERS
    }
    commands["java"] = (_console_consumer(cluster, servers), re.compile(r"^Partition:(\d+)\tOffset:(\d+)\t", re.M))
    if has_go():
        commands["kgo"] = ([_go_reader(folder), servers, TOPIC, "kgo"], plain)
    with ExitStack() as stack:
        started = []
        for name, (command, line) in commands.items():
            output = folder / f"{name}.out"
            out, errors = (stack.enter_context(path.open("w")) for path in (output, folder / f"{name}.err"))
            stack.enter_context(running(command, stdout=out, stderr=errors))
            started.append(Reader(name, output, line))
        yield started


def _console_consumer(cluster: KafkaCluster, servers: str) -> list[str]:
    settings = {"client.id": "java", "metadata.max.age.ms": str(AGE_MS), "group.id": "java"}
    options = [word for name, value in settings.items() for word in ("--consumer-property", f"{name}={value}")]
    shown = [word for name in ("partition", "offset") for word in ("--property", f"print.{name}=true")]
    return cluster.runtime.command(
        *(CONSOLE_CONSUMER, "--bootstrap-server", servers, "--topic", TOPIC, "--from-beginning", *options, *shown),
        log_level="error",
    )


def _go_reader(folder: Path) -> Path:
    module = folder / "go"
    module.mkdir()
    shutil.copy(GO_SOURCE, module / "main.go")
    for words in (("mod", "init", "reader"), ("get", f"{KGO}/pkg/kgo@{KGO_VERSION}"), ("build", "-o", "reader", ".")):
        subprocess.run(["go", *words], cwd=module, check=True, capture_output=True, timeout=300)
    return module / "reader"


def run_trial(seconds: float, seed: int, changes_min: int = 1) -> Trial:
    """Changes in random order until so many seconds have passed, at least `changes_min`."""
    rng, trial = random.Random(seed), Trial()
    config = {"replica.selector.class": SELECTOR, "auto.leader.rebalance.enable": "false"}
    with ExitStack() as stack:
        cluster = stack.enter_context(
            KafkaCluster(racks=("r1", "r2", "r3"), brokers=3, controllers={101: None}, config=config, version=KAFKA)
        )
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
        admin.create_topics([NewTopic(TOPIC, len(REPLICAS), replica_assignment=REPLICAS)])[TOPIC].result(WITHIN_SECONDS)
        (port,) = free_ports(1)
        lines = f'acknowledgements.mode = "off"\nlisten.http = "127.0.0.1:{port}"\n[readers]\nrack = "{RACK}"\n'
        gateway = stack.enter_context(gateway_process(folder, cluster.bootstrap_servers, lines))
        load = Load(cluster.bootstrap_servers, TOPIC, producers=6, partitions=6, pause_seconds=0.02)
        stack.callback(load.stop)
        clients = stack.enter_context(readers(cluster, gateway.bootstrap_servers, folder))
        eventually(lambda: all(client.records() for client in clients), "every client reads")
        begun = time.monotonic()
        observe = _Observer(cluster, f"http://127.0.0.1:{port}/metrics", trial)
        if seconds:
            observe("the start")
        while len(trial.changes) < changes_min or time.monotonic() - begun < seconds:
            name = rng.choice(sorted(CHANGES))
            trial.changes.append(name)
            CHANGES[name](cluster, admin, rng)
            eventually(lambda: _whole(admin), "every replica is in sync")
            observe(name)
        load.stop()
        _judge(trial, cluster, clients)
    return trial


class _Observer:
    """A window without changes: what crosses racks in it, by both counters."""

    def __init__(self, cluster: KafkaCluster, url: str, trial: Trial) -> None:
        self._cluster, self._url, self._trial = cluster, url, trial

    def __call__(self, after: str) -> None:
        time.sleep(REST_SECONDS)
        before = bytes_out(self._cluster)
        counted = _counted(self._url)
        time.sleep(WINDOW_SECONDS)
        counted = _counted(self._url) - counted
        passed = Counter(bytes_out(self._cluster)) - Counter(before)
        trial = self._trial
        trial.broker_bytes.update(passed)
        across, leased = list[str](), list[str]()
        for (client, path, from_rack, to_rack), size in counted.items():
            trial.gateway_bytes[client, from_rack, to_rack] += size
            if from_rack != to_rack:
                is_leased = (client, path) == ("librdkafka", "consume_follower")
                found = leased if is_leased else across
                found.append(f"{client} read {size} bytes from {from_rack} by {path} after {after}")
        by_brokers = [
            f"brokers in {rack} sent {size} bytes after {after}" for rack, size in passed.items() if rack != RACK
        ]
        trial.leased += leased
        # Brokers do not say to which client: what they sent in a window with a lease is explained by it.
        trial.unsettled += [*across, *(() if leased else by_brokers)]


def _counted(url: str) -> "Counter[tuple[str, str, str, str]]":
    """Bytes by client, path, from rack and to rack, as the gateway counts them."""
    with urllib.request.urlopen(url, timeout=WITHIN_SECONDS) as response:  # noqa: S310 - a gateway of this test
        families = [*text_string_to_metric_families(response.read().decode())]
    counted: Counter[tuple[str, str, str, str]] = Counter()
    for sample in (sample for family in families for sample in family.samples):
        if sample.name == RECORD_BYTES:
            labels = sample.labels
            counted[labels["client_id"], labels["path"], labels["from_rack"], labels["to_rack"]] += int(sample.value)
    return counted


def _restart(cluster: KafkaCluster, _admin: AdminClient, rng: random.Random) -> None:
    broker = rng.choice([1, 2, 3])
    cluster.stop(broker)
    cluster.restart(broker)


def _move_leaders(_cluster: KafkaCluster, admin: AdminClient, _rng: random.Random) -> None:
    """To the preferred ones, away from those that led after a restart."""
    elected = admin.elect_leaders(ElectionType.PREFERRED, [TopicPartition(TOPIC, at) for at in range(len(REPLICAS))])
    elected.result(WITHIN_SECONDS)


def _lose_rack(cluster: KafkaCluster, _admin: AdminClient, rng: random.Random) -> None:
    cluster.lose_rack(RACK)
    time.sleep(rng.uniform(2, 8))
    cluster.restore_rack(RACK)


def _restart_and_move(cluster: KafkaCluster, admin: AdminClient, rng: random.Random) -> None:
    _restart(cluster, admin, rng)
    eventually(lambda: _whole(admin), "every replica is in sync")
    _move_leaders(cluster, admin, rng)


CHANGES: Final[dict[str, Callable[[KafkaCluster, AdminClient, random.Random], None]]] = {
    "a restart": _restart,
    "a restart, and leaders moved back": _restart_and_move,
    "the loss of the readers' rack": _lose_rack,
}


def _whole(admin: AdminClient) -> bool:
    partitions = admin.list_topics(TOPIC, WITHIN_SECONDS).topics[TOPIC].partitions.values()
    return all(len(partition.isrs) == 3 for partition in partitions)


def _judge(trial: Trial, cluster: KafkaCluster, clients: Sequence[Reader]) -> None:
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": "judge", "log_level": 0})
    ends = [consumer.get_watermark_offsets(TopicPartition(TOPIC, at), 30)[1] for at in range(len(REPLICAS))]
    consumer.close()
    written = {(at, offset) for at, end in enumerate(ends) for offset in range(end)}
    trial.written = len(written)

    def has_all() -> bool:
        return all(written <= set(client.records()) for client in clients)

    # If not, the counts below say what is missing.
    with suppress(AssertionError):
        eventually(has_all, "every record is read")
    for client in clients:
        records = client.records()
        trial.read[client.name] = len(records)
        trial.lost += len(written - set(records))
        trial.repeated += len(records) - len(set(records))


if __name__ == "__main__":
    print(run_trial(float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1))
