"""DescribeClientQuotas (key 48), versions 0-1. Generated from kio's schemas by tools/wire_messages.py: do not edit."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from rackspan.wire.messages.base import WireStruct


class ComponentData(WireStruct):
    __slots__ = ("entity_type", "match_type", "match")

    def __init__(self, *, entity_type: str = "", match_type: int = 0, match: str | None = None) -> None:
        self.entity_type = entity_type
        self.match_type = match_type
        self.match = match


class DescribeClientQuotasRequestData(WireStruct):
    __slots__ = ("components", "strict")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"components": ComponentData}

    def __init__(self, *, components: Sequence[ComponentData] = (), strict: bool = False) -> None:
        self.components = components
        self.strict = strict


class DescribeClientQuotasResponseEntityData(WireStruct):
    __slots__ = ("entity_type", "entity_name")

    def __init__(self, *, entity_type: str = "", entity_name: str | None = None) -> None:
        self.entity_type = entity_type
        self.entity_name = entity_name


class ValueData(WireStruct):
    __slots__ = ("key", "value")

    def __init__(self, *, key: str = "", value: float = 0.0) -> None:
        self.key = key
        self.value = value


class DescribeClientQuotasResponseEntryData(WireStruct):
    __slots__ = ("entity", "values")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {
        "entity": DescribeClientQuotasResponseEntityData,
        "values": ValueData,
    }

    def __init__(
        self,
        *,
        entity: Sequence[DescribeClientQuotasResponseEntityData] = (),
        values: Sequence[ValueData] = (),
    ) -> None:
        self.entity = entity
        self.values = values


class DescribeClientQuotasResponseData(WireStruct):
    __slots__ = ("throttle_time", "error_code", "error_message", "entries")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"entries": DescribeClientQuotasResponseEntryData}

    def __init__(
        self,
        *,
        throttle_time: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        entries: Sequence[DescribeClientQuotasResponseEntryData] | None = None,
    ) -> None:
        self.throttle_time = throttle_time
        self.error_code = error_code
        self.error_message = error_message
        self.entries = entries
