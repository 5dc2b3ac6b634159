"""Advice on the embedded cluster, carried out: the bytes across racks fall by what it foretold."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

from rackspan import api
from rackspan.advice import Advice
from rackspan.audit import RackPolicy
from rackspan.audit.policy import Survive
from rackspan.client.cluster import ConnectionSettings
from rackspan.cluster import EmbeddedCluster
from rackspan.model import RackId
from rackspan.model.client_networks import ClientNetworks
from rackspan.sources.gateway_counters import gateway_counters
from rackspan.sources.live.traffic import read_traffic
from rackspan.testing import READS_IN_RACK
from rackspan.traffic.bill import MONTH_SECONDS
from tests.compat.streams_app import StreamsProcess
from tests.gateway.process import free_ports, gateway_process
from tests.sources.consumers import consumer, read_all
from tests.waiting import WITHIN_SECONDS, eventually

pytestmark = pytest.mark.slow

RECORDS = 6000
PARTITIONS = 6

NOTHING_TO_REPAIR = RackPolicy(survive=Survive.NONE)
"""No plan for a risk stands before the savings, so that they are those of the cluster as it is."""


def produce(cluster: EmbeddedCluster) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0, "linger.ms": 20})
    for number in range(RECORDS):
        producer.produce("orders", bytes(600), partition=number % PARTITIONS)
        producer.poll(0)
    assert producer.flush(WITHIN_SECONDS) == 0


def across(cluster: EmbeddedCluster, home: str | None = None) -> Counter[str]:
    """Bytes that crossed racks by path, as the brokers counted them; `home` is where clients without a rack are."""
    sums = Counter[str]()
    for flow, size in cluster.traffic().items():
        if flow.topic == "orders" and flow.from_rack != (flow.to_rack or home):
            sums[flow.path] += size
    return sums


def measured(
    cluster: EmbeddedCluster,
    readers: Sequence[Consumer],
    home: str | None = None,
    counters: Sequence[str] = (),
    policy: RackPolicy = RackPolicy(),
) -> tuple[list[Advice], Counter[str], float]:
    """What is advised after one round of the workload, the bytes that crossed racks in it, and its seconds.

    `counters` are those of a gateway that the readers read through.
    """
    produce(cluster)
    for reader in readers:
        read_all(reader, RECORDS)
    cluster.wait_for_isr()
    wait_until_counted(counters, 1)
    before = across(cluster, home)

    def workload(_seconds: float) -> None:
        produce(cluster)
        for reader in readers:
            read_all(reader, RECORDS)
        cluster.wait_for_isr()
        wait_until_counted(counters, 2)

    reading = read_traffic(ConnectionSettings(cluster.bootstrap_servers), 1.0, workload, counters=counters)
    snapshot, networks = reading.after.snapshot, ClientNetworks({} if home is None else {"127.0.0.0/8": home})
    advice = api.advise(snapshot, policy, passed=api.traffic(reading, snapshot, networks))
    passed = across(cluster, home)
    passed.subtract(before)
    return advice, passed, reading.seconds


def wait_until_counted(counters: Sequence[str], rounds: int) -> None:
    """A gateway counts what has passed once it has read the topic's leaders, some seconds later."""
    for url in counters:

        def is_counted(url: str = url) -> bool:
            return sum(gateway_counters([url])[url].values()) >= rounds * RECORDS * 600

        eventually(is_counted, "the gateway has counted what was read")


def foretold(advice: Sequence[Advice], kind: str, seconds: float) -> float:
    (size,) = [each.bytes_a_month for each in advice if each.kind == kind]
    assert size is not None
    return size * seconds / MONTH_SECONDS


def test_a_client_rack_saves_what_was_foretold() -> None:
    with EmbeddedCluster(racks=3, brokers=6, config=READS_IN_RACK) as cluster:
        cluster.create_topic("orders", partitions=PARTITIONS)
        with consumer(cluster, "shop", None) as reader:
            advice, before, seconds = measured(cluster, [reader], home="r1")
        with consumer(cluster, "shop", "r1") as reader:
            done, after, _ = measured(cluster, [reader])
        assert before["fetch"] - after["fetch"] == pytest.approx(foretold(advice, "read-in-rack", seconds), rel=0.1)
        assert "client.rack=r1" in next(each.command for each in advice if each.kind == "read-in-rack")
        assert [each.kind for each in done if each.kind == "read-in-rack"] == []


