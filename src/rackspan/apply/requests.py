"""Shared by all changes: the resources of IncrementalAlterConfigs, and errors from responses."""

from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, Final, TypeVar

from rackspan.client.cluster import ClusterConnection
from rackspan.client.errors import FAILURES, change_failed, error_response
from rackspan.kafka_bytes.config_resources import ConfigResourceType
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.wire.messages.configs import (
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)

T = TypeVar("T")

CONFIG_BATCH: Final = 500
"""Topics in one IncrementalAlterConfigs: a controller refuses requests that would write too many records at once."""

_MS: Final = 1000

_SET: Final = 0
"""Config operation of IncrementalAlterConfigs: the value replaces the resource's own; nothing else is touched (KIP-339)."""

_DELETE: Final = 1
"""The resource has no value of its own afterwards; a default holds again."""


def altered(
    kind: ConfigResourceType, name: str, configs: Mapping[str, str | None]
) -> IncrementalAlterConfigsRequestAlterConfigsResource:
    """One resource of IncrementalAlterConfigs; None takes a value away."""
    operations = [
        IncrementalAlterConfigsRequestAlterableConfig(
            name=key, config_operation=_DELETE if value is None else _SET, value=value
        )
        for key, value in configs.items()
    ]
    return IncrementalAlterConfigsRequestAlterConfigsResource(
        resource_type=kind, resource_name=name, configs=operations
    )


def patience_ms(connection: ClusterConnection) -> int:
    return int(connection.remaining_seconds * _MS)


async def response_of(pending: Awaitable[T], what: str, right: str) -> T:
    try:
        return await pending
    except FAILURES as error:
        raise change_failed(what, right, error) from error


def refuse(results: Sequence[Any], what: Mapping[str, str], right: Mapping[str, str]) -> None:
    """Raise for the first result that is a refusal."""
    for result in results:
        if result.error_code != ErrorCode.NONE:
            name = result.name if hasattr(result, "name") else result.resource_name
            raise change_failed(what[name], right[name], error_response(result))
