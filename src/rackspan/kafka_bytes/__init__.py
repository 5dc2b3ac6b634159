"""Kafka's primitive types and record batches as bytes, for every protocol and file of Kafka that rackspan reads or writes.

Begin with primitives.py (one reader, one exception, a writer of each type), then record_batch.py (the 61-byte header and the
records), consumer_protocol.py (what every consumer sends to its group) and error_codes.py.
Pure: bytes in, values out. Requests and responses are in wire/, Kafka Streams' user data in streams/, records of Kafka's own
topics in cluster/core/.
Depends on no other package.
"""

from rackspan.kafka_bytes.primitives import (
    COMPACT_NULL,
    NO_TAGS,
    NULL_STRING,
    ByteReader,
    array,
    byte_string,
    compact_array,
    compact_string,
    int8,
    int16,
    int32,
    int64,
    malformed_as,
    nullable_string,
    string,
    tagged_fields,
    unsigned_varint,
    varint,
)

__all__ = [
    "COMPACT_NULL",
    "NO_TAGS",
    "NULL_STRING",
    "ByteReader",
    "array",
    "byte_string",
    "compact_array",
    "compact_string",
    "int8",
    "int16",
    "int32",
    "int64",
    "malformed_as",
    "nullable_string",
    "string",
    "tagged_fields",
    "unsigned_varint",
    "varint",
]
