"""The columns that the sink writes, by the names and types that Spark's own Kafka connector has.

| column | type | |
|---|---|---|
| key | string or binary | may be left out |
| value | string or binary | required; null is a tombstone |
| headers | array<struct<key string, value binary>> | may be left out |
| topic | string | if the option `topic` is not given, which precedes it |
| partition | int | may be left out or null: the key chooses, as in the Java producer |

`offset`, `timestamp` and `timestampType`, which a read gives, are passed over, as Spark's connector does: Kafka gives new ones.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import pyarrow as pa

from rackspan.errors import UsageError
from rackspan.kafka_source.records.rows import HEADERS, SPARK_TYPES

_TYPES: Final[Mapping[str, tuple[str, ...]]] = {
    "key": ("string", "binary"),
    "value": ("string", "binary"),
    HEADERS: (SPARK_TYPES[HEADERS],),
    "topic": ("string",),
    "partition": ("int",),
}
_PASSED_OVER: Final = ("offset", "timestamp", "timestampType")

Bytes: TypeAlias = bytes | str | None
Headers: TypeAlias = list[tuple[str, str | bytes | None]] | None


@dataclass(frozen=True, slots=True)
class OutgoingRow:
    """One record to be sent. A partition of None is chosen by the key."""

    topic: str
    partition: int | None
    key: Bytes
    value: Bytes
    headers: Headers

    @property
    def size_bytes(self) -> int:
        """The size of key and value, roughly: characters of strings count once."""
        return len(self.key or b"") + len(self.value or b"")


def check_columns(types_by_name: Mapping[str, str], topic: str | None) -> None:
    """Errors: UsageError for a column that is missing, of another type, or not written."""
    if "value" not in types_by_name:
        raise UsageError(
            "schema: there is no column 'value', which is required; name it with select or withColumnRenamed"
        )
    if topic is None and "topic" not in types_by_name:
        raise UsageError("option topic: name the topic, or give every row one in a column 'topic'")
    for name, kind in types_by_name.items():
        if name in _PASSED_OVER:
            continue
        if name not in _TYPES:
            raise UsageError(f"schema: column {name!r} is not written; drop it, there are {', '.join(_TYPES)}")
        if kind not in _TYPES[name]:
            raise UsageError(
                f"schema: column {name!r} is {kind}, not {' or '.join(_TYPES[name])}; cast it before writing"
            )


def outgoing_rows(batch: pa.RecordBatch, topic: str | None) -> list[OutgoingRow]:
    """Errors: UsageError for a row without a topic, with a negative partition, or with a header without a key."""
    nothing: Sequence[None] = [None] * batch.num_rows
    columns = {name: batch.column(name).to_pylist() if name in batch.schema.names else nothing for name in _TYPES}
    topics = columns["topic"] if topic is None else [topic] * batch.num_rows
    if None in topics:
        raise UsageError("column 'topic': a row has none; fill it in, or set the option topic for all rows")
    if any(number is not None and number < 0 for number in columns["partition"]):
        raise UsageError("column 'partition': a row has a negative number; null lets the key choose")
    headers = [_headers(row) for row in columns[HEADERS]]
    return [
        OutgoingRow(*row)
        for row in zip(topics, columns["partition"], columns["key"], columns["value"], headers, strict=True)
    ]


def _headers(row: Sequence[Mapping[str, object]] | None) -> Headers:
    if row is None:
        return None
    found = [(header["key"], header["value"]) if header else (None, None) for header in row]
    if any(key is None for key, _ in found):
        raise UsageError("column 'headers': a header has no key, which Kafka requires")
    return found  # type: ignore[return-value]  # Without a key there was an error.
