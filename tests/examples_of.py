"""Many drawn values at once, for oracles that take a second to start."""

from typing import TypeVar

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

T = TypeVar("T")


def examples_of(strategy: st.SearchStrategy[T], count: int) -> list[T]:
    """`count` values, the same every run."""
    found: list[T] = []

    @settings(max_examples=count, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
    @given(strategy)
    def collect(value: T) -> None:
        found.append(value)

    collect()
    return found
