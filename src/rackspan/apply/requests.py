"""Shared by all changes: the broker that a request is sent to, its batches, and errors from responses."""

from collections.abc import Awaitable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

from kafka.errors import KafkaError, NoError, for_code
from kafka.protocol.admin import IncrementalAlterConfigsRequest
from kafka.protocol.metadata import MetadataRequest

from rackspan.apply.refusals import change_failed
from rackspan.model import NO_BROKER
from rackspan.sources.live.connection import ClusterConnection

T = TypeVar("T")

CONFIG_BATCH: Final = 500
"""Topics in one IncrementalAlterConfigs: a controller refuses requests that would write too many records at once."""

TOPIC: Final = 2
"""ConfigResource type of a topic."""

BROKER: Final = 4
"""ConfigResource type of a broker."""

_MS: Final = 1000

_SET: Final = 0
"""Config operation of IncrementalAlterConfigs: the value replaces the resource's own; nothing else is touched (KIP-339)."""

_DELETE: Final = 1
"""The resource has no value of its own afterwards; a default holds again."""


def batches(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    return (items[start : start + size] for start in range(0, len(items), size))


def altered(kind: int, name: str, configs: Mapping[str, str | None]) -> Any:
    """One resource of IncrementalAlterConfigs; None takes a value away."""
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource
    operations = [
        resource.AlterableConfig(name=key, config_operation=_DELETE if value is None else _SET, value=value)
        for key, value in configs.items()
    ]
    return resource(resource_type=kind, resource_name=name, configs=operations)


async def send_to_controller(connection: ClusterConnection, request: Any) -> Any:
    """As Kafka's own clients do: with ZooKeeper only the controller creates; with KRaft any broker forwards the request."""
    known = await connection.send(MetadataRequest(topics=[]))
    if known.controller_id == NO_BROKER:
        return await connection.send(request)
    return await connection.send_to_broker(known.controller_id, request)


def patience_ms(connection: ClusterConnection) -> int:
    return int(connection.remaining_seconds * _MS)


async def response_of(pending: Awaitable[Any], what: str, right: str) -> Any:
    try:
        return await pending
    except (KafkaError, OSError) as error:
        raise change_failed(what, right, error) from error


def refuse(results: Sequence[Any], what: Mapping[str, str], right: Mapping[str, str]) -> None:
    """Raise for the first result that is a refusal."""
    for one in results:
        kind = for_code(one.error_code)
        if kind is not NoError:
            name = one.name if hasattr(one, "name") else one.resource_name
            raise change_failed(what[name], right[name], kind(one.error_message))
