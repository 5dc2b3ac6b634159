"""Error codes, held against kio's copy of Kafka's table."""

import pytest
from kio.schema.errors import ErrorCode as KioErrorCode

from rackspan.acks import ProduceVerdict
from rackspan.acks.produce_errors import ERROR_CODES
from rackspan.kafka_bytes.error_codes import ErrorCode, error_code

KAFKAS = {error for error in ErrorCode if error < 1000}


@pytest.mark.parametrize("theirs", KioErrorCode, ids=lambda code: code.name)
def test_every_code_of_kafkas_has_its_name_its_number_and_whether_it_is_retriable(theirs: KioErrorCode) -> None:
    ours = error_code(theirs.value)
    assert (ours.name, ours.value, ours.is_retriable) == (theirs.name.upper(), theirs.value, theirs.retriable)


def test_a_number_that_is_not_in_the_table_is_an_unknown_error() -> None:
    assert error_code(999) is ErrorCode.UNKNOWN_SERVER_ERROR


def test_each_of_our_own_codes_has_one_for_every_client() -> None:
    assert {error.for_every_client for error in ErrorCode} == KAFKAS


@pytest.mark.parametrize(
    ("verdict", "code", "code_for_every_client"),
    [
        (ProduceVerdict.ACCEPT, 0, 0),
        (ProduceVerdict.NOT_ENOUGH_REPLICAS, 19, 19),
        (ProduceVerdict.NOT_ENOUGH_REPLICAS_AFTER_APPEND, 20, 20),
        (ProduceVerdict.NOT_ENOUGH_RACKS, 1001, 19),
        (ProduceVerdict.NOT_ENOUGH_RACKS_AFTER_APPEND, 1002, 20),
    ],
)
def test_clients_receive_19_and_20_for_the_codes_of_our_own(
    verdict: ProduceVerdict, code: int, code_for_every_client: int
) -> None:
    assert (ERROR_CODES[verdict], ErrorCode(code).for_every_client) == (code, code_for_every_client)
    # Kafka's own table has the refusals as retriable, so that clients send the batch again.
    assert ErrorCode(code_for_every_client).is_retriable is ErrorCode(code).is_retriable is (code != 0)
