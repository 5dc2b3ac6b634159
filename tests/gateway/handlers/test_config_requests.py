"""The id of a topic whose value is kept, and a min.insync.replicas that a client sets."""

import asyncio
import logging
from typing import Any, cast
from uuid import UUID

import pytest

from rackspan.errors import ClusterRequestFailed
from rackspan.gateway.core.policies import Entry, FilePolicies, Policies, Scope, record
from rackspan.gateway.core.topic_configs import ConfigChange
from rackspan.gateway.handlers import config_requests
from rackspan.gateway.handlers.config_requests import ConfigRequests
from rackspan.gateway.upstream.cluster import UpstreamCluster
from rackspan.gateway.upstream.config_topic import ConfigTopic
from rackspan.kafka_bytes.config_resources import ConfigResourceType
from rackspan.wire.messages.configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from rackspan.wire.messages.metadata import MetadataResponseData, MetadataResponseTopic
from tests.gateway.sleeps import Sleeps

ID = UUID(int=7)
UNKNOWN, NO_LEADER = 3, 5


class Reporting:
    """A cluster, and a connection to it, that reports a topic with these errors, one after the other, the last for good."""

    def __init__(self, *errors: int) -> None:
        self.errors = list(errors)
        self.requests = 0

    async def any_connection(self) -> "Reporting":
        return self

    async def call(self, _key: int, request: Any) -> MetadataResponseData:
        self.requests += 1
        assert not request.allow_auto_topic_creation
        (topic,) = request.topics
        error = self.errors.pop(0) if len(self.errors) > 1 else self.errors[0]
        topic_id = None if error == UNKNOWN else ID
        return MetadataResponseData(
            topics=[MetadataResponseTopic(error_code=error, name=topic.name, topic_id=topic_id)]
        )


class Store:
    """A config topic that keeps what is written to it."""

    topic = "configs"
    racks = 3

    def __init__(self) -> None:
        self.written: list[tuple[bytes, bytes | None, int]] = []

    async def write(self, key: bytes, value: bytes | None, racks: int) -> None:
        self.written.append((key, value, racks))


def requests_of(cluster: Reporting, store: Store | None = None) -> tuple[ConfigRequests, Policies]:
    policies = Policies(FilePolicies())
    return ConfigRequests(cast("UpstreamCluster", cluster), policies, cast("ConfigTopic", store or Store())), policies


@pytest.mark.parametrize(("errors", "requests"), [((0,), 1), ((NO_LEADER,), 1), ((UNKNOWN, UNKNOWN, 0), 3)])
def test_a_broker_that_is_behind_is_requested_again(
    monkeypatch: pytest.MonkeyPatch, errors: tuple[int, ...], requests: int
) -> None:
    monkeypatch.setattr(config_requests, "_LOOKUP_SECONDS", 0)
    cluster = Reporting(*errors)
    made, policies = requests_of(cluster)
    assert asyncio.run(made.topic_id("orders")) == ID
    assert (cluster.requests, policies.names) == (requests, {ID: "orders"})


def test_a_topic_that_stays_unknown_for_two_seconds_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    sleeps = Sleeps(21)
    monkeypatch.setattr(asyncio, "sleep", sleeps)
    cluster = Reporting(UNKNOWN)
    with pytest.raises(ClusterRequestFailed, match="the id of topic orders is not known: error 3; alter it again"):
        asyncio.run(requests_of(cluster)[0].topic_id("orders"))
    assert (cluster.requests, sleeps.seconds) == (20, [0.1] * 20)


def test_a_value_is_removed_from_a_topic_that_the_gateway_may_not_describe() -> None:
    cluster, store, response = Reporting(UNKNOWN), Store(), AlterConfigsResourceResponse
    made, policies = requests_of(cluster, store)
    policies.replay(*record(Scope.TOPIC, "orders", Entry(2, ID)))
    responses = [response(resource_type=ConfigResourceType.TOPIC, resource_name="orders")]
    changes = {(int(ConfigResourceType.TOPIC), "orders"): ConfigChange(Scope.TOPIC, "orders", None)}
    asyncio.run(made._keep(changes, responses))
    assert [one.error_code for one in responses] == [0]
    assert (cluster.requests, store.written) == (0, [(*record(Scope.TOPIC, "orders", None), 1)])


def test_a_removal_that_is_a_raise_by_what_is_replayed_with_it_is_written_as_one() -> None:
    """Another gateway raises the default meanwhile: both are acknowledged, so that this topic requires two racks at every gateway."""
    policies = Policies(FilePolicies())

    class Replayed(Store):
        async def write(self, key: bytes, value: bytes | None, racks: int) -> None:
            await super().write(key, value, racks)
            policies.replay(*record(Scope.BROKER, "", Entry(2)))
            policies.replay(key, value)

    store = Replayed()
    made = ConfigRequests(cast("UpstreamCluster", Reporting(0)), policies, cast("ConfigTopic", store))
    policies.replay(*record(Scope.TOPIC, "orders", Entry(1, ID)))
    asyncio.run(made.write(ConfigChange(Scope.TOPIC, "orders", None), None))
    assert [racks for _, _, racks in store.written] == [1, 2]


def test_a_value_is_written_with_the_topics_id_and_its_warnings_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "rackspan.gateway")
    store = Store()
    made, policies = requests_of(Reporting(0), store)
    asyncio.run(made.write(ConfigChange(Scope.TOPIC, "orders", 2, ("too few racks",)), ID))
    asyncio.run(made.write(ConfigChange(Scope.BROKER, "", 3), None))
    policies.replay(*store.written[0][:2])
    asyncio.run(made.write(ConfigChange(Scope.TOPIC, "orders", None), ID))
    key = record(Scope.TOPIC, "orders", None)[0]
    assert [one[0] for one in store.written] == [key, record(Scope.BROKER, "", None)[0], key]
    assert policies.entry_id("orders") == ID
    assert store.written[2][1] is None
    assert caplog.messages == [
        "topic orders: too few racks",
        "topic orders: min.insync.racks=2",
        "broker (default): min.insync.racks=3",
        "topic orders: min.insync.racks is lowered from 2 to 1, so that acks=all is acknowledged with fewer racks; set it again "
        "if that was not meant",
    ]
    assert policies.lowered == 1


@pytest.mark.parametrize(
    ("kind", "name", "value", "expected"),
    [
        (ConfigResourceType.TOPIC, "min.insync.replicas", "2", {"t": 2}),
        (ConfigResourceType.TOPIC, "min.insync.replicas", "0", {"t": 1}),
        (ConfigResourceType.TOPIC, "min.insync.replicas", "two", {}),
        (ConfigResourceType.TOPIC, "min.insync.replicas", None, {}),
        (ConfigResourceType.TOPIC, "retention.ms", "2", {}),
        (ConfigResourceType.BROKER, "min.insync.replicas", "2", {}),
    ],
)
def test_a_topics_min_insync_replicas_counts_at_once(
    kind: int, name: str, value: str | None, expected: dict[str, int]
) -> None:
    made, policies = requests_of(Reporting(0))
    config = IncrementalAlterConfigsRequestAlterableConfig(name=name, value=value)
    resource = IncrementalAlterConfigsRequestAlterConfigsResource(
        resource_type=kind, resource_name="t", configs=[config]
    )
    made._hint_replicas([resource], {(kind, "t")})
    assert policies.min_insync_replicas == expected