def test_the_rack_of_a_gateway_saves_what_was_foretold(tmp_path: Path) -> None:
    """A reader in rack r1 that names none, behind a gateway there."""
    with EmbeddedCluster(racks=3, brokers=6, config=READS_IN_RACK) as cluster:
        cluster.create_topic("orders", partitions=PARTITIONS)

        def behind(readers: str) -> tuple[list[Advice], Counter[str], float]:
            (port,) = free_ports(1)
            lines = f'acknowledgements.mode = "off"\nlisten.http = "127.0.0.1:{port}"\n{readers}'
            with (
                gateway_process(tmp_path, cluster.bootstrap_servers, lines) as gateway,
                consumer(gateway, "shop", None) as reader,
            ):
                return measured(cluster, [reader], "r1", [f"http://127.0.0.1:{port}/metrics"])

        advice, before, seconds = behind("")
        done, after, _ = behind('[readers]\nrack = "r1"\n')
    assert before["fetch"] - after["fetch"] == pytest.approx(foretold(advice, "gateway-rack", seconds), rel=0.1)
    assert [each.kind for each in done if each.kind == "gateway-rack"] == []


def test_a_replica_in_each_rack_saves_what_was_foretold_copies_included(tmp_path: Path) -> None:
    places = {"a": "r2", "b": "r2", "c": "r3", "d": "r3", "e": "r1"}
    with EmbeddedCluster(racks=3, brokers=6, config=READS_IN_RACK) as cluster:
        cluster.create_topic("orders", partitions=PARTITIONS, replication_factor=1)
        with ExitStack() as stack:
            readers = [stack.enter_context(consumer(cluster, group, rack)) for group, rack in places.items()]
            advice, before, seconds = measured(cluster, readers, policy=NOTHING_TO_REPAIR)
        (replicas,) = [each for each in advice if each.kind == "replica-in-rack"]
        assert replicas.command == "rackspan reassign plan --topic 'orders' --replication-factor 3"
        carry_out(cluster, replicas, tmp_path / "plan.journal")
        with ExitStack() as stack:
            readers = [stack.enter_context(consumer(cluster, group, rack)) for group, rack in places.items()]
            _, after, _ = measured(cluster, readers)
        saved = sum(before.values()) - sum(after.values())
        assert saved == pytest.approx(foretold(advice, "replica-in-rack", seconds), rel=0.1)


def carry_out(cluster: EmbeddedCluster, advice: Advice, journal: Path) -> None:
    """The plan of a topic's advice, as its command makes it."""
    words = advice.command.partition("rackspan reassign plan ")[2].split()
    policy = api.RackPolicy()
    if "--leaders" in words:
        racks = tuple(RackId(rack) for rack in re.findall(r'"(r\d)"', advice.command))
        policy = api.RackPolicy(topic_leader_racks={"orders": racks})
    factor = int(words[words.index("--replication-factor") + 1]) if "--replication-factor" in words else None
    request = api.ReassignmentRequest(topics="orders", replication_factor=factor, leaders="--leaders" in words)
    snapshot = api.live_cluster(cluster.bootstrap_servers, None, 30).read().snapshot
    plan = api.plan_reassignment(snapshot, policy, request)
    assert list(api.carry_out(api.Cluster(cluster.bootstrap_servers, None, 30), plan, journal))


