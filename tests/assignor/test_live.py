"""Groups of both clients on real Kafka in three racks, as the broker describes them, compared with a second solver."""

from pathlib import Path

import pytest
from confluent_kafka import ElectionType
from confluent_kafka import TopicPartition as KafkaPartition
from confluent_kafka.admin import AdminClient

from rackspan.kafka_process import KafkaCluster
from tests.assignor.live_group import LiveGroup, Reads
from tests.kafka_fixtures import create_topic
from tests.waiting import WITHIN_SECONDS, eventually

pytestmark = [pytest.mark.java, pytest.mark.kafka]

ONE_REPLICA_EACH = [[1], [1], [1], [1], [1], [1], [2], [2], [2], [3], [3], [4]]
"""Seven partitions in r1, three in r2, two in r3: the best assignment is not obvious."""

KAFKA_PYTHON, AIOKAFKA = "kafka-python", "aiokafka"
OFF, ON_AGAIN = "rack awareness is off", "rack awareness is on again"


@pytest.mark.parametrize(
    ("first", "second", "options"),
    [
        pytest.param(
            KAFKA_PYTHON, KAFKA_PYTHON, ["cooperative"], id="kafka-python-cooperative", marks=pytest.mark.soak
        ),
        pytest.param(AIOKAFKA, AIOKAFKA, [], id="aiokafka", marks=pytest.mark.soak),
        pytest.param(KAFKA_PYTHON, AIOKAFKA, [], id="both"),
    ],
)
def test_members_join_leave_and_crash_and_cross_rack_reads_are_always_the_least(
    kafka: KafkaCluster, tmp_path: Path, request: pytest.FixtureRequest, first: str, second: str, options: list[str]
) -> None:
    topic = f"readers-{request.node.callspec.id}"
    create_topic(kafka, topic, assignment=ONE_REPLICA_EACH)
    with LiveGroup(kafka, topic, topic, tmp_path) as group:
        group.join("a", first, "r1", *options)
        group.settles_at_best("one member")
        group.join("b", second, "r2", *(options if second == KAFKA_PYTHON else ()))
        group.join("c", second, "r3")
        group.settles_at_best("a member in each rack")
        group.join("d", first, "r1", *options)
        group.settles_at_best("two in one rack")
        group.crash("b")
        group.settles_at_best("after a crash")
        group.leave("a")
        group.settles_at_best("after the leader left")
        assert group.warnings("rack") == []


def test_a_member_without_rack_switches_racks_off_once_and_they_come_back_when_it_leaves(
    kafka: KafkaCluster, tmp_path: Path
) -> None:
    create_topic(kafka, "rackless", assignment=ONE_REPLICA_EACH)
    with LiveGroup(kafka, "rackless", "rackless", tmp_path) as group:
        group.join("a", KAFKA_PYTHON, "r1")
        group.join("b", AIOKAFKA, "r2")
        local = group.settles_at_best("all with racks")
        group.join("c", AIOKAFKA, "-")
        stayed = group.settles_balanced([4, 4, 4], "three balanced members")
        assert all(set(stayed[name]) <= set(local[name]) for name in local)
        group.join("d", AIOKAFKA, "r3")
        group.settles_balanced([3, 3, 3, 3], "four balanced members")
        assert len(group.warnings(OFF)) == 1
        assert "has no client.rack" in group.warnings(OFF)[0]
        group.leave("c")
        group.settles_at_best("after the member without rack left")
        assert len(group.warnings(ON_AGAIN)) == 1


def test_a_member_of_a_later_version_switches_racks_off(kafka: KafkaCluster, tmp_path: Path) -> None:
    create_topic(kafka, "later", assignment=ONE_REPLICA_EACH)
    with LiveGroup(kafka, "later", "later", tmp_path) as group:
        group.join("a", AIOKAFKA, "r1")
        group.settles_at_best("the leader")
        group.join("b", KAFKA_PYTHON, "r2", "later")
        group.settles_balanced([6, 6], "two balanced members")
        assert ["sent user data of version 2" in line for line in group.warnings(OFF)] == [True]
        group.leave("b")
        eventually(lambda: len(group.warnings(ON_AGAIN)) == 1, "racks count again")


@pytest.mark.rest
def test_a_group_is_upgraded_member_by_member_from_range(kafka: KafkaCluster, tmp_path: Path) -> None:
    create_topic(kafka, "upgraded", assignment=ONE_REPLICA_EACH)
    with LiveGroup(kafka, "upgraded", "upgraded", tmp_path) as group:
        for name, client in (("a", KAFKA_PYTHON), ("b", AIOKAFKA)):
            group.join(name, client, {"a": "r1", "b": "r3"}[name], "only-range")
        group.settles_balanced([6, 6], "two members on range")
        group.leave("b")
        group.join("b", AIOKAFKA, "r3", "range")
        group.settles_balanced([6, 6], "one offers both")
        group.leave("a")
        group.join("a", KAFKA_PYTHON, "r1", "range")
        group.settles_at_best("both offer ours")
        group.leave("b")
        group.join("b", AIOKAFKA, "r3")
        group.settles_at_best("range is no longer offered by one")
        assert group.warnings(OFF) == []


def test_where_only_leaders_are_read_only_their_racks_count(kafka: KafkaCluster, tmp_path: Path) -> None:
    topic, replicas = "led", [[1, 2], [1, 2], [4, 2], [2, 1], [2, 1], [5, 1]]
    create_topic(kafka, topic, assignment=replicas)
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})

    def leaders() -> list[int]:
        partitions = admin.list_topics(topic, timeout=WITHIN_SECONDS).topics[topic].partitions
        return [partitions[partition].leader for partition in sorted(partitions)]

    def led_by_the_first() -> bool:
        """A broker that was fenced for a short time, on a machine that is busy, leads again only after an election."""
        admin.elect_leaders(
            ElectionType.PREFERRED, [KafkaPartition(topic, number) for number in range(len(replicas))]
        ).result(WITHIN_SECONDS)
        return leaders() == [one[0] for one in replicas]

    eventually(led_by_the_first, "the first replicas lead")
    with LiveGroup(kafka, topic, topic, tmp_path) as group:
        group.join("a", KAFKA_PYTHON, "r1", "leader")
        group.join("b", AIOKAFKA, "r2", "leader")
        read: Reads = {}

        def at_best() -> bool:
            nonlocal read
            read = group.reads() or {}
            return {name: [one.partition for one in hers] for name, hers in read.items()} == {
                "a": [0, 1, 2],
                "b": [3, 4, 5],
            }

        try:
            eventually(at_best, "everyone reads the leaders of its rack")
        except AssertionError as late:
            raise AssertionError(f"{late}: {read}, leaders {leaders()}") from late
