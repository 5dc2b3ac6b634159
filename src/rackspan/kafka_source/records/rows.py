"""The rows of the source: Spark's own columns for Kafka, and the Arrow batches made of decoded records.

| column | type | |
|---|---|---|
| key, value | binary | null if the record has none |
| topic | string | |
| partition | int | |
| offset | long | |
| timestamp | timestamp | of the producer or of the broker's append; a millisecond before 1970 if the record has none |
| timestampType | int | 0 created, 1 appended |
| headers | array<struct<key string, value binary>> | with `includeHeaders`; null if the record has none |

A schema given by the user chooses among them: what is left out is never built (projection).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rackspan.errors import UsageError
from rackspan.kafka_source.records.columns import Header, Ints, RecordColumns
from rackspan.model.ids import INT64_MAX

HEADERS: Final = "headers"

_HEADER: Final = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
_ARROW_TYPES: Final[Mapping[str, pa.DataType]] = {
    "key": pa.binary(),
    "value": pa.binary(),
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestampType": pa.int32(),
    HEADERS: pa.list_(pa.field("element", _HEADER)),
}
SPARK_TYPES: Final[Mapping[str, str]] = {
    "key": "binary",
    "value": "binary",
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "timestamp": "timestamp",
    "timestampType": "int",
    HEADERS: "array<struct<key:string,value:binary>>",
}
"""Types as `DataType.simpleString` writes them."""

_BATCH_ROWS: Final = 20_000
"""Above some ten thousand rows a batch gains nothing, and its memory is held by Python, Arrow and the JVM at once."""

_BATCH_BYTES: Final = 16 << 20

MILLISECONDS_MAX: Final = INT64_MAX // 1000
"""Spark's timestamps count microseconds."""

Column: TypeAlias = Callable[[RecordColumns, slice], pa.Array]


def spark_schema(include_headers: bool) -> str:
    """The schema as DDL, all columns nullable."""
    return ", ".join(f"{name} {kind}" for name, kind in SPARK_TYPES.items() if include_headers or name != HEADERS)


def check_schema(types_by_name: Mapping[str, str], include_headers: bool) -> None:
    """Errors: UsageError for a column that there is not, or of another type."""
    available = [name for name in SPARK_TYPES if include_headers or name != HEADERS]
    for name, kind in types_by_name.items():
        if name not in available:
            also = "; headers need the option includeHeaders=true" if name == HEADERS else ""
            raise UsageError(f"schema: there is no column {name!r}; there are {', '.join(available)}{also}")
        if kind != SPARK_TYPES[name]:
            raise UsageError(f"schema: column {name!r} is {SPARK_TYPES[name]}, not {kind}; cast it after reading")


def arrow_schema(names: Sequence[str]) -> pa.Schema:
    return pa.schema([pa.field(name, _ARROW_TYPES[name]) for name in names])


