"""Kafka's dotted keys in TOML files."""

from collections.abc import Iterator, Mapping
from typing import Any


def dotted_keys(table: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Keys and values; TOML reads `min.insync.racks = 2` as nested tables."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from dotted_keys(value, f"{before}{key}.")
        else:
            yield f"{before}{key}", value
