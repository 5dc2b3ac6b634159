"""A client's request to a group coordinator, as it travels."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from rackspan.cluster.core.groups.requests import GroupRequest, OffsetFetch
from rackspan.cluster.core.ids import CorrelationId

Request: TypeAlias = GroupRequest | OffsetFetch
Then: TypeAlias = Callable[[object], None]
"""What a client does with an answer."""


@dataclass(frozen=True, slots=True)
class ClientRequest:
    """Answered on `correlation_id`, at most once."""

    correlation_id: CorrelationId
    request: Request
