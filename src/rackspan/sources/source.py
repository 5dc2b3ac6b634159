"""Somewhere a snapshot can be had, as verbs and the pipeline take it."""

from collections.abc import Callable
from dataclasses import dataclass

from rackspan.model.json_format import ReadSnapshot


@dataclass(frozen=True, slots=True)
class Source:
    """Where one snapshot at a time comes from. `name` is what messages call it: an address or a file."""

    name: str
    read: Callable[[], ReadSnapshot]
