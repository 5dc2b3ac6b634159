"""Ids of the core: brokers and the controller, topics, correlation ids, epochs."""

from typing import Final, TypeAlias
from uuid import UUID

NodeId: TypeAlias = int
"""A broker's id, CONTROLLER or CLIENT."""

CONTROLLER: Final = -1
CLIENT: Final = -2
"""A client, whose response has a correlation id."""

CorrelationId: TypeAlias = int
"""Set by the caller for each request of a client; the `Respond` effect has it again."""

TopicId: TypeAlias = UUID

NO_EPOCH: Final = -1
NO_OFFSET: Final = -1
