"""Whether what a producer writes is part of a transaction that goes on: the partition's leader asks its coordinator (KIP-890).

Without this a late batch begins a transaction that nobody ends, and readers wait behind it for ever. A producer of an older
version has added the partition itself, and the leader only verifies; a newer one leaves the adding to the leader.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final

from rackspan.cluster.context.broker_context import BrokerContext
from rackspan.cluster.core.coordination import TRANSACTIONS_TOPIC
from rackspan.cluster.core.errors import KafkaError
from rackspan.cluster.core.messages import VerifyTransaction
from rackspan.cluster.core.metadata import NO_LEADER
from rackspan.model.ids import TopicPartition

_MS: Final = 5_000

_RETRIABLE: Final = frozenset(
    {KafkaError.COORDINATOR_LOAD_IN_PROGRESS, KafkaError.COORDINATOR_NOT_AVAILABLE, KafkaError.NOT_COORDINATOR}
)


class Support(Enum):
    """What the version of a request lets its client understand."""

    VERIFIES = "verifies"
    """The partition is added already; INVALID_TXN_STATE where it is not."""
    ABORTS = "aborts"
    """The same, but TRANSACTION_ABORTABLE (KIP-1050)."""
    ADDS = "adds"
    """Writing adds the partition (part 2)."""

    @classmethod
    def of(cls, version: int, *, abortable_since: int, adds_since: int) -> "Support":
        if version >= adds_since:
            return cls.ADDS
        return cls.ABORTS if version >= abortable_since else cls.VERIFIES


@dataclass(frozen=True, slots=True)
class Writer:
    """Who writes, as its request has it."""

    transactional_id: str
    producer_id: int
    producer_epoch: int


def verify(
    broker: BrokerContext,
    writer: Writer,
    partition: TopicPartition,
    support: Support,
    answered: Callable[[KafkaError], None],
) -> None:
    """Ask whoever coordinates the transaction; `answered` is called once, with NONE where the batch may be written."""
    number = broker.transactions.partition_of(writer.transactional_id)
    coordinated = broker.image.partition(TopicPartition(TRANSACTIONS_TOPIC, number))
    if coordinated is None or coordinated.leader == NO_LEADER:
        answered(KafkaError.NOT_ENOUGH_REPLICAS)
        return
    who = (writer.transactional_id, writer.producer_id, writer.producer_epoch)
    broker.requests.send_to_broker(
        coordinated.leader,
        lambda correlation_id: VerifyTransaction(correlation_id, *who, partition, adds=support is Support.ADDS),
        lambda error: answered(_as_told(error, support)),
        _MS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
    )


def _as_told(error: KafkaError, support: Support) -> KafkaError:
    """The coordinator's error in words that producers of the version know.

    What passes is NOT_ENOUGH_REPLICAS, which every client retries without asking for metadata. Source: ReplicaManager.
    """
    if error in _RETRIABLE or (error is KafkaError.CONCURRENT_TRANSACTIONS and support is not Support.ADDS):
        return KafkaError.NOT_ENOUGH_REPLICAS
    if error is KafkaError.TRANSACTION_ABORTABLE and support is Support.VERIFIES:
        return KafkaError.INVALID_TXN_STATE
    return KafkaError.INVALID_PRODUCER_EPOCH if error is KafkaError.PRODUCER_FENCED else error
