"""Plug-ins for Python consumers: partitions are read in the rack they are in, as far as balance allows.

Begin with kafka_python.py or aiokafka.py: in_rack("eu-1a") is all a consumer needs. Both speak the same protocol, so
members of both clients may share a group. conversation.py is what they have in common; what is decided, and how it is
proven, is the room consumers. Nothing is imported here: each client is needed only by its own plug-in.
"""
