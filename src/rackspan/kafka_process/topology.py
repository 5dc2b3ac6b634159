"""The nodes of a cluster: brokers distributed to racks in turn, and the voters of the controller quorum. Values only."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rackspan.errors import UsageError

_VOTERS = 3
"""Kafka's advice for a quorum that survives the loss of one controller."""


@dataclass(frozen=True, slots=True)
class KafkaNode:
    """One Kafka process: a broker, a controller, or both (a combined node)."""

    id: int
    rack: str | None
    is_broker: bool
    is_controller: bool

    @property
    def roles(self) -> str:
        """The value of `process.roles`."""
        return ",".join(
            role for role, has_role in (("broker", self.is_broker), ("controller", self.is_controller)) if has_role
        )


def distribute_nodes(
    racks: Sequence[str | None], brokers: int, controllers: Mapping[int, str | None] | None = None
) -> tuple[KafkaNode, ...]:
    """Brokers 1…n, distributed to `racks` in turn, and the voters.

    `controllers` maps voter ids to racks. An id that is also a broker's makes a combined node in the broker's rack; other
    ids are controllers only. By default brokers 1 to 3, one in each of three racks, are combined (fewer than three
    brokers: broker 1). Errors: UsageError.
    """
    if brokers < 1 or not racks:
        raise UsageError(f"{brokers} brokers in {len(racks)} racks: a cluster has at least one of each")
    rack_of = {index + 1: racks[index % len(racks)] for index in range(brokers)}
    voters = _default_voters(rack_of) if controllers is None else dict(controllers)
    if not voters:
        raise UsageError("no controllers: KRaft needs at least one; name one or leave the choice to rackspan")
    return tuple(
        KafkaNode(
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
