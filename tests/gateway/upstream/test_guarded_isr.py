"""Metrics of under-min and at-min racks at the gateway: the proposal's, of partitions that require more than one rack."""

import asyncio
import contextlib
from collections.abc import Iterator
from typing import Any, cast

import pytest
from prometheus_client.core import Metric as Family

from rackspan.acks.min_insync_racks import rack_bits
from rackspan.cluster import EmbeddedCluster
from rackspan.gateway import metrics
from rackspan.gateway.core.policies import FilePolicies, Policies, TopicPolicy
from rackspan.gateway.upstream.guarded_isr import GuardedIsr, partitions_by_leader
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.metadata import (
    MetadataRequestData,
    MetadataResponseData,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from tests.gateway.running import RunningGateway, running
from tests.gateway.sleeps import Sleeps
from tests.waiting import eventually

UNDER, AT = "rackspan_under_min_rack_isr_partitions", "rackspan_at_min_rack_isr_partitions"
OF_PARTITIONS = [
    "rackspan_partition_under_min_rack_isr",
    "rackspan_partition_at_min_rack_isr",
    "rackspan_partition_isr_racks",
]


@pytest.fixture
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(racks=3, brokers=3, seed=3) as cluster:
        cluster.create_topic("orders", replicas=[[1, 2, 3], [2, 3, 1]])
        cluster.create_topic("pairs", replicas=[[1, 2]])
        yield cluster


async def read(gateway: RunningGateway) -> dict[str, Family]:
    """Every metric by name, after another read of the ISRs."""
    guarding = gateway.gateway.guarding
    assert guarding is not None
    assert guarding.isr is not None
    with contextlib.suppress(ConnectionError):  # It may have been of a broker that has just stopped; then as of before.
        await guarding.isr.read()
    return {family.name: family for family in metrics.families(gateway.gateway)}


async def served(gateway: RunningGateway) -> set[str]:
    """The names of the metrics now."""
    return {family.name for family in metrics.families(gateway.gateway)}


def series(gateway: RunningGateway, name: str) -> dict[tuple[str, ...], float]:
    family = gateway.run(read(gateway))[name.removesuffix("_total")]
    return {tuple(sample.labels.values()): sample.value for sample in family.samples}


def test_each_broker_has_the_partitions_that_it_leads_under_and_at_the_minimum(cluster: EmbeddedCluster) -> None:
    topics = {"orders": {"min": {"insync": {"racks": 3}}}}
    with running(cluster.bootstrap_servers, listen={"http": "127.0.0.1:0"}, topics=topics) as gateway:
        gateway.wait_for_isr()
        assert series(gateway, AT) == {("1", "r1"): 1, ("2", "r2"): 1, ("3", "r3"): 0}
        assert set(series(gateway, UNDER).values()) == {0}
        cluster.stop(3)
        eventually(lambda: series(gateway, UNDER) == {("1", "r1"): 1, ("2", "r2"): 1, ("3", "r3"): 0}, "rack r3 is out")
        assert not set(OF_PARTITIONS) & set(gateway.run(read(gateway)))


def test_topics_that_brokers_write_are_not_counted() -> None:
    policies = Policies(FilePolicies(min_insync_racks=2))
    partition = MetadataResponsePartition(partition_index=0, leader_id=1, isr_nodes=[1])
    topics = [
        MetadataResponseTopic(name=name, is_internal=name.startswith("__"), partitions=[partition])
        for name in ("orders", "__consumer_offsets")
    ]
    (led,) = partitions_by_leader(MetadataResponseData(topics=topics), policies, rack_bits(())).values()
    assert [topic for topic, _, _ in led] == ["orders"]


class Requested:
    """A cluster, and a connection to it: the topics of each Metadata request, None for all. It describes none."""

    def __init__(self) -> None:
        self.topics: list[list[str] | None] = []

    async def any_connection(self) -> "Requested":
        return self

    async def call(self, _api_key: ApiKey, request: MetadataRequestData) -> MetadataResponseData:
        assert not request.allow_auto_topic_creation
        self.topics.append(None if request.topics is None else [topic.name or "" for topic in request.topics])
        return MetadataResponseData()

    def all_brokers(self) -> tuple[()]:
        return ()


@pytest.mark.parametrize(
    ("policies", "requested"),
    [
        (FilePolicies(), []),
        (
            FilePolicies(topics={"pay": TopicPolicy(2), "orders": TopicPolicy(3), "logs": TopicPolicy(1)}),
            [["orders", "pay"]],
        ),
        (FilePolicies(min_insync_racks=2), [None]),
    ],
)
def test_metadata_is_requested_of_the_topics_that_may_require_racks_and_of_no_others(
    policies: FilePolicies, requested: list[list[str] | None]
) -> None:
    cluster = Requested()
    isr = GuardedIsr(cast("Any", cluster), Policies(policies))
    asyncio.run(isr.read())
    assert (cluster.topics, isr.by_leader) == (requested, {})


def test_the_isrs_are_read_every_five_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, sleeps = Requested(), Sleeps(3)
    monkeypatch.setattr(asyncio, "sleep", sleeps)
    isr = GuardedIsr(cast("Any", cluster), Policies(FilePolicies(min_insync_racks=2)))
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(isr.follow())
    assert (sleeps.seconds, cluster.topics) == ([5.0, 5.0, 5.0], [None, None, None])


def test_each_partition_has_its_racks_if_the_config_requires_it(cluster: EmbeddedCluster) -> None:
    topics = {"orders": {"min": {"insync": {"racks": 2}}}}
    tables = {"listen": {"http": "127.0.0.1:0"}, "topics": topics, "metrics": {"partitions": True}}
    with running(cluster.bootstrap_servers, **tables) as gateway:
        gateway.wait_for_isr()
        orders = [("1", "r1", "orders", "0"), ("2", "r2", "orders", "1")]
        for name, value in zip(OF_PARTITIONS, (0, 0, 3), strict=True):
            assert series(gateway, name) == dict.fromkeys(orders, value)


def test_a_default_above_one_counts_every_topic(cluster: EmbeddedCluster) -> None:
    tables = {"listen": {"http": "127.0.0.1:0"}, "acknowledgements": {"min": {"insync": {"racks": 2}}}}
    with running(cluster.bootstrap_servers, **tables) as gateway:
        gateway.wait_for_isr()
        # pairs-0 spans two racks, and the config topic and orders three.
        assert series(gateway, AT)["1", "r1"] == 1


def test_values_of_a_read_that_failed_are_not_served(cluster: EmbeddedCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    topics = {"orders": {"min": {"insync": {"racks": 2}}}}
    with running(cluster.bootstrap_servers, listen={"http": "127.0.0.1:0"}, topics=topics) as gateway:
        guarding = gateway.gateway.guarding
        assert guarding is not None
        assert guarding.isr is not None
        gateway.run(read(gateway))

        async def fails() -> None:
            raise OSError("no broker responds")

        async def followed() -> None:
            assert guarding.isr is not None
            monkeypatch.setattr(guarding.isr, "read", fails)
            following = asyncio.ensure_future(guarding.isr.follow())
            await asyncio.sleep(0.01)
            following.cancel()

        gateway.run(followed())

        assert UNDER not in gateway.run(served(gateway))


def test_they_are_read_while_metrics_are_served(cluster: EmbeddedCluster) -> None:
    topics = {"orders": {"min": {"insync": {"racks": 2}}}}
    with running(cluster.bootstrap_servers, topics=topics) as without:
        guarding = without.gateway.guarding
        assert guarding is not None
        assert guarding.isr is None
    with running(cluster.bootstrap_servers, listen={"http": "127.0.0.1:0"}, topics=topics) as gateway:
        eventually(lambda: UNDER in gateway.run(served(gateway)), "the ISRs are read")
