"""Consumers as processes, and what the broker says they read."""

import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from confluent_kafka import ConsumerGroupState, KafkaException
from confluent_kafka.admin import AdminClient

from rackspan.consumers import ConsumerGroup, GroupMember
from rackspan.consumers.group import MemberId
from rackspan.kafka_process import KafkaCluster
from rackspan.model import RackId
from rackspan.model.ids import TopicPartition
from tests.consumers.groups import Cost, cost_of
from tests.consumers.second_solver import best_by_constraints
from tests.kafka_tools import described
from tests.waiting import WITHIN_SECONDS, eventually

ROOT = Path(__file__).parents[2]
Reads = Mapping[MemberId, tuple[TopicPartition, ...]]


class LiveGroup:
    """`with LiveGroup(kafka, "orders-readers", "orders", folder) as group: group.join("a", "aiokafka", "r1")`."""

    def __init__(self, kafka: KafkaCluster, group: str, topics: str, folder: Path) -> None:
        self._kafka, self._group, self._topics, self._folder = kafka, group, topics, folder
        self._admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
        self._running: dict[str, subprocess.Popen[str]] = {}
        self._rack: dict[str, str] = {}
        self._racks = self._where_replicas_are()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for process in self._running.values():
            process.kill()
            process.communicate()

    def join(self, name: str, client: str, rack: str, *options: str) -> None:
        words = (client, self._kafka.bootstrap_servers, self._group, self._topics, rack, name, *options)
        with (self._folder / f"{name}.log").open("a") as log:
            self._running[name] = subprocess.Popen(
                [sys.executable, "-m", "tests.assignor.member", *words],
                stdin=subprocess.PIPE,
                stderr=log,
                text=True,
                cwd=ROOT,
            )
        self._rack[name] = rack

    def leave(self, name: str) -> None:
        process = self._running.pop(name)
        process.communicate(timeout=WITHIN_SECONDS)
        assert process.returncode == 0

    def crash(self, name: str) -> None:
        process = self._running.pop(name)
        process.send_signal(signal.SIGKILL)
        process.communicate()

    def reads(self) -> Reads | None:
        """Partitions by consumer, None while the group is not stable or others than those running are in it."""
        try:
            found = self._admin.describe_consumer_groups([self._group])[self._group].result(WITHIN_SECONDS)
        except KafkaException:
            return None  # Its coordinator has just been elected and is not ready.
        if found.state != ConsumerGroupState.STABLE or {one.client_id for one in found.members} != set(self._running):
            return None
        return {
            MemberId(one.client_id): tuple(
                sorted(TopicPartition(each.topic, each.partition) for each in one.assignment.topic_partitions)
            )
            for one in found.members
        }

    def cost(self) -> Cost | None:
        """Squares of loads and cross-rack partitions now; None while not every partition is read by one member."""
        reads = self.reads()
        if reads is None or sorted(one for hers in reads.values() for one in hers) != sorted(self._racks):
            return None
        return cost_of(self._as_it_is(), reads)

    def settles_at_best(self, what: str) -> Reads:
        """Wait until it is as good as the second solver says it can be."""
        balance, crossing, _ = best_by_constraints(self._as_it_is())
        return self._settles(lambda: (self.cost() or ())[:2] == (balance, crossing), f"{what}: {balance}, {crossing}")

    def settles_balanced(self, partitions: list[int], what: str) -> Reads:
        """Wait until its members read so many partitions each."""
        return self._settles(lambda: sorted(map(len, (self.reads() or {}).values())) == partitions, what)

    def _settles(self, holds: Callable[[], bool], what: str) -> Reads:
        try:
            eventually(holds, what)
        except AssertionError as error:
            exits = {name: process.poll() for name, process in self._running.items()}
            raise AssertionError(
                f"{error}; it is {self.cost()}, the members read {self.reads()}, ended {exits}, wrote {self.warnings('')}"
            ) from None
        return self.reads() or {}

    def warnings(self, about: str) -> list[str]:
        lines = [line for log in self._folder.glob("*.log") for line in log.read_text().splitlines()]
        return [line for line in lines if about in line]

    def _as_it_is(self) -> ConsumerGroup:
        topics = frozenset(self._topics.split(","))
        members = (GroupMember(MemberId(name), topics, RackId(self._rack[name])) for name in self._running)
        return ConsumerGroup(tuple(members), self._racks)

    def _where_replicas_are(self) -> dict[TopicPartition, frozenset[RackId]]:
        """As `kafka-topics --describe` has it; the fixture deals brokers 1, 2, 3, 4 … to r1, r2, r3, r1 …"""
        return {
            TopicPartition(*name): frozenset(RackId(f"r{(broker - 1) % 3 + 1}") for broker in one.replicas)
            for name, one in described(self._kafka).items()
            if name[0] in self._topics.split(",")
        }
