"""Metrics of under-min and at-min racks at the gateway: the proposal's, of partitions that require more than one rack."""

import asyncio
import contextlib
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from prometheus_client.core import Metric as Family

from rackspan.acks.min_insync_racks import rack_bits
from rackspan.cluster import EmbeddedCluster
from rackspan.errors import OtherBroker
from rackspan.gateway import metrics
from rackspan.gateway.core.policies import FilePolicies, Policies, TopicPolicy
from rackspan.gateway.upstream import guarded_isr
from rackspan.gateway.upstream.guarded_isr import GuardedIsr, partitions_by_leader, stopped_partitions
from rackspan.model import Broker, BrokerId, RackId
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
        self.by_id: dict[int, object] = {}

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
    isr = GuardedIsr(cast("Any", cluster), Policies(policies), reads_brokers=True)
    asyncio.run(isr.read())
    assert (cluster.topics, isr.by_leader) == (requested, {})


def test_the_isrs_are_read_every_five_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, sleeps = Requested(), Sleeps(3)
    monkeypatch.setattr(asyncio, "sleep", sleeps)
    isr = GuardedIsr(cast("Any", cluster), Policies(FilePolicies(min_insync_racks=2)), reads_brokers=False)
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


RACKS = {1: "a", 2: "a", 3: "b", 4: "b", 5: "c"}
BITS = rack_bits(Broker(BrokerId(broker), RackId(rack)) for broker, rack in RACKS.items())


def described(*partitions: tuple[int, list[int]]) -> MetadataResponseData:
    """Metadata of topic orders: each partition's leader and ISR."""
    made = [
        MetadataResponsePartition(partition_index=index, leader_id=leader, isr_nodes=isr)
        for index, (leader, isr) in enumerate(partitions)
    ]
    return MetadataResponseData(topics=[MetadataResponseTopic(name="orders", partitions=made)])


@given(
    st.lists(st.sampled_from([*RACKS]), min_size=1, unique=True),
    st.sets(st.sampled_from([*RACKS])),
    st.integers(1, 4),
)
@example([1, 3, 5], {1}, 2)
@example([1, 3, 5], {3}, 2)
@example([1, 3, 5], {3}, 3)
def test_a_partition_is_stopped_if_what_responds_is_too_few_racks_and_what_is_in_sync_is_not(
    isr: list[int], silent: set[int], value: int
) -> None:
    """Against racks by name. Its leader has to respond in any case."""
    policies = Policies(FilePolicies(min_insync_racks=value))
    in_sync = {RACKS[broker] for broker in isr}
    read = {RACKS[broker] for broker in isr if broker not in silent} if isr[0] not in silent else set()
    expected = {"orders": 1} if value > 1 and len(read) < value <= len(in_sync) else {}
    assert stopped_partitions(described((isr[0], isr)), policies, BITS, silent) == expected


@pytest.mark.parametrize("of_topic", [True, False])
def test_a_partition_with_fail_open_is_not_stopped(of_topic: bool) -> None:
    file = FilePolicies(2, {"orders": TopicPolicy(fail_open=True)}) if of_topic else FilePolicies(2, fail_open=True)
    assert stopped_partitions(described((1, [1, 3])), Policies(FilePolicies(2)), BITS, {3}) == {"orders": 1}
    assert stopped_partitions(described((1, [1, 3])), Policies(file), BITS, {3}) == {}


class Links:
    """A cluster of three brokers in three racks, of which some accept a request and do not respond, or no connection."""

    by_id = (1, 3, 5)

    def __init__(self, *, half_open: int, closed: int, misplaced: int = 0) -> None:
        self._half_open, self._closed, self._misplaced = half_open, closed, misplaced

    async def any_connection(self) -> Any:
        return await self.connection(1)

    async def connection(self, broker: int) -> Any:
        if broker == self._closed:
            raise ConnectionRefusedError
        if broker == self._misplaced:
            raise OtherBroker(f"the address of broker {broker} is another's")

        async def call(_key: ApiKey, request: MetadataRequestData, seconds: float = 5.0) -> MetadataResponseData:
            if broker == self._half_open:
                await asyncio.sleep(seconds)
                raise TimeoutError
            return MetadataResponseData() if request.topics == [] else described((1, [1, 3]), (3, [3, 1]), (1, [1, 5]))

        return SimpleNamespace(call=call)

    def all_brokers(self) -> tuple[Broker, ...]:
        return tuple(Broker(BrokerId(broker), RackId(RACKS[broker])) for broker in self.by_id)