def record_batches(
    records: RecordColumns, topic: str, partition: int, names: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Batches of bounded rows and bytes, in offset order, with the columns `names`."""
    schema = arrow_schema(names)
    columns = _columns(topic, partition)
    for rows in _slices(records):
        yield pa.RecordBatch.from_arrays([columns[name](records, rows) for name in names], schema=schema)


def _slices(records: RecordColumns) -> Iterator[slice]:
    """Rows by count, and by bytes where values are large."""
    sizes = np.cumsum(np.maximum(records.key_lengths, 0) + np.maximum(records.value_lengths, 0))
    begin = 0
    while begin < len(records):
        passed = sizes[begin - 1] if begin else 0
        by_bytes = int(np.searchsorted(sizes, passed + _BATCH_BYTES, side="right"))
        end = min(begin + _BATCH_ROWS, max(by_bytes, begin + 1), len(records))
        yield slice(begin, end)
        begin = end


def _columns(topic: str, partition: int) -> Mapping[str, Column]:
    def count(rows: slice) -> int:
        return int(rows.stop - rows.start)

    return {
        "key": lambda r, rows: binary_array(r.data, r.key_starts[rows], r.key_lengths[rows]),
        "value": lambda r, rows: binary_array(r.data, r.value_starts[rows], r.value_lengths[rows]),
        "topic": lambda _, rows: _repeated(topic.encode(), count(rows)),
        "partition": lambda _, rows: _fixed_width(np.full(count(rows), partition, np.int32), pa.int32()),
        "offset": lambda r, rows: _fixed_width(r.offsets[rows], pa.int64()),
        "timestamp": lambda r, rows: _timestamps(r, rows, topic, partition),
        "timestampType": lambda r, rows: _fixed_width(r.log_append_time[rows].astype(np.int32), pa.int32()),
        HEADERS: lambda r, rows: _headers([r.headers(row) for row in range(rows.start, rows.stop)]),
    }


def _headers(by_row: Sequence[Sequence[Header]]) -> pa.Array:
    """Null for a row without headers."""
    each = [header for headers in by_row for header in headers]
    keys = _strings([key.encode() for key, _ in each], pa.string())
    values = _strings([value for _, value in each], pa.binary())
    both = pa.Array.from_buffers(_HEADER, len(each), [None], children=[keys, values])
    counts = np.array([len(headers) for headers in by_row], np.int64)
    return pa.Array.from_buffers(
        _ARROW_TYPES[HEADERS], len(by_row), [_bits(counts > 0), _bounds(counts)], children=[both]
    )


def _strings(values: Sequence[bytes | None], kind: pa.DataType) -> pa.Array:
    lengths = np.array([-1 if value is None else len(value) for value in values], np.int64)
    data = b"".join(value or b"" for value in values)
    return pa.Array.from_buffers(
        kind, len(values), [_bits(lengths >= 0), _bounds(np.maximum(lengths, 0)), pa.py_buffer(data)]
    )


def _bounds(lengths: Ints) -> pa.Buffer:
    """Where each begins, and where the last one ends."""
    return pa.py_buffer(np.concatenate(([0], np.cumsum(lengths))).astype(np.int32))


def _timestamps(records: RecordColumns, rows: slice, topic: str, partition: int) -> pa.Array:
    """Errors: UsageError for a time that Spark cannot have, as of a producer that counted nanoseconds."""
    milliseconds = records.timestamps[rows]
    beyond = np.flatnonzero((milliseconds > MILLISECONDS_MAX) | (milliseconds < -MILLISECONDS_MAX))
    if len(beyond):
        offset, at = records.offsets[rows][beyond[0]], milliseconds[beyond[0]]
        raise UsageError(
            f"{topic}-{partition}: the record at offset {offset} has timestamp {at} ms, which no timestamp of Spark holds; "
            "leave out that column by a schema of the others"
        )
    # As Spark's connector does: -1, no timestamp, is the millisecond before 1970.
    return _fixed_width(milliseconds * 1000, _ARROW_TYPES["timestamp"])


def _fixed_width(values: npt.NDArray[Any], kind: pa.DataType) -> pa.Array:
    """Without nulls. `pa.array` and `pa.scalar` import pandas at their first call, which is half a second of each Python worker."""
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(np.ascontiguousarray(values))])


def _repeated(text: bytes, count: int) -> pa.Array:
    bounds = np.arange(count + 1, dtype=np.int32) * len(text)
    return pa.Array.from_buffers(
        pa.string(), count, [None, pa.py_buffer(bounds.astype(np.int32)), pa.py_buffer(text * count)]
    )


def binary_array(data: bytes, starts: Ints, lengths: Ints) -> pa.Array:
    """The byte strings at `starts`, null if the length is -1, copied once and by Arrow.

    Starts ascend and strings do not overlap. Arrow reads `data` as strings and the gaps between them in turn, by
    their bounds alone; taking every other one leaves the strings.
    """
    count = len(starts)
    if not count:
        return pa.nulls(0, pa.binary())
    # Arrow counts 2 GiB from where its buffer begins, and records that compress well fill more with one fetch.
    first = int(starts[0])
    bounds = np.empty(2 * count, np.int32)
    bounds[0::2] = starts - first
    bounds[1::2] = starts - first + np.maximum(lengths, 0)
    with_gaps = pa.Array.from_buffers(
        pa.binary(),
        2 * count - 1,
        [_bits(np.repeat(lengths >= 0, 2)), pa.py_buffer(bounds), pa.py_buffer(data).slice(first)],
    )
    return with_gaps.take(_fixed_width(np.arange(0, 2 * count, 2), pa.int64()))


def _bits(present: npt.NDArray[np.bool_]) -> pa.Buffer | None:
    """Arrow's validity bitmap; None if nothing is null."""
    return None if present.all() else pa.py_buffer(np.packbits(present, bitorder="little"))
