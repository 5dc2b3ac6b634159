"""A rack of a real Kafka loses power: what outage foretold and what audit finds is what Kafka itself reports."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient

from rackspan.audit import RackPolicy, Severity, audit, outage
from rackspan.audit.batch import snapshot_batch
from rackspan.audit.outage import LossByPartition, judge_loss
from rackspan.client.cluster import ConnectionSettings
from rackspan.kafka_process import KafkaCluster, console_tool
from rackspan.model import ClusterSnapshot, RackId
from rackspan.model.ids import TopicPartition
from rackspan.sources.live.cluster import read_cluster
from tests.kafka_fixtures import TOPIC_TOOL, create_topic
from tests.kafka_tools import described
from tests.kafka_versions import KAFKA
from tests.waiting import WITHIN_SECONDS, eventually

pytestmark = pytest.mark.kafka

LOST = RackId("r1")
"""Brokers 1 and 4 of six, and one of three controllers."""

TOPICS: dict[str, tuple[list[list[int]], str]] = {
    "spread": ([[1, 2, 3], [2, 3, 4], [4, 5, 6], [6, 1, 5]], "2"),
    "two-racks": ([[1, 4, 2], [2, 5, 1], [3, 6, 2]], "2"),
    "in-one-rack": ([[1, 4], [2, 5]], "1"),
    "single": ([[4], [6]], "1"),
    "strict": ([[2, 3, 1]], "3"),
    "capped": ([[2, 5], [2, 1]], "3"),
}
LISTED_ALWAYS: frozenset[TopicPartition] = frozenset({TopicPartition("capped", 0), TopicPartition("capped", 1)})
"""Kafka's brokers count a minimum above the replication factor as all replicas; kafka-topics does not, and lists them."""


@dataclass(frozen=True)
class Story:
    """The cluster before and after, and Kafka's own words on it after."""

    before: ClusterSnapshot
    foretold: LossByPartition
    after: ClusterSnapshot
    unavailable: set[TopicPartition]
    under_min_isr: set[TopicPartition]
    leaders: dict[TopicPartition, int]
    refusals: dict[TopicPartition, KafkaError | None]


def read(cluster: KafkaCluster, seconds: float = 30.0) -> ClusterSnapshot:
    return read_cluster(ConnectionSettings(cluster.bootstrap_servers, {}, seconds)).snapshot


def partitions_of(snapshot: ClusterSnapshot, rows: Any) -> set[TopicPartition]:
    """The chosen rows by name, of the topics of this test alone."""
    chosen = snapshot.partitions.take(rows)
    named = {TopicPartition(str(snapshot.topics[row.topic].name), row.partition) for row in chosen}
    return {one for one in named if one.topic in TOPICS}


def listed(cluster: KafkaCluster, flag: str) -> set[TopicPartition]:
    """What `kafka-topics --describe` lists under one of its flags."""
    found = set()
    for line in console_tool(cluster, TOPIC_TOOL, "--describe", flag).splitlines():
        output = {key.strip(): value for key, _, value in (part.partition(": ") for part in line.split("\t") if part)}
        if output.get("Topic") in TOPICS and "Partition" in output:
            found.add(TopicPartition(output["Topic"], int(output["Partition"])))
    return found


def produce_to_each(cluster: KafkaCluster) -> dict[TopicPartition, KafkaError | None]:
    """One record to every partition with acks=all and no second try: the error each one gets, None for an acknowledgement."""
    producer = Producer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "acks": "all",
            "retries": 0,
            "message.timeout.ms": 8000,
            "log_level": 0,
        }
    )
    responses: dict[TopicPartition, KafkaError | None] = {}

    def returned(topic: str, partition: int) -> Callable[[KafkaError | None, object], None]:
        return lambda error, _message: responses.update({TopicPartition(topic, partition): error})

    for topic, (assignment, _) in TOPICS.items():
        for partition in range(len(assignment)):
            producer.produce(topic, b"x", partition=partition, on_delivery=returned(topic, partition))
    assert producer.flush(WITHIN_SECONDS) == 0
    return responses


