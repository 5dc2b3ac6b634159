"""The methods that every practice cluster has, on the embedded one and on real Kafka: one test for both."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from rackspan.cluster import EmbeddedCluster
from rackspan.errors import MissingRequirement, UsageError
from rackspan.practice.faults import PracticeCluster
from rackspan.practice.kafka import AS_EMBEDDED, PracticeKafka
from rackspan.testing import killing, losing, pausing
from tests.kafka_versions import KAFKA
from tests.waiting import WITHIN_SECONDS


@pytest.fixture(scope="module", params=["embedded", pytest.param("kafka", marks=[pytest.mark.kafka, pytest.mark.rest])])
def cluster(request: pytest.FixtureRequest) -> Iterator[PracticeCluster]:
    """Three brokers in three racks, broker 1 the leader of orders-0."""
    made: PracticeCluster
    with ExitStack() as stack:
        if request.param == "embedded":
            made = stack.enter_context(EmbeddedCluster(racks=3, brokers=3))
        else:
            try:
                made = stack.enter_context(PracticeKafka(racks=3, brokers=3, config=AS_EMBEDDED, version=KAFKA))
            except MissingRequirement as missing:
                pytest.skip(f"NOT TESTED against Apache Kafka {KAFKA}: {missing}")
        made.create_topic("orders", replicas=[[1, 2, 3]])
        yield made


@pytest.fixture(autouse=True)
def whole(cluster: PracticeCluster) -> Iterator[None]:
    yield
    cluster.undo_faults()
    cluster.wait_for_isr(seconds=WITHIN_SECONDS)


def states(cluster: PracticeCluster) -> list[str]:
    return ["/".join(broker.states) for broker in cluster.status().brokers]


def test_brokers_have_ids_racks_and_addresses(cluster: PracticeCluster) -> None:
    assert (cluster.racks, cluster.brokers) == (("r1", "r2", "r3"), (1, 2, 3))
    assert [cluster.rack(broker) for broker in cluster.brokers] == ["r1", "r2", "r3"]
    assert ",".join(cluster.address(broker) for broker in cluster.brokers) == cluster.bootstrap_servers
    assert len(cluster.cluster_id) == 22


def test_topics_are_made_and_read(cluster: PracticeCluster) -> None:
    assert cluster.replicas("orders", 0) == (1, 2, 3)
    with pytest.raises(UsageError, match="orders-1: no such partition in this cluster"):
        cluster.leader("orders", 1)
    with pytest.raises(UsageError, match="orders"):
        cluster.create_topic("orders", 1, 3)
    cluster.alter_topic("orders", retention_ms=100_000)
    with pytest.raises(UsageError, match=r"no\.such"):
        cluster.alter_topic("orders", no_such=1)


def test_a_lost_rack_is_out_of_the_isr_when_the_method_returns(cluster: PracticeCluster) -> None:
    with losing(cluster, "r1"):
        assert states(cluster) == ["down/fenced", "up", "up"]
        assert cluster.isr("orders", 0) == {2, 3}
        assert cluster.leader("orders", 0) == 2
        assert cluster.status().partitions
    assert states(cluster) == ["up", "up", "up"]


def test_two_racks_of_three_may_be_lost(cluster: PracticeCluster) -> None:
    with losing(cluster, "r1", "r3"):
        assert (cluster.isr("orders", 0), cluster.leader("orders", 0)) == ({2}, 2)


def test_a_killed_broker_restarts_and_so_does_one_that_was_stopped(cluster: PracticeCluster) -> None:
    with killing(cluster, 2):
        assert states(cluster) == ["up", "down/fenced", "up"]
    cluster.stop(3)
    assert states(cluster) == ["up", "up", "down/fenced"]
    cluster.restart(3)
    assert states(cluster) == ["up", "up", "up"]


def test_a_paused_broker_resumes(cluster: PracticeCluster) -> None:
    with pausing(cluster, 3):
        assert states(cluster)[2].startswith("paused")
        assert states(cluster)[:2] == ["up", "up"]


def test_all_faults_are_undone_at_once(cluster: PracticeCluster) -> None:
    cluster.lose_rack("r1")
    cluster.pause(2)
    cluster.undo_faults()
    assert states(cluster)[0] == "up"
    assert "paused" not in states(cluster)[1]


def test_an_unknown_rack_or_broker_is_refused(cluster: PracticeCluster) -> None:
    with pytest.raises(UsageError, match="'r9'"):
        cluster.lose_rack("r9")
    for fault in (cluster.kill, cluster.stop, cluster.restart, cluster.pause, cluster.resume):
        with pytest.raises(UsageError, match="9"):
            fault(9)
    assert states(cluster) == ["up", "up", "up"]
