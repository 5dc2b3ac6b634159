"""ListTransactions version 2: transactions by a pattern of their transactional id (KIP-1152)."""

from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from rackspan.cluster import EmbeddedCluster
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.transaction_states import ListTransactionsRequestData, ListTransactionsResponseData
from tests.cluster.raw import response_to


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A broker that coordinates three transactional ids."""
    with EmbeddedCluster(racks=1, brokers=1) as cluster:
        for transactional_id in ("orders-1", "orders-2", "bills"):
            producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": transactional_id})
            producer.init_transactions(30)
        yield cluster.address(1)


@pytest.mark.parametrize(
    ("pattern", "listed"),
    [
        (None, ["bills", "orders-1", "orders-2"]),
        ("", ["bills", "orders-1", "orders-2"]),
        ("orders-.*", ["orders-1", "orders-2"]),
        # The pattern is for the whole id.
        ("orders", []),
    ],
)
def test_transactions_are_listed_by_a_pattern_of_their_ids(
    address: str, pattern: str | None, listed: list[str]
) -> None:
    request = ListTransactionsRequestData(transactional_id_pattern=pattern)
    response: ListTransactionsResponseData = response_to(address, ApiKey.LIST_TRANSACTIONS, 2, request)
    assert [transaction.transactional_id for transaction in response.transaction_states] == listed


def test_an_invalid_pattern_is_an_error(address: str) -> None:
    request = ListTransactionsRequestData(transactional_id_pattern="(")
    response: ListTransactionsResponseData = response_to(address, ApiKey.LIST_TRANSACTIONS, 2, request)
    assert response.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION


def test_states_that_there_are_not_are_named(address: str) -> None:
    request = ListTransactionsRequestData(state_filters=["Ongoing", "Odd", "Empty", "ongoing"])
    response: ListTransactionsResponseData = response_to(address, ApiKey.LIST_TRANSACTIONS, 2, request)
    assert list(response.unknown_state_filters) == ["Odd", "ongoing"]
    assert {transaction.transaction_state for transaction in response.transaction_states} == {"Empty"}
