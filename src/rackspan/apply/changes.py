"""The changes themselves, over the connection that `sources` reads with.

Errors everywhere: ClusterUnauthorized (names the missing right), ClusterRequestFailed with Kafka's own message,
ClusterUnreachable where nobody knows whether the change was made.
"""

from collections.abc import Awaitable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, Final, TypeVar

from kafka.errors import KafkaError, NoError, for_code
from kafka.protocol.admin import CreatePartitionsRequest, CreateTopicsRequest, IncrementalAlterConfigsRequest
from kafka.protocol.metadata import MetadataRequest

from rackspan.apply.refusals import change_failed
from rackspan.apply.settling import until_everywhere
from rackspan.model import NO_BROKER
from rackspan.sources.connection import ClusterConnection

T = TypeVar("T")

CONFIG_BATCH: Final = 500
"""Topics in one IncrementalAlterConfigs: a controller refuses requests that would write too many records at once."""

_MS: Final = 1000

_TOPIC: Final = 2
"""ConfigResource type of a topic."""

_SET: Final = 0
"""Config operation of IncrementalAlterConfigs: the value replaces the topic's own; nothing else is touched (KIP-339)."""

_GIVEN: Final = -1
"""What CreateTopics wants as partitions and replication factor where the assignment says both."""


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
    topic = CreateTopicsRequest.CreatableTopic
    wanted = topic(
        name=name,
        num_partitions=_GIVEN,
        replication_factor=_GIVEN,
        assignments=[
            topic.CreatableReplicaAssignment(partition_index=partition, broker_ids=list(replicas))
            for partition, replicas in enumerate(assignment)
        ],
        configs=[topic.CreatableTopicConfig(name=key, value=value) for key, value in configs.items()],
    )
    request = CreateTopicsRequest(topics=[wanted], timeout_ms=_patience_ms(connection), validate_only=False)
    what, right = f"topic {name} was not created", f"Create on Topic {name} or on Cluster"
    answer = await _answered(_ask_controller(connection, request), what, right)
    _refuse(answer.topics, {name: what}, {name: right})


async def _create_partitions(
    connection: ClusterConnection, name: str, total: int, assignment: Sequence[Sequence[int]]
) -> None:
    topic = CreatePartitionsRequest.CreatePartitionsTopic
    added = [topic.CreatePartitionsAssignment(broker_ids=list(replicas)) for replicas in assignment]
    request = CreatePartitionsRequest(
        topics=[topic(name=name, count=total, assignments=added)],
        timeout_ms=_patience_ms(connection),
        validate_only=False,
    )
    what, right = f"topic {name} got no partitions", f"Alter on Topic {name}"
    answer = await _answered(_ask_controller(connection, request), what, right)
    _refuse(answer.results, {name: what}, {name: right})


async def _alter_topic_configs(connection: ClusterConnection, changes: Mapping[str, Mapping[str, str]]) -> None:
    what = {topic: f"configs of topic {topic} were not changed" for topic in changes}
    right = {topic: f"AlterConfigs on Topic {topic}" for topic in changes}
    batches = [dict(batch) for batch in _batches(list(changes.items()), CONFIG_BATCH)]
    for validate_only, batch in product((True, False), batches):
        request = IncrementalAlterConfigsRequest(
            resources=[_resource(topic, configs) for topic, configs in batch.items()], validate_only=validate_only
        )
        answer = await _answered(connection.ask(request), "configs of topics were not changed", "AlterConfigs on them")
        _refuse(answer.responses, what, right)
    for batch in batches:
        await until_everywhere(connection, batch)


def _batches(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    return (items[start : start + size] for start in range(0, len(items), size))


def _resource(topic: str, configs: Mapping[str, str]) -> Any:
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource
    altered = [resource.AlterableConfig(name=key, config_operation=_SET, value=value) for key, value in configs.items()]
    return resource(resource_type=_TOPIC, resource_name=topic, configs=altered)


async def _ask_controller(connection: ClusterConnection, request: Any) -> Any:
    """As Kafka's own clients do: with ZooKeeper only the controller creates; with KRaft any broker named passes it on."""
    known = await connection.ask(MetadataRequest(topics=[]))
    if known.controller_id == NO_BROKER:
        return await connection.ask(request)
    return await connection.ask_broker(known.controller_id, request)


def _patience_ms(connection: ClusterConnection) -> int:
    return int(connection.remaining_seconds * _MS)


async def _answered(answer: Awaitable[Any], what: str, right: str) -> Any:
    try:
        return await answer
    except (KafkaError, OSError) as error:
        raise change_failed(what, right, error) from error


def _refuse(results: Sequence[Any], what: Mapping[str, str], right: Mapping[str, str]) -> None:
    """Raise for the first result that is a refusal."""
    for one in results:
        kind = for_code(one.error_code)
        if kind is not NoError:
            name = one.name if hasattr(one, "name") else one.resource_name
            raise change_failed(what[name], right[name], kind(one.error_message))
