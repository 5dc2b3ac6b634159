"""Which topics a client may write to, as its broker reports on the client's own connection.

A refusal names racks and the state of replication, so it is given only to those whom the broker would let write; the others get the
broker's own error. Requested when the first refusal is due, and kept for a few seconds.
"""

from collections.abc import Iterable
from typing import Final
from weakref import WeakKeyDictionary

from rackspan.errors import MalformedRequest
from rackspan.gateway.net.session import ClientSession
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.metadata import MetadataRequestData, MetadataRequestTopic, MetadataResponseData

KEPT_SECONDS: Final = 10.0
_VERSION: Final = 8
"""The first version of Metadata that reports authorized operations (KIP-430, Kafka 2.3)."""

_WRITE: Final = 1 << 4
"""Bit 4 is AclOperation.WRITE. Without an authorizer a broker reports every operation."""


class WriteRights:
    """The topics that each connection may write to. Times in seconds, of one monotonic clock."""

    def __init__(self) -> None:
        self._known: WeakKeyDictionary[ClientSession, dict[str, tuple[float, bool]]] = WeakKeyDictionary()

    def unknown(self, session: ClientSession, topics: Iterable[str], now: float) -> set[str]:
        """Those of which the broker has not reported the rights in the last seconds."""
        known = self._known.get(session, {})
        return {topic for topic in topics if topic not in known or now - known[topic][0] > KEPT_SECONDS}

    def may_write(self, session: ClientSession, topic: str) -> bool:
        """Whether the broker reported the right last; False if that failed."""
        return self._known.get(session, {}).get(topic, (0.0, False))[1]

    async def read(self, session: ClientSession, topics: Iterable[str], now: float) -> None:
        """Request them of the broker. A connection that ends meanwhile may write nothing."""
        request = MetadataRequestData(
            topics=[MetadataRequestTopic(name=topic) for topic in sorted(topics)],
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=True,
        )
        # What no response names may not be written: else it would be requested again and again.
        known = self._known.setdefault(session, {})
        known.update(dict.fromkeys(topics, (now, False)))
        try:
            metadata: MetadataResponseData = await session.call(ApiKey.METADATA, _VERSION, None, request)
        except (ConnectionError, MalformedRequest):
            return
        reported = {
            topic.name: (now, topic.error_code == 0 and bool(topic.topic_authorized_operations & _WRITE))
            for topic in metadata.topics
            if topic.name is not None
        }
        known.update(reported)