@pytest.fixture(scope="module")
def story(kafka: KafkaCluster) -> Iterator[Story]:
    for name, (assignment, minimum) in TOPICS.items():
        create_topic(kafka, name, assignment=assignment, config={"min.insync.replicas": minimum})
    eventually(lambda: set(produce_to_each(kafka).values()) == {None}, "every partition acknowledges")
    before = read(kafka)
    foretold = judge_loss(snapshot_batch(before, RackPolicy()), {LOST})
    kafka.lose_rack(LOST)
    try:
        eventually(lambda: _fenced(read(kafka)) == {1, 4}, "the controller has fenced the lost rack")
        eventually(lambda: not _led_from_lost(kafka), "leaders have moved")
        yield Story(
            before=before,
            foretold=foretold,
            after=read(kafka),
            unavailable=listed(kafka, "--unavailable-partitions"),
            under_min_isr=listed(kafka, "--under-min-isr-partitions"),
            leaders={
                TopicPartition(*topic_partition): one.leader
                for topic_partition, one in described(kafka).items()
                if topic_partition[0] in TOPICS
            },
            refusals=produce_to_each(kafka),
        )
    finally:
        kafka.restore_rack(LOST)
        eventually(lambda: not _fenced(read(kafka)) and _all_in_sync(kafka), "the rack is back and in sync")
        # The cluster is shared: what other tests count must not depend on what ran before.
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
        for deleted in admin.delete_topics(list(TOPICS)).values():
            deleted.result(WITHIN_SECONDS)


def _fenced(snapshot: ClusterSnapshot) -> set[int]:
    return {int(broker.id) for broker in snapshot.brokers if broker.fenced}


def _led_from_lost(cluster: KafkaCluster) -> bool:
    return any(row.leader in (1, 4) for row in read(cluster).partitions)


def _all_in_sync(cluster: KafkaCluster) -> bool:
    return all(len(row.isr) == len(row.replicas) for row in read(cluster).partitions)


def test_outage_foretold_what_is_offline(story: Story) -> None:
    assert partitions_of(story.before, story.foretold.offline) == story.unavailable
    assert story.unavailable == {("in-one-rack", 0), ("single", 0)}


def test_outage_foretold_what_is_under_min_isr(story: Story) -> None:
    foretold = partitions_of(story.before, story.foretold.under_min_isr)
    # Kafka's list holds what is offline too; ours counts a partition once, by the worst that is true of it.
    assert foretold - LISTED_ALWAYS == story.under_min_isr - story.unavailable - LISTED_ALWAYS
    assert story.under_min_isr >= LISTED_ALWAYS
    # two-racks-1 keeps 2 and 5, enough for its minimum of 2.
    # capped-0 keeps both of its replicas, capped-1 one of two.
    assert foretold == {("two-racks", 0), ("strict", 0), ("capped", 1)}


def test_outage_foretold_who_leads(story: Story) -> None:
    ids = snapshot_batch(story.before, RackPolicy()).members.rack_map.broker_ids
    moved = {
        TopicPartition(str(story.before.topics[row.topic].name), row.partition): int(ids[to])
        for row, to in zip(story.before.partitions, story.foretold.leader_moves_to.tolist(), strict=True)
        if to >= 0
    }
    ours = {one: leader for one, leader in moved.items() if one.topic in TOPICS}
    assert ours == {one: story.leaders[one] for one in ours}
    assert ours == {("spread", 0): 2, ("spread", 2): 5, ("two-racks", 0): 2}


def test_acks_all_is_refused_exactly_where_foretold(story: Story) -> None:
    refused = {one for one, error in story.refusals.items() if error is not None}
    assert refused == partitions_of(story.before, story.foretold.harmed)


def test_the_refusals_under_min_isr_are_kafkas_own_error(story: Story) -> None:
    codes = {
        error.code()
        for one in partitions_of(story.before, story.foretold.under_min_isr)
        if (error := story.refusals[one]) is not None
    }
    assert codes == {KafkaError.NOT_ENOUGH_REPLICAS}


def test_audit_finds_afterwards_what_kafka_reports(story: Story) -> None:
    findings = audit(story.after, RackPolicy()).findings

    def found(constraint: str) -> set[TopicPartition]:
        return {
            TopicPartition(str(one.topic), one.partition)
            for one in findings
            if one.constraint == constraint and one.topic in TOPICS and one.partition is not None
        }

    assert found("offline") == story.unavailable
    # Of an offline partition audit reports that alone; Kafka's tool lists it twice.
    assert found("under-min-isr") == story.under_min_isr - {("capped", 0)} - story.unavailable
    # Kafka's tool lists these for ever; audit reports each once, by the cause that a repair begins with.
    violated = {TopicPartition(str(one.topic), one.partition) for one in findings if one.partition is not None}
    assert violated >= LISTED_ALWAYS
    fenced = [one.reason.split(" (")[0] for one in findings if one.constraint == "fenced-broker"]
    assert fenced == ["broker 1", "broker 4"]


