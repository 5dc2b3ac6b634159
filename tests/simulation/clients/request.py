"""A request to a broker's process, as it travels: from a client, or between brokers in worlds with transactions."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from rackspan.cluster.core.groups.requests import GroupRequest, OffsetFetch
from rackspan.cluster.core.ids import CorrelationId

Request: TypeAlias = GroupRequest | OffsetFetch
Then: TypeAlias = Callable[[object], None]
"""What a client does with a response."""


@dataclass(frozen=True, slots=True)
class ClientRequest:
    """Its response carries `correlation_id`, and comes at most once."""

    correlation_id: CorrelationId
    request: Any
