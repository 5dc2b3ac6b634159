"""Which error a producer receives: ReplicaManager's table, by the support of its request version."""

import pytest

from rackspan.cluster.core.errors import KafkaError
from rackspan.cluster.core.messages import TransactionSupport
from rackspan.cluster.core.process.verification import offset_commit_error, produce_error, transaction_support

VERIFIES, ABORTS, ADDS = TransactionSupport.VERIFIES, TransactionSupport.ABORTS, TransactionSupport.ADDS


def test_a_versions_support_begins_with_the_version_that_brought_it() -> None:
    assert [transaction_support(version, abortable_since=11, adds_since=12) for version in (10, 11, 12, 13)] == [
        *(VERIFIES, ABORTS, ADDS, ADDS),
    ]


@pytest.mark.parametrize(
    ("error", "of_versions"),
    [
        (KafkaError.NONE, [KafkaError.NONE] * 3),
        (KafkaError.COORDINATOR_LOAD_IN_PROGRESS, [KafkaError.NOT_ENOUGH_REPLICAS] * 3),
        (KafkaError.COORDINATOR_NOT_AVAILABLE, [KafkaError.NOT_ENOUGH_REPLICAS] * 3),
        (KafkaError.NOT_COORDINATOR, [KafkaError.NOT_ENOUGH_REPLICAS] * 3),
        (
            KafkaError.CONCURRENT_TRANSACTIONS,
            [KafkaError.NOT_ENOUGH_REPLICAS, KafkaError.NOT_ENOUGH_REPLICAS, KafkaError.CONCURRENT_TRANSACTIONS],
        ),
        (
            KafkaError.TRANSACTION_ABORTABLE,
            [KafkaError.INVALID_TXN_STATE, KafkaError.TRANSACTION_ABORTABLE, KafkaError.TRANSACTION_ABORTABLE],
        ),
        (KafkaError.PRODUCER_FENCED, [KafkaError.INVALID_PRODUCER_EPOCH] * 3),
        (KafkaError.INVALID_TXN_STATE, [KafkaError.INVALID_TXN_STATE] * 3),
    ],
)
def test_a_coordinators_error_is_sent_as_the_producers_version_supports_it(
    error: KafkaError, of_versions: list[KafkaError]
) -> None:
    assert [produce_error(error, support) for support in (VERIFIES, ABORTS, ADDS)] == of_versions
    assert [offset_commit_error(error, support) for support in (VERIFIES, ABORTS, ADDS)] == [
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS if one is KafkaError.NOT_ENOUGH_REPLICAS else one for one in of_versions
    ]
