"""A plan in steps: the most urgent partitions first, never more at once than the caps allow."""

from dataclasses import dataclass

from rackspan.errors import UsageError
from rackspan.model.partitions import Int64s


@dataclass(frozen=True, slots=True)
class Caps:
    """What one step may carry at most. None sets no limit; a partition larger than a limit makes a step of its own.

    `moves`: replicas copied. `bytes`: of those with a known size. `moves_per_broker`: copies that one broker receives.
    `partitions`: reassignments, reorderings included: what one request to the controller carries.
    """

    moves: int | None = 1_000
    bytes: int | None = None
    moves_per_broker: int | None = None
    partitions: int | None = 10_000

    def __post_init__(self) -> None:
        for name in ("moves", "bytes", "moves_per_broker", "partitions"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise UsageError(
                    f"at most {value} {name.replace('_', ' ')} in a step: nothing could move; allow 1 or more"
                )


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """Reassignments that run together, once the step before is done.

    `entries` (n,): positions in the plan's rows. `moves`, `bytes`: their cost. `undo`: the same positions with the
    replicas of the snapshot take it back.
    """

    reason: str
    entries: Int64s
    moves: int
    bytes: int
