"""Brokers and racks as bits of a number, so that Spark's own columns can compute a partition's state without Python.

Bit n is the nth of a registration's `failure_racks`, which are sorted by name. A broker is its rack's bit, or 0 without a
rack; where it matters whether it is alive, the bit ALIVE is set too. The numbers of all brokers of a run are one literal
array, which needs no join and no copy. What bits cannot represent is left to Arrow batches; see
docs/decisions/0013-racks-as-bits-in-spark.md.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

from rackspan.audit import ClusterMembers, losses_each_rack
from rackspan.audit.quorum import quorum_without
from rackspan.pipeline.frames.registrations import Registrations

ALIVE: Final = 1 << 62
"""Of a broker: it can lead and follow. Of losses: the loss of no rack. Above every rack's bit, below the sign."""

RACKS: Final = ALIVE - 1
EVERY_LOSS: Final = ALIVE | RACKS

RACKS_MAX: Final = 62
ENTRIES_MAX: Final = 1 << 16
"""Brokers in a literal: 1 MB, which is sent to every task once for each expression that reads it."""

WIDTH_MAX: Final = 6
"""Lists are unrolled entry by entry into code that grows with the square of this. Six is a move of all of three replicas."""


@dataclass(frozen=True, slots=True)
class BrokerBits:
    """The brokers of a run as numbers. `width`: the length of the longest list of brokers; `top`: the largest broker id."""

    known: Registrations
    width: int
    top: int

    def racks(self, brokers: str) -> list[Column]:
        """The rack's bit of each entry of a list column, 0 beyond its end and for brokers without a known rack."""
        return [self._looked_up(_rack_bits, entry) for entry in self.entries(brokers)]

    def alive(self, brokers: str) -> list[Column]:
        """The same with ALIVE set, 0 for brokers that are not alive."""
        return [self._looked_up(_alive_bits, entry) for entry in self.entries(brokers)]

    def alive_one(self, broker: str) -> Column:
        return self._looked_up(_alive_bits, F.col(broker))

    def entries(self, brokers: str) -> list[Column]:
        """Each entry of a list column, null beyond its end."""
        return [F.get(F.col(brokers), F.lit(place)) for place in range(self.width)]

    def names(self, bits: Column) -> Column:
        """The rack names of a number, sorted. At most `width` bits are set; each step takes the lowest one."""
        most, known = _most_racks(self.known), self.known.distinct
        start = self._of_snapshot([place * most for place in range(len(known))], "INT")
        names = _literal((name for one in known for name in _padded(one.failure_racks, most)), "STRING")
        lowest_names = []
        rest = bits
        for _ in range(self.width):
            below = rest - F.lit(1)
            # The number of ones below the lowest set bit is its index.
            index = F.bit_count(F.bitwise_not(rest).bitwiseAND(below))
            lowest_names.append(F.get(names, start + index))
            rest = rest.bitwiseAND(below)
        return F.slice(F.array(*lowest_names), F.lit(1), F.bit_count(bits))

    @property
    def several(self) -> Column:
        """Whether the cluster has more than one rack."""
        return self._of_snapshot([len(one.rack_map.racks) > 1 for one in self.known.distinct], "BOOLEAN")

    @property
    def without_quorum(self) -> Column:
        """The losses after which controllers have no majority and elect no leader."""
        return self._of_snapshot([_without_majority(one) for one in self.known.distinct], "BIGINT")

    def _looked_up(self, bits_of: Callable[[ClusterMembers, int], list[int]], broker: Column) -> Column:
        # Entry 0 is no broker (−1); the last one is a broker above `top`, or absent, since `least` ignores nulls.
        stride = self.top + 3
        entries = (bits for one in self.known.distinct for bits in [0, *bits_of(one, self.top), 0])
        start = self._of_snapshot([place * stride + 1 for place in range(len(self.known.distinct))], "INT")
        found = F.get(_literal(entries, "BIGINT"), start + F.least(broker, F.lit(self.top + 1)))
        return F.coalesce(found, number(0))

    def _of_snapshot(self, of_registration: Sequence[object], kind: str) -> Column:
        # Most runs have one registration and need no lookup.
        if len(of_registration) == 1:
            return F.lit(of_registration[0]).cast(kind)
        values = (of_registration[place] for place in self.known.of_snapshot.tolist())
        return F.get(_literal(values, kind), F.col("snapshot"))


def broker_bits(known: Registrations, width: int) -> BrokerBits | None:
    """The brokers of a run as bits; None with brokers in no rack, too many racks, too long lists, or broker ids too large for an array."""
    racks, top = (
        _most_racks(known),
        max((int(one.rack_map.broker_ids.max(initial=0)) for one in known.distinct), default=0),
    )
    entries = max(len(known.of_snapshot), len(known.distinct) * max(top + 3, racks))
    # A broker that counts in no rack is lost with each: no single bit says so.
    counted = all(bool((one.rack_map.rack_codes >= 0).all()) for one in known.distinct)
    fits = counted and racks <= RACKS_MAX and entries <= ENTRIES_MAX and 0 < width <= WIDTH_MAX
    return BrokerBits(known, width, top) if fits else None


def _most_racks(known: Registrations) -> int:
    return max((len(one.failure_racks) for one in known.distinct), default=0)


def bit_of_loss(place: int) -> int:
    """The bit of a loss by its index in audit's losses_each_rack: no rack first, then each rack."""
    return ALIVE if place == 0 else 1 << (place - 1)


def number(bits: int) -> Column:
    return F.lit(bits).cast("bigint")


def any_of(bits: Iterable[Column]) -> Column:
    return reduce(lambda one, other: one.bitwiseOR(other), bits)


def how_many(held: Iterable[Column]) -> Column:
    return reduce(lambda one, other: one + other, (one.cast("int") for one in held))


def _rack_bits(one: ClusterMembers, top: int) -> list[int]:
    """The bit of each id's rack, 0 to `top`."""
    bit_of = {rack: 1 << place for place, rack in enumerate(one.failure_racks)}
    rack_of = one.rack_map.rack_of
    return [bit_of[rack_of[broker]] if broker in rack_of else 0 for broker in range(top + 1)]


def _alive_bits(one: ClusterMembers, top: int) -> list[int]:
    bits = [0] * (top + 1)
    racks = _rack_bits(one, top)
    for broker in one.rack_map.broker_ids[one.usable[:-1]].tolist():
        bits[broker] = racks[broker] | ALIVE
    return bits


def _without_majority(one: ClusterMembers) -> int:
    """The losses that leave no majority of the controllers."""
    judged = enumerate(quorum_without(one, frozenset(racks)) for racks in losses_each_rack(one))
    return sum(bit_of_loss(place) for place, quorum in judged if quorum is not None and not quorum.holds)


def _padded(names: Sequence[str], length: int) -> list[str]:
    return [*names, *[""] * (length - len(names))]


def _literal(values: Iterable[object], kind: str) -> Column:
    """An array that Spark evaluates once, before planning."""
    return F.from_json(F.lit(json.dumps(list(values))), f"ARRAY<{kind}>")
