"""What a topic's configs ask of records, looked at before a leader appends them: keys, times, who stamps the time.

Like Kafka's LogValidator, but for one thing: a batch is judged by the first and the greatest timestamp of its header and
not record by record, and it is opened only where the topic is compacted, since every record there needs a key.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from rackspan.cluster.context.broker_context import BrokerContext
from rackspan.cluster.core.batch import NO_TIMESTAMP
from rackspan.cluster.core.configs import topic_value
from rackspan.cluster.core.errors import KafkaError
from rackspan.cluster.core.messages import ProduceResponse
from rackspan.cluster.handlers.common.record_reader import lacks_a_key
from rackspan.model.config_list import parse_config_list
from rackspan.wire.record_batch import BatchHeader

CLEANUP: Final = "cleanup.policy"
TIMESTAMP_TYPE: Final = "message.timestamp.type"
BEFORE: Final = "message.timestamp.before.max.ms"
AFTER: Final = "message.timestamp.after.max.ms"


@dataclass(frozen=True, slots=True)
class RecordTerms:
    """Of one topic. Milliseconds."""

    compacted: bool
    append_time: bool
    before_max_ms: int
    after_max_ms: int

    @classmethod
    def of(cls, values: Mapping[str, str | None]) -> "RecordTerms":
        """From the topic's configs in effect."""
        return cls(
            "compact" in parse_config_list(values[CLEANUP] or ""),
            values[TIMESTAMP_TYPE] == "LogAppendTime",
            int(values[BEFORE] or 0),
            int(values[AFTER] or 0),
        )

    def refusal(self, header: BatchHeader, data: memoryview, now: int) -> ProduceResponse | None:
        """Why the batch cannot be appended at `now` (ms since 1970); None if it can."""
        if self.compacted and lacks_a_key(data):
            return ProduceResponse(
                KafkaError.INVALID_RECORD, message="Compacted topic cannot accept message without key"
            )
        if self.append_time or NO_TIMESTAMP in (header.base_timestamp, header.max_timestamp):
            return None
        earliest, latest = now - self.before_max_ms, now + self.after_max_ms
        if header.base_timestamp < earliest or header.max_timestamp > latest:
            return ProduceResponse(
                KafkaError.INVALID_TIMESTAMP,
                message=f"Timestamps {header.base_timestamp} to {header.max_timestamp} are out of range; "
                f"they should be within [{earliest}, {latest}]",
            )
        return None


def record_terms(broker: BrokerContext, topic: str) -> RecordTerms:
    """As the broker's metadata has them; worked out once between two changes of the metadata."""
    found: RecordTerms | None = broker.record_terms.get(topic)
    if found is None:
        keys = (CLEANUP, TIMESTAMP_TYPE, BEFORE, AFTER)
        values = {key: topic_value(broker.image, broker.settings, topic, key, broker.id).value for key in keys}
        found = broker.record_terms[topic] = RecordTerms.of(values)
    return found
