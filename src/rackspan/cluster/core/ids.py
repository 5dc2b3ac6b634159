"""Names for what is addressed: partitions, the controller, clients."""

from typing import Final, NamedTuple, TypeAlias
from uuid import UUID

from rackspan.model.ids import BrokerId

NodeId: TypeAlias = int
"""A broker's id, CONTROLLER or CLIENT."""

CONTROLLER: Final = -1
CLIENT: Final = -2
"""Whoever is answered by ticket."""

Ticket: TypeAlias = int
"""Drawn by the shell (or a simulated world) for each question of a client; `Reply` carries it back."""

TopicId: TypeAlias = UUID

NO_EPOCH: Final = -1
NO_OFFSET: Final = -1


class TopicPartition(NamedTuple):
    """One partition by name. A named tuple: it is hashed at every message."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


__all__ = [
    "CLIENT",
    "CONTROLLER",
    "NO_EPOCH",
    "NO_OFFSET",
    "BrokerId",
    "NodeId",
    "Ticket",
    "TopicId",
    "TopicPartition",
]
