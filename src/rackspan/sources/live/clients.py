"""The groups of a running cluster with the rule by which each broker chooses the replica that a reader is sent to.

Required rights: those of groups.py, and DescribeConfigs on the cluster for the brokers' rules; without it they are unknown.
"""

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from rackspan.client.cluster import ClusterConnection, ConnectionSettings
from rackspan.client.errors import FAILURES, raise_for
from rackspan.client.requests import describe_configs, metadata
from rackspan.clients import ReplicaSelectors
from rackspan.kafka_bytes.config_resources import ConfigResourceType
from rackspan.model.group import GroupDescription
from rackspan.sources.live.groups import describe_all

REPLICA_SELECTOR: Final = "replica.selector.class"

_KAFKAS_OWN: Final = {
    "": ReplicaSelectors.LEADER,
    "org.apache.kafka.common.replica.LeaderSelector": ReplicaSelectors.LEADER,
    "org.apache.kafka.common.replica.RackAwareReplicaSelector": ReplicaSelectors.RACK_AWARE,
}
_SECONDS: Final = 10.0
"""For one broker's config. One that does not respond holds up no other, and counts as unknown."""


@dataclass(frozen=True, slots=True)
class ReadClients:
    """Groups in the order of their ids, the replica selector of each broker, and a line for each group that could not be read."""

    groups: tuple[GroupDescription, ...]
    selectors: Mapping[int, ReplicaSelectors]
    unread: tuple[str, ...] = ()


def read_clients(settings: ConnectionSettings, chosen: re.Pattern[str] | None = None) -> ReadClients:
    """The groups whose whole id matches, all without a pattern. Errors: SourceError, UsageError."""
    with ClusterConnection(settings) as connection:
        groups, unread = connection.run(describe_all, connection, chosen)
        return ReadClients(groups, connection.run(_selectors, connection), unread)


async def _selectors(connection: ClusterConnection) -> dict[int, ReplicaSelectors]:
    brokers = [broker.node_id for broker in (await metadata(connection, ())).brokers]
    return dict(zip(brokers, await asyncio.gather(*(_selector(connection, broker) for broker in brokers)), strict=True))


async def _selector(connection: ClusterConnection, broker: int) -> ReplicaSelectors:
    """DescribeConfigs (key 32) of one broker, which only it can serve."""
    try:
        [described] = await describe_configs(
            connection, ConfigResourceType.BROKER, {str(broker): (REPLICA_SELECTOR,)}, _SECONDS, broker=broker
        )
        raise_for(described)
    except FAILURES:
        return ReplicaSelectors.UNKNOWN
    value = next((config.value for config in described.configs if config.name == REPLICA_SELECTOR), None)
    return _KAFKAS_OWN.get(value or "", ReplicaSelectors.OTHER)
