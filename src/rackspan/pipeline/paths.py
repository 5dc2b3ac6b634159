"""Names of folders in a warehouse: `key=value`, escaped as in Hive, so that Spark and DuckDB read them alike."""

import re
from datetime import UTC, datetime
from typing import Final

from rackspan.errors import InvalidSnapshot

NAME_BYTES_MAX: Final = 255
"""The longest file name that common file systems take."""

# The characters that Spark's ExternalCatalogUtils escapes. Others, such as é, stay: Spark would unescape them bytewise.
_UNSAFE: Final = re.compile(r'[\x00-\x1f"#%\'*/:=?\\\x7f{}\[\]^]')
_ESCAPED: Final = re.compile(r"%([0-9A-Fa-f]{2})")
_TIMESTAMP: Final = "%Y%m%dT%H%M%S.%fZ"


def escaped(value: str) -> str:
    """`value` as part of a folder's name."""
    return _UNSAFE.sub(lambda match: f"%{ord(match[0]):02X}", value)


def unescaped(name: str) -> str:
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), name)


def pair(key: str, value: str) -> str:
    """`key=value` as a folder's name. Errors: InvalidSnapshot where it is too long or not encodable."""
    name = f"{key}={escaped(value)}"
    # Half a surrogate pair, which JSON can write, has no bytes at all.
    if len(name.encode(errors="ignore")) > NAME_BYTES_MAX or not _encodes(name):
        raise InvalidSnapshot(f"{key} {value[:40]!r}…: no name that a folder can have; take the snapshot again")
    return name


def value_of(key: str, name: str) -> str | None:
    """The inverse of `pair`; None for a folder with another key."""
    head, _, tail = name.partition("=")
    value = unescaped(tail)
    return value if head == key and value and escaped(value) == tail else None


def timestamp_text(timestamp: datetime) -> str:
    """20261121T020000.000000Z: sorted by time, and valid on every file system."""
    return timestamp.astimezone(UTC).strftime(_TIMESTAMP)


def timestamp_of(text: str) -> datetime | None:
    """The inverse of `timestamp_text`; None for another text."""
    try:
        timestamp = datetime.strptime(text, _TIMESTAMP).replace(tzinfo=UTC)
    except ValueError:
        return None
    return timestamp if timestamp_text(timestamp) == text else None


def day_text(timestamp: datetime) -> str:
    return timestamp.astimezone(UTC).date().isoformat()


def _encodes(name: str) -> bool:
    try:
        return bool(name.encode())
    except UnicodeEncodeError:
        return False
