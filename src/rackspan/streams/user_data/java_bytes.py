"""Java's DataOutput strings, and the error of user data that cannot be read."""

from contextlib import AbstractContextManager

from rackspan.errors import InvalidGroup
from rackspan.kafka_bytes import ByteReader, malformed_as


def invalid_user_data(label: str) -> AbstractContextManager[None]:
    """Raises InvalidGroup, one line that begins with `label`, in place of MalformedBytes."""
    return malformed_as(lambda why: InvalidGroup(f"{label}, {why}; is it Kafka Streams, and of a version up to 4.1?"))


def read_utf(reader: ByteReader) -> str:
    """DataOutput.writeUTF: an unsigned 16-bit length. Topics and hosts are ASCII, which modified UTF-8 leaves as it is."""
    return reader.text(reader.uint16())


def read_chars(reader: ByteReader) -> str:
    """DataOutput.writeChars behind an int32 number of UTF-16 units."""
    return reader.text(2 * reader.elements(reader.int32(), 2), "utf-16-be")


def read_text(reader: ByteReader) -> str:
    """UTF-8 behind an int32 number of bytes."""
    return reader.text(reader.int32())
