"""Consumer groups with three client libraries and Kafka's own tool: joining, leaving, crashing, the coordinator's loss."""

import asyncio
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from kafka import KafkaAdminClient, KafkaConsumer
from kafka.structs import OffsetAndMetadata
from kafka.structs import TopicPartition as PythonTopicPartition

from rackspan.cluster import EmbeddedCluster
from rackspan.model.ids import BrokerId, RackId
from tests.cluster.conftest import RunTool
from tests.processes import running
from tests.waiting import WITHIN_SECONDS

GROUPS_TOOL = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"


@pytest.fixture
def topic(cluster: EmbeddedCluster) -> str:
    """Four partitions with 20 records each, "partition:number"."""
    made = f"grouped-{uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    admin.create_topics([NewTopic(made, 4, 3)])[made].result(WITHIN_SECONDS)
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers})
    for partition in range(4):
        for number in range(20):
            producer.produce(made, f"{partition}:{number}".encode(), partition=partition)
    assert producer.flush(WITHIN_SECONDS) == 0
    return made


@pytest.fixture
def group() -> str:
    return f"group-{uuid4().hex[:8]}"


def member(cluster: EmbeddedCluster, group: str, **config: object) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "session.timeout.ms": 6_000,
            "heartbeat.interval.ms": 300,
            **config,
        }
    )


def poll_until(consumers: list[Consumer], holds: Callable[[], bool]) -> list[Message]:
    """The messages that the members receive until `holds` is true."""
    found, deadline = [], time.monotonic() + WITHIN_SECONDS
    while not holds():
        assert time.monotonic() < deadline, [consumer.assignment() for consumer in consumers]
        for consumer in consumers:
            message = consumer.poll(0.05)
            if message is not None and message.error() is None:
                found.append(message)
    return found


def consumed(consumer: Consumer, count: int) -> list[Message]:
    found: list[Message] = []
    while len(found) < count:
        message = consumer.poll(WITHIN_SECONDS)
        assert message is not None, f"{len(found)} of {count} records came"
        assert message.error() is None
        found.append(message)
    return found


def owned(consumer: Consumer) -> set[int]:
    return {each.partition for each in consumer.assignment()}


