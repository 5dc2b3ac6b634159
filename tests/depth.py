"""How much a test draws: 10 examples a property in `make check`, 30 in `make test`, 1,000 in `make soak`; and fewer repetitions."""

import os
from collections.abc import Iterable
from typing import Any, Final

import pytest
from hypothesis import settings

DEPTH: Final = "soak" if os.environ.get("RACKSPAN_SOAK") else os.environ.get("RACKSPAN_DEPTH", "test")
"""`check`, `test` or `soak`, each the name of a profile of tests/conftest.py."""


def at_depth(*, test: int, check: int | None = None, soak: int | None = None) -> int:
    """How often a test repeats itself or how large a case it makes; in make check and make soak as in make test, unless given."""
    return {"check": check, "soak": soak}.get(DEPTH) or test


def one_in(stride: int, values: Iterable[object]) -> list[Any]:
    """Parameters of a test: each in make soak, and the first of every `stride` in make check and make test."""
    return [pytest.param(value, marks=pytest.mark.soak if at % stride else []) for at, value in enumerate(values)]


def examples(times: float, **others: Any) -> settings:
    """As many examples as the profile has, times `times`."""
    return settings(max_examples=max(1, round(settings().max_examples * times)), **others)
