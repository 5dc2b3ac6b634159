"""DescribeAcls (key 29), versions 1-3. Generated from kio's schemas by tools/wire_messages.py: do not edit."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from rackspan.wire.messages.base import WireStruct


class DescribeAclsRequestData(WireStruct):
    __slots__ = (
        "resource_type_filter",
        "resource_name_filter",
        "pattern_type_filter",
        "principal_filter",
        "host_filter",
        "operation",
        "permission_type",
    )

    def __init__(
        self,
        *,
        resource_type_filter: int = 0,
        resource_name_filter: str | None = None,
        pattern_type_filter: int = 3,
        principal_filter: str | None = None,
        host_filter: str | None = None,
        operation: int = 0,
        permission_type: int = 0,
    ) -> None:
        self.resource_type_filter = resource_type_filter
        self.resource_name_filter = resource_name_filter
        self.pattern_type_filter = pattern_type_filter
        self.principal_filter = principal_filter
        self.host_filter = host_filter
        self.operation = operation
        self.permission_type = permission_type


class AclDescription(WireStruct):
    __slots__ = ("principal", "host", "operation", "permission_type")

    def __init__(self, *, principal: str = "", host: str = "", operation: int = 0, permission_type: int = 0) -> None:
        self.principal = principal
        self.host = host
        self.operation = operation
        self.permission_type = permission_type


class DescribeAclsResource(WireStruct):
    __slots__ = ("resource_type", "resource_name", "pattern_type", "acls")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"acls": AclDescription}

    def __init__(
        self,
        *,
        resource_type: int = 0,
        resource_name: str = "",
        pattern_type: int = 3,
        acls: Sequence[AclDescription] = (),
    ) -> None:
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.pattern_type = pattern_type
        self.acls = acls


class DescribeAclsResponseData(WireStruct):
    __slots__ = ("throttle_time", "error_code", "error_message", "resources")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"resources": DescribeAclsResource}

    def __init__(
        self,
        *,
        throttle_time: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        resources: Sequence[DescribeAclsResource] = (),
    ) -> None:
        self.throttle_time = throttle_time
        self.error_code = error_code
        self.error_message = error_message
        self.resources = resources
