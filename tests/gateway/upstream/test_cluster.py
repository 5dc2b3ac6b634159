"""Connections of the gateway's own: an error that nobody waits for any more is not left behind, nor is a connection."""

import asyncio
import gc
from itertools import pairwise
from random import Random
from typing import Any
from uuid import UUID

import pytest

from rackspan.acks.min_insync_racks import RackBits
from rackspan.client.brokers import KnownBroker
from rackspan.client.connection import BrokerConnection
from rackspan.client.errors import ErrorResponse
from rackspan.client.login import Login
from rackspan.cluster import EmbeddedCluster
from rackspan.errors import ClusterUnreachable, UsageError
from rackspan.gateway.upstream import cluster as upstream_cluster
from rackspan.gateway.upstream.cluster import UpstreamCluster
from rackspan.model import UNNAMED_RACK, Broker, BrokerId, RackId
from rackspan.sources.rack_locator import ClusterView
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.brokers import DescribeClusterResponseData
from rackspan.wire.messages.metadata import MetadataResponseData, MetadataResponseTopic
from tests.client.fake_broker import FakeBroker
from tests.gateway.running import running
from tests.gateway.test_app import produced
from tests.gateway.upstream.test_config_topic import dead_port
from tests.waiting import WITHIN_SECONDS, eventually


async def _given_up(cluster: UpstreamCluster) -> None:
    """A wait for a connection that ends before the connection is open."""
    waiting = asyncio.ensure_future(cluster.connection(1))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting])


@pytest.mark.slow
def test_an_error_that_nobody_waits_for_is_not_reported_as_never_retrieved(monkeypatch: pytest.MonkeyPatch) -> None:
    reported: list[dict[str, Any]] = []

    async def suspended(*_: object) -> BrokerConnection:
        await asyncio.sleep(0.01)
        raise TimeoutError

    async def work() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
        monkeypatch.setattr(BrokerConnection, "open", suspended)
        cluster = UpstreamCluster("127.0.0.1:1", Login(), Random(1))
        cluster.by_id[1] = KnownBroker(1, "127.0.0.1", 1)
        await _given_up(cluster)
        await asyncio.sleep(0.05)
        gc.collect()
        with pytest.raises(TimeoutError):
            await cluster.connection(1)

    asyncio.run(work())
    assert reported == []


def test_a_connection_that_nobody_waits_for_is_kept_for_the_next() -> None:
    async def work() -> None:
        broker = FakeBroker()
        await broker.start()
        cluster = UpstreamCluster("127.0.0.1:1", Login(), Random(1))
        cluster.by_id[1] = KnownBroker(1, "127.0.0.1", broker.port)
        await _given_up(cluster)
        (opening,) = cluster._brokers._opening.values()
        opened = await opening
        assert await cluster.connection(1) is opened
        cluster.close()
        await broker.close()

    asyncio.run(work())


def test_a_broker_that_the_locator_was_not_called_for_is_left_out() -> None:
    """A rack locator found broker 1 in r1 and no rack of broker 2, and was not called for broker 3 yet."""
    locator: Any = object()

    async def racks() -> RackBits:
        cluster = UpstreamCluster("127.0.0.1:1", Login(), Random(1), locator)
        cluster._located = {BrokerId(1): RackId("r1"), BrokerId(2): None}
        return cluster.rack_bits((number, "own") for number in (1, 2, 3))

    counted = asyncio.run(racks())
    assert [counted.names([BrokerId(number)]) for number in (1, 2, 3)] == [("r1",), (UNNAMED_RACK,), ()]


def test_brokers_are_listed_once_their_racks_are_known_those_that_are_down_only_among_all() -> None:
    """Brokers 1 and 2 are located, and 2 is down; 3 is up, and 4 is down, and the locator was not called for either."""
    locator: Any = object()

    async def listed() -> list[list[tuple[int, str | None]]]:
        cluster = UpstreamCluster("127.0.0.1:1", Login(), Random(1), locator)
        cluster._located = {BrokerId(1): RackId("r1"), BrokerId(2): RackId("r2")}
        cluster._registered_racks = dict.fromkeys((1, 2, 3, 4), "own")
        cluster.by_id = {number: KnownBroker(number, "127.0.0.1", 1) for number in (1, 3)}
        return [[(one.id, one.rack) for one in brokers] for brokers in (cluster.brokers(), cluster.all_brokers())]

    assert asyncio.run(listed()) == [[(1, "r1")], [(1, "r1"), (2, "r2")]]


