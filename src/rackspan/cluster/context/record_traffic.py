"""Bytes of records between racks, by topic, client and path.

A client's rack is the one it names in a fetch (client.rack). Producers name none, and count under None.
"""

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum

from rackspan.cluster.core.ids import NodeId
from rackspan.cluster.core.messages import Message, ReplicaFetchResponse
from rackspan.model.ids import BrokerId, RackId


class Path(StrEnum):
    """Whether a producer, a follower or a consumer caused the bytes."""

    PRODUCE = "produce"
    REPLICATE = "replicate"
    FETCH = "fetch"


@dataclass(frozen=True, slots=True)
class Flow:
    """What one byte count is about: from a rack to a rack. `client` is a client id, None between brokers.

    `from_follower`: a consumer was served by a broker that did not lead the partition.
    """

    path: Path
    topic: str
    client: str | None
    from_rack: RackId | None
    to_rack: RackId | None
    from_follower: bool = False

    @property
    def crosses_racks(self) -> bool:
        """An unknown rack differs from every known one; two unknown racks count as one."""
        return self.from_rack != self.to_rack


class RecordTraffic:
    """The bytes of each flow since the cluster started. `racks` are the brokers' racks, as they registered."""

    def __init__(self) -> None:
        self.racks: dict[NodeId, RackId | None] = {}
        self._bytes: Counter[Flow] = Counter()

    def add_produced(self, broker: BrokerId, client_id: str | None, topic: str, size_bytes: int) -> None:
        self._bytes[Flow(Path.PRODUCE, topic, client_id, None, self.racks.get(broker))] += size_bytes

    def add_fetched(
        self,
        broker: BrokerId,
        client_id: str | None,
        client_rack: str | None,
        topic: str,
        size_bytes: int,
        *,
        from_follower: bool,
    ) -> None:
        to_rack = RackId(client_rack) if client_rack else None
        self._bytes[Flow(Path.FETCH, topic, client_id, self.racks.get(broker), to_rack, from_follower)] += size_bytes

    def add_delivered(self, source: NodeId, destination: NodeId, message: Message) -> None:
        """A message between brokers: of those, only fetch responses to followers carry records."""
        if isinstance(message, ReplicaFetchResponse):
            from_rack, to_rack = self.racks.get(source), self.racks.get(destination)
            for fetched in message.partitions:
                size_bytes = sum(batch.size_bytes for batch in fetched.batches)
                if size_bytes:
                    flow = Flow(Path.REPLICATE, fetched.partition.topic, None, from_rack, to_rack)
                    self._bytes[flow] += size_bytes

    def flows(self) -> dict[Flow, int]:
        return dict(self._bytes)

    def clear(self) -> None:
        self._bytes.clear()
