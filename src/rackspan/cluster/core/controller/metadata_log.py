"""The metadata log: the controller's records, and the long polls of brokers for more."""

from collections.abc import Iterable

from rackspan.cluster.core.ids import NodeId
from rackspan.cluster.core.messages import Effect, FetchMetadata, FetchMetadataResponse, Send
from rackspan.cluster.core.metadata import EMPTY_IMAGE, MetadataImage, Record, apply_records


class MetadataLog:
    """`image` is the state after all records. With one controller and no quorum, a written record is committed."""

    def __init__(self, max_wait_ms: int, records_kept: int) -> None:
        self.image: MetadataImage = EMPTY_IMAGE
        self._records: list[Record] = []
        self._first = 0
        self._max_wait_ms = max_wait_ms
        self._records_kept = records_kept
        self._waiting: dict[NodeId, tuple[FetchMetadata, int]] = {}
        """The newest fetch of each broker, and its deadline (ms)."""

    def write(self, records: Iterable[Record]) -> None:
        new = tuple(records)
        if not new:
            return
        self.image = apply_records(self.image, new)
        self._records.extend(new)
        if len(self._records) > 2 * self._records_kept:
            dropped = len(self._records) - self._records_kept
            del self._records[:dropped]
            self._first += dropped

    def fetch(self, now: int, source: NodeId, message: FetchMetadata) -> list[Effect]:
        """Respond at once if there are new records, else when there are, or at the deadline."""
        if message.offset < self.image.offset:
            self._waiting.pop(source, None)
            return [Send(source, self._slice(message))]
        self._waiting[source] = (message, now + self._max_wait_ms)
        return []

    def responses(self, now: int) -> list[Effect]:
        """Responses to fetches that have new records or whose deadline has passed."""
        due = [
            source
            for source, (message, deadline) in self._waiting.items()
            if deadline <= now or message.offset < self.image.offset
        ]
        return [Send(source, self._slice(self._waiting.pop(source)[0])) for source in due]

    def _slice(self, message: FetchMetadata) -> FetchMetadataResponse:
        if message.offset < self._first:
            return FetchMetadataResponse(message.incarnation, message.offset, image=self.image)
        return FetchMetadataResponse(
            message.incarnation, message.offset, tuple(self._records[message.offset - self._first :])
        )
