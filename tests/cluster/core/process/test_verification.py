"""Which error a producer receives: ReplicaManager's table, by the support of its request version."""

import pytest

from rackspan.cluster.core.messages import TransactionSupport
from rackspan.cluster.core.process import offset_commit_error, produce_error, transaction_support
from rackspan.kafka_bytes.error_codes import ErrorCode

VERIFIES, ABORTS, ADDS = TransactionSupport.VERIFIES, TransactionSupport.ABORTS, TransactionSupport.ADDS


def test_a_versions_support_begins_with_the_version_that_brought_it() -> None:
    assert [transaction_support(version, abortable_since=11, adds_since=12) for version in (10, 11, 12, 13)] == [
        *(VERIFIES, ABORTS, ADDS, ADDS),
    ]


@pytest.mark.parametrize(
    ("error", "of_versions"),
    [
        (ErrorCode.NONE, [ErrorCode.NONE] * 3),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, [ErrorCode.NOT_ENOUGH_REPLICAS] * 3),
        (ErrorCode.COORDINATOR_NOT_AVAILABLE, [ErrorCode.NOT_ENOUGH_REPLICAS] * 3),
        (ErrorCode.NOT_COORDINATOR, [ErrorCode.NOT_ENOUGH_REPLICAS] * 3),
        (
            ErrorCode.CONCURRENT_TRANSACTIONS,
            [ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.CONCURRENT_TRANSACTIONS],
        ),
        (
            ErrorCode.TRANSACTION_ABORTABLE,
            [ErrorCode.INVALID_TXN_STATE, ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.TRANSACTION_ABORTABLE],
        ),
        (ErrorCode.PRODUCER_FENCED, [ErrorCode.INVALID_PRODUCER_EPOCH] * 3),
        (ErrorCode.INVALID_TXN_STATE, [ErrorCode.INVALID_TXN_STATE] * 3),
    ],
)
def test_a_coordinators_error_is_sent_as_the_producers_version_supports_it(
    error: ErrorCode, of_versions: list[ErrorCode]
) -> None:
    assert [produce_error(error, support) for support in (VERIFIES, ABORTS, ADDS)] == of_versions
    assert [offset_commit_error(error, support) for support in (VERIFIES, ABORTS, ADDS)] == [
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if one is ErrorCode.NOT_ENOUGH_REPLICAS else one for one in of_versions
    ]
