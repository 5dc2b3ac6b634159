"""Kafka's wire protocol: requests and responses as bytes and as typed values.

Begin with framing.py (where one request ends), then codec.py (header and body), apis.py (which APIs, which versions) and
messages/ (their classes). Field types come from kio's schemas. Reading and writing are ours, because received bytes may be
malformed and must cost one connection, never the process. No sockets, no asyncio, no clock; nothing here decides a response.
Depends on: kafka_bytes.
"""
