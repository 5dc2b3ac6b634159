"""What the proposal's system tests need: something to test (`Subject`), and producers that report their delivery.

A subject is a cluster, or a gateway before one: the tests know it by these few names and by Kafka's own protocol.
"""

import subprocess
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Final, Protocol

from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourceType

from rackspan.kafka_process.release.runtime import KafkaRuntime
from tests.kafka_tools import CONFIG_TOOL
from tests.waiting import WITHIN_SECONDS

SENDER: Final = Path(__file__).parent / "java" / "KafkaSender.java"
NO_ERROR: Final = "-"


class Subject(Protocol):
    """Three racks r1, r2 and r3 that can be lost, where min.insync.racks holds. The controller is in none of them."""

    @property
    def bootstrap_servers(self) -> str: ...

    def lose_rack(self, rack: str) -> None: ...

    def restore_rack(self, rack: str) -> None: ...

    def wait_for_isr(self) -> None: ...

    def rack_check_failures(self) -> int:
        """RackCheckFailureRate of the brokers that run, each since it started."""
        ...


@dataclass(frozen=True, slots=True)
class Delivery:
    """The delivery report of one record. `error` is Kafka's name for it, None for an acknowledgement."""

    error: str | None
    message: str = ""


class Client(Protocol):
    """A producer's library, and the way in which people who use it alter configs."""

    def once(self, topic: str) -> Delivery:
        """One record, one attempt."""
        ...

    def patient(self, topic: str) -> "Future[Delivery]":
        """One record, sent again until it is acknowledged or the time is over."""
        ...

    def alter(self, topic: str, config: Mapping[str, str]) -> None: ...


class Librdkafka:
    """confluent-kafka, and its admin client."""

    def __init__(self, subject: Subject) -> None:
        self._servers: dict[str, str | int | float | bool] = {
            "bootstrap.servers": subject.bootstrap_servers,
            "log_level": 0,
        }

    def once(self, topic: str) -> Delivery:
        return self._sent(topic, {"retries": 0, "message.timeout.ms": 60_000})

    def patient(self, topic: str) -> "Future[Delivery]":
        future: Future[Delivery] = Future()
        config = {"message.timeout.ms": int(WITHIN_SECONDS * 1000)}
        threading.Thread(target=lambda: future.set_result(self._sent(topic, config)), daemon=True).start()
        return future

    def _sent(self, topic: str, config: Mapping[str, object]) -> Delivery:
        responses: list[KafkaError | None] = []
        producer = Producer({**self._servers, "acks": "all", **config})
        producer.produce(topic, b"x", on_delivery=lambda error, _: responses.append(error))
        producer.flush(WITHIN_SECONDS)
        (error,) = responses
        return Delivery(None) if error is None else Delivery(error.name(), error.str())

    def alter(self, topic: str, config: Mapping[str, str]) -> None:
        entries = [
            ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET) for key, value in config.items()
        ]
        wanted = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
        # A client of its own: librdkafka sends to the broker that its first metadata named as the controller, and while
        # that one is down it waits without reading metadata again, before Kafka itself as well.
        admin = AdminClient(self._servers)
        admin.incremental_alter_configs([wanted])[wanted].result(WITHIN_SECONDS)


class JavaProducer:
    """Kafka's own producer in a JVM that lives as long as this, and kafka-configs.sh."""

    def __init__(self, subject: Subject, runtime: KafkaRuntime) -> None:
        self._servers, self._runtime = subject.bootstrap_servers, runtime
        self._numbers = count(1)
        self._waiting: dict[str, Future[Delivery]] = {}
        source = runtime.command(str(SENDER), self._servers, log_level="off")
        self._jvm = subprocess.Popen(source, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._jvm.stdout is not None
        for line in self._jvm.stdout:
            number, error, message = line.rstrip("\n").split("\t")
            self._waiting.pop(number).set_result(Delivery(None if error == NO_ERROR else error, message))

    def once(self, topic: str) -> Delivery:
        return self._produced(topic, 0, 60).result(WITHIN_SECONDS)

    def patient(self, topic: str) -> "Future[Delivery]":
        return self._produced(topic, 1_000_000, int(WITHIN_SECONDS))

    def _produced(self, topic: str, retries: int, seconds: int) -> "Future[Delivery]":
        number = str(next(self._numbers))
        future = self._waiting[number] = Future()
        assert self._jvm.stdin is not None
        self._jvm.stdin.write(f"{number} {topic} {retries} {seconds}\n")
        self._jvm.stdin.flush()
        return future

    def alter(self, topic: str, config: Mapping[str, str]) -> None:
        wanted = ",".join(f"{key}={value}" for key, value in config.items())
        entity = ("--entity-type", "topics", "--entity-name", topic)
        self._runtime.run_tool(
            CONFIG_TOOL, "--bootstrap-server", self._servers, "--alter", *entity, "--add-config", wanted
        )

    def close(self) -> None:
        self._jvm.kill()
        self._jvm.communicate()
        self._reader.join()
