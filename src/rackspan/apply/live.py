"""A running cluster as a run observes and changes it, over one connection, each observation and each change by its own deadline.

The rights that a run needs are in docs/security.md. Where an observation is refused, the error names the right to change,
which a run needs anyway: in Kafka Alter includes Describe, and AlterConfigs DescribeConfigs.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Final, TypeVar

from rackspan.apply import reassignments
from rackspan.apply.reassignments import RIGHT
from rackspan.apply.requests import CONFIG_BATCH, altered, refuse, response_of
from rackspan.client import requests
from rackspan.client.cluster import ClusterConnection, ConnectionSettings
from rackspan.client.errors import FAILURES, ErrorResponse, listed, request_failed
from rackspan.client.requests import batches
from rackspan.kafka_bytes.config_resources import ConfigResourceType
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model import NO_BROKER, TopicPartition
from rackspan.plan.execution.observed import ObservationRequest, ObservedCluster
from rackspan.plan.execution.throttle import ConfigKey, Holder
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.configs import (
    IncrementalAlterConfigsRequestAlterConfigsResource,
    IncrementalAlterConfigsRequestData,
)
from rackspan.wire.messages.metadata import MetadataResponseData

T = TypeVar("T")

_BROKER_SECONDS: Final = 5.0
"""For one broker's own configs, which it keeps in memory. One that is frozen is not worth the whole deadline."""


_SIZES_SECONDS: Final = 1.0
"""For the sizes of logs that are being copied, which are only displayed."""


class LiveCluster:
    """The cluster behind these settings; `timeout_seconds` is for each observation and each change. Errors: SourceError.

    The connection is opened at first use. It serves until `close`: a broker that ends is replaced by another one.
    """

    def __init__(self, settings: ConnectionSettings) -> None:
        self._settings = settings
        self._connection: ClusterConnection | None = None

    def __enter__(self) -> "LiveCluster":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def observe(self, request: ObservationRequest) -> ObservedCluster:
        return self._run(_observe, request)

    def set_configs(self, values: Mapping[ConfigKey, str | None]) -> None:
        self._run(_set_configs, values)

    def start_moves(self, targets: Mapping[TopicPartition, tuple[int, ...]]) -> None:
        """Each partition gets these replicas, preferred leader first. Kafka may take some and refuse others: the error
        names the first that it refused."""
        self._run(reassignments.alter, targets)

    def cancel_moves(self, partitions: tuple[TopicPartition, ...]) -> None:
        """Each partition gets back the replicas that it had before."""
        self._run(reassignments.alter, dict.fromkeys(partitions))

    def elect_leaders(self, partitions: tuple[TopicPartition, ...]) -> None:
        """Each partition is led by its first replica. One that cannot lead now is passed over."""
        self._run(reassignments.elect_preferred_leaders, partitions)

    def _run(self, coroutine: Callable[..., Awaitable[T]], argument: object) -> T:
        if self._connection is None:
            self._connection = ClusterConnection(self._settings).__enter__()
        else:
            self._connection.renew_deadline()
            self._connection.run(self._connection.replace_silent_server)
        return self._connection.run(coroutine, self._connection, argument)


async def _observe(connection: ClusterConnection, request: ObservationRequest) -> ObservedCluster:
    # Reassignments first: one that ends in between still shows as moving, and the next observation shows it done.
    under_way = requests.reassignments(connection)
    moving = await _response(under_way, "reassignments under way", RIGHT)
    known = await _topics(connection, sorted(request.topics))
    alive = frozenset(broker.node_id for broker in known.brokers)
    topics = [topic for topic in known.topics if topic.error_code == ErrorCode.NONE]
    rows = [
        (TopicPartition(topic.name or "", row.partition_index), row) for topic in topics for row in topic.partitions
    ]
    in_sync = {topic_partition: frozenset(row.isr_nodes) for topic_partition, row in rows}
    return ObservedCluster(
        cluster_id=known.cluster_id,
        brokers=alive,
        topic_ids={topic.name or "": requests.topic_id_text(topic.topic_id) for topic in topics},
        replicas={topic_partition: tuple(row.replica_nodes) for topic_partition, row in rows},
        isr={topic_partition: tuple(row.isr_nodes) for topic_partition, row in rows},
        leaders={topic_partition: row.leader_id for topic_partition, row in rows},
        leaderless=frozenset(topic_partition for topic_partition, row in rows if row.leader_id == NO_BROKER),
        in_flight=moving,
        copied_bytes=await _copied_bytes(
            connection,
            {
                topic_partition: alive & set(move.adding) - in_sync[topic_partition]
                for topic_partition, move in moving.items()
                if topic_partition in in_sync
            },
        ),
        configs={
            **await _topic_configs(connection, request.configs),
            **await _broker_configs(connection, request.configs, alive),
        },
    )


async def _response(pending: Awaitable[T], what: str, right: str) -> T:
    try:
        return await pending
    except FAILURES as error:
        raise request_failed(what, right, error) from error


