"""Waits until all brokers show a change that the controller accepted.

Each broker applies the metadata log in its own time, milliseconds on a healthy cluster. Without the wait, an audit right
after a change could read the old value from one of them.
"""

import time
from collections.abc import Mapping
from typing import Any, Final

from kafka.errors import KafkaError
from kafka.protocol.admin import DescribeConfigsRequest
from kafka.protocol.metadata import MetadataRequest

from rackspan.sources.live.connection import ClusterConnection

SETTLING_SECONDS: Final = 5.0
"""For all brokers together. The change is made; a broker that lags longer is not waited for."""

_PAUSE_SECONDS: Final = 0.05

_TOPIC: Final = 2
"""ConfigResource type of a topic."""


async def until_everywhere(connection: ClusterConnection, changes: Mapping[str, Mapping[str, str]]) -> None:
    """Until every broker that is alive shows these configs of topics, or SETTLING_SECONDS have passed. Raises nothing."""
    until = time.monotonic() + min(SETTLING_SECONDS, connection.remaining_seconds)
    try:
        alive = await connection.send(MetadataRequest(topics=[]))
        for broker in alive.brokers:
            while time.monotonic() < until and not await _shows(connection, broker.node_id, changes, until):
                await connection.sleep(_PAUSE_SECONDS)
    except (KafkaError, OSError):
        # The change is made; the next reading reports a broker that cannot be reached.
        return


async def _shows(
    connection: ClusterConnection, broker_id: int, changes: Mapping[str, Mapping[str, str]], until: float
) -> bool:
    request = DescribeConfigsRequest(resources=[(_TOPIC, topic, list(configs)) for topic, configs in changes.items()])
    response = await connection.send_to_broker(broker_id, request, max(0.0, until - time.monotonic()))
    return all(_is_as_set(one, changes[one.resource_name]) for one in response.results)


def _is_as_set(described: Any, values: Mapping[str, str]) -> bool:
    """Also true of a topic whose configs this user may set and not see: there is nothing to wait for."""
    shown = {one.name: one.value for one in described.configs}
    return described.error_code != 0 or all(shown.get(key) == value for key, value in values.items())
