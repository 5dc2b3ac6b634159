"""Error codes, held against kio's copy of Kafka's table."""

import pytest
from kio.schema.errors import ErrorCode

from rackspan.acks import ProduceVerdict
from rackspan.acks.produce_errors import ERROR_CODES, NOT_ENOUGH_RACKS, NOT_ENOUGH_RACKS_AFTER_APPEND
from rackspan.cluster.core.errors import KafkaError

KAFKAS = {error for error in KafkaError if error < 1000}


def test_every_code_of_kafkas_has_its_name_and_number() -> None:
    theirs = {(code.name.upper(), code.value) for code in ErrorCode}
    assert {(error.name, error.value) for error in KAFKAS} <= theirs


def test_our_own_codes_are_those_of_the_rule_and_each_has_one_for_every_client() -> None:
    assert KafkaError.NOT_ENOUGH_RACKS.value == NOT_ENOUGH_RACKS
    assert KafkaError.NOT_ENOUGH_RACKS_AFTER_APPEND.value == NOT_ENOUGH_RACKS_AFTER_APPEND
    assert {error.for_every_client for error in KafkaError} == KAFKAS


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
    assert (ERROR_CODES[verdict], KafkaError(code).for_every_client) == (code, code_for_every_client)
    # Kafka's own table has the refusals as retriable, so that clients send the batch again.
    assert ErrorCode(code_for_every_client).retriable is (code != 0)
