"""Durations counted by size, as a histogram of Prometheus has them."""

from bisect import bisect_left
from collections.abc import Iterator
from typing import Final

BOUNDS_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""From an acknowledgement that is verified at once to one that waits for the default of acknowledgements.verify.timeout.ms."""


class Durations:
    """How many durations were at most as long as each bound, and their sum."""

    def __init__(self) -> None:
        self.sum_seconds = 0.0
        self._counts = [0] * (len(BOUNDS_SECONDS) + 1)
        """Of each bound those above the bound before it; the last have no bound."""

    def add(self, seconds: float) -> None:
        self._counts[bisect_left(BOUNDS_SECONDS, seconds)] += 1
        self.sum_seconds += seconds

    @property
    def count(self) -> int:
        return sum(self._counts)

    def buckets(self) -> Iterator[tuple[str, int]]:
        """Each bound as Prometheus writes it, with the number of durations up to it; the last is all of them."""
        total = 0
        for bound, count in zip((*map(str, BOUNDS_SECONDS), "+Inf"), self._counts, strict=True):
            total += count
            yield bound, total
