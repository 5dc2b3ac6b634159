"""Encoded Metadata responses: whole responses until the metadata changes, each topic's bytes until that topic changes.

A client's repeated request for a thousand topics then costs nothing, and the first one after a change of one topic little more.
"""

from collections.abc import Callable
from typing import Final, TypeAlias

from rackspan.cluster.core.metadata import MetadataImage, TopicImage
from rackspan.model.ids import BrokerId

MAX_CACHED_RESPONSES: Final = 64
"""Clients request few different sets of topics."""

CacheKey: TypeAlias = tuple[int, tuple[object, ...] | None]
"""The request's version, and its topics by name or id; None for all topics."""


class MetadataCache:
    """The cache of one running broker."""

    def __init__(self) -> None:
        self._responses: dict[CacheKey, bytes] = {}
        self._topics: dict[int, dict[str, tuple[TopicImage, bytes]]] = {}
        self._unfenced: frozenset[BrokerId] = frozenset()

    def __len__(self) -> int:
        return len(self._responses)

    def drop_responses(self) -> None:
        """The metadata has changed. The bytes of unchanged topics stay."""
        self._responses.clear()

    def response(self, key: CacheKey, encode: Callable[[], bytes]) -> bytes:
        """The cached response, or a new one from `encode`."""
        response = self._responses.get(key)
        if response is None:
            if len(self._responses) >= MAX_CACHED_RESPONSES:
                del self._responses[next(iter(self._responses))]
            response = self._responses[key] = encode()
        return response

    def topics(self, version: int, image: MetadataImage, encode: Callable[[TopicImage], bytes]) -> list[bytes]:
        """Every topic in order of name; only new and changed ones are encoded."""
        # A topic's bytes list its offline replicas, so they depend on the unfenced brokers.
        unfenced = frozenset(broker.id for broker in image.brokers.values() if not broker.fenced)
        if unfenced != self._unfenced:
            self._topics.clear()
            self._unfenced = unfenced
        cached, current = self._topics.get(version, {}), {}
        for name, topic in sorted(image.topics.items()):
            entry = cached.get(name)
            current[name] = entry if entry is not None and entry[0] is topic else (topic, encode(topic))
        self._topics[version] = current
        return [encoded for _, encoded in current.values()]