async def _topics(connection: ClusterConnection, names: Sequence[str]) -> MetadataResponseData:
    """The metadata of these topics. A topic that the user may not describe is an error: as a missing one it would stop the run."""
    what, right = f"topic {listed(names)}", f"Describe on Topic {listed(names)}"
    known = await _response(requests.metadata(connection, names), what, right)
    hidden = sorted(
        topic.name or "" for topic in known.topics if topic.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    )
    if hidden:
        error = ErrorResponse(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        raise request_failed(f"topic {listed(hidden)}", f"Describe on Topic {listed(hidden)}", error)
    return known


async def _copied_bytes(
    connection: ClusterConnection, arriving: Mapping[TopicPartition, Collection[int]]
) -> dict[TopicPartition, dict[int, int]]:
    """The size of each log on the brokers that it arrives on. For display alone: a broker that does not respond is left out."""
    on_broker: dict[int, list[TopicPartition]] = {}
    for topic_partition, brokers in arriving.items():
        for broker in brokers:
            on_broker.setdefault(broker, []).append(topic_partition)
    responses = await asyncio.gather(
        *(
            requests.broker_logs(connection, broker, partitions, _SIZES_SECONDS)
            for broker, partitions in on_broker.items()
        ),
        return_exceptions=True,
    )
    found: dict[TopicPartition, dict[int, int]] = {}
    for broker, response in zip(on_broker, responses, strict=True):
        if isinstance(response, requests.BrokerLogs):
            for topic_partition, size_bytes in response.sizes.items():
                found.setdefault(topic_partition, {})[broker] = size_bytes
        elif not isinstance(response, FAILURES):
            raise response
    return found


async def _topic_configs(connection: ClusterConnection, configs: frozenset[ConfigKey]) -> dict[ConfigKey, str | None]:
    keys = _keys_by_name(configs, Holder.TOPIC)
    found: dict[ConfigKey, str | None] = {}
    for names in batches(sorted(keys), CONFIG_BATCH):
        every = sorted({key for name in names for key in keys[name]})
        pending = requests.own_topic_configs(connection, names, every)
        response = await _response(pending, "throttles of topics", f"AlterConfigs on Topic {listed(names)}")
        for name, error in response.refused.items():
            raise request_failed(f"the throttle of topic {name}", f"AlterConfigs on Topic {name}", error)
        for name, own in response.values.items():
            found |= {ConfigKey(Holder.TOPIC, name, key): own[key] for key in keys[name]}
    return found


async def _broker_configs(
    connection: ClusterConnection, configs: frozenset[ConfigKey], alive: frozenset[int]
) -> dict[ConfigKey, str | None]:
    keys = {
        name: listed_keys for name, listed_keys in _keys_by_name(configs, Holder.BROKER).items() if int(name) in alive
    }
    # All at once: each broker describes its own.
    described = await asyncio.gather(
        *(
            # An error also where the broker is dead and not fenced yet: a run that left it out would forget its throttle.
            _response(
                requests.own_broker_configs(connection, int(name), listed_keys, _BROKER_SECONDS),
                f"the throttle of broker {name}",
                "DescribeConfigs on Cluster, which AlterConfigs on Cluster includes",
            )
            for name, listed_keys in keys.items()
        )
    )
    return {
        ConfigKey(Holder.BROKER, name, key): value
        for name, own in zip(keys, described, strict=True)
        for key, value in own.items()
    }


async def _set_configs(connection: ClusterConnection, values: Mapping[ConfigKey, str | None]) -> None:
    by_name = _values_by_name(values)
    topics = [
        altered(ConfigResourceType.TOPIC, name, own)
        for (holder, name), own in by_name.items()
        if holder is Holder.TOPIC
    ]
    for batch in batches(topics, CONFIG_BATCH):
        await _alter(connection, list(batch), None)
    for (holder, name), own in by_name.items():
        if holder is Holder.BROKER:
            # A broker's configs are its own to change: Kafka refuses them from any other.
            await _alter(connection, [altered(ConfigResourceType.BROKER, name, own)], int(name))


async def _alter(
    connection: ClusterConnection,
    resources: list[IncrementalAlterConfigsRequestAlterConfigsResource],
    broker_id: int | None,
) -> None:
    pending = connection.call(
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        IncrementalAlterConfigsRequestData(resources=resources),
        None if broker_id is None else _BROKER_SECONDS,
        broker=broker_id,
    )
    of_what = "topic" if broker_id is None else "broker"
    what = {
        resource.resource_name: f"throttle of {of_what} {resource.resource_name} was not changed"
        for resource in resources
    }
    right = {name: f"AlterConfigs on Topic {name}" if broker_id is None else "AlterConfigs on Cluster" for name in what}
    some = next(iter(what))
    response = await response_of(pending, what[some], right[some])
    refuse(response.responses, what, right)


def _keys_by_name(configs: frozenset[ConfigKey], holder: Holder) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for config in configs:
        if config.holder is holder:
            found.setdefault(config.name, []).append(config.key)
    return found


def _values_by_name(values: Mapping[ConfigKey, str | None]) -> dict[tuple[Holder, str], dict[str, str | None]]:
    found: dict[tuple[Holder, str], dict[str, str | None]] = {}
    for config, value in values.items():
        found.setdefault((config.holder, config.name), {})[config.key] = value
    return found
