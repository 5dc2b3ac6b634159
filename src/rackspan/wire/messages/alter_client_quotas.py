"""AlterClientQuotas (key 49), versions 0-1. Generated from kio's schemas by tools/wire_messages.py: do not edit."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from rackspan.wire.messages.base import WireStruct


class AlterClientQuotasRequestEntityData(WireStruct):
    __slots__ = ("entity_type", "entity_name")

    def __init__(self, *, entity_type: str = "", entity_name: str | None = None) -> None:
        self.entity_type = entity_type
        self.entity_name = entity_name


class OpData(WireStruct):
    __slots__ = ("key", "value", "remove")

    def __init__(self, *, key: str = "", value: float = 0.0, remove: bool = False) -> None:
        self.key = key
        self.value = value
        self.remove = remove


class AlterClientQuotasRequestEntryData(WireStruct):
    __slots__ = ("entity", "ops")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"entity": AlterClientQuotasRequestEntityData, "ops": OpData}

    def __init__(
        self,
        *,
        entity: Sequence[AlterClientQuotasRequestEntityData] = (),
        ops: Sequence[OpData] = (),
    ) -> None:
        self.entity = entity
        self.ops = ops


class AlterClientQuotasRequestData(WireStruct):
    __slots__ = ("entries", "validate_only")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"entries": AlterClientQuotasRequestEntryData}

    def __init__(
        self,
        *,
        entries: Sequence[AlterClientQuotasRequestEntryData] = (),
        validate_only: bool = False,
    ) -> None:
        self.entries = entries
        self.validate_only = validate_only


class AlterClientQuotasResponseEntityData(WireStruct):
    __slots__ = ("entity_type", "entity_name")

    def __init__(self, *, entity_type: str = "", entity_name: str | None = None) -> None:
        self.entity_type = entity_type
        self.entity_name = entity_name


class AlterClientQuotasResponseEntryData(WireStruct):
    __slots__ = ("error_code", "error_message", "entity")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"entity": AlterClientQuotasResponseEntityData}

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = None,
        entity: Sequence[AlterClientQuotasResponseEntityData] = (),
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.entity = entity


class AlterClientQuotasResponseData(WireStruct):
    __slots__ = ("throttle_time", "entries")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"entries": AlterClientQuotasResponseEntryData}

    def __init__(self, *, throttle_time: int = 0, entries: Sequence[AlterClientQuotasResponseEntryData] = ()) -> None:
        self.throttle_time = throttle_time
        self.entries = entries
