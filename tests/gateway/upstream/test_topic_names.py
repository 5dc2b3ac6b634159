"""Names of topic ids, requested from one broker: those that it reports, and none if it does not respond."""

import asyncio
from random import Random
from typing import Any
from uuid import UUID

import pytest

from rackspan.client.known_brokers import KnownBroker
from rackspan.client.login import Login
from rackspan.gateway.upstream.cluster import UpstreamCluster
from rackspan.gateway.upstream.topic_names import topic_names
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.metadata import MetadataResponseData, MetadataResponseTopic
from tests.client.fake_broker import FakeBroker
from tests.gateway.upstream.test_config_topic import dead_port

ONE, OTHER, UNKNOWN, UNNAMED = (UUID(int=number) for number in range(1, 5))


def test_only_topics_with_a_name_and_without_an_error_have_one() -> None:
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
            return await topic_names(cluster, 2, [ONE, OTHER, UNKNOWN, UNNAMED])
        finally:
            cluster.close()
            await broker.close()

    assert asyncio.run(scenario()) == {"orders": ONE}
    assert requested == [ONE, OTHER, UNKNOWN, UNNAMED]


def test_a_broker_that_does_not_respond_reports_none(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> object:
        cluster = UpstreamCluster("127.0.0.1:1", Login(), Random(1))
        cluster.by_id[2] = KnownBroker(2, "127.0.0.1", dead_port())
        return await topic_names(cluster, 2, [ONE])

    assert asyncio.run(scenario()) == {}
    (line,) = caplog.messages
    assert line.startswith("topic ids could not be looked up at broker 2: ")
