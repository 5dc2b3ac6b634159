"""Verification of transactional writes by the partition's leader (KIP-890): which errors a producer receives.

Without it a late batch begins a transaction that is never ended, and read_committed consumers wait behind it for ever. With
an older request version the producer has added the partition itself, and the leader only verifies that. With a newer one
the leader's request adds it.
"""

from collections.abc import Mapping
from typing import Final

from rackspan.cluster.core.messages import TransactionSupport
from rackspan.kafka_bytes.error_codes import ErrorCode

_RETRIABLE: Final = frozenset(
    {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR}
)

ERROR_MESSAGES: Final[Mapping[ErrorCode, str]] = {
    ErrorCode.INVALID_TXN_STATE: "Partition was not added to the transaction",
    ErrorCode.NOT_ENOUGH_REPLICAS: "Unable to verify the partition has been added to the transaction",
}


def transaction_support(version: int, *, abortable_since: int, adds_since: int) -> TransactionSupport:
    """The support of a request version, given the versions since which its API has the newer kinds."""
    if version >= adds_since:
        return TransactionSupport.ADDS
    return TransactionSupport.ABORTS if version >= abortable_since else TransactionSupport.VERIFIES


def produce_error(error: ErrorCode, support: TransactionSupport) -> ErrorCode:
    """The transaction coordinator's error as producers of the version support it.

    A passing error becomes NOT_ENOUGH_REPLICAS, which every client retries without new metadata. Source: ReplicaManager.
    """
    if error in _RETRIABLE or (error is ErrorCode.CONCURRENT_TRANSACTIONS and support is not TransactionSupport.ADDS):
        return ErrorCode.NOT_ENOUGH_REPLICAS
    if error is ErrorCode.TRANSACTION_ABORTABLE and support is TransactionSupport.VERIFIES:
        return ErrorCode.INVALID_TXN_STATE
    return ErrorCode.INVALID_PRODUCER_EPOCH if error is ErrorCode.PRODUCER_FENCED else error


def offset_commit_error(error: ErrorCode, support: TransactionSupport) -> ErrorCode:
    """The same for TxnOffsetCommit, whose clients retry COORDINATOR_LOAD_IN_PROGRESS."""
    mapped = produce_error(error, support)
    return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if mapped is ErrorCode.NOT_ENOUGH_REPLICAS else mapped
