"""Every fault does what it says, and its inverse takes it back. Judged by clients and by audit."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, ElectionType, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import ConfigResource
from confluent_kafka.cimpl import NewTopic

from rackspan.audit import RackPolicy
from rackspan.audit.judge import audit
from rackspan.cluster import EmbeddedCluster
from rackspan.errors import UsageError
from tests.waiting import WITHIN_SECONDS, eventually


@pytest.fixture
def cluster() -> Iterator[EmbeddedCluster]:
    """Of a test's own, to be broken."""
    with EmbeddedCluster(racks=3, brokers=6, seed=2) as started:
        admin = AdminClient({"bootstrap.servers": started.bootstrap_servers, "log_level": 0})
        admin.create_topics([NewTopic("orders", 1, 3, config={"min.insync.racks": "2"})])["orders"].result(
            WITHIN_SECONDS
        )
        yield started


def delivery_error(cluster: EmbeddedCluster, value: bytes = b"x", within_seconds: float = 1.5) -> KafkaError | None:
    """The error of one record, as its producer gets it."""
    errors: list[KafkaError | None] = []
    producer = Producer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "message.timeout.ms": int(within_seconds * 1000),
            "log_level": 0,
        }
    )
    producer.produce("orders", value, on_delivery=lambda error, _: errors.append(error))
    producer.flush(WITHIN_SECONDS)
    return errors[0]


def test_a_lost_rack_leaves_the_isr_at_once_and_a_restored_one_rejoins_it(cluster: EmbeddedCluster) -> None:
    replicas = set(cluster.replicas("orders", 0))
    lost = {broker for broker in replicas if cluster.rack(broker) == "r1"}
    cluster.lose_rack("r1")
    assert cluster.isr("orders", 0) == replicas - lost
    assert cluster.leader("orders", 0) not in lost
    assert delivery_error(cluster, within_seconds=WITHIN_SECONDS) is None
    cluster.restore_rack("r1")
    cluster.wait_for_isr()
    assert cluster.isr("orders", 0) == replicas


def test_with_two_racks_lost_producers_are_refused_and_with_one_back_served(cluster: EmbeddedCluster) -> None:
    assert delivery_error(cluster, within_seconds=WITHIN_SECONDS) is None
    cluster.lose_rack("r1")
    cluster.lose_rack("r2")
    refused = delivery_error(cluster)
    assert refused is not None
    assert refused.code() in (KafkaError._MSG_TIMED_OUT, KafkaError.NOT_ENOUGH_REPLICAS)
    cluster.restore_rack("r2")
    assert delivery_error(cluster, within_seconds=WITHIN_SECONDS) is None
    cluster.restore_rack("r1")
    cluster.wait_for_isr()


def test_a_frozen_follower_leaves_the_isr_and_comes_back(cluster: EmbeddedCluster) -> None:
    follower = next(broker for broker in cluster.replicas("orders", 0) if broker != cluster.leader("orders", 0))
    cluster.pause(follower)
    assert delivery_error(cluster, within_seconds=WITHIN_SECONDS) is None
    eventually(lambda: follower not in cluster.isr("orders", 0), "the follower is out of the ISR")
    cluster.resume(follower)
    cluster.wait_for_isr(seconds=WITHIN_SECONDS)


def test_a_frozen_broker_that_is_killed_is_not_frozen_after_its_restart(cluster: EmbeddedCluster) -> None:
    follower = next(broker for broker in cluster.replicas("orders", 0) if broker != cluster.leader("orders", 0))
    cluster.pause(follower)
    cluster.kill(follower)
    cluster.restart(follower)
    cluster.wait_for_isr(seconds=WITHIN_SECONDS)
    client = AdminClient({"bootstrap.servers": cluster.address(follower), "log_level": 0})
    assert "orders" in client.list_topics(timeout=WITHIN_SECONDS).topics


def test_a_controlled_shutdown_moves_leaderships_first(cluster: EmbeddedCluster) -> None:
    leader = cluster.leader("orders", 0)
    assert leader is not None
    cluster.stop(leader)
    assert cluster.leader("orders", 0) not in (None, leader)
    cluster.restart(leader)
    cluster.wait_for_isr()


