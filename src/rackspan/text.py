"""Numbers, nouns, sizes and times in messages and documents."""

import re
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Final

CONTROLS: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
"""Line breaks and what a terminal obeys. Half of a surrogate pair cannot be written at all."""

_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def count_noun(number: int, noun: str, layout: str = "", *, plural: str | None = None) -> str:
    """`1 partition`, `2 partitions`; `layout` is the number's format specification, `plural` one that is not `noun` with an s."""
    return f"{number:{layout}} {noun if number == 1 else plural or f'{noun}s'}"


def noun_and_ids(noun: str, ids: Sequence[int]) -> str:
    """`broker 1`, or `brokers 1,4`."""
    return f"{noun} {ids[0]}" if len(ids) == 1 else f"{noun}s {','.join(map(str, ids))}"


def nearest(name: str, names: Collection[str], alike_min: float = 0.6) -> str:
    """` (did you mean 'orders'?)` where one of the names is alike (1.0 is equal), else nothing."""
    alike = closest(name, names, alike_min)
    return f" (did you mean {alike!r}?)" if alike else ""


def closest(name: str, names: Collection[str], alike_min: float = 0.6) -> str | None:
    """The name that is most alike (1.0 is equal)."""
    # Imported here: few commands end with a mistake.
    from difflib import get_close_matches

    return next(iter(get_close_matches(name, list(names), 1, alike_min)), None)


def human_bytes(size: int) -> str:
    """`0`, `512 B`, `1.2 GiB`: a size as people read it."""
    if size == 0:
        return "0"
    amount, unit = float(size), 0
    while amount >= 1024 and unit < len(_UNITS) - 1:
        amount, unit = amount / 1024, unit + 1
    return f"{size} B" if unit == 0 else f"{amount:.1f} {_UNITS[unit]}"


def utc_text(time: datetime) -> str:
    """`2026-11-21T02:00:00Z`; `time` is in UTC."""
    return time.isoformat().replace("+00:00", "Z")
