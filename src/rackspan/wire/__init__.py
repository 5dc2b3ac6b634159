"""Kafka's wire protocol: bytes in, values out, and back.

Begin with framing.py (where one request ends), then codec.py (what it says) and record_batch.py (what a broker must know
of records it never opens). Schemas are kio's; reading and writing them is ours, because whatever arrives may be malformed
and must cost one connection, never the process. No sockets, no asyncio, no clock; nothing here decides an answer.
"""
