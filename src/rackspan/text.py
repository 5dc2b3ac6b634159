"""Numbers, nouns and sizes in messages."""

from typing import Final

_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def count_noun(number: int, noun: str, layout: str = "") -> str:
    """`1 partition`, `2 partitions`; `layout` is the number's format specification."""
    return f"{number:{layout}} {noun}" if number == 1 else f"{number:{layout}} {noun}s"


def human_bytes(size: int) -> str:
    """`0`, `512 B`, `1.2 GiB`: a size as people read it."""
    if size == 0:
        return "0"
    amount, unit = float(size), 0
    while amount >= 1024 and unit < len(_UNITS) - 1:
        amount, unit = amount / 1024, unit + 1
    return f"{size} B" if unit == 0 else f"{amount:.1f} {_UNITS[unit]}"
