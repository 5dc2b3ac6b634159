"""Requests to Kafka brokers: connections with TLS and SASL, brokers by id, one deadline, and the words of every error.

Begin with connection.py (one broker, asyncio), then cluster.py (a whole cluster, for callers that block), requests.py (one
function a request of a snapshot) and errors.py; config/ reads `--command-config`. kafka-python is used for SASL mechanisms
only. Nothing here judges a response or writes to a cluster by itself.
Depends on: acks, kafka_bytes, model, plan, wire.
"""
