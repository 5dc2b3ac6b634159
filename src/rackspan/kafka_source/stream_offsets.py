"""The offsets of a stream, as Spark's checkpoint holds them: an offset of each partition, and the id of each topic. Pure.

The JSON is that of Spark's connector with one more entry a topic: {"orders": {"0": 23, "topicId": "aXfkb_NwTOGKOYkMc5gMVw"}}. A
checkpoint without ids is read too: an earlier rackspan wrote it, or the brokers have none (Kafka before 2.8).
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from rackspan.errors import UsageError
from rackspan.kafka_source.ranges import Offsets
from rackspan.model.ids import TopicPartition

_TOPIC_ID: Final = "topicId"
"""No partition number, so no other entry of a topic can have this name."""


@dataclass(frozen=True, slots=True)
class StreamOffsets:
    offsets: Offsets
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    """The ids in the form of Kafka's tools, of the topics whose id is known."""

    @property
    def topics(self) -> set[str]:
        return {partition.topic for partition in self.offsets}

    def of_another_topic(self, earlier: "StreamOffsets") -> dict[str, tuple[str, str]]:
        """The topics that were created again since: the id of before, and that of now."""
        return {
            topic: (old, new)
            for topic, new in sorted(self.topic_ids.items())
            if (old := earlier.topic_ids.get(topic, new)) != new
        }

    def document(self) -> dict[str, dict[str, Any]]:
        """JSON in one order: Spark compares offsets as text."""
        document: dict[str, dict[str, Any]] = {}
        for partition in sorted(self.offsets):
            document.setdefault(partition.topic, {})[str(partition.partition)] = self.offsets[partition]
        for topic, values in document.items():
            if topic in self.topic_ids:
                values[_TOPIC_ID] = self.topic_ids[topic]
        return document

    @classmethod
    def from_document(cls, document: Mapping[str, Mapping[str, Any]]) -> "StreamOffsets":
        """Errors: UsageError for a checkpoint of another source."""
        try:
            offsets = {
                TopicPartition(topic, int(number)): int(offset)
                for topic, values in document.items()
                for number, offset in values.items()
                if number != _TOPIC_ID
            }
        except (AttributeError, TypeError, ValueError):
            raise UsageError(
                f"the checkpoint's offsets are not those of rackspan-kafka: {json.dumps(document)[:200]}"
            ) from None
        return cls(
            offsets, {topic: str(values[_TOPIC_ID]) for topic, values in document.items() if _TOPIC_ID in values}
        )
