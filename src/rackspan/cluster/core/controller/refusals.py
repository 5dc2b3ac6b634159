"""A request item refused: which error, and in which words. An expected outcome, kept apart only to end a check early."""

from collections.abc import Iterator
from contextlib import contextmanager

from rackspan.cluster.core.errors import KafkaError
from rackspan.errors import (
    InvalidPartitions,
    InvalidReplicationFactor,
    RackLocatorFailed,
    ReplicaPlacementException,
    UsageError,
)


class Refused(Exception):
    """Never leaves the controller: it becomes the item's result."""

    def __init__(self, error: KafkaError, message: str) -> None:
        super().__init__(message)
        self.error = error
        self.message = message


def not_replicated(replication_factor: int, why: str) -> Refused:
    """As the controller says it for every placer."""
    return Refused(
        KafkaError.INVALID_REPLICATION_FACTOR, f"Unable to replicate the partition {replication_factor} time(s): {why}"
    )


@contextmanager
def placement_refusals(replication_factor: int) -> Iterator[None]:
    """A placer's complaint as the error Kafka has for it, else the proposal's (KIP-660, Public Interfaces 4)."""
    try:
        yield
    except InvalidReplicationFactor as error:
        raise not_replicated(replication_factor, str(error)) from error
    except InvalidPartitions as error:
        raise Refused(KafkaError.INVALID_PARTITIONS, str(error)) from error
    except (ReplicaPlacementException, RackLocatorFailed, UsageError) as error:
        raise Refused(KafkaError.REPLICA_PLACEMENT_FAILED, str(error)) from error