def test_a_killed_broker_is_replaced_as_leader_and_catches_up_after_its_restart(cluster: EmbeddedCluster) -> None:
    leader = cluster.leader("orders", 0)
    assert leader is not None
    cluster.kill(leader)
    assert delivery_error(cluster, within_seconds=WITHIN_SECONDS) is None
    cluster.restart(leader)
    cluster.wait_for_isr()


def test_a_fenced_broker_leads_nothing_until_it_is_unfenced(cluster: EmbeddedCluster) -> None:
    leader = cluster.leader("orders", 0)
    assert leader is not None
    cluster.fence(leader)
    assert cluster.leader("orders", 0) != leader
    cluster.unfence(leader)
    cluster.wait_for_isr(seconds=WITHIN_SECONDS)


def test_a_rack_that_is_cut_off_leaves_the_isr_and_rejoins(cluster: EmbeddedCluster) -> None:
    apart = {broker for broker in cluster.replicas("orders", 0) if cluster.rack(broker) == "r3"}
    cluster.isolate_rack("r3")
    eventually(lambda: not apart & cluster.isr("orders", 0), "who is apart is out of the ISR")
    cluster.rejoin_rack("r3")
    cluster.wait_for_isr(seconds=WITHIN_SECONDS)


def test_a_cut_link_between_leader_and_follower_removes_the_follower_from_the_isr(cluster: EmbeddedCluster) -> None:
    leader = cluster.leader("orders", 0)
    follower = next(broker for broker in cluster.replicas("orders", 0) if broker != leader)
    assert leader is not None
    cluster.cut(leader, follower)
    assert delivery_error(cluster, within_seconds=WITHIN_SECONDS) is None
    eventually(lambda: follower not in cluster.isr("orders", 0), "the follower is out of the ISR")
    cluster.heal(leader, follower)
    cluster.wait_for_isr(seconds=WITHIN_SECONDS)


class HeldTimers:
    """The timers of a cluster that are due after `seconds`, held until `release`: the test is the clock of these."""

    def __init__(self, cluster: EmbeddedCluster, seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
        assert cluster._loop is not None
        self.waiting: list[Callable[[], object]] = []
        self._loop = cluster._loop
        self._call_later = self._loop.call_later
        self._seconds: float | None = seconds
        monkeypatch.setattr(self._loop, "call_later", self._hold)

    def _hold(self, delay: float, callback: Callable[..., object], *arguments: object, **context: Any) -> Any:
        if delay != self._seconds:
            return self._call_later(delay, callback, *arguments, **context)
        return self.waiting.append(partial(callback, *arguments))

    def release(self) -> None:
        """Run what waits, in order, and hold nothing more."""

        def run() -> None:
            self._seconds = None
            for callback in self.waiting:
                callback()

        self._loop.call_soon_threadsafe(run)


@pytest.mark.parametrize("fault", ["lag", "slow_disk"])
def test_a_slow_follower_delays_acknowledgements_and_stays_in_sync(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    acknowledged: list[str | KafkaError] = []

    def produced(cluster: EmbeddedCluster, acks: str) -> Producer:
        producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "acks": acks, "log_level": 0})
        producer.produce("orders", acks, on_delivery=lambda error, _: acknowledged.append(error or acks))
        return producer

    with EmbeddedCluster(racks=3, brokers=6, seed=2, config={"replica.lag.time.max.ms": "600000"}) as cluster:
        cluster.create_topic("orders", 1, replication_factor=3)
        follower = next(broker for broker in cluster.replicas("orders", 0) if broker != cluster.leader("orders", 0))
        held = HeldTimers(cluster, 0.3, monkeypatch)
        getattr(cluster, fault)(follower, 300)
        eventually(lambda: bool(held.waiting), "a response is held back")
        of_all = produced(cluster, "all")
        assert produced(cluster, "1").flush(WITHIN_SECONDS) == 0
        of_all.poll(0)
        assert acknowledged == ["1"]
        assert follower in cluster.isr("orders", 0)
        held.release()
        assert of_all.flush(WITHIN_SECONDS) == 0
        assert acknowledged == ["1", "all"]
        getattr(cluster, fault)(follower, 0)
        assert produced(cluster, "all").flush(WITHIN_SECONDS) == 0


