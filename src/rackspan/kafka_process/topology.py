"""Who is in a cluster: brokers dealt to racks in turn, and the voters of the controller quorum. Values only."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rackspan.errors import UsageError

_VOTERS = 3
"""Kafka's own advice for a quorum that survives the loss of one controller."""


@dataclass(frozen=True, slots=True)
class Node:
    """One Kafka process. A combined node is a broker and a voter at once."""

    id: int
    rack: str | None
    is_broker: bool
    is_controller: bool

    @property
    def roles(self) -> str:
        """As `process.roles` has it."""
        return ",".join(
            role for role, played in (("broker", self.is_broker), ("controller", self.is_controller)) if played
        )


def deal(
    racks: Sequence[str | None], brokers: int, controllers: Mapping[int, str | None] | None = None
) -> tuple[Node, ...]:
    """Brokers 1…n, dealt to `racks` in turn, and the voters.

    `controllers` maps voter ids to racks. An id that is also a broker's makes a combined node in the broker's rack; other
    ids are controllers alone. By default brokers 1 to 3, thus one in each of three racks, are combined (fewer than three
    brokers: broker 1). Errors: UsageError.
    """
    if brokers < 1 or not racks:
        raise UsageError(f"{brokers} brokers in {len(racks)} racks: a cluster has at least one of each")
    rack_of = {index + 1: racks[index % len(racks)] for index in range(brokers)}
    voters = _default_voters(rack_of) if controllers is None else dict(controllers)
    if not voters:
        raise UsageError("no controllers: KRaft needs at least one; name one or leave the choice to rackspan")
    return tuple(
        Node(
            id=node_id,
            rack=rack_of[node_id] if node_id in rack_of else voters[node_id],
            is_broker=node_id in rack_of,
            is_controller=node_id in voters,
        )
        for node_id in sorted(rack_of.keys() | voters.keys())
    )


def _default_voters(rack_of: Mapping[int, str | None]) -> dict[int, str | None]:
    voters = _VOTERS if len(rack_of) >= _VOTERS else 1
    return {node_id: rack_of[node_id] for node_id in range(1, voters + 1)}
