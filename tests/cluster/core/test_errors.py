"""Error codes, held against kio's copy of Kafka's table."""

from kio.schema.errors import ErrorCode

from rackspan.acks.replies import NOT_ENOUGH_RACKS, NOT_ENOUGH_RACKS_AFTER_APPEND
from rackspan.cluster.core.errors import KafkaError

KAFKAS = {error for error in KafkaError if error < 1000}


def test_every_code_of_kafkas_has_its_name_and_may_be_retried_as_kafka_says() -> None:
    theirs = {(code.name.upper(), code.value, code.retriable) for code in ErrorCode}
    assert {(error.name, error.value, error.retriable) for error in KAFKAS} <= theirs


def test_our_own_codes_are_those_of_the_rule_and_every_client_has_one_it_handles_alike() -> None:
    assert KafkaError.NOT_ENOUGH_RACKS.value == NOT_ENOUGH_RACKS
    assert KafkaError.NOT_ENOUGH_RACKS_AFTER_APPEND.value == NOT_ENOUGH_RACKS_AFTER_APPEND
    assert {error.for_every_client for error in KafkaError} == KAFKAS
    assert all(error.retriable == error.for_every_client.retriable for error in set(KafkaError) - KAFKAS)