def shares(consumers: list[Consumer]) -> Callable[[], bool]:
    """Whether these members own all four partitions, evenly."""
    return lambda: (
        set().union(*map(owned, consumers)) == {0, 1, 2, 3}
        and all(len(owned(consumer)) == 4 // len(consumers) for consumer in consumers)
    )


@pytest.fixture
def members(cluster: EmbeddedCluster, topic: str, group: str) -> Iterator[Callable[..., Consumer]]:
    """Creates subscribed members of the group. Remaining members leave at the end."""
    made: list[Consumer] = []

    def make(**config: object) -> Consumer:
        made.append(member(cluster, group, **config))
        made[-1].subscribe([topic])
        return made[-1]

    yield make
    for consumer in made:
        consumer.close()


def test_partitions_are_rebalanced_as_members_join_and_leave(members: Callable[..., Consumer]) -> None:
    first = members()
    poll_until([first], shares([first]))
    second = members()
    poll_until([first, second], shares([first, second]))
    second.close()
    poll_until([first], shares([first]))


@pytest.mark.parametrize("strategy", ["range", "roundrobin", "cooperative-sticky"])
def test_every_strategy_of_librdkafka_assigns_all_partitions(members: Callable[..., Consumer], strategy: str) -> None:
    both = [members(**{"partition.assignment.strategy": strategy}) for _ in range(2)]
    poll_until(both, shares(both))


def test_a_static_member_that_restarts_keeps_its_partitions(members: Callable[..., Consumer]) -> None:
    one, two = (members(**{"group.instance.id": f"i{number}"}) for number in range(2))
    poll_until([one, two], shares([one, two]))
    before = owned(two)
    two.close()
    again = members(**{"group.instance.id": "i1"})
    poll_until([one, again], lambda: bool(owned(again)))
    assert owned(again) == before


CRASHING_MEMBER = """
import sys
from confluent_kafka import Consumer
servers, group, topic = sys.argv[1:]
config = {"bootstrap.servers": servers, "group.id": group, "session.timeout.ms": 1500, "heartbeat.interval.ms": 300}
consumer = Consumer(config)
consumer.subscribe([topic])
while not consumer.assignment():
    consumer.poll(0.05)
print("owns", flush=True)
while True:
    consumer.poll(0.05)
"""


def test_the_partitions_of_a_crashed_member_are_assigned_to_the_others(
    cluster: EmbeddedCluster, members: Callable[..., Consumer], group: str, topic: str
) -> None:
    command = [sys.executable, "-c", CRASHING_MEMBER, cluster.bootstrap_servers, group, topic]
    with running(command, stdout=subprocess.PIPE) as crashing:
        assert crashing.stdout is not None
        assert crashing.stdout.readline() == "owns\n"
        survivor = members()
        poll_until([survivor], lambda: len(owned(survivor)) == 2)
        crashing.kill()
        poll_until([survivor], shares([survivor]))


def committed(cluster: EmbeddedCluster, group: str, topic: str) -> list[int]:
    asker = member(cluster, group)
    try:
        return [each.offset for each in asker.committed([TopicPartition(topic, p) for p in range(4)], WITHIN_SECONDS)]
    finally:
        asker.close()


def test_a_later_member_resumes_at_the_committed_offsets(
    cluster: EmbeddedCluster, members: Callable[..., Consumer], group: str, topic: str
) -> None:
    first = members()
    first_messages = consumed(first, 30)
    first.commit(asynchronous=False)
    first.close()
    rest = consumed(members(), 50)
    assert len({message.value() for message in first_messages + rest}) == 80


def described(cluster: EmbeddedCluster, group: str) -> Any:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    return admin.describe_consumer_groups([group])[group].result(WITHIN_SECONDS)


def coordinator(cluster: EmbeddedCluster, group: str) -> int:
    return int(described(cluster, group).coordinator.id)


def test_a_member_is_described_by_its_client_and_its_host(
    cluster: EmbeddedCluster, members: Callable[..., Consumer], group: str
) -> None:
    reader = members(**{"client.id": "reader"})
    poll_until([reader], shares([reader]))
    assert [(one.client_id, one.host) for one in described(cluster, group).members] == [("reader", "/127.0.0.1")]


def test_committed_offsets_and_members_survive_the_loss_of_the_coordinators_rack(
    cluster: EmbeddedCluster, members: Callable[..., Consumer], group: str, topic: str
) -> None:
    consumer = members()
    poll_until([consumer], shares([consumer]))
    offsets = [TopicPartition(topic, partition, 5 + partition) for partition in range(4)]
    consumer.commit(offsets=offsets, asynchronous=False)
    lost = cluster.rack(BrokerId(coordinator(cluster, group)))
    cluster.lose_rack(lost)
    try:
        survivors = [b for b in cluster.brokers if cluster.rack(b) != lost]
        asker = Consumer({"bootstrap.servers": ",".join(map(cluster.address, survivors)), "group.id": group})
        found = asker.committed([TopicPartition(topic, p) for p in range(4)], WITHIN_SECONDS)
        asker.close()
        assert [each.offset for each in found] == [5, 6, 7, 8]
        consumer.commit(offsets=[TopicPartition(topic, 0, 9)], asynchronous=False)
    finally:
        cluster.restore_rack(RackId(lost) if lost else None)
        cluster.wait_for_isr()
    assert committed(cluster, group, topic) == [9, 6, 7, 8]


def test_an_admin_client_alters_and_deletes_offsets_and_groups(
    cluster: EmbeddedCluster, group: str, topic: str
) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    wanted = [TopicPartition(topic, 0, 7)]
    admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, wanted)])[group].result(WITHIN_SECONDS)
    assert committed(cluster, group, topic)[0] == 7
    assert group in {each.group_id for each in admin.list_consumer_groups().result(WITHIN_SECONDS).valid}
    admin.delete_consumer_groups([group])[group].result(WITHIN_SECONDS)
    assert group not in {each.group_id for each in admin.list_consumer_groups().result(WITHIN_SECONDS).valid}
    assert committed(cluster, group, topic)[0] < 0


