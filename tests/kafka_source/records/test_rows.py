"""Arrow batches of decoded records, against the records themselves."""

import subprocess
import sys
from mmap import mmap
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackspan.errors import UsageError
from rackspan.kafka_source.records import rows
from rackspan.kafka_source.records.columns import decode
from rackspan.kafka_source.records.rows import SPARK_TYPES, arrow_schema, binary_array, check_schema, record_batches
from tests.kafka_source.records.test_columns import Record, built

ROOT = Path(__file__).parents[3]
RECORDS = [
    Record(3, 1000, b"k", b"value", (("h", b"x"), ("n", None))),
    Record(4, 1001, None, None),
    Record(6, 999, b"", b""),
]


def table(records: list[Record], *names: str) -> list[pa.RecordBatch]:
    columns = decode(built(records), 0, 1 << 60).records
    return list(record_batches(columns, "orders", 5, names or tuple(SPARK_TYPES)))


def test_every_column_has_the_values_of_the_records() -> None:
    (batch,) = table(RECORDS)
    assert batch.schema == arrow_schema(list(SPARK_TYPES))
    found = batch.to_pydict()
    assert found["key"] == [b"k", None, b""]
    assert found["value"] == [b"value", None, b""]
    assert (found["topic"], found["partition"], found["offset"]) == (["orders"] * 3, [5] * 3, [3, 4, 6])
    assert [at.timestamp() for at in found["timestamp"]] == [1.0, 1.001, 0.999]
    assert found["timestampType"] == [0, 0, 0]
    assert found["headers"] == [[{"key": "h", "value": b"x"}, {"key": "n", "value": None}], None, None]


@given(
    st.lists(
        st.lists(
            st.tuples(st.text(st.characters(exclude_categories=["Cs"]), max_size=3), st.none() | st.binary(max_size=3)),
            max_size=3,
        ),
        min_size=1,
        max_size=20,
    )
)
def test_headers_are_those_of_the_records(headers: list[list[tuple[str, bytes | None]]]) -> None:
    records = [Record(offset, 0, None, None, tuple(each)) for offset, each in enumerate(headers)]
    (batch,) = table(records, "headers")
    batch.validate(full=True)
    # What Arrow's own conversion makes of them.
    assert batch["headers"].equals(pa.array([each or None for each in headers], batch.schema.field("headers").type))


def test_only_the_columns_that_are_wanted_are_made() -> None:
    (batch,) = table(RECORDS, "offset", "key")
    assert batch.to_pydict() == {"offset": [3, 4, 6], "key": [b"k", None, b""]}


def test_batches_are_bounded_by_rows_and_by_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    records = [Record(offset, 0, None, b"x" * 10) for offset in range(10)]
    monkeypatch.setattr(rows, "_BATCH_ROWS", 4)
    assert [batch.num_rows for batch in table(records)] == [4, 4, 2]
    monkeypatch.setattr(rows, "_BATCH_BYTES", 25)
    assert [batch.num_rows for batch in table(records)] == [2] * 5
    monkeypatch.setattr(rows, "_BATCH_BYTES", 5)
    found = table(records)
    # A record that is larger than the bound is a batch of its own.
    assert [batch["offset"].to_pylist() for batch in found] == [[offset] for offset in range(10)]


def test_a_string_without_bytes_is_not_null() -> None:
    starts = np.array([0, 1, 1], np.int64)
    assert binary_array(b"abc", starts, np.array([1, 0, -1], np.int64)).to_pylist() == [b"a", b"", None]
    assert binary_array(b"", starts[:0], starts[:0]).to_pylist() == []


def test_strings_beyond_two_gib_of_decompressed_records_are_read(tmp_path: Path) -> None:
    """Eight MB that compress to a three hundredth of their size become more."""
    words, at = [b"one", None, b"two"], (1 << 31) + 100
    starts = np.array([at, at + 5, at + 5], np.int64)
    with (tmp_path / "sparse").open("w+b") as file:
        file.seek(at)
        file.write(b"one..two")
        file.flush()
        with mmap(file.fileno(), 0) as data:
            found = binary_array(data, starts, np.array([3, -1, 3], np.int64))  # type: ignore[arg-type]  # No file is as large as that in memory.
            assert found.to_pylist() == words
            del found


@pytest.mark.parametrize("at", [1_700_000_000 * 10**9, -(1 << 62)])
def test_a_time_that_spark_cannot_have_is_an_error_and_no_other_time(at: int) -> None:
    records = [Record(3, rows.MILLISECONDS_MAX, None, None), Record(4, at, None, b"v")]
    with pytest.raises(
        UsageError, match=rf"^orders-5: the record at offset 4 has timestamp {at} ms, .*leave out that column"
    ):
        table(records)
    (batch,) = table(records, "offset", "value")
    assert batch.to_pydict() == {"offset": [3, 4], "value": [None, b"v"]}
    (batch,) = table(records[:1], "timestamp")
    assert batch["timestamp"].cast(pa.int64()).to_pylist() == [rows.MILLISECONDS_MAX * 1000]


@pytest.mark.slow
def test_columns_are_made_without_pandas() -> None:
    """Importing it is half a second of each new Python worker."""
    made = """
import sys
import tests.kafka_source.records.test_rows as module
(batch,) = module.table(module.RECORDS)
batch.validate(full=True)
print(batch.num_rows, "pandas" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", made], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout == "3 False\n"


def test_a_schema_of_other_columns_is_refused() -> None:
    with pytest.raises(UsageError, match="there is no column 'amount'; there are key, value"):
        check_schema({"amount": "int"}, include_headers=False)
    with pytest.raises(UsageError, match="headers need the option includeHeaders=true"):
        check_schema({"headers": SPARK_TYPES["headers"]}, include_headers=False)
    with pytest.raises(UsageError, match="column 'value' is binary, not string; cast it after reading"):
        check_schema({"value": "string"}, include_headers=False)
    check_schema(dict(SPARK_TYPES), include_headers=True)
