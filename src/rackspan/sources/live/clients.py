"""The groups of a running cluster with the rule by which each broker chooses the replica that a reader is sent to.

Required rights: those of groups.py, and DescribeConfigs on the cluster for the brokers' rules; without it they are unknown.
"""

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from rackspan.client.cluster import ClusterConnection, ConnectionSettings
from rackspan.client.connection import first
from rackspan.client.errors import FAILURES, is_refusal, listed, message_of, needs, raise_for
from rackspan.client.requests import alive_brokers, describe_configs
from rackspan.clients import ReplicaSelectors
from rackspan.kafka_bytes.config_resources import ConfigResourceType
from rackspan.model import RACK_AWARE_SELECTOR, REPLICA_SELECTOR
from rackspan.model.group import GroupDescription
from rackspan.sources.live.groups import describe_all

_KAFKAS_OWN: Final = {
    "": ReplicaSelectors.LEADER,
    "org.apache.kafka.common.replica.LeaderSelector": ReplicaSelectors.LEADER,
    RACK_AWARE_SELECTOR: ReplicaSelectors.RACK_AWARE,
}
_SECONDS: Final = 10.0
"""For one broker's config. One that does not respond holds up no other, and is named."""


@dataclass(frozen=True, slots=True)
class ReadClients:
    """Groups in the order of their ids, the replica selector of each broker where it is known, and a line for what could not be read."""

    groups: tuple[GroupDescription, ...]
    selectors: Mapping[int, ReplicaSelectors]
    unread: tuple[str, ...] = ()


def read_clients(settings: ConnectionSettings, chosen: re.Pattern[str] | None = None) -> ReadClients:
    """The groups whose whole id matches, all without a pattern. Errors: SourceError, UsageError."""
    with ClusterConnection(settings) as connection:
        groups, unread = connection.run(describe_all, connection, chosen)
        selectors, failed = connection.run(_selectors, connection)
        return ReadClients(groups, selectors, (*unread, *failed))


async def _selectors(connection: ClusterConnection) -> tuple[dict[int, ReplicaSelectors], list[str]]:
    """By broker, and one line for each reason why some are unknown."""
    brokers = await alive_brokers(connection)
    found = dict(
        zip(brokers, await asyncio.gather(*(_selector(connection, broker) for broker in brokers)), strict=True)
    )
    reasons: dict[str, list[int]] = {}
    for broker, read in found.items():
        if not isinstance(read, ReplicaSelectors):
            reason = needs("DescribeConfigs on Cluster") if is_refusal(read) else message_of(read)
            reasons.setdefault(reason, []).append(broker)
    selectors = {broker: read for broker, read in found.items() if isinstance(read, ReplicaSelectors)}
    return selectors, [f"{REPLICA_SELECTOR} of brokers {listed(ids)}: {why}" for why, ids in reasons.items()]


async def _selector(connection: ClusterConnection, broker: int) -> ReplicaSelectors | Exception:
    """DescribeConfigs (key 32) of one broker, which only it can serve."""
    try:
        found = await describe_configs(
            connection, ConfigResourceType.BROKER, {str(broker): (REPLICA_SELECTOR,)}, _SECONDS, broker=broker
        )
        described = first(found, "broker")
        raise_for(described)
        # A service may hide it; Kafka sends null for one that is not set.
        config = first([config for config in described.configs if config.name == REPLICA_SELECTOR], REPLICA_SELECTOR)
    except FAILURES as error:
        return error
    return _KAFKAS_OWN.get(config.value or "", ReplicaSelectors.OTHER)