@pytest.mark.parametrize(
    ("half_open", "closed", "reads_brokers", "stopped", "silent"),
    [
        (0, 0, True, 0, None),
        (3, 0, True, 2, "broker 3"),
        (5, 0, True, 1, "broker 5"),
        (3, 5, True, 3, "brokers 3, 5"),
        # In mode strict the controllers' log shows the ISR.
        (3, 5, False, 0, None),
    ],
)
def test_which_topics_a_half_open_link_stops_is_named(
    monkeypatch: pytest.MonkeyPatch,
    half_open: int,
    closed: int,
    reads_brokers: bool,
    stopped: int,
    silent: str | None,
) -> None:
    monkeypatch.setattr(guarded_isr, "RESPONSE_SECONDS", 0.05)
    links = cast("Any", Links(half_open=half_open, closed=closed))
    isr = GuardedIsr(links, Policies(FilePolicies(min_insync_racks=2)), reads_brokers=reads_brokers)
    asyncio.run(isr.read())
    assert isr.stopped == ({"orders": stopped} if stopped else {})
    noun = "partition" if stopped == 1 else "partitions"
    assert [*isr.warnings()] == (
        []
        if silent is None
        else [
            f"{silent} did not respond to this gateway in 0.05 s, so that acks=all is refused on {stopped} {noun} of orders, whose ISR has "
            "enough racks; look at the link to them, and let clients use another gateway meanwhile"
        ]
    )


def test_a_broker_at_anothers_address_is_named() -> None:
    """And does not count as one that responds."""
    links = cast("Any", Links(half_open=0, closed=0, misplaced=3))
    isr = GuardedIsr(links, Policies(FilePolicies(min_insync_racks=2)), reads_brokers=True)
    asyncio.run(isr.read())
    assert isr.stopped == {"orders": 2}
    named, stopped = isr.warnings()
    assert named == "the address of broker 3 is another's"
    assert stopped.startswith(
        "broker 3 gave this gateway no proof, so that acks=all is refused on 2 partitions of orders"
    )
    links._misplaced = 0
    asyncio.run(isr.read())
    assert [*isr.warnings()] == []


def test_the_reason_of_a_broker_stays_while_brokers_are_tried_again_and_goes_with_the_last_guarded_topic() -> None:
    links = cast("Any", Links(half_open=0, closed=0, misplaced=3))
    by_topic = {"orders": TopicPolicy(min_insync_racks=2)}
    isr = GuardedIsr(links, Policies(FilePolicies(topics=by_topic)), reads_brokers=True)
    reason = "the address of broker 3 is another's"
    shown: list[list[str]] = []

    async def twice() -> None:
        await isr.read()
        connection = links.connection

        async def noting(broker: int) -> Any:
            shown.append([*isr.warnings()][:1])
            return await connection(broker)

        links.connection = noting
        await isr.read()

    asyncio.run(twice())
    assert shown[:3] == [[reason]] * 3
    isr._policies = Policies(FilePolicies())
    asyncio.run(isr.read())
    assert ([*isr.warnings()], isr._silent) == ([], ())


def test_the_gateway_that_is_stopped_is_ready_with_a_warning_and_a_metric(cluster: EmbeddedCluster) -> None:
    tables = {"listen": {"http": "127.0.0.1:0"}, "topics": {"orders": {"min": {"insync": {"racks": 2}}}}}
    with running(cluster.bootstrap_servers, **tables) as gateway:
        guarding = gateway.gateway.guarding
        assert guarding is not None
        assert guarding.isr is not None
        isr = guarding.isr

        async def page() -> tuple[int, str]:
            isr.stopped, isr._silent = {"orders": 2}, (3,)
            return metrics._readiness(gateway.gateway)

        eventually(lambda: UNDER in gateway.run(served(gateway)), "the ISRs are read")
        status, text = gateway.run(page())
        assert (status, "warning: broker 3 did not respond to this gateway" in text) == (200, True)
        stopped = gateway.run(families_now(gateway))["rackspan_gateway_stopped_partitions"]
        assert [(sample.labels, sample.value) for sample in stopped.samples] == [({"topic": "orders"}, 2.0)]


async def families_now(gateway: RunningGateway) -> dict[str, Family]:
    return {family.name: family for family in metrics.families(gateway.gateway)}
