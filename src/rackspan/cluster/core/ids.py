"""Names for what is addressed: partitions, the controller, clients."""

from typing import Final, TypeAlias
from uuid import UUID

NodeId: TypeAlias = int
"""A broker's id, CONTROLLER or CLIENT."""

CONTROLLER: Final = -1
CLIENT: Final = -2
"""Whoever is answered by correlation_id."""

CorrelationId: TypeAlias = int
"""Drawn by the shell (or a simulated world) for each question of a client; `Respond` carries it back."""

TopicId: TypeAlias = UUID

NO_EPOCH: Final = -1
NO_OFFSET: Final = -1


__all__ = [
    "CLIENT",
    "CONTROLLER",
    "NO_EPOCH",
    "NO_OFFSET",
    "CorrelationId",
    "NodeId",
    "TopicId",
]
