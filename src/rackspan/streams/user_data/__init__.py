"""The bytes that members of a Kafka Streams group exchange through the group's coordinator, decoded.

Begin with consumer_protocol.py (what every consumer sends), then subscription_info.py (a thread's own user data) and
assignment_info.py (the leader's to a thread). Decodes only: rackspan is no member of such a group.
"""
