"""The beginning of a Produce request: its acks, without reading the records."""

from typing import Final

from rackspan.errors import MalformedBytes, MalformedRequest
from rackspan.kafka_bytes import ByteReader

_FLEXIBLE_SINCE: Final = 9
_HEADER_BYTES: Final = 8


def acks_of(version: int, request: bytes | memoryview) -> int:
    """The acks of an unframed request. Errors: MalformedRequest."""
    reader = ByteReader(request, _HEADER_BYTES)
    try:
        reader.nullable_string()  # client_id
        if version >= _FLEXIBLE_SINCE:
            reader.tagged_fields()
            reader.compact_nullable_string()  # transactional_id
        else:
            reader.nullable_string()
        return reader.int16()
    except MalformedBytes as error:
        raise MalformedRequest(f"a Produce request: {error}") from error
