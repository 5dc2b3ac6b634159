"""Requests and responses: quotas. Generated from kio's schemas by tools/wire_messages.py: do not edit.

DescribeClientQuotas (key 48), versions 0-1; AlterClientQuotas (key 49), versions 0-1.
"""

from collections.abc import Sequence

from rackspan.wire.messages.base import WireStruct


class ComponentData(WireStruct):
    entity_type: str = ""
    match_type: int = 0
    match: str | None = None


class DescribeClientQuotasRequestData(WireStruct):
    components: Sequence[ComponentData] = ()
    strict: bool = False


class DescribeClientQuotasResponseEntityData(WireStruct):
    entity_type: str = ""
    entity_name: str | None = None


class ValueData(WireStruct):
    key: str = ""
    value: float = 0.0


class DescribeClientQuotasResponseEntryData(WireStruct):
    entity: Sequence[DescribeClientQuotasResponseEntityData] = ()
    values: Sequence[ValueData] = ()


class DescribeClientQuotasResponseData(WireStruct):
    throttle_time: int = 0
    error_code: int = 0
    error_message: str | None = None
    entries: Sequence[DescribeClientQuotasResponseEntryData] | None = None


class AlterClientQuotasRequestEntityData(WireStruct):
    entity_type: str = ""
    entity_name: str | None = None


class OpData(WireStruct):
    key: str = ""
    value: float = 0.0
    remove: bool = False


class AlterClientQuotasRequestEntryData(WireStruct):
    entity: Sequence[AlterClientQuotasRequestEntityData] = ()
    ops: Sequence[OpData] = ()


class AlterClientQuotasRequestData(WireStruct):
    entries: Sequence[AlterClientQuotasRequestEntryData] = ()
    validate_only: bool = False


class AlterClientQuotasResponseEntityData(WireStruct):
    entity_type: str = ""
    entity_name: str | None = None


class AlterClientQuotasResponseEntryData(WireStruct):
    error_code: int = 0
    error_message: str | None = None
    entity: Sequence[AlterClientQuotasResponseEntityData] = ()


class AlterClientQuotasResponseData(WireStruct):
    throttle_time: int = 0
    entries: Sequence[AlterClientQuotasResponseEntryData] = ()
