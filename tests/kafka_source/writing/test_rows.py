import pyarrow as pa
import pytest

from rackspan.errors import UsageError
from rackspan.kafka_source.writing.rows import OutgoingRow, check_columns, outgoing_rows

HEADERS = "array<struct<key:string,value:binary>>"

WRONG = [
    ({"key": "string"}, "t", "schema: there is no column 'value', which is required"),
    ({"value": "int"}, "t", "schema: column 'value' is int, not string or binary; cast it before writing"),
    ({"value": "string", "key": "bigint"}, "t", "schema: column 'key' is bigint, not string or binary"),
    ({"value": "string", "partition": "bigint"}, "t", "schema: column 'partition' is bigint, not int"),
    ({"value": "string", "headers": "map<string,string>"}, "t", f"column 'headers' is map<string,string>, not {HEADERS}"),
    ({"value": "string", "amount": "int"}, "t", "column 'amount' is not written; drop it, there are key, value, headers, topic"),
    ({"value": "string"}, None, "option topic: name the topic, or give every row one in a column 'topic'"),
]  # fmt: skip


@pytest.mark.parametrize(("types", "topic", "message"), WRONG, ids=lambda value: str(value)[:40])
def test_a_wrong_schema_is_one_line(types: dict[str, str], topic: str | None, message: str) -> None:
    with pytest.raises(UsageError) as raised:
        check_columns(types, topic)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_the_columns_of_a_read_are_written_as_they_are() -> None:
    check_columns(
        {"key": "binary", "value": "binary", "topic": "string", "partition": "int", "offset": "bigint",
         "timestamp": "timestamp", "timestampType": "int", "headers": HEADERS}, None,
    )  # fmt: skip


def test_rows_have_their_own_topic_unless_the_option_names_one() -> None:
    batch = pa.RecordBatch.from_pydict({"value": ["a", None], "topic": ["x", "y"], "partition": pa.array([1, None])})
    assert [row.topic for row in outgoing_rows(batch, None)] == ["x", "y"]
    assert outgoing_rows(batch, "z") == [OutgoingRow("z", 1, None, "a", None), OutgoingRow("z", None, None, None, None)]


def test_headers_keep_their_order_and_nulls() -> None:
    kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    rows = pa.array([[{"key": "b", "value": b"1"}, {"key": "a", "value": None}], None, []], kind)
    batch = pa.RecordBatch.from_arrays([pa.array([b"v"] * 3), rows], ["value", "headers"])
    assert [row.headers for row in outgoing_rows(batch, "t")] == [[("b", b"1"), ("a", None)], None, []]


BAD = [
    ({"value": ["a"], "topic": pa.array([None], pa.string())}, "column 'topic': a row has none"),
    ({"value": ["a"], "topic": ["t"], "partition": [-1]}, "column 'partition': a row has a negative number"),
    ({"value": ["a"], "topic": ["t"], "headers": [[{"key": None, "value": b"x"}]]}, "a header has no key"),
]  # fmt: skip


@pytest.mark.parametrize(("columns", "message"), BAD, ids=lambda value: str(value)[:40])
def test_a_row_that_kafka_cannot_hold_is_refused(columns: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        outgoing_rows(pa.RecordBatch.from_pydict(columns), None)
