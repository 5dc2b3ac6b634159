"""A request item refused: which error, and in which words. An expected outcome, kept apart only to end a check early."""

from collections.abc import Iterator
from contextlib import contextmanager

from rackspan.cluster.core.errors import KafkaError
from rackspan.errors import InvalidPartitions, InvalidReplicationFactor, ReplicaPlacementException, UsageError


class Refused(Exception):
    """Never leaves the controller: it becomes the item's result."""

    def __init__(self, error: KafkaError, message: str) -> None:
        super().__init__(message)
        self.error = error
        self.message = message


@contextmanager
def placement_refusals() -> Iterator[None]:
    """A placer's complaint as the error Kafka has for it, else the proposal's (KIP-660, Public Interfaces 4)."""
    try:
        yield
    except InvalidReplicationFactor as error:
        raise Refused(KafkaError.INVALID_REPLICATION_FACTOR, str(error)) from error
    except InvalidPartitions as error:
        raise Refused(KafkaError.INVALID_PARTITIONS, str(error)) from error
    except (ReplicaPlacementException, UsageError) as error:
        raise Refused(KafkaError.REPLICA_PLACEMENT_FAILED, str(error)) from error
