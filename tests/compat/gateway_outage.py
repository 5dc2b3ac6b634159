"""Clients with their default retries while a rack is suspended: what is lost, doubled and reported, by the gateway and beside direct Kafka.

    python -m tests.compat.gateway_outage SECONDS [CLIENT…]

Brokers 1 and 2 are in rack A, 3 in rack B. Every client writes one topic directly, where min.insync.replicas=2 on brokers 1 and 3, and
another through a gateway, where min.insync.racks=2 on the same. Broker 3 is suspended for so long. A record is lost if its client
reported an acknowledgement and the log does not have it, doubled if the log has it twice, hidden if its client reported an error and the log has it.

kafkajs and @platformatic/kafka need node and npm, franz-go and sarama need go: the package clients fetch them.
"""

import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from confluent_kafka import Consumer, ElectionType, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from rackspan.kafka_process import KafkaCluster
from tests.compat.gateway_leak_lag import OF_RACK_B, TunedCluster, isr
from tests.gateway.process import gateway_process
from tests.waiting import WITHIN_SECONDS, eventually
from tools.client_suites import KGO, KGO_VERSION, SARAMA, SARAMA_VERSION

HERE: Final = Path(__file__).parent
BEFORE_SECONDS: Final = 8
"""Clients start meanwhile."""

AFTER_SECONDS: Final = 25
NPM: Final = ("kafkajs@2.2.4", "@platformatic/kafka@1.35.0")
GO_CLIENTS: Final = ("franz-go", "sarama", "patient-sarama")
JS_CLIENTS: Final = ("kafkajs", "patient-kafkajs", "platformatic")
CLIENTS: Final = ("librdkafka", "java", *GO_CLIENTS, *JS_CLIENTS)
"""Patient: with the retries that docs/how-to/gateway.md recommends to clients that give up."""

KINDS: Final = ("direct", "gateway")


@dataclass
class Outcome:
    """Of one client: records by what it reported and what the log has."""

    sent: int = 0
    acknowledged: int = 0
    lost: int = 0
    doubled: int = 0
    hidden: int = 0
    errors: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        reasons = "; ".join(f"{count} x {reason[:120]}" for reason, count in self.errors.most_common(3))
        return (
            f"sent {self.sent}, acknowledged {self.acknowledged}, lost {self.lost}, doubled {self.doubled}, "
            f"errors {self.errors.total()} (in the log {self.hidden}){': ' if reasons else ''}{reasons}"
        )


def judged(reports: Iterable[str], log: Sequence[str]) -> Outcome:
    """`reports` are a client's lines, `log` the values of its topic in order."""
    outcome, copies = Outcome(), Counter(log)
    for line in reports:
        kind, number, *reason = line.rstrip("\n").split(" ", 2)
        outcome.sent += 1
        if kind == "ack":
            outcome.acknowledged += 1
            outcome.lost += not copies[number]
        else:
            outcome.errors[" ".join(reason)] += 1
            outcome.hidden += copies[number] > 0
    outcome.doubled = sum(count > 1 for count in copies.values())
    return outcome


def available(clients: Iterable[str]) -> list[str]:
    """Those whose language is installed here."""
    tools = {**dict.fromkeys(GO_CLIENTS, "go"), **dict.fromkeys(JS_CLIENTS, "npm")}
    return [client for client in clients if client not in tools or shutil.which(tools[client])]


def commands(cluster: KafkaCluster, clients: Sequence[str], folder: Path) -> dict[str, list[str]]:
    """The program of each client, which servers, topic and seconds follow. Errors: CalledProcessError."""
    found: dict[str, list[str]] = {}
    for client in clients:
        if client == "librdkafka":
            found[client] = [sys.executable, "-m", "tests.compat.gateway_outage", "--send"]
        elif client == "java":
            source = HERE / "java" / "OutageSender.java"
            found[client] = cluster.runtime.command(str(source), log_level="off")
        elif client in GO_CLIENTS:
            found[client] = [str(_go(folder / "go")), client]
        else:
            found[client] = ["node", str(_js(folder / "js")), client]
    return found


def _go(folder: Path) -> Path:
    program = folder / "outage"
    if not program.exists():
        folder.mkdir()
        shutil.copy(HERE / "go" / "outage.go", folder / "main.go")
        modules = f"{KGO}/pkg/kgo@{KGO_VERSION}", f"{SARAMA}@{SARAMA_VERSION}"
        for words in (("mod", "init", "outage"), ("get", *modules), ("build", "-o", program.name, ".")):
            subprocess.run(["go", *words], cwd=folder, check=True, capture_output=True, timeout=900)
    return program


def _js(folder: Path) -> Path:
    program = folder / "outage.mjs"
    if not program.exists():
        folder.mkdir()
        install = ["npm", "install", "--no-audit", "--no-fund", *NPM]
        subprocess.run(install, cwd=folder, check=True, capture_output=True, timeout=900)
        shutil.copy(HERE / "js" / "outage.mjs", program)
    return program


