"""What a run did, as lines of JSON, and a hash of them that is the same on every machine."""

import json
import zlib
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import TypeAlias
from uuid import UUID

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"


class Trace:
    """Hashes each line as it comes, and keeps the lines only if `keep`: they are many."""

    def __init__(self, *, keep: bool = False) -> None:
        self.crc = 0
        self.count = 0
        self.lines: list[str] | None = [] if keep else None

    def add(self, time_ms: int, source: object, destination: object, message: object) -> None:
        self.count += 1
        if self.lines is None:
            # The type and the time of every message are enough to distinguish two runs, at a tenth of the cost.
            line = f"{self.count} {time_ms} {source} {destination} {type(message).__name__}"
        else:
            line = f"{self.count} {time_ms} {source} {destination} {type(message).__name__}"
            self.lines.append(self._json(time_ms, source, destination, message))
        self.crc = zlib.crc32(line.encode(), self.crc)

    def _json(self, time_ms: int, source: object, destination: object, message: object) -> str:
        line = {"n": self.count, "t_ms": time_ms, "from": str(source), "to": str(destination)}
        return json.dumps({**line, "message": {type(message).__name__: plain(message)}}, separators=(",", ":"))


def plain(value: object) -> Json:
    """A message as JSON, in the order of its fields; sets sorted, so that the same message is the same line."""
    if value is None or (isinstance(value, bool | int | float | str) and not isinstance(value, Enum)):
        return value
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, UUID | bytes | bytearray):
        return str(value) if isinstance(value, UUID) else len(value)
    return _of_many(value)


def _of_many(value: object) -> Json:
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, set | frozenset):
        return sorted((plain(item) for item in value), key=str)
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    return str(value)
