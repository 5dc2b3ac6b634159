"""A gateway before unmodified Apache Kafka: a Kafka-protocol proxy that holds acknowledgements to min.insync.racks.

Begin with core/apis.py (what is done with each API), core/acknowledgement/ (the rule as a state machine), then
net/session.py (one client's connection) and app.py (how they are put together). `core/` is pure: bytes and samples in,
decisions out, times as arguments. `net/` moves bytes and decides nothing. It never stores records and never widens a right:
every request of a client reaches the cluster on that client's own connection.
Depends on: acks, client, kafka_bytes, model, placement, prometheus_metrics, sources, wire.
"""
