"""Bytes of records that crossed from rack to rack, by topic, client and path.

A client's rack is the one it names in a fetch (client.rack); producers name none, and count under None.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from rackspan.cluster.context.call import Call
from rackspan.cluster.core.ids import NodeId
from rackspan.cluster.core.messages import Message, ReplicaFetchResponse
from rackspan.model.ids import RackId, TopicPartition


class Path(StrEnum):
    """Which way bytes took."""

    PRODUCE = "produce"
    REPLICATE = "replicate"
    FETCH = "fetch"


@dataclass(frozen=True, slots=True)
class Flow:
    """Bytes of one kind: from a rack to a rack. `client` is a client id, None between brokers."""

    path: Path
    topic: str
    client: str | None
    from_rack: RackId | None
    to_rack: RackId | None

    @property
    def crosses_racks(self) -> bool:
        """Unknown racks are taken to be elsewhere only where one side is known."""
        return self.from_rack != self.to_rack


class RecordTraffic:
    """What has flowed since the cluster started."""

    def __init__(self) -> None:
        self.racks: dict[NodeId, RackId | None] = {}
        self._bytes: Counter[Flow] = Counter()

    def produced(self, call: Call, partition: TopicPartition, size_bytes: int) -> None:
        to_rack = self.racks.get(call.broker.id)
        self._bytes[Flow(Path.PRODUCE, partition.topic, call.header.client_id, None, to_rack)] += size_bytes

    def fetched(self, call: Call, responses: Iterable[dict[str, Any]]) -> None:
        from_rack, to_rack = self.racks.get(call.broker.id), call.body.get("rack_id") or None
        names = call.broker.image.topic_names
        for topic in responses:
            size = sum(len(batch) for one in topic["partitions"] for batch in one.get("records", ()))
            if size:
                name = topic["topic"] or names.get(topic["topic_id"], "")
                self._bytes[Flow(Path.FETCH, name, call.header.client_id, from_rack, to_rack)] += size

    def carried(self, source: NodeId, destination: NodeId, message: Message) -> None:
        """A message between nodes: of those, only answers to followers carry records."""
        if isinstance(message, ReplicaFetchResponse):
            from_rack, to_rack = self.racks.get(source), self.racks.get(destination)
            for one in message.partitions:
                size = sum(batch.size_bytes for batch in one.batches)
                if size:
                    self._bytes[Flow(Path.REPLICATE, one.partition.topic, None, from_rack, to_rack)] += size

    def flows(self) -> dict[Flow, int]:
        return dict(self._bytes)

    def forget(self) -> None:
        self._bytes.clear()
