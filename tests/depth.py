"""How many examples a property draws, as a multiple of the profile: 20 in `make check`, 100 in `make test`, 1,000 in `make soak`."""

from typing import Any

from hypothesis import settings


def examples(times: float, **others: Any) -> settings:
    """As many examples as the profile has, times `times`."""
    return settings(max_examples=max(1, round(settings().max_examples * times)), **others)
