"""A consumer's fetch: what it reads from each partition, and whether it waits for more (min bytes, max wait).

A fetch that waits reads again at each `WatermarkMoved` or `LeadershipChanged` of its partitions. The caller keeps the time.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from rackspan.cluster.core.broker.broker import BrokerCore
from rackspan.cluster.core.broker.reading import Isolation, ReadResponse
from rackspan.cluster.core.errors import KafkaError
from rackspan.cluster.core.ids import NO_EPOCH
from rackspan.cluster.core.metadata import NO_LEADER
from rackspan.model.ids import RackId, TopicPartition

MAX_BYTES: Final = 55 * 1024 * 1024
"""A broker's fetch.max.bytes."""

_UNKNOWN_TOPIC: Final = (KafkaError.UNKNOWN_TOPIC_OR_PARTITION, KafkaError.UNKNOWN_TOPIC_ID)
"""Not a reason to respond at once while another partition of the request is known. Kafka waits too."""


@dataclass(frozen=True, slots=True)
class PartitionFetch:
    """One partition of the request. `topic_known` is false for a topic id that the broker does not have."""

    partition: TopicPartition
    offset: int
    max_bytes: int
    current_leader_epoch: int = NO_EPOCH
    last_fetched_epoch: int = NO_EPOCH
    topic_known: bool = True


@dataclass(frozen=True, slots=True)
class FetchRead:
    """One reading of all partitions, in the order of the request."""

    partitions: Sequence[ReadResponse]
    size_bytes: int
    respond_now: bool
    """With records or without: an error, a preferred read replica or a diverging epoch."""


@dataclass(frozen=True, slots=True)
class ClientFetch:
    """A fetch request. `rack` is the client's; with `follower_ok` a follower may serve it."""

    partitions: Sequence[PartitionFetch]
    min_bytes: int
    max_bytes: int
    max_wait_ms: int
    isolation: Isolation
    rack: RackId | None = None
    follower_ok: bool = False

    def read(self, broker: BrokerCore) -> FetchRead:
        """Read every partition, as far as `max_bytes` reaches."""
        responses: list[ReadResponse] = []
        size_bytes, respond_now = 0, False
        left = min(self.max_bytes, MAX_BYTES)
        for fetch in self.partitions:
            response = self._read_partition(broker, fetch, left)
            read_bytes = sum(batch.size_bytes for batch in response.batches)
            # The first batch is read even if it is larger than the limit: else its reader would never advance (KIP-74).
            if size_bytes and read_bytes > left:
                response, read_bytes = replace(response, batches=()), 0
            failed = response.error is not KafkaError.NONE and response.error not in _UNKNOWN_TOPIC
            respond_now |= failed or response.preferred_read_replica != NO_LEADER or response.diverging is not None
            responses.append(response)
            size_bytes += read_bytes
            left -= read_bytes
        return FetchRead(responses, size_bytes, respond_now)

    def _read_partition(self, broker: BrokerCore, fetch: PartitionFetch, left: int) -> ReadResponse:
        if not fetch.topic_known:
            return ReadResponse(KafkaError.UNKNOWN_TOPIC_ID)
        return broker.read(
            fetch.partition,
            fetch.offset,
            min(left, fetch.max_bytes),
            self.isolation,
            rack=self.rack,
            follower_ok=self.follower_ok,
            current_leader_epoch=fetch.current_leader_epoch,
            last_fetched_epoch=fetch.last_fetched_epoch,
        )

    def waits(self, first: FetchRead) -> bool:
        """Whether the fetch waits after its first reading."""
        all_unknown = all(response.error in _UNKNOWN_TOPIC for response in first.partitions)
        return self.max_wait_ms > 0 and not all_unknown and not self.is_complete(first)

    def is_complete(self, read: FetchRead) -> bool:
        """Whether a later reading ends the wait."""
        return read.respond_now or read.size_bytes >= self.min_bytes
