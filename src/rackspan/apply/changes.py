"""Single changes: a topic, partitions, topic configs, over the connection that `sources` reads with.

Errors everywhere: ClusterUnauthorized (names the missing right), ClusterRequestFailed with Kafka's own message,
ClusterUnreachable where it is not known whether the change was made.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import product
from typing import Final

from rackspan.apply.requests import CONFIG_BATCH, altered, patience_ms, refuse, response_of
from rackspan.client.cluster import ClusterConnection
from rackspan.client.errors import FAILURES
from rackspan.client.requests import alive_brokers, batches, describe_configs
from rackspan.kafka_bytes.config_resources import ConfigResourceType
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.configs import DescribeConfigsResult, IncrementalAlterConfigsRequestData
from rackspan.wire.messages.topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatePartitionsAssignment,
    CreatePartitionsRequestData,
    CreatePartitionsTopic,
    CreateTopicsRequestData,
)

_GIVEN: Final = -1
"""CreateTopics' value for partitions and replication factor where the assignment gives both."""


def create_topic(
    connection: ClusterConnection, name: str, assignment: Sequence[Sequence[int]], configs: Mapping[str, str]
) -> None:
    """CreateTopics (key 19): partition i gets the replicas `assignment[i]`, preferred leader first."""
    connection.run(_create_topic, connection, name, assignment, configs)


def create_partitions(
    connection: ClusterConnection, name: str, total: int, assignment: Sequence[Sequence[int]]
) -> None:
    """CreatePartitions (key 37): up to `total` partitions, the new ones in order on the replicas of `assignment`."""
    connection.run(_create_partitions, connection, name, total, assignment)


def alter_topic_configs(connection: ClusterConnection, changes: Mapping[str, Mapping[str, str]]) -> None:
    """IncrementalAlterConfigs (key 44), all topics checked first and then set; other configs of a topic stay.

    Where one topic is refused in the check, none is changed. Returns when every broker that is alive shows the values.
    """
    connection.run(_alter_topic_configs, connection, changes)


async def _create_topic(
    connection: ClusterConnection, name: str, assignment: Sequence[Sequence[int]], configs: Mapping[str, str]
) -> None:
    creatable = CreatableTopic(
        name=name,
        num_partitions=_GIVEN,
        replication_factor=_GIVEN,
        assignments=[
            CreatableReplicaAssignment(partition_index=partition, broker_ids=list(replicas))
            for partition, replicas in enumerate(assignment)
        ],
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in configs.items()],
    )
    request = CreateTopicsRequestData(topics=[creatable], timeout=patience_ms(connection))
    what, right = f"topic {name} was not created", f"Create on Topic {name} or on Cluster"
    response = await response_of(connection.call_controller(ApiKey.CREATE_TOPICS, request), what, right)
    refuse(response.topics, {name: what}, {name: right})


async def _create_partitions(
    connection: ClusterConnection, name: str, total: int, assignment: Sequence[Sequence[int]]
) -> None:
    added = [CreatePartitionsAssignment(broker_ids=list(replicas)) for replicas in assignment]
    topic = CreatePartitionsTopic(name=name, count=total, assignments=added)
    request = CreatePartitionsRequestData(topics=[topic], timeout=patience_ms(connection))
    what, right = f"topic {name} got no partitions", f"Alter on Topic {name}"
    response = await response_of(connection.call_controller(ApiKey.CREATE_PARTITIONS, request), what, right)
    refuse(response.results, {name: what}, {name: right})


async def _alter_topic_configs(connection: ClusterConnection, changes: Mapping[str, Mapping[str, str]]) -> None:
    what = {topic: f"configs of topic {topic} were not changed" for topic in changes}
    right = {topic: f"AlterConfigs on Topic {topic}" for topic in changes}
    portions = [dict(batch) for batch in batches(list(changes.items()), CONFIG_BATCH)]
    for validate_only, batch in product((True, False), portions):
        resources = [altered(ConfigResourceType.TOPIC, topic, configs) for topic, configs in batch.items()]
        request = IncrementalAlterConfigsRequestData(resources=resources, validate_only=validate_only)
        response = await response_of(
            connection.call(ApiKey.INCREMENTAL_ALTER_CONFIGS, request),
            "configs of topics were not changed",
            "AlterConfigs on them",
        )
        refuse(response.responses, what, right)
    for batch in portions:
        await until_everywhere(connection, batch)


SETTLING_SECONDS: Final = 5.0
"""For all brokers together. The change is made; a broker that lags longer is not waited for."""

_PAUSE_SECONDS: Final = 0.05


async def until_everywhere(connection: ClusterConnection, changes: Mapping[str, Mapping[str, str]]) -> None:
    """Until every broker that is alive shows these configs of topics, or SETTLING_SECONDS have passed. Raises nothing.

    Each broker applies the metadata log in its own time, milliseconds on a healthy cluster. Without the wait, an audit right
    after a change could read the old value from one of them.
    """
    until = time.monotonic() + min(SETTLING_SECONDS, connection.remaining_seconds)
    # The change is made; the next reading reports a broker that cannot be reached.
    with suppress(*FAILURES):
        for broker in await alive_brokers(connection):
            while time.monotonic() < until and not await _shows(connection, broker, changes, until):
                await asyncio.sleep(_PAUSE_SECONDS)


async def _shows(
    connection: ClusterConnection, broker_id: int, changes: Mapping[str, Mapping[str, str]], until: float
) -> bool:
    keys = {topic: list(configs) for topic, configs in changes.items()}
    seconds = max(0.0, until - time.monotonic())
    results = await describe_configs(connection, ConfigResourceType.TOPIC, keys, seconds, broker=broker_id)
    return all(_is_as_set(described, changes[described.resource_name]) for described in results)


def _is_as_set(described: DescribeConfigsResult, values: Mapping[str, str]) -> bool:
    """Also true of a topic whose configs this user may set and not see: there is nothing to wait for."""
    shown = {config.name: config.value for config in described.configs}
    return described.error_code != ErrorCode.NONE or all(shown.get(key) == value for key, value in values.items())