def test_leaders_held_in_a_rack_save_what_was_foretold(tmp_path: Path) -> None:
    """Three replicas in two racks: a leader beside one of its followers copies to the other rack once, not twice."""
    placed = [[2, 1, 3], [4, 3, 5], [6, 5, 1], [1, 3, 2], [3, 5, 4], [4, 5, 1]]
    with EmbeddedCluster(racks=2, brokers=6) as cluster:
        cluster.create_topic("orders", replicas=placed, config={"min.insync.replicas": "2"})
        advice, before, seconds = measured(cluster, [], policy=NOTHING_TO_REPAIR)
        # Two replicas would stop writes with any broker.
        assert [each for each in advice if each.kind == "lower-factor"] == []
        (of_leaders,) = [each for each in advice if each.kind == "leaders-in-racks"]
        assert 'leader.racks = ["r1"]' in of_leaders.command
        carry_out(cluster, of_leaders, tmp_path / "plan.journal")
        done, after, _ = measured(cluster, [])
    saved = before["replicate"] - after["replicate"]
    assert saved == pytest.approx(foretold(advice, "leaders-in-racks", seconds), rel=0.1)
    assert [each for each in done if each.kind == "leaders-in-racks"] == []


def test_fewer_replicas_save_what_was_foretold(tmp_path: Path) -> None:
    with EmbeddedCluster(racks=3, brokers=6) as cluster:
        cluster.create_topic("orders", partitions=PARTITIONS, replication_factor=5)
        advice, before, seconds = measured(cluster, [])
        (fewer,) = [each for each in advice if each.kind == "lower-factor"]
        # Two would be in fewer racks than now.
        assert fewer.command == "rackspan reassign plan --topic 'orders' --replication-factor 3"
        carry_out(cluster, fewer, tmp_path / "plan.journal")
        _, after, _ = measured(cluster, [])
    assert before["replicate"] - after["replicate"] == pytest.approx(foretold(advice, "lower-factor", seconds), rel=0.1)


def test_an_assignor_that_looks_at_racks_saves_what_was_foretold() -> None:
    """Led in r1 and r2 in turn, and assigned in turn the wrong way round: each of two members reads what the other has at home."""
    placed = [[2], [1], [2], [1], [2], [1]]
    with EmbeddedCluster(racks=2, brokers=2) as cluster:
        cluster.create_topic("orders", replicas=placed)
        with members(cluster, {"a": "r1", "b": "r2"}, "roundrobin") as readers:
            advice, before, seconds = measured_together(cluster, readers)
        with members(cluster, {"a": "r1", "b": "r2"}, "range") as readers:
            _, after, _ = measured_together(cluster, readers)
    (assignor,) = [each for each in advice if each.kind == "assignor"]
    assert "range" in assignor.command
    assert before["fetch"] > RECORDS * 500
    assert before["fetch"] - after["fetch"] == pytest.approx(foretold(advice, "assignor", seconds), rel=0.1)


STREAMED = "streamed-clicks"
CLICKS = 8


