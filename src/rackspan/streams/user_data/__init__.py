"""The bytes that members of a Kafka Streams group exchange through the group's coordinator, decoded.

Begin with subscription_info.py (a thread's own user data), then assignment_info.py (the leader's to a thread). Both are inside
what every consumer sends: kafka_bytes/consumer_protocol.py. Decodes only: rackspan is no member of such a group.
"""

from rackspan.streams.user_data.assignment_info import ERROR_CODES, active_partitions, decode_assignment
from rackspan.streams.user_data.java_bytes import invalid_user_data
from rackspan.streams.user_data.subscription_info import SubscriptionInfo, decode_subscription

__all__ = [
    "ERROR_CODES",
    "SubscriptionInfo",
    "active_partitions",
    "decode_assignment",
    "decode_subscription",
    "invalid_user_data",
]