def test_committed_offsets_are_deleted_with_their_topic(cluster: EmbeddedCluster, group: str, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    wanted = [TopicPartition(topic, 0, 7)]
    admin.alter_consumer_group_offsets([ConsumerGroupTopicPartitions(group, wanted)])[group].result(WITHIN_SECONDS)
    admin.delete_topics([topic])[topic].result(WITHIN_SECONDS)
    deadline = time.monotonic() + WITHIN_SECONDS
    while committed(cluster, group, topic)[0] == 7:
        assert time.monotonic() < deadline
    assert committed(cluster, group, topic)[0] < 0


def test_kafka_python_consumes_in_a_group_and_commits(cluster: EmbeddedCluster, group: str, topic: str) -> None:
    def consumer() -> KafkaConsumer:
        servers = cluster.bootstrap_servers.split(",")
        return KafkaConsumer(
            topic,
            bootstrap_servers=servers,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            consumer_timeout_ms=int(WITHIN_SECONDS * 1000),
        )

    first = consumer()
    values = {next(first).value for _ in range(80)}
    assert len(values) == 80
    first.commit()
    first.close()
    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers.split(","))
    listed = (
        admin.list_group_offsets(group)
        if hasattr(admin, "list_group_offsets")
        else admin.list_consumer_group_offsets(group)
    )
    admin.close()
    offsets = listed.get(group, listed) if isinstance(listed, dict) else listed
    assert {p.partition: meta.offset for p, meta in offsets.items()} == dict.fromkeys(range(4), 20)
    assert PythonTopicPartition(topic, 0) in offsets
    assert isinstance(offsets[PythonTopicPartition(topic, 0)], OffsetAndMetadata)


def test_aiokafka_members_share_partitions_and_take_over_those_of_a_leaving_member(
    cluster: EmbeddedCluster, group: str, topic: str
) -> None:
    async def run() -> None:
        both = [
            AIOKafkaConsumer(
                topic,
                bootstrap_servers=cluster.bootstrap_servers,
                group_id=group,
                auto_offset_reset="earliest",
                session_timeout_ms=6_000,
                heartbeat_interval_ms=300,
            )
            for _ in range(2)
        ]
        for each in both:
            await each.start()
        await _until(lambda: all(len(each.assignment()) == 2 for each in both))
        await both[1].stop()
        await _until(lambda: len(both[0].assignment()) == 4)
        producer = AIOKafkaProducer(bootstrap_servers=cluster.bootstrap_servers)
        await producer.start()
        await producer.send_and_wait(topic, b"last", partition=3)
        await producer.stop()
        first_messages = [(await asyncio.wait_for(both[0].getone(), WITHIN_SECONDS)).value for _ in range(40)]
        assert len(set(first_messages)) == len(first_messages)
        await both[0].stop()

    asyncio.run(run())


async def _until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(WITHIN_SECONDS):
        while not holds():
            await asyncio.sleep(0.05)


@pytest.mark.java
def test_kafka_consumer_groups_describes_resets_and_deletes(
    cluster: EmbeddedCluster, run_tool: RunTool, group: str, topic: str
) -> None:
    consumer = member(cluster, group)
    consumer.subscribe([topic])
    poll_until([consumer], shares([consumer]))
    consumer.commit(offsets=[TopicPartition(topic, p, 4) for p in range(4)], asynchronous=False)
    page = run_tool(GROUPS_TOOL, "--describe", "--group", group)
    rows = [line.split() for line in page.splitlines() if line.startswith(group)]
    assert [row[1:6] for row in sorted(rows)] == [[topic, str(p), "4", "20", "16"] for p in range(4)]
    assert "Stable" in run_tool(GROUPS_TOOL, "--describe", "--state", "--group", group)
    assert group in run_tool(GROUPS_TOOL, "--list", "--state", "stable")
    consumer.close()
    reset = ("--reset-offsets", "--to-earliest", "--topic", topic, "--execute", "--group", group)
    run_tool(GROUPS_TOOL, *reset)
    assert committed(cluster, group, topic) == [0, 0, 0, 0]
    assert "successful" in run_tool(GROUPS_TOOL, "--delete", "--group", group)
    assert group not in run_tool(GROUPS_TOOL, "--list").split()


def test_groups_work_after_a_client_has_named_the_topic_of_their_offsets() -> None:
    """It was created as any other topic, of one partition, and most groups found no coordinator for good."""
    with EmbeddedCluster() as cluster:
        settings = {"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0}
        cluster.create_topic("orders", 1)
        Producer(settings).list_topics("__consumer_offsets", WITHIN_SECONDS)
        for group in ("a", "b", "c", "d"):
            consumer = Consumer({**settings, "group.id": group})
            consumer.commit(offsets=[TopicPartition("orders", 0, 1)], asynchronous=False)
            assert [one.offset for one in consumer.committed([TopicPartition("orders", 0)], 20)] == [1]
            consumer.close()
        (topic,) = (topic for topic in cluster.snapshot().topics if topic.name == "__consumer_offsets")
        assert topic.config["cleanup.policy"] == "compact"
