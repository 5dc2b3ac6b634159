"""The gateways of a cluster, as they register in the config topic, and which of them another gateway warns of.

Begin with registrations.py, then differences.py. It never decides what is acknowledged.
"""
