"""How many replicas on how many racks it takes to force k racks and still lose a broker, or a rack."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from rackspan.model.racks import even_spread, forcing_value


@dataclass(frozen=True, slots=True)
class RackSpread:
    """Replicas per rack, the fullest first, none empty, and what it takes to force `min_insync_racks` racks there."""

    counts: tuple[int, ...]
    min_insync_racks: int

    @property
    def replication_factor(self) -> int:
        return sum(self.counts)

    @property
    def least(self) -> int:
        """The least min.insync.replicas that forces the racks; above the replication factor where none does."""
        return int(forcing_value(np.array([self.counts], dtype=np.int64), self.min_insync_racks)[0])

    @property
    def possible(self) -> bool:
        return self.least <= self.replication_factor

    @property
    def survives_broker(self) -> bool:
        """Whether writes continue after any one replica is lost."""
        return self.least <= self.replication_factor - 1

    @property
    def survives_rack(self) -> bool:
        """Whether writes continue after any one rack is lost, the fullest included."""
        return self.possible and self.least <= self.replication_factor - self.counts[0]


def better_spreads(
    rack_sizes: tuple[int, ...], min_insync_racks: int, replication_factor: int
) -> tuple[RackSpread, ...]:
    """The first spreads that make forcing possible, that survive a broker, and that survive a rack; fewest replicas first.

    Constraints: no rack holds more replicas than it has brokers; replicas are spread as evenly as that allows.
    Goals: no fewer replicas than now (`replication_factor`), then as few as will do. Where more replicas only crowd the
    larger racks, so that no such spread survives a rack, the nearest smaller one that does is the last of the tuple.
    Method: try replication factors one by one, upwards through one round of the racks, then downwards. A round is
    enough: with c1 ≥ … ≥ cm replicas on m racks, surviving a rack means c(k) + … + cm > c1. Over whole rounds the
    difference of the two is concave and starts at 0, and within a round it is never above the round's end; so what one
    round does not reach, no later one does.
    Test: tests/acks/test_spreads.py.
    Bound: even_spread for at most m + `replication_factor` factors.
    """
    racks, brokers = len(rack_sizes), sum(rack_sizes)
    # Fewer replicas than the required racks force nothing.
    first = min(max(replication_factor, min_insync_racks), brokers)
    upwards = [*_spreads(rack_sizes, min_insync_racks, range(first, min(first + racks, brokers) + 1))]
    downwards = [*_spreads(rack_sizes, min_insync_racks, range(first - 1, 0, -1))]
    candidates = [
        _first(upwards, lambda spread: spread.possible),
        _first(upwards, lambda spread: spread.survives_broker),
        _first([*upwards, *downwards], lambda spread: spread.survives_rack),
    ]
    return tuple(dict.fromkeys(spread for spread in candidates if spread is not None))


def _spreads(rack_sizes: tuple[int, ...], min_insync_racks: int, factors: range) -> Iterator[RackSpread]:
    for factor in factors:
        counts = even_spread(rack_sizes, factor)
        yield RackSpread(tuple(count for count in counts if count), min_insync_racks)


def _first(spreads: list[RackSpread], condition: Callable[[RackSpread], bool]) -> RackSpread | None:
    return next((spread for spread in spreads if condition(spread)), None)
