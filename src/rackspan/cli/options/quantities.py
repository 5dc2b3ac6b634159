"""Sizes and rates in bytes, as people write them: 50000000, 50MB, 47.7MiB, 50MB/s."""

import re
from fractions import Fraction
from typing import Final

import typer

from rackspan.model import INT64_MAX

_UNITS: Final = {
    "": 1,
    "B": 1,
    **{f"{prefix}B": 1000**power for power, prefix in enumerate(("k", "M", "G", "T"), 1)},
    **{f"{prefix}iB": 1024**power for power, prefix in enumerate(("K", "M", "G", "T"), 1)},
}
_BY_NAME: Final = {name.lower(): size for name, size in _UNITS.items()}

NO_THROTTLE: Final = "none"

_QUANTITY: Final = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", re.ASCII)


def byte_count(text: str) -> int:
    """A size. Errors: BadParameter."""
    match = _QUANTITY.fullmatch(str(text))
    unit = None if match is None else _BY_NAME.get(match[2].lower())
    if match is None or unit is None:
        raise typer.BadParameter(f"{text!r} is not a size; write bytes, such as 50000000, or 50MB, 50MiB, 1.5GB")
    size = Fraction(match[1]) * unit
    if not 1 <= size <= INT64_MAX:
        raise typer.BadParameter(f"{text!r} is not a size of 1 byte to {INT64_MAX} bytes")
    return int(size)


def throttle_rate(text: str) -> int:
    """A rate in bytes a second; `/s` may be left out. 0 for `none`. Errors: BadParameter."""
    written = str(text).strip()
    if written.lower() == NO_THROTTLE:
        return 0
    try:
        return byte_count(written.removesuffix("/s"))
    except typer.BadParameter:
        raise typer.BadParameter(
            f"{text!r} is not a rate; write bytes a second, such as 50000000, or 50MB/s, 50MiB/s, or none for no throttle"
        ) from None