def test_racks_are_counted_again_when_they_or_the_brokers_change() -> None:
    async def work() -> None:
        cluster = UpstreamCluster("127.0.0.1:1", Login(), Random(1))
        first = cluster.rack_bits([(1, "a"), (2, "b")])
        assert cluster.rack_bits([(2, "b"), (1, "a")]) is first
        assert [racks.racks for racks in (first, cluster.rack_bits([(1, "a"), (2, "c")]))] == [
            ("", "a", "b"),
            ("", "a", "c"),
        ]
        assert BrokerId(2) not in cluster.rack_bits([(1, "a")]).bit_of

    asyncio.run(work())


def test_before_kafka_4_a_broker_that_was_up_and_holds_replicas_is_taken_for_fenced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Broker 2 is down and holds replicas, broker 3 is down and holds none: it may be gone for good."""

    class Older:
        def offered(self, _key: int) -> tuple[int, int]:
            return 0, 1

    async def any_connection() -> Older:
        return Older()

    async def registered() -> tuple[Broker, ...]:
        cluster = UpstreamCluster("127.0.0.1:1", Login(), Random(1))
        cluster._registered_racks = {1: "a", 2: "b", 3: "c"}
        cluster.by_id[1] = KnownBroker(1, "127.0.0.1", 1)
        monkeypatch.setattr(cluster, "any_connection", any_connection)
        return await cluster.registered({1, 2})

    found = [(broker.id, broker.rack, broker.fenced) for broker in asyncio.run(registered())]
    assert found == [(1, "a", False), (2, "b", True)]


def test_brokers_that_may_not_be_described_are_an_error_and_not_none() -> None:
    async def refused(request: Any) -> DescribeClusterResponseData:
        assert request.include_fenced_brokers
        return DescribeClusterResponseData(error_code=31, error_message="no right")

    async def scenario() -> None:
        broker = FakeBroker()
        await broker.start()
        broker.handles[ApiKey.DESCRIBE_CLUSTER] = refused
        cluster = UpstreamCluster("127.0.0.1:1", Login(), Random(1))
        cluster.by_id[1] = KnownBroker(1, "127.0.0.1", broker.port)
        try:
            with pytest.raises(ErrorResponse, match="no right"):
                await cluster.registered(())
        finally:
            cluster.close()
            await broker.close()

    asyncio.run(scenario())


def test_a_fenced_broker_has_the_rack_that_the_locator_finds() -> None:
    class Hosts:
        def rack_info(self, view: ClusterView) -> dict[BrokerId, RackId]:
            return {broker.id: RackId(f"located-{broker.id}") for broker in view.brokers}

    async def registered(bootstrap_servers: str) -> tuple[Broker, ...]:
        upstream = UpstreamCluster(bootstrap_servers, Login(), Random(1), Hosts())
        await upstream.refresh()
        try:
            return await upstream.registered(())
        finally:
            upstream.close()

    with EmbeddedCluster(racks=2, brokers=2, seed=3) as cluster:
        cluster.stop(2)
        eventually(lambda: any(broker.fenced for broker in cluster.snapshot().brokers), "broker 2 is fenced")
        found = asyncio.run(registered(cluster.bootstrap_servers))
    assert [(broker.rack, broker.fenced) for broker in found] == [("located-1", False), ("located-2", True)]


def test_a_new_broker_is_listened_for_though_the_locator_fails() -> None:
    class Fails:
        def rack_info(self, _: ClusterView) -> dict[BrokerId, RackId]:
            raise UsageError("the file of racks is gone")

    async def refreshed(bootstrap_servers: str) -> list[list[int]]:
        upstream = UpstreamCluster(bootstrap_servers, Login(), Random(1), Fails())
        followed: list[list[int]] = []
        upstream.on_refresh = lambda: followed.append(sorted(upstream.by_id))
        with pytest.raises(UsageError):
            await upstream.refresh()
        upstream.close()
        return followed

    with EmbeddedCluster(racks=2, brokers=2, seed=3) as cluster:
        assert asyncio.run(refreshed(cluster.bootstrap_servers)) == [[1, 2]]


def test_after_every_broker_was_lost_clients_are_served_again_by_the_same_gateway() -> None:
    guarded = {"orders": {"min": {"insync": {"racks": 2}}}}
    with (
        EmbeddedCluster(racks=2, brokers=2, seed=5) as cluster,
        running(cluster.bootstrap_servers, topics=guarded) as gateway,
    ):
        cluster.create_topic("orders", 1, 2)
        assert produced(gateway.bootstrap_servers, "orders", [b"before"]) == []
        for rack in ("r1", "r2"):
            cluster.lose_rack(rack)
        for rack in ("r1", "r2"):
            cluster.restore_rack(rack)
        cluster.wait_for_isr()
        assert produced(gateway.bootstrap_servers, "orders", [b"after"]) == []


def test_racks_that_a_locator_found_are_kept_while_it_fails_and_the_log_says_so_at_each_refresh(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(upstream_cluster, "_LEAST_SECONDS", 0.01)
    monkeypatch.setattr(upstream_cluster, "REFRESH_SECONDS", 0.02)

    class FindsOnce:
        calls = 0

        def rack_info(self, view: ClusterView) -> dict[BrokerId, RackId]:
            self.calls += 1
            if self.calls > 1:
                raise RuntimeError("the file of racks is gone")
            return {broker.id: RackId(f"found-{broker.id}") for broker in view.brokers}

    async def scenario(bootstrap_servers: str) -> list[str | None]:
        locator = FindsOnce()
        upstream = UpstreamCluster(bootstrap_servers, Login(), Random(1), locator)
        await upstream.refresh()
        following = asyncio.ensure_future(upstream.follow())
        async with asyncio.timeout(WITHIN_SECONDS):
            while locator.calls < 5:
                await asyncio.sleep(0.01)
        following.cancel()
        await asyncio.wait([following])
        upstream.close()
        return [upstream.rack(broker, "registered") for broker in (1, 2)]

    with EmbeddedCluster(racks=2, brokers=2, seed=3) as cluster:
        assert asyncio.run(scenario(cluster.bootstrap_servers)) == ["found-1", "found-2"]
    kept = "the brokers' addresses are kept: rack locator FindsOnce: RuntimeError: the file of racks is gone; --debug shows where"
    assert caplog.messages.count(kept) >= 3


def test_brokers_are_read_again_and_again_but_not_at_every_response_that_names_another(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Each refresh fails, and finds that responses have named yet another broker meanwhile."""
    monkeypatch.setattr(upstream_cluster, "_LEAST_SECONDS", 0.1)

    async def scenario() -> list[float]:
        cluster = UpstreamCluster("127.0.0.1:1", Login(), Random(1))
        times: list[float] = []

        async def refresh() -> None:
            times.append(asyncio.get_running_loop().time())
            cluster.record_from_response(len(times), "127.0.0.1", 9092)
            if len(times) > 2:
                raise asyncio.CancelledError
            raise ClusterUnreachable("no broker responds")

        monkeypatch.setattr(cluster, "refresh", refresh)
        cluster.record_from_response(99, "127.0.0.1", 9092)
        with pytest.raises(asyncio.CancelledError):
            await cluster.follow()
        return times

    times = asyncio.run(scenario())
    assert all(later - earlier > 0.09 for earlier, later in pairwise(times))
    assert set(caplog.messages) == {"the brokers' addresses are kept: no broker responds"}


