"""Plug-ins for Python consumers: each consumer reads partitions with a replica in its rack, as far as balance allows.

Begin with kafka_python.py or aiokafka.py: in_rack("eu-1a") is all a consumer needs. Both use the same protocol, so
members of both clients may share a group. membership.py is common to both; the assignment and its proof are in the package
consumers. This package imports neither client: each is needed only by its own plug-in.
Depends on: consumers, model.
"""
