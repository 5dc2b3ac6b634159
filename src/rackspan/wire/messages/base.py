"""What the generated classes share."""

from collections.abc import Mapping
from typing import ClassVar


class WireStruct:
    """A request, a response or a struct inside one. The constructor takes fields by keyword."""

    __slots__: tuple[str, ...] = ()
    STRUCTS: ClassVar[Mapping[str, type["WireStruct"]]] = {}
    """The class of each field that holds a struct or an array of structs."""

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    __hash__ = None  # type: ignore[assignment]  # Fields can be set.

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in self.__slots__)})"
