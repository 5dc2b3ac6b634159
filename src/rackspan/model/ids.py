"""Kafka's identifiers as distinct types, so that a broker id is never passed as a partition."""

from typing import Final, NamedTuple, NewType

BrokerId = NewType("BrokerId", int)
RackId = NewType("RackId", str)
TopicName = NewType("TopicName", str)

NO_BROKER: Final = -1
"""Kafka's value for "no leader", and the padding in replica columns."""

UNKNOWN_LEADER: Final = -2
"""In the place of a leader that the cluster has, as far as is known, and did not report: a partition that is not called offline."""

UNNAMED_RACK: Final = RackId("")
"""The rack that all brokers without `broker.rack` share (min.insync.racks: "unnamed rack (empty string)")."""


class TopicPartition(NamedTuple):
    """One partition by topic name. A named tuple: fast to hash, and equal to the class of that name in Kafka clients."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


INT32_MAX: Final = 2**31 - 1
INT64_MAX: Final = 2**63 - 1


def shown(rack: RackId) -> str:
    """A rack's name for messages."""
    return rack if rack != UNNAMED_RACK else "(no rack)"