ONE, OTHER, UNKNOWN, UNNAMED = (UUID(int=number) for number in range(1, 5))


def test_of_looked_up_ids_only_topics_with_a_name_and_without_an_error_have_one() -> None:
    requested: list[UUID | None] = []

    async def metadata(request: Any) -> MetadataResponseData:
        requested.extend(topic.topic_id for topic in request.topics)
        assert not request.allow_auto_topic_creation
        return MetadataResponseData(
            topics=[
                MetadataResponseTopic(error_code=0, name="orders", topic_id=ONE),
                MetadataResponseTopic(error_code=5, name="pay", topic_id=OTHER),
                MetadataResponseTopic(error_code=100, name=None, topic_id=UNKNOWN),
                MetadataResponseTopic(error_code=0, name=None, topic_id=UNNAMED),
            ]
        )

    async def scenario() -> object:
        broker = FakeBroker()
        await broker.start()
        broker.handles[ApiKey.METADATA] = metadata
        cluster = UpstreamCluster("127.0.0.1:1", Login(), Random(1))
        cluster.by_id[2] = KnownBroker(2, "127.0.0.1", broker.port)
        try:
            return await cluster.topic_names(2, [ONE, OTHER, UNKNOWN, UNNAMED])
        finally:
            cluster.close()
            await broker.close()

    assert asyncio.run(scenario()) == {"orders": ONE}
    assert requested == [ONE, OTHER, UNKNOWN, UNNAMED]


def test_a_broker_that_does_not_respond_reports_no_topic_names(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> object:
        cluster = UpstreamCluster("127.0.0.1:1", Login(), Random(1))
        cluster.by_id[2] = KnownBroker(2, "127.0.0.1", dead_port())
        return await cluster.topic_names(2, [ONE])

    assert asyncio.run(scenario()) == {}
    (line,) = caplog.messages
    assert line.startswith("topic ids could not be looked up at broker 2: ")
