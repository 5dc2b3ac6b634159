"""The `consumer` protocol type: the one embedded format that a group coordinator decodes (ConsumerProtocolSubscription)."""

from rackspan.cluster.core.groups.group import CONSUMER_PROTOCOL, Group
from rackspan.errors import MalformedBytes
from rackspan.kafka_bytes import ByteReader


def subscribed_topics(group: Group) -> frozenset[str] | None:
    """The topics its members subscribe to. None if it is no consumer group, or if a subscription cannot be decoded."""
    if group.protocol_type != CONSUMER_PROTOCOL:
        return None
    try:
        return frozenset(topic for member in group.members.values() for topic in _topics(member.protocols[0].metadata))
    except MalformedBytes:
        return None


def _topics(metadata: bytes) -> list[str]:
    reader = ByteReader(metadata)
    reader.int16()  # version: every one of them begins with the topics
    return reader.array(reader.string)
