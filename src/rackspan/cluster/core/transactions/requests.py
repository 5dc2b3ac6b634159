"""Requests of producers to a transaction coordinator, and its responses."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import TopicPartition

NO_PRODUCER: Final = -1
NO_PRODUCER_EPOCH: Final = -1


@dataclass(frozen=True, slots=True)
class InitProducerId:
    """A producer begins, or recovers; then the request has its current id and epoch (KIP-360).

    `fresh_producer_id` is an unused one, taken if the transactional id is new or its epochs are used up.
    """

    transactional_id: str
    timeout_ms: int
    fresh_producer_id: int
    producer_id: int = NO_PRODUCER
    producer_epoch: int = NO_PRODUCER_EPOCH


@dataclass(frozen=True, slots=True)
class InitProducerIdResponse:
    error: ErrorCode
    producer_id: int = NO_PRODUCER
    producer_epoch: int = NO_PRODUCER_EPOCH


@dataclass(frozen=True, slots=True)
class AddPartitions:
    """Partitions that the transaction writes to from now on; an offsets partition for AddOffsetsToTxn.

    `by_writing`: requested by the partition's leader, for a write of a producer that adds none itself (KIP-890, part 2).
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    partitions: frozenset[TopicPartition]
    by_writing: bool = False


@dataclass(frozen=True, slots=True)
class AddPartitionsResponse:
    error: ErrorCode


@dataclass(frozen=True, slots=True)
class EndTransaction:
    """`bump_epoch`: the producer continues with a new epoch, so that no late write of the old one counts (KIP-890, v5)."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    commit: bool
    bump_epoch: bool = False
    fresh_producer_id: int = NO_PRODUCER


@dataclass(frozen=True, slots=True)
class EndTransactionResponse:
    """The producer id and epoch to continue with, if the epoch was bumped."""

    error: ErrorCode
    producer_id: int = NO_PRODUCER
    producer_epoch: int = NO_PRODUCER_EPOCH


@dataclass(frozen=True, slots=True)
class DescribeTransactionResponse:
    """`started_ms` is -1 outside a transaction."""

    error: ErrorCode
    transactional_id: str
    state: str = ""
    timeout_ms: int = -1
    started_ms: int = -1
    producer_id: int = NO_PRODUCER
    producer_epoch: int = NO_PRODUCER_EPOCH
    topics: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ListedTransaction:
    transactional_id: str
    producer_id: int
    state: str


TransactionRequest: TypeAlias = InitProducerId | AddPartitions | EndTransaction
TransactionResponse: TypeAlias = InitProducerIdResponse | AddPartitionsResponse | EndTransactionResponse


def refusal(request: TransactionRequest, error: ErrorCode) -> TransactionResponse:
    match request:
        case InitProducerId():
            return InitProducerIdResponse(error)
        case AddPartitions():
            return AddPartitionsResponse(error)
        case EndTransaction():
            return EndTransactionResponse(error)
