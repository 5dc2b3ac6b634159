"""CreateAcls (key 30), versions 1-3. Generated from kio's schemas by tools/wire_messages.py: do not edit."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from rackspan.wire.messages.base import WireStruct


class AclCreation(WireStruct):
    __slots__ = (
        "resource_type",
        "resource_name",
        "resource_pattern_type",
        "principal",
        "host",
        "operation",
        "permission_type",
    )

    def __init__(
        self,
        *,
        resource_type: int = 0,
        resource_name: str = "",
        resource_pattern_type: int = 3,
        principal: str = "",
        host: str = "",
        operation: int = 0,
        permission_type: int = 0,
    ) -> None:
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.resource_pattern_type = resource_pattern_type
        self.principal = principal
        self.host = host
        self.operation = operation
        self.permission_type = permission_type


class CreateAclsRequestData(WireStruct):
    __slots__ = ("creations",)
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"creations": AclCreation}

    def __init__(self, *, creations: Sequence[AclCreation] = ()) -> None:
        self.creations = creations


class AclCreationResult(WireStruct):
    __slots__ = ("error_code", "error_message")

    def __init__(self, *, error_code: int = 0, error_message: str | None = None) -> None:
        self.error_code = error_code
        self.error_message = error_message


class CreateAclsResponseData(WireStruct):
    __slots__ = ("throttle_time", "results")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"results": AclCreationResult}

    def __init__(self, *, throttle_time: int = 0, results: Sequence[AclCreationResult] = ()) -> None:
        self.throttle_time = throttle_time
        self.results = results
