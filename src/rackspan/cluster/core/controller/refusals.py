"""Refusals of a request's items: error and message. The exception only ends a check early."""

from collections.abc import Iterator
from contextlib import contextmanager

from rackspan.errors import InvalidReplicationFactor, RackLocatorFailed, ReplicaPlacementException, UsageError
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.placement.cluster_placer import refusal_of


class Refused(Exception):
    """Never leaves the controller: it becomes the item's response."""

    def __init__(self, error: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.error = error
        self.message = message


def not_replicated(replication_factor: int, why: str) -> Refused:
    """The refusal of a replication factor, with the same message for every placer."""
    return Refused(*refusal_of(InvalidReplicationFactor(why), replication_factor))


@contextmanager
def placement_refusals(replication_factor: int) -> Iterator[None]:
    """Turn a placer's error into Kafka's error for it, else into the proposal's (KIP-660, Public Interfaces 4)."""
    try:
        yield
    except (ReplicaPlacementException, RackLocatorFailed, UsageError) as error:
        raise Refused(*refusal_of(error, replication_factor)) from error
