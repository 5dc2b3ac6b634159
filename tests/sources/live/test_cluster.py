"""A snapshot of real Kafka says what Kafka's own tools say. The judges are those tools."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from confluent_kafka import Consumer

from rackspan.client.cluster import ConnectionSettings
from rackspan.errors import ClusterUnauthorized
from rackspan.kafka_process import KafkaCluster, console_tool
from rackspan.model import ClusterSnapshot
from rackspan.sources.live.cluster import read_cluster
from tests.kafka_fixtures import TOPIC_TOOL, client_properties, create_topic
from tests.kafka_tools import Described, described, effective_min_insync_replicas, largest_log, produce, reassign
from tests.waiting import eventually

pytestmark = pytest.mark.kafka

ACL_TOOL = "org.apache.kafka.tools.AclCommand"


def snapshot(cluster: KafkaCluster, properties: dict[str, str] | None = None, seconds: float = 30.0) -> ClusterSnapshot:
    return read_cluster(ConnectionSettings(cluster.bootstrap_servers, properties or {}, seconds)).snapshot


def as_described(snapshot: ClusterSnapshot) -> dict[tuple[str, int], Described]:
    """The snapshot's partitions in the words of `kafka-topics --describe`."""
    found = {}
    for row in snapshot.partitions:
        topic = snapshot.topics[row.topic]
        assert topic.topic_id is not None
        found[str(topic.name), row.partition] = Described(
            topic.topic_id, row.leader, row.replicas, row.isr, row.adding_replicas, row.removing_replicas
        )
    return found


def agreed(cluster: KafkaCluster) -> ClusterSnapshot:
    """A snapshot whose partitions are just what `kafka-topics --describe` says.

    The tool runs between two equal snapshots: on a busy machine a replica may leave or join an ISR while the tool starts,
    and the broker that the tool reads may learn of it later than the one that the snapshots read.
    """
    before, described_by_kafka, after = snapshot(cluster), described(cluster), snapshot(cluster)
    for _ in range(5):
        if as_described(before) == described_by_kafka == as_described(after):
            break
        before, described_by_kafka, after = after, described(cluster), snapshot(cluster)
    assert as_described(before) == described_by_kafka
    assert as_described(after) == described_by_kafka
    return before


def sizes(snapshot: ClusterSnapshot) -> dict[tuple[str, int], int | None]:
    return {(str(snapshot.topics[row.topic].name), row.partition): row.size_bytes for row in snapshot.partitions}


def config(snapshot: ClusterSnapshot, topic: str) -> dict[str, str]:
    return next(dict(one.config) for one in snapshot.topics if one.name == topic)


def wait_until_whole(cluster: KafkaCluster) -> None:
    eventually(
        lambda: all(sorted(one.isr) == sorted(one.replicas) for one in as_described(snapshot(cluster)).values()),
        "every replica is in sync",
    )


