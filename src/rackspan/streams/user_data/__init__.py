"""The bytes that members of a Kafka Streams group exchange through the group's coordinator, decoded.

Begin with consumer_protocol.py (what every consumer sends), then subscription_info.py (a thread's own user data) and
assignment_info.py (the leader's to a thread). Decodes only: rackspan is no member of such a group.
"""

from rackspan.streams.user_data.assignment_info import ERROR_CODES, active_partitions, decode_assignment
from rackspan.streams.user_data.consumer_protocol import (
    WITH_RACK,
    decode_consumer_assignment,
    decode_consumer_subscription,
)
from rackspan.streams.user_data.subscription_info import SubscriptionInfo, decode_subscription

__all__ = [
    "ERROR_CODES",
    "WITH_RACK",
    "SubscriptionInfo",
    "active_partitions",
    "decode_assignment",
    "decode_consumer_assignment",
    "decode_consumer_subscription",
    "decode_subscription",
]
