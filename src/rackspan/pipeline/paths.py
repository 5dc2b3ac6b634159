"""How a warehouse names its folders: `key=value`, escaped as Hive does, so that Spark and DuckDB read them alike."""

import re
from datetime import UTC, datetime
from typing import Final

from rackspan.errors import InvalidSnapshot

NAME_BYTES_MAX: Final = 255
"""The longest file name that common file systems take."""

# The characters Spark's ExternalCatalogUtils escapes. Others, é for one, stay: it would unescape them byte by byte.
_UNSAFE: Final = re.compile(r'[\x00-\x1f"#%\'*/:=?\\\x7f{}\[\]^]')
_ESCAPED: Final = re.compile(r"%([0-9A-Fa-f]{2})")
_MOMENT: Final = "%Y%m%dT%H%M%S.%fZ"


def escaped(value: str) -> str:
    """`value` as part of a folder's name."""
    return _UNSAFE.sub(lambda match: f"%{ord(match[0]):02X}", value)


def unescaped(name: str) -> str:
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), name)


def pair(key: str, value: str) -> str:
    """`key=value` as a folder's name. Errors: InvalidSnapshot where no file system could hold it."""
    name = f"{key}={escaped(value)}"
    # Half a surrogate pair, which JSON can write, has no bytes at all.
    if len(name.encode(errors="ignore")) > NAME_BYTES_MAX or not _encodes(name):
        raise InvalidSnapshot(f"{key} {value[:40]!r}…: no name that a folder can have; take the snapshot again")
    return name


def value_of(key: str, name: str) -> str | None:
    """What `pair` was given, or None where the folder is another's."""
    head, _, tail = name.partition("=")
    value = unescaped(tail)
    return value if head == key and value and escaped(value) == tail else None


def moment_text(moment: datetime) -> str:
    """20261121T020000.000000Z: sorts as time does, and no file system minds it."""
    return moment.astimezone(UTC).strftime(_MOMENT)


def moment_of(text: str) -> datetime | None:
    """What `moment_text` was given, or None."""
    try:
        moment = datetime.strptime(text, _MOMENT).replace(tzinfo=UTC)
    except ValueError:
        return None
    return moment if moment_text(moment) == text else None


def day_text(moment: datetime) -> str:
    return moment.astimezone(UTC).date().isoformat()


def _encodes(name: str) -> bool:
    try:
        return bool(name.encode())
    except UnicodeEncodeError:
        return False
