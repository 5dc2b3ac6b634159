"""The leader of the config topic, as brokers report it."""

import asyncio
from random import Random
from typing import Any

import pytest

from rackspan.client.brokers import KnownBroker
from rackspan.client.identity import IdentityMode
from rackspan.client.login import Login
from rackspan.errors import ClusterUnreachable, OtherBroker
from rackspan.gateway.upstream.cluster import UpstreamCluster
from rackspan.gateway.upstream.config_leader import ConfigLeader, Lead
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.metadata import (
    MetadataResponseData,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from tests.client.fake_broker import ProvingBroker
from tests.gateway.upstream.test_config_topic import CONFIGS, brokers, cluster_of


def found(response: MetadataResponseData) -> Lead:
    """The leader that a broker with this metadata reports. Errors: those of ConfigLeader.find and open."""

    async def respond(_: Any) -> MetadataResponseData:
        return response

    async def scenario() -> Lead:
        async with brokers(1) as (broker,):
            broker.handles[ApiKey.METADATA] = respond
            cluster = cluster_of(broker.port)
            leader = ConfigLeader(CONFIGS, cluster, Login())
            try:
                lead = await leader.find()
                (await leader.open(lead.leader)).close()
                return lead
            finally:
                cluster.close()

    return asyncio.run(scenario())


@pytest.mark.parametrize(
    ("error", "leader", "partitions", "words"),
    [
        (29, 1, 1, "no broker reports the leader of configs: error 29 for configs"),
        (0, 1, 0, "no broker reports the leader of configs: error 0 for configs"),
        (0, -1, 1, "the config topic configs has no leader"),
        (0, 3, 1, "the leader of configs, broker 3, is not known"),
    ],
)
def test_a_config_topic_without_a_leader_is_reported(error: int, leader: int, partitions: int, words: str) -> None:
    of_topic = [MetadataResponsePartition(partition_index=0, leader_id=leader, leader_epoch=4)] * partitions
    topic = MetadataResponseTopic(error_code=error, name=CONFIGS, partitions=of_topic)
    with pytest.raises(ClusterUnreachable, match=f"^{words}"):
        found(MetadataResponseData(topics=[topic]))


@pytest.mark.parametrize("broker", [1, 2])
def test_a_connection_to_the_leader_is_proved_to_be_the_leaders(broker: int) -> None:
    """What is written to another broker is not in the leader's log, and what is read there not its end."""

    async def scenario() -> bool:
        responds = ProvingBroker(broker)
        await responds.start()
        cluster = UpstreamCluster("127.0.0.1:1", Login(), Random(1), identity=IdentityMode.PROVED)
        cluster.cluster_id, cluster.by_id = "c", {1: KnownBroker(1, "127.0.0.1", responds.port)}
        try:
            (await ConfigLeader(CONFIGS, cluster, Login()).open(1)).close()
        except OtherBroker:
            return False
        finally:
            cluster.close()
            await responds.close()
        return True

    assert asyncio.run(scenario()) is (broker == 1)
