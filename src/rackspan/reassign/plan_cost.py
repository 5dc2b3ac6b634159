"""What a plan costs, what it leaves, and the bound below which no plan can go."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class LoadRange:
    """The fewest and the most on one broker, among the brokers that stay."""

    fewest: int
    most: int


@dataclass(frozen=True, slots=True)
class Balance:
    """Replicas and preferred leaders per broker."""

    replicas: LoadRange
    leaders: LoadRange


@dataclass(frozen=True, slots=True)
class Conflict:
    """Partitions that stay as they are, what contradicts what, and the ways out.

    `refused`: it could be done, but only where the operator says so. `topics` have these partitions; a file does not name them.
    """

    reason: str
    remedy: str
    partitions: int
    refused: bool = False
    topics: frozenset[str] = field(default=frozenset(), compare=False)


@dataclass(frozen=True, slots=True)
class PlanCost:
    """The cost of a plan and the proof that less would not do.

    `lower_bound`: moves that no plan can undercut; `gap_reason` says why the plan has more, if it has. `bytes`: what is
    copied, as far as sizes are known; `unsized_moves` copies have none. `replicas_bound`: the least that the fullest
    broker can hold in any placement that keeps the racks. `left_out`: partitions not considered, in words. `infeasible`:
    what of the request cannot be met. `leaderless`: partitions without a leader whose replicas need not move.
    """

    lower_bound: int
    gap_reason: str | None
    bytes: int
    unsized_moves: int
    before: Balance
    after: Balance
    replicas_bound: int
    left_out: tuple[str, ...] = ()
    infeasible: tuple[Conflict, ...] = ()
    leaderless: int = 0
