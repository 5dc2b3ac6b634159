"""Waits until all brokers show a change that the controller accepted.

Each broker applies the metadata log in its own time, milliseconds on a healthy cluster. Without the wait, an audit right
after a change could read the old value from one of them.
"""

import asyncio
import time
from collections.abc import Mapping
from typing import Final

from rackspan.client.cluster import ClusterConnection
from rackspan.client.errors import FAILURES
from rackspan.client.requests import describe_configs, metadata
from rackspan.kafka_bytes.config_resources import ConfigResourceType
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.wire.messages.configs import DescribeConfigsResult

SETTLING_SECONDS: Final = 5.0
"""For all brokers together. The change is made; a broker that lags longer is not waited for."""

_PAUSE_SECONDS: Final = 0.05


async def until_everywhere(connection: ClusterConnection, changes: Mapping[str, Mapping[str, str]]) -> None:
    """Until every broker that is alive shows these configs of topics, or SETTLING_SECONDS have passed. Raises nothing."""
    until = time.monotonic() + min(SETTLING_SECONDS, connection.remaining_seconds)
    try:
        alive = await metadata(connection, ())
        for broker in alive.brokers:
            while time.monotonic() < until and not await _shows(connection, broker.node_id, changes, until):
                await asyncio.sleep(_PAUSE_SECONDS)
    except FAILURES:
        # The change is made; the next reading reports a broker that cannot be reached.
        return


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
