"""What is kept of Metadata answers in their bytes: whole answers until the metadata moves, topics until they change.

A client's poll of a thousand topics then costs nothing, and the poll after one of them has changed little more.
"""

from collections.abc import Callable
from typing import Final, TypeAlias

from rackspan.cluster.core.metadata import MetadataImage, TopicImage
from rackspan.model.ids import BrokerId

MAX_CACHED_RESPONSES: Final = 64
"""Clients ask for few different sets of topics."""

Question: TypeAlias = tuple[int, tuple[object, ...] | None]
"""The version, and the topics by name or id; None asks for all."""


class MetadataCache:
    """Of one broker's process."""

    def __init__(self) -> None:
        self._answers: dict[Question, bytes] = {}
        self._topics: dict[int, dict[str, tuple[TopicImage, bytes]]] = {}
        self._serving: frozenset[BrokerId] = frozenset()

    def __len__(self) -> int:
        return len(self._answers)

    def moved(self) -> None:
        """The metadata is news; what did not change in it stays."""
        self._answers.clear()

    def clear(self) -> None:
        self._answers.clear()
        self._topics.clear()

    def answer(self, question: Question, write: Callable[[], bytes]) -> bytes:
        """As kept, or as written now."""
        found = self._answers.get(question)
        if found is None:
            if len(self._answers) >= MAX_CACHED_RESPONSES:
                del self._answers[next(iter(self._answers))]
            found = self._answers[question] = write()
        return found

    def topics(self, version: int, image: MetadataImage, write: Callable[[TopicImage], bytes]) -> list[bytes]:
        """Every topic in order of name; only those that are new or have changed are written."""
        # Replicas are said to be offline by the brokers that serve.
        serving = frozenset(broker for broker, one in image.brokers.items() if not one.fenced)
        if serving != self._serving:
            self._topics.clear()
            self._serving = serving
        before, now = self._topics.get(version, {}), {}
        for name, topic in sorted(image.topics.items()):
            kept = before.get(name)
            now[name] = kept if kept is not None and kept[0] is topic else (topic, write(topic))
        self._topics[version] = now
        return [encoded for _, encoded in now.values()]
