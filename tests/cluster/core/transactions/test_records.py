"""The records of `__transaction_state`, held against Kafka's own classes both ways."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackspan.cluster.core.transactions import records
from rackspan.cluster.core.transactions.records import TransactionLogValue, TransactionState
from rackspan.errors import InvalidRecord
from tests.cluster.core.groups.record_strategies import INT32, INT64, TEXT
from tests.compat import coordinator_records as kafka
from tests.examples_of import examples_of

MANY = 200
PARTITIONS = st.lists(st.tuples(TEXT, st.integers(0, 5)), max_size=4, unique=True).map(records.grouped)
VALUES = st.builds(
    TransactionLogValue,
    producer_id=INT64,
    producer_epoch=st.integers(-1, 2**15 - 1),
    timeout_ms=INT32,
    state=st.sampled_from(TransactionState),
    partitions=PARTITIONS,
    updated_ms=INT64,
    started_ms=INT64,
    previous_producer_id=st.just(-1) | INT64,
    next_producer_id=st.just(-1) | INT64,
    client_version=st.integers(0, 2),
).map(lambda value: replace(value, partitions=()) if value.state is TransactionState.EMPTY else value)


def as_json(value: TransactionLogValue, version: int) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "producerId": value.producer_id,
        "producerEpoch": value.producer_epoch,
        "transactionTimeoutMs": value.timeout_ms,
        "transactionStatus": int(value.state),
        "transactionPartitions": partitions_json(value),
        "transactionLastUpdateTimestampMs": value.updated_ms,
        "transactionStartTimestampMs": value.started_ms,
    }
    if version == 0:
        return fields
    tags = {
        "previousProducerId": (value.previous_producer_id, -1),
        "nextProducerId": (value.next_producer_id, -1),
        "clientTransactionVersion": (value.client_version, 0),
    }
    return fields | {name: number for name, (number, absent) in tags.items() if number != absent}


def partitions_json(value: TransactionLogValue) -> list[dict[str, Any]] | None:
    if value.state is TransactionState.EMPTY:
        return None
    return [{"topic": topic, "partitionIds": list(partitions)} for topic, partitions in value.partitions]


@given(VALUES)
def test_a_transaction_is_read_as_it_was_written(value: TransactionLogValue) -> None:
    assert records.decode_value(records.encode_value(value)) == value


@given(TEXT)
def test_a_transactional_id_is_read_as_it_was_written(transactional_id: str) -> None:
    assert records.decode_key(records.encode_key(transactional_id)) == transactional_id


def test_a_key_of_an_unknown_kind_is_passed_by() -> None:
    assert records.decode_key(b"\x00\x01\x00\x01t") is None


@pytest.mark.parametrize(
    ("data", "why"),
    [(b"\x00\x02" + bytes(40), "of version 2"), (b"\x00\x01" + bytes(14) + b"\x09" + bytes(20), "transaction state 9")],
)
def test_what_kafka_never_wrote_is_refused(data: bytes, why: str) -> None:
    with pytest.raises(InvalidRecord, match=why):
        records.decode_value(data)


@pytest.mark.java
def test_kafka_writes_and_reads_the_same_transactions() -> None:
    values = examples_of(VALUES, MANY)
    ours = [records.encode_value(value) for value in values]
    named = [as_json(value, records.VALUE_VERSION) for value in values]
    assert kafka.write([("TransactionLogValue", records.VALUE_VERSION, each) for each in named]) == ours
    read = kafka.read([("TransactionLogValue", data) for data in ours])
    assert read == [(records.VALUE_VERSION, each) for each in named]


@pytest.mark.java
def test_transactions_of_before_kafka_4_are_read() -> None:
    values = examples_of(VALUES, MANY)
    written = kafka.write([("TransactionLogValue", 0, as_json(value, 0)) for value in values])
    expected = [replace(v, previous_producer_id=-1, next_producer_id=-1, client_version=0) for v in values]
    assert [records.decode_value(data) for data in written] == expected


@pytest.mark.java
def test_kafka_writes_the_same_keys() -> None:
    names = examples_of(TEXT, MANY)
    written = kafka.write([("TransactionLogKey", 0, {"transactionalId": name}) for name in names])
    assert written == [records.encode_key(name) for name in names]


def test_the_states_of_a_record_have_kafkas_numbers() -> None:
    """TransactionState.java."""
    numbers = ["EMPTY", "ONGOING", "PREPARE_COMMIT", "PREPARE_ABORT", "COMPLETE_COMMIT", "COMPLETE_ABORT", "DEAD"]
    assert {state.name: int(state) for state in TransactionState} == {
        **{name: number for number, name in enumerate(numbers)},
        "PREPARE_EPOCH_FENCE": 7,
    }


BEFORE_KAFKA_4 = "0000" + "0000000000000007" + "0003" + "000001f4" + "01"
TIMES = "0000000000000014" + "000000000000000a"


@pytest.mark.parametrize(
    ("partitions", "expected"),
    [
        ("ffffffff", ()),
        ("00000000", ()),
        ("00000001" + "0001" + "6f" + "00000002" + "00000000" + "00000005", (("o", (0, 5)),)),
    ],
    ids=["null", "none", "two"],
)
def test_version_0_is_read_byte_by_byte(partitions: str, expected: tuple[tuple[str, tuple[int, ...]], ...]) -> None:
    value = TransactionLogValue(7, 3, 500, TransactionState.ONGOING, expected, 20, 10, -1, -1, 0)
    assert records.decode_value(bytes.fromhex(BEFORE_KAFKA_4 + partitions + TIMES)) == value


@pytest.mark.parametrize(
    ("fields", "tags"),
    [
        ({}, "00"),
        ({"previous_producer_id": 6}, "01" + "0008" + "0000000000000006"),
        ({"next_producer_id": 8}, "01" + "0108" + "0000000000000008"),
        ({"client_version": 2}, "01" + "0202" + "0002"),
    ],
)
def test_version_1_writes_only_the_tags_that_are_set(fields: dict[str, Any], tags: str) -> None:
    value = TransactionLogValue(7, 3, 500, TransactionState.ONGOING, (("o", (0, 5)),), 20, 10)
    written = records.encode_value(replace(value, **fields))
    body = "0001" + BEFORE_KAFKA_4[4:] + "02" + "026f" + "03" + "00000000" + "00000005" + "00"
    assert written.hex() == body + TIMES + tags
    assert records.decode_value(written) == replace(value, **fields)