@pytest.fixture(scope="module")
def busy_kafka(kafka: KafkaCluster) -> KafkaCluster:
    """Topics of several kinds with records in them, and a consumer group, so that there is an internal topic too."""
    create_topic(kafka, "own-minimum", partitions=6, replication_factor=3, config={"min.insync.replicas": "2"})
    create_topic(kafka, "brokers-minimum", assignment=[[1, 4], [2, 5]])
    produce(kafka, "own-minimum", 6, 40_000)
    produce(kafka, "brokers-minimum", 1, 10_000)
    consumer = Consumer(
        {"bootstrap.servers": kafka.bootstrap_servers, "group.id": "readers", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe(["own-minimum"])
    eventually(lambda: consumer.poll(1.0) is not None, "a record is consumed")
    consumer.close()
    wait_until_whole(kafka)
    return kafka


def test_partitions_are_what_kafka_describes(busy_kafka: KafkaCluster) -> None:
    read = agreed(busy_kafka)
    assert read.partial == ()
    internal = {one.name for one in read.topics if one.internal}
    # Other tests on this cluster may have used transactions.
    assert internal - {"__transaction_state"} == {"__consumer_offsets"}


def test_brokers_have_their_racks_and_addresses(busy_kafka: KafkaCluster) -> None:
    read = snapshot(busy_kafka)
    assert [(one.id, one.rack, one.fenced) for one in read.brokers] == [
        (broker, busy_kafka.rack(broker), False) for broker in busy_kafka.brokers
    ]
    assert ",".join(f"{one.host}:{one.port}" for one in read.brokers) == busy_kafka.bootstrap_servers
    assert read.cluster_id == busy_kafka.cluster_id


def test_combined_controllers_stand_in_their_brokers_racks(busy_kafka: KafkaCluster) -> None:
    read = snapshot(busy_kafka)
    assert [(one.id, one.rack, one.voter) for one in read.controllers] == [
        (1, "r1", True),
        (2, "r2", True),
        (3, "r3", True),
    ]


def test_configs_are_those_in_force(busy_kafka: KafkaCluster) -> None:
    read = snapshot(busy_kafka)
    assert config(read, "own-minimum") == {"min.insync.replicas": "2"}
    in_force = {str(topic.name): topic.config["min.insync.replicas"] for topic in read.topics}
    assert in_force == effective_min_insync_replicas(busy_kafka)


def test_sizes_are_those_of_the_largest_logs(busy_kafka: KafkaCluster) -> None:
    read = sizes(snapshot(busy_kafka))
    assert read == largest_log(busy_kafka)
    assert all((read["own-minimum", partition] or 0) > 40_000 for partition in range(6))
    assert read["brokers-minimum", 1] == 0


def test_the_timestamp_is_the_callers(busy_kafka: KafkaCluster) -> None:
    noon = datetime(2026, 11, 21, 12, tzinfo=UTC)
    settings = ConnectionSettings(busy_kafka.bootstrap_servers)
    assert read_cluster(settings, now=lambda: noon).snapshot.taken_at == noon


def test_one_living_bootstrap_server_among_dead_ones_is_enough(busy_kafka: KafkaCluster) -> None:
    living = busy_kafka.bootstrap_servers.split(",")[3]
    assert len(read_cluster(ConnectionSettings(f"127.0.0.1:1,{living}")).snapshot.brokers) == 6


def is_current(read: ClusterSnapshot) -> bool:
    """The lost rack may have held the active controller: until another is elected a snapshot is partial."""
    return sum(one.fenced for one in read.brokers) == 2 and len(read.controllers) == 3 and len(read.partial) <= 1


@pytest.fixture
def rack_lost(busy_kafka: KafkaCluster) -> Iterator[KafkaCluster]:
    """Rack r2, brokers 2 and 5, without power, and fenced by the controller."""
    busy_kafka.lose_rack("r2")
    try:
        eventually(lambda: is_current(snapshot(busy_kafka)), "brokers 2 and 5 are fenced and a controller is elected")
        yield busy_kafka
    finally:
        busy_kafka.restore_rack("r2")
        wait_until_whole(busy_kafka)


def test_a_lost_racks_brokers_are_fenced_and_stay_in_the_replica_lists(rack_lost: KafkaCluster) -> None:
    read = agreed(rack_lost)
    assert [(one.id, one.rack) for one in read.brokers if one.fenced] == [(2, "r2"), (5, "r2")]
    partitions = as_described(read)
    offline = partitions["brokers-minimum", 1]
    assert (offline.replicas, offline.leader) == ((2, 5), -1)
    assert not any({2, 5} & set(one.isr) for one in partitions.values() if one.leader != -1)
    assert len(read.controllers) == 3
    # Other tests' topics may have partitions there too.
    only_there = sum(set(one.replicas) <= {2, 5} for one in partitions.values())
    noun = "partition" if only_there == 1 else "partitions"
    assert read.partial == (f"sizes of {only_there} {noun}: unknown, brokers 2, 5: not alive",)
    assert sizes(read)["brokers-minimum", 1] is None


def test_a_frozen_broker_costs_its_sizes_and_not_the_snapshot(busy_kafka: KafkaCluster) -> None:
    busy_kafka.pause(4)
    try:
        read = snapshot(busy_kafka, seconds=6.0)
    finally:
        busy_kafka.resume(4)
    assert len(read.brokers) == 6
    assert "own-minimum" in {one.name for one in read.topics}
    [note] = [note for note in read.partial if note.startswith("brokers 4: listed as alive")]
    assert "no response in time" in note
    wait_until_whole(busy_kafka)


def test_a_reassignment_under_way_shows_what_comes_and_goes(busy_kafka: KafkaCluster, tmp_path: Path) -> None:
    create_topic(busy_kafka, "moving", assignment=[[1, 2], [4, 6]])
    produce(busy_kafka, "moving", 1, 2_000_000)
    # A thousand bytes a second: it would take half an hour.
    reassign(busy_kafka, tmp_path, "--execute", "--throttle", "1000", moving_0=[3, 2])
    try:
        read = as_described(agreed(busy_kafka))
        assert (read["moving", 0].adding, read["moving", 0].removing) == ((3,), (1,))
        assert (read["moving", 1].adding, read["moving", 1].removing) == ((), ())
    finally:
        reassign(busy_kafka, tmp_path, "--cancel")
    assert as_described(snapshot(busy_kafka))["moving", 0].adding == ()


def test_kafka_3_is_read_as_well(kafka3: KafkaCluster) -> None:
    create_topic(kafka3, "two-racks", partitions=4, replication_factor=2, config={"min.insync.replicas": "2"})
    produce(kafka3, "two-racks", 4, 20_000)
    wait_until_whole(kafka3)
    read = agreed(kafka3)
    assert sizes(read) == largest_log(kafka3)
    assert config(read, "two-racks") == {"min.insync.replicas": "2"}
    assert [(one.id, one.rack) for one in read.brokers] == [(1, "r1"), (2, "r2")]
    # Its host is both brokers' host, and they do not share a rack.
    assert [(one.id, one.rack, one.voter) for one in read.controllers] == [(101, None, True)]
    assert read.partial == ()


@pytest.mark.rest
def test_kafka_3_leaves_a_dead_broker_out_but_not_out_of_the_replica_lists(kafka3: KafkaCluster) -> None:
    create_topic(kafka3, "half-dead", assignment=[[2, 1]])
    kafka3.kill(2)
    try:
        eventually(lambda: len(snapshot(kafka3).brokers) == 1, "broker 2 is no longer listed")
        read = agreed(kafka3)
        half_dead = as_described(read)["half-dead", 0]
        assert (half_dead.replicas, half_dead.isr, half_dead.leader) == ((2, 1), (1,), 1)
        assert [one.id for one in read.controllers] == [101]
    finally:
        kafka3.restart(2)
        wait_until_whole(kafka3)


def test_without_its_controllers_a_cluster_is_read_and_the_silence_noted(kafka3: KafkaCluster) -> None:
    kafka3.kill(101)
    try:
        notes = snapshot(kafka3).partial
    finally:
        kafka3.restart(101)
        wait_until_whole(kafka3)
    assert notes == (
        "the controller quorum: unknown, no response in time",
        "reassignments under way: unknown, no response in time",
    )


class Acls:
    """Rights in the secured cluster, given by its admin."""

    def __init__(self, cluster: KafkaCluster, folder: Path) -> None:
        self._cluster = cluster
        self._config = folder / "admin.properties"
        self._config.write_text("".join(f"{key}={value}\n" for key, value in client_properties("admin").items()))

    def create_topic(self, name: str) -> None:
        self.tool(TOPIC_TOOL, "--create", "--topic", name, "--partitions", "1")

    def allow(self, user: str, operation: str, *on: str) -> None:
        self.tool(ACL_TOOL, "--add", "--allow-principal", f"User:{user}", "--operation", operation, *on)

    def tool(self, main_class: str, *arguments: str) -> None:
        console_tool(self._cluster, main_class, "--command-config", str(self._config), *arguments)


def test_rights_come_one_by_one_and_each_missing_one_is_named(secured_kafka: KafkaCluster, tmp_path: Path) -> None:
    acls = Acls(secured_kafka, tmp_path)
    acls.create_topic("orders")
    acls.create_topic("secret")
    reader = client_properties("reader")

    acls.allow("reader", "Describe", "--topic", "orders")
    read = snapshot(secured_kafka, reader)
    assert [one.name for one in read.topics] == ["orders"]
    assert sorted(read.partial) == [
        "min.insync.replicas of orders: unknown, this user needs DescribeConfigs on Topic orders",
        "reassignments under way: unknown, this user needs Describe on Cluster",
        "sizes of 1 partition: unknown, brokers 1: this user needs Describe on Cluster",
        "the controller quorum: unknown, this user needs Describe on Cluster",
    ]

    acls.allow("reader", "Describe", "--cluster")
    acls.allow("reader", "DescribeConfigs", "--topic", "orders")
    [note] = snapshot(secured_kafka, reader).partial
    assert note.startswith("topics secret: on disk but not shown to this user, who needs Describe on Topic secret")

    acls.allow("reader", "Describe", "--topic", "*")
    acls.allow("reader", "DescribeConfigs", "--topic", "*")
    whole = snapshot(secured_kafka, reader)
    assert whole.partial == ()
    assert [one.name for one in whole.topics] == ["orders", "secret"]


@pytest.mark.parametrize(
    ("properties", "why"),
    [
        (
            client_properties("nobody"),
            r"shows this user no topic; it needs Describe on Topic .* and Describe on Cluster",
        ),
        (client_properties("reader", "wrong"), "refused the login: user, password or mechanism PLAIN is wrong"),
        ({}, r"requires a login; set security\.protocol"),
    ],
    ids=["no right at all", "wrong password", "no login"],
)
def test_a_user_without_rights_gets_the_reason_in_one_line(
    secured_kafka: KafkaCluster, properties: dict[str, str], why: str
) -> None:
    with pytest.raises(ClusterUnauthorized, match=why) as failure:
        snapshot(secured_kafka, properties)
    assert "\n" not in str(failure.value)
    assert "wrong" not in str(failure.value).replace("is wrong", "")