def test_losing_what_is_lost_already_changes_nothing_more(story: Story) -> None:
    now, (again,) = outage(story.after, RackPolicy(), lose=(LOST,))
    assert now.topics == again.topics
    assert again.leader_surge == {}


def _into(errors: dict[str, KafkaError | None]) -> Callable[[KafkaError | None, Message], None]:
    return lambda error, message: errors.update({str(message.topic()): error})


@pytest.mark.soak
def test_a_lost_quorum_elects_nobody() -> None:
    """Two of three voters in r1: without them the partition led from r1 has an in-sync replica, and nobody to elect it."""
    voters: dict[int, str | None] = {101: "r1", 102: "r1", 103: "r2"}
    policy = RackPolicy(controller_racks={voter: RackId(str(rack)) for voter, rack in voters.items()})
    session = {"broker.session.timeout.ms": "3000", "broker.heartbeat.interval.ms": "500"}
    with KafkaCluster(racks=("r1", "r2"), brokers=2, controllers=voters, config=session, version=KAFKA) as kafka:
        create_topic(kafka, "led-from-r1", assignment=[[1, 2]])
        create_topic(kafka, "led-from-r2", assignment=[[2, 1]])
        eventually(lambda: _all_in_sync(kafka), "both replicas are in sync")
        _, (loss,) = outage(read(kafka), policy, lose=("r1",))
        assert loss.quorum_lost
        assert {topic.topic: topic.offline for topic in loss.topics} == {"led-from-r1": 1}
        assert not audit(read(kafka), policy).clean
        kafka.lose_rack("r1")
        with pytest.raises(KafkaException):
            create_topic(kafka, "nobody-can-decide", seconds=5)
        producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "message.timeout.ms": 5000, "log_level": 0})
        errors: dict[str, KafkaError | None] = {}
        for topic in ("led-from-r1", "led-from-r2"):
            producer.produce(topic, b"x", partition=0, on_delivery=_into(errors))
        producer.flush(WITHIN_SECONDS)
        assert errors["led-from-r1"] is not None
        left = read(kafka, seconds=60)
        leaders = {str(left.topics[row.topic].name): row.leader for row in left.partitions}
        assert leaders["led-from-r1"] == 1, "nobody took over from the dead leader"
        assert left.partial


@pytest.mark.soak
def test_a_combined_controller_that_is_killed_counts_as_lost_until_it_is_back() -> None:
    """One of three voters is killed: the cluster works, and the loss of one more rack would stop it for good."""

    def controllers(snapshot: ClusterSnapshot) -> dict[int, bool | None]:
        return {int(one.id): one.alive for one in snapshot.controllers}

    def red(snapshot: ClusterSnapshot) -> bool:
        _, (loss,) = outage(snapshot, RackPolicy(), lose=("r1",))
        found = {one.constraint for one in audit(snapshot, RackPolicy()).findings if one.severity is Severity.VIOLATION}
        assert loss.survived == ("controller-quorum-spread" not in found)
        return not loss.survived

    with KafkaCluster(racks=("r1", "r2", "r3"), brokers=3, version=KAFKA) as kafka:
        eventually(lambda: controllers(read(kafka)) == {1: True, 2: True, 3: True}, "all voters follow the leader")
        assert not red(read(kafka))
        kafka.kill(3)
        eventually(lambda: controllers(read(kafka)) == {1: True, 2: True, 3: False}, "voter 3 is dead")
        assert red(read(kafka))
        # A file of before has no word on controllers: once the broker is fenced, its controller is dead with it.
        eventually(lambda: _fenced(read(kafka)) == {3}, "broker 3 is fenced")
        fenced = read(kafka)
        unknown = tuple(replace(one, alive=None) for one in fenced.controllers)
        assert red(replace(fenced, controllers=unknown))
        kafka.kill(2)
        with pytest.raises(KafkaException):
            # Kafka may yet create it once voters are back, so it is a topic that survives the loss of a rack.
            create_topic(kafka, "one-voter-of-three", assignment=[[1, 2, 3]], seconds=5)
        kafka.restart(2, 3)
        eventually(lambda: controllers(read(kafka)) == {1: True, 2: True, 3: True}, "all voters are back")
        eventually(lambda: not _fenced(read(kafka)) and _all_in_sync(kafka), "all brokers are back and in sync")
        assert not red(read(kafka))