def send_by_librdkafka(servers: str, topic: str, seconds: int) -> None:
    """A client as the others are, in this process."""
    producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True, "log_level": 0})

    def reported(error: object, message: object) -> None:
        number = message.value().decode()  # type: ignore[attr-defined]
        print("ack" if error is None else "error", number, "" if error is None else error, flush=True)

    until, number = time.monotonic() + seconds, 0
    while time.monotonic() < until:
        producer.produce(topic, str(number), on_delivery=reported)
        producer.poll(0.02)
        number += 1
    producer.flush(WITHIN_SECONDS)


def is_led_by_1(admin: AdminClient, topic: str) -> bool:
    """And broker 3 follows it."""
    partition = admin.list_topics(topic, timeout=WITHIN_SECONDS).topics[topic].partitions[0]
    return partition.leader == 1 and set(partition.isrs) == {1, OF_RACK_B}


def records(servers: str, topic: str) -> list[str]:
    """The values in a topic's only partition."""
    consumer = Consumer(
        {"bootstrap.servers": servers, "group.id": "judge", "enable.auto.commit": False, "log_level": 0}
    )
    _, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=WITHIN_SECONDS)
    consumer.assign([TopicPartition(topic, 0, 0)])
    values: list[str] = []
    position = 0
    while position < end:
        message = consumer.poll(WITHIN_SECONDS)
        assert message is not None, f"{topic} ends at {end}, and nothing more comes after {position}"
        assert message.error() is None, message.error()
        value, offset = message.value(), message.offset()
        assert value is not None
        assert offset is not None
        values.append(value.decode())
        position = offset + 1
    consumer.close()
    return values


def outage(seconds: int, clients: Sequence[str] = CLIENTS) -> Mapping[tuple[str, str], Outcome]:
    """The outcome by client and way, of one rack that is suspended for so long while all of them send."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        cluster = TunedCluster(lambda _: {})
        stack.enter_context(cluster)
        lines = "acknowledgements.config.topic = ''\n"
        topics = {(client, kind): f"{client}-{kind}" for client in clients for kind in KINDS}
        lines += "".join(
            f'[topics."{topic}"]\nmin.insync.racks = 2\n' for (_, kind), topic in topics.items() if kind == "gateway"
        )
        through = stack.enter_context(gateway_process(folder, cluster.bootstrap_servers, lines))
        servers = {"direct": cluster.bootstrap_servers, "gateway": through.bootstrap_servers}
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
        least = {"direct": "2", "gateway": "1"}
        made = admin.create_topics(
            [
                NewTopic(topic, 1, replica_assignment=[[1, OF_RACK_B]], config={"min.insync.replicas": least[kind]})
                for (_, kind), topic in topics.items()
            ]
        )
        for one in made.values():
            one.result(WITHIN_SECONDS)
        for topic in topics.values():
            eventually(lambda topic=topic: isr(admin, topic) == {1, OF_RACK_B}, "the ISR is whole")  # type: ignore[misc]
        running = []
        total = BEFORE_SECONDS + seconds + AFTER_SECONDS
        for client, command in commands(cluster, clients, folder).items():
            for kind in KINDS:
                topic = topics[client, kind]
                output, errors = ((folder / f"{topic}.{name}").open("w") for name in ("out", "err"))
                stack.enter_context(output)
                stack.enter_context(errors)
                words = [*command, servers[kind], topic, str(total)]
                running.append(subprocess.Popen(words, stdout=output, stderr=errors))
                stack.callback(running[-1].kill)
        for topic in topics.values():
            eventually(lambda topic=topic: (folder / f"{topic}.out").stat().st_size > 0, "every client sends")  # type: ignore[misc]
        # On a busy machine broker 1 may have been fenced for a short time: clients of a leader that is suspended would wait for it.
        admin.elect_leaders(ElectionType.PREFERRED, [TopicPartition(topic, 0) for topic in topics.values()])
        for topic in topics.values():
            eventually(lambda topic=topic: is_led_by_1(admin, topic), "broker 1 leads")  # type: ignore[misc]
        cluster.pause(OF_RACK_B)
        try:
            time.sleep(seconds)
        finally:
            cluster.resume(OF_RACK_B)
        ends = time.monotonic() + WITHIN_SECONDS
        for process in running:
            process.wait(max(1.0, ends - time.monotonic()))
        return {
            key: judged((folder / f"{topic}.out").read_text().splitlines(), records(cluster.bootstrap_servers, topic))
            for key, topic in topics.items()
        }


if __name__ == "__main__":
    if sys.argv[1] == "--send":
        send_by_librdkafka(sys.argv[2], sys.argv[3], int(sys.argv[4]))
    else:
        for (client, kind), outcome in outage(int(sys.argv[1]), sys.argv[2:] or available(CLIENTS)).items():
            print(f"{sys.argv[1]} s, {client}, {kind}: {outcome}", flush=True)
