"""Bytes as Java's DataOutput and Kafka's messages write them: big-endian, lengths first. A cursor that cannot overrun."""

from dataclasses import dataclass
from typing import Final, NoReturn

from rackspan.errors import InvalidGroup

_NULL: Final = -1


@dataclass(slots=True)
class JavaBytes:
    """Reads forwards through `data`. Errors everywhere: InvalidGroup, saying of what (`whose`) and where."""

    data: bytes
    whose: str
    at: int = 0

    def int8(self) -> int:
        return self._number(1)

    def int16(self) -> int:
        return self._number(2)

    def int32(self) -> int:
        return self._number(4)

    def int64(self) -> int:
        return self._number(8)

    def raw(self, length: int) -> bytes:
        if not 0 <= length <= len(self.data) - self.at:
            self.refuse(f"{length} bytes are announced where {len(self.data) - self.at} are left")
        start, self.at = self.at, self.at + length
        return self.data[start : self.at]

    def count(self, least_bytes: int) -> int:
        """The length of an array, each element of which takes at least so many bytes: no lie makes us wait or swell."""
        count = self.int32()
        if not 0 <= count * least_bytes <= len(self.data) - self.at:
            self.refuse(f"{count} elements are announced where {len(self.data) - self.at} bytes are left")
        return count

    def blob(self) -> bytes:
        """Kafka's `bytes`: an int32 length, then as many."""
        return self.raw(self.int32())

    def string(self) -> str:
        """Kafka's `string`: an int16 length, then UTF-8."""
        return self.text(self.raw(self.int16()))

    def nullable_string(self) -> str | None:
        """Kafka's nullable `string`: an int16 length, −1 for null."""
        length = self.int16()
        return None if length == _NULL else self.text(self.raw(length))

    def utf(self) -> str:
        """DataOutput.writeUTF: an unsigned 16-bit length. Topics and hosts are ASCII, where Java's UTF-8 is everybody's."""
        return self.text(self.raw(self.int16() % 2**16))

    def chars(self) -> str:
        """An int32 number of UTF-16 units, then those (DataOutput.writeChars)."""
        return self.text(self.raw(2 * self.count(2)), "utf-16-be")

    def text(self, data: bytes, encoding: str = "utf-8") -> str:
        try:
            return data.decode(encoding)
        except UnicodeDecodeError:
            self.refuse(f"{data[:20]!r} is no text")

    def end(self) -> None:
        if self.at < len(self.data):
            self.refuse(f"{len(self.data) - self.at} bytes are left over")

    def refuse(self, why: str) -> NoReturn:
        raise InvalidGroup(f"{self.whose}, byte {self.at}: {why}; is it Kafka Streams, and of a version up to 4.1?")

    def _number(self, size: int) -> int:
        return int.from_bytes(self.raw(size), "big", signed=True)
