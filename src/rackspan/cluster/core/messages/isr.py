"""Leader and controller: changes of the ISR (AlterPartition)."""

from dataclasses import dataclass

from rackspan.cluster.core.ids import TopicId
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import BrokerId, TopicPartition


@dataclass(frozen=True, slots=True)
class IsrChange:
    """The ISR that a leader requests for one partition. `isr` pairs each member with its broker epoch (KIP-903)."""

    partition: TopicPartition
    topic_id: TopicId
    leader_epoch: int
    partition_epoch: int
    isr: tuple[tuple[BrokerId, int], ...]


@dataclass(frozen=True, slots=True)
class AlterPartition:
    """Numbered by `attempt`: the controller drops a request that is not newer than the last from that broker epoch."""

    broker: BrokerId
    broker_epoch: int
    attempt: int
    changes: tuple[IsrChange, ...]


@dataclass(frozen=True, slots=True)
class IsrChangeResponse:
    """The state that the controller committed for one partition, or the error."""

    partition: TopicPartition
    error: ErrorCode
    leader_epoch: int = -1
    partition_epoch: int = -1
    isr: tuple[BrokerId, ...] = ()


@dataclass(frozen=True, slots=True)
class AlterPartitionResponse:
    """`thresholds_version` is the version of the thresholds that the controller counted by."""

    broker_epoch: int
    attempt: int
    error: ErrorCode
    thresholds_version: int = 0
    changes: tuple[IsrChangeResponse, ...] = ()
