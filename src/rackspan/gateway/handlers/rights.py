"""Which topics a client may write to, as its broker reports on the client's own connection.

A refusal names racks and the state of replication, so it is given only to those whom the broker would let write; the others get the
broker's own error. Requested when the first refusal is due, and kept for a few seconds. A broker whose metadata is late does not know a
new topic: that is no missing right, and its client is to send again.
"""

from collections.abc import Iterable
from typing import Final
from weakref import WeakKeyDictionary

from rackspan.errors import MalformedRequest
from rackspan.gateway.net.session import ClientSession
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.metadata import (
    MetadataRequestData,
    MetadataRequestTopic,
    MetadataResponseData,
    MetadataResponseTopic,
)

KEPT_SECONDS: Final = 10.0
_UNKNOWN_SECONDS: Final = 0.5
"""For which a right that the broker could not report is not requested again."""
_VERSION: Final = 8
"""The first version of Metadata that reports authorized operations (KIP-430, Kafka 2.3)."""

_WRITE: Final = 1 << 4
"""Bit 4 is AclOperation.WRITE. Without an authorizer a broker reports every operation."""

_UNREPORTED: Final = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
"""Clients send again after it, as after the same error of a broker that does not know a topic yet."""


class WriteRights:
    """The topics that each connection may write to. Times in seconds, of one monotonic clock."""

    def __init__(self) -> None:
        self._known: WeakKeyDictionary[ClientSession, dict[str, tuple[float, int]]] = WeakKeyDictionary()
        """Until when, and the error code of who writes, by topic."""

    def unknown(self, session: ClientSession, topics: Iterable[str], now: float) -> set[str]:
        """Those of which the broker has not reported the rights in the last seconds."""
        known = self._known.get(session, {})
        return {topic for topic in topics if topic not in known or now > known[topic][0]}

    def error(self, session: ClientSession, topic: str) -> int:
        """The code of the broker's own error for a Produce: NONE if the client may write."""
        return self._known.get(session, {}).get(topic, (0.0, _UNREPORTED))[1]

    async def read(self, session: ClientSession, topics: Iterable[str], now: float) -> None:
        """Request them of the broker. A connection that ends meanwhile may write nothing."""
        request = MetadataRequestData(
            topics=[MetadataRequestTopic(name=topic) for topic in sorted(topics)],
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=True,
        )
        # What no response names may not be written: else it would be requested again and again.
        # A client chooses how many topics it names, existing or not. Those that `unknown` has just found known stay.
        before = self._known.get(session, {})
        known = {topic: found for topic, found in before.items() if now <= found[0] + KEPT_SECONDS}
        self._known[session] = known
        known.update(dict.fromkeys(topics, (now + _UNKNOWN_SECONDS, _UNREPORTED)))
        try:
            metadata: MetadataResponseData = await session.call(ApiKey.METADATA, _VERSION, None, request)
        except (ConnectionError, MalformedRequest):
            return
        for topic in metadata.topics:
            if topic.name is not None:
                error = _error(topic)
                is_right = error in (ErrorCode.NONE, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
                known[topic.name] = now + (KEPT_SECONDS if is_right else _UNKNOWN_SECONDS), error


def _error(topic: MetadataResponseTopic) -> int:
    if topic.error_code == ErrorCode.NONE and not topic.topic_authorized_operations & _WRITE:
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return topic.error_code