@pytest.mark.soak
@pytest.mark.java
def test_a_strategy_that_looks_at_racks_saves_what_was_foretold(tmp_path: Path) -> None:
    """A Kafka Streams application of two processes: whichever is first, half of its tasks read in the other's rack."""
    with EmbeddedCluster(racks=2, brokers=2) as cluster:
        cluster.create_topic(STREAMED, replicas=[[1], [1], [2], [2]] * (CLICKS // 4))
        for name in ("orders", "customers"):
            cluster.create_topic(f"streamed-{name}", replicas=[[1], [2]])
        cluster.create_topic("streamed-kept", partitions=1, replication_factor=1)
        with application(cluster, tmp_path, "none"):
            advice, before, seconds = measured_application(cluster)
        with application(cluster, tmp_path / "then", "min_traffic"):
            done, after, _ = measured_application(cluster)
    assert before > RECORDS * 200
    assert before - after == pytest.approx(foretold(advice, "strategy", seconds), rel=0.1)
    assert [each.kind for each in done if each.kind == "strategy"] == []


@contextmanager
def application(cluster: EmbeddedCluster, folder: Path, strategy: str) -> Iterator[None]:
    """The application with its tasks running, a process in each rack."""
    folder.mkdir(exist_ok=True)
    with ExitStack() as stack:
        processes = [
            stack.enter_context(
                StreamsProcess(
                    folder,
                    {
                        "application.id": "streamed",
                        "bootstrap.servers": cluster.bootstrap_servers,
                        "client.id": f"in-{rack}",
                        "client.rack": rack,
                        "rack.aware.assignment.strategy": strategy,
                        "replication.factor": "1",
                        "session.timeout.ms": "6000",
                        "commit.interval.ms": "200",
                        "sources.prefix": "streamed-",
                    },
                )
            )
            for rack in ("r1", "r2")
        ]

        def is_at_rest() -> bool:
            tasks = [process.tasks() for process in processes]
            return [each.state for each in tasks] == ["RUNNING"] * 2 and {len(each.active) for each in tasks} == {6}

        eventually(is_at_rest, "each process runs half of the tasks")
        yield


def measured_application(cluster: EmbeddedCluster) -> tuple[list[Advice], int, float]:
    """What is advised after one round of clicks, the bytes of them that crossed racks, and its seconds."""
    produce_clicks(cluster)
    before = clicks_across(cluster)
    passed = read_traffic(ConnectionSettings(cluster.bootstrap_servers), 1.0, lambda _: produce_clicks(cluster))
    return api.advise(passed.after.snapshot, passed=passed), clicks_across(cluster) - before, passed.seconds


def produce_clicks(cluster: EmbeddedCluster) -> None:
    """Until the application has committed all of them."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0, "linger.ms": 20})
    for number in range(RECORDS):
        producer.produce(STREAMED, bytes(600), partition=number % CLICKS)
        producer.poll(0)
    assert producer.flush(WITHIN_SECONDS) == 0
    with consumer(cluster, "streamed", None, subscribed=False) as reader:
        partitions = [TopicPartition(STREAMED, number) for number in range(CLICKS)]

        def is_committed() -> bool:
            ends = [reader.get_watermark_offsets(partition)[1] for partition in partitions]
            return [each.offset for each in reader.committed(partitions, 10)] == ends

        eventually(is_committed, "the application has read every click")


def clicks_across(cluster: EmbeddedCluster) -> int:
    return sum(
        size
        for flow, size in cluster.traffic().items()
        if (flow.path, flow.topic) == ("fetch", STREAMED) and flow.from_rack != flow.to_rack
    )


@contextmanager
def members(cluster: EmbeddedCluster, racks: Mapping[str, str], strategy: str) -> Iterator[list[Consumer]]:
    """Two members of one group that have their partitions."""
    with ExitStack() as stack:
        readers = []
        for client, rack in racks.items():
            reader = Consumer(
                {
                    "bootstrap.servers": cluster.bootstrap_servers,
                    "group.id": "shop",
                    "client.id": client,
                    "client.rack": rack,
                    "partition.assignment.strategy": strategy,
                    "enable.auto.commit": "false",
                    "auto.offset.reset": "earliest",
                    "log_level": 0,
                }
            )
            stack.callback(reader.close)
            reader.subscribe(["orders"])
            readers.append(reader)

        def assigned() -> bool:
            for reader in readers:
                reader.poll(0.1)
            return all(len(reader.assignment()) == PARTITIONS // len(readers) for reader in readers)

        eventually(assigned, "each member has its part")
        for reader in readers:
            # What was polled meanwhile is read again.
            for partition in reader.assignment():
                reader.seek(TopicPartition("orders", partition.partition, OFFSET_BEGINNING))
        yield readers


def measured_together(
    cluster: EmbeddedCluster, readers: Sequence[Consumer]
) -> tuple[list[Advice], Counter[str], float]:
    """As `measured`, of one group whose members each read their part of every round."""

    def workload(_seconds: float) -> None:
        produce(cluster)
        for reader in readers:
            read_all(reader, RECORDS // len(readers))

    produce(cluster)
    for reader in readers:
        held = sum(reader.get_watermark_offsets(partition)[1] for partition in reader.assignment())
        read_all(reader, held)
    before = across(cluster)
    reading = read_traffic(ConnectionSettings(cluster.bootstrap_servers), 1.0, workload)
    passed = across(cluster)
    passed.subtract(before)
    return api.advise(reading.after.snapshot, NOTHING_TO_REPAIR, passed=reading), passed, reading.seconds