def crowded(cluster: EmbeddedCluster) -> list[str | None]:
    """Topics whose replicas are in too few racks: the loss of one would stop acks=all, which audit reports as one cause."""
    found = audit(cluster.snapshot(), RackPolicy()).findings
    return [one.topic for one in found if one.constraint in ("rack-spread", "accepts-writes-after-rack-loss")]


def test_a_broker_that_changed_its_rack_counts_for_the_new_rack(cluster: EmbeddedCluster) -> None:
    moved = next(broker for broker in cluster.replicas("orders", 0) if cluster.rack(broker) == "r2")
    cluster.change_rack(moved, "r1")
    cluster.wait_for_isr()
    assert crowded(cluster) == ["orders"]
    cluster.change_rack(moved, "r2")
    cluster.wait_for_isr()
    assert crowded(cluster) == []


def test_a_fault_of_an_unknown_broker_or_rack_is_an_error(cluster: EmbeddedCluster) -> None:
    with pytest.raises(UsageError, match="broker 9"):
        cluster.kill(9)
    with pytest.raises(UsageError, match="rack 'r9'"):
        cluster.lose_rack("r9")


RACK_AWARE = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


def test_the_replica_selector_of_a_broker_decides_for_the_partitions_that_it_leads() -> None:
    """As in a roll-out of the config: broker 1 directs a consumer of r3 there, broker 2 serves it itself."""
    with EmbeddedCluster(racks=3, brokers=3) as cluster:
        cluster.create_topic("orders", replicas=[[1, 2, 3], [2, 3, 1]])
        cluster.change_replica_selector(1, RACK_AWARE)
        cluster.wait_for_isr()
        assert described(cluster) == {1: RACK_AWARE, 2: None, 3: None}
        leaders = (1, 2)
        for partition, leader in enumerate(leaders):
            elect(cluster, partition, leader)
        servers = {"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0}
        producer = Producer(servers)
        for partition in (0, 1):
            producer.produce("orders", b"x" * 100, partition=partition)
        assert producer.flush(WITHIN_SECONDS) == 0
        consumer = Consumer({**servers, "group.id": "shop", "client.rack": "r3"})
        consumer.assign([TopicPartition("orders", partition, OFFSET_BEGINNING) for partition in (0, 1)])
        assert len(consumer.consume(2, 30)) == 2
        consumer.close()
        assert {flow.from_rack for flow in cluster.fetched_by("shop")} == {"r3", "r2"}
        cluster.undo_faults()
        assert described(cluster) == {1: None, 2: None, 3: None}


def described(cluster: EmbeddedCluster) -> dict[int, str | None]:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})

    def value(broker: int) -> str | None:
        resource = ConfigResource(ConfigResource.Type.BROKER, str(broker))
        found: str | None = (
            admin.describe_configs([resource])[resource].result(WITHIN_SECONDS)["replica.selector.class"].value
        )
        return found

    return {broker: value(broker) for broker in cluster.brokers}


def elect(cluster: EmbeddedCluster, partition: int, leader: int) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
    admin.elect_leaders(ElectionType.PREFERRED, [TopicPartition("orders", partition)]).result(WITHIN_SECONDS)
    eventually(lambda: cluster.leader("orders", partition) == leader, f"{leader} leads partition {partition}")


def test_a_selector_that_brokers_cannot_load_is_refused_and_the_broker_stays_up(cluster: EmbeddedCluster) -> None:
    with pytest.raises(UsageError, match="the brokers refuse to start"):
        cluster.change_replica_selector(1, "com.acme.MySelector")
    assert cluster.status().brokers[0].states == ("up",)


def test_what_a_broker_was_restarted_with_is_undone_with_the_faults(cluster: EmbeddedCluster) -> None:
    cluster.change_protocol_version(2, "0.9.0.X")
    cluster.change_rack(3, "r1")
    racks = [broker.rack for broker in cluster.snapshot().brokers]
    assert (racks[1], racks[2]) == (None, "r1")
    cluster.undo_faults()
    assert [broker.rack for broker in cluster.snapshot().brokers] == ["r1", "r2", "r3", "r1", "r2", "r3"]
