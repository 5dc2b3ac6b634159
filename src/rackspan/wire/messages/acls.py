"""Requests and responses: acls. Generated from kio's schemas by tools/wire_messages.py: do not edit.

DescribeAcls (key 29), versions 1-3; CreateAcls (key 30), versions 1-3; DeleteAcls (key 31), versions 1-3.
"""

from collections.abc import Sequence

from rackspan.wire.messages.base import WireStruct


class DescribeAclsRequestData(WireStruct):
    resource_type_filter: int = 0
    resource_name_filter: str | None = None
    pattern_type_filter: int = 3
    principal_filter: str | None = None
    host_filter: str | None = None
    operation: int = 0
    permission_type: int = 0


class AclDescription(WireStruct):
    principal: str = ""
    host: str = ""
    operation: int = 0
    permission_type: int = 0


class DescribeAclsResource(WireStruct):
    resource_type: int = 0
    resource_name: str = ""
    pattern_type: int = 3
    acls: Sequence[AclDescription] = ()


class DescribeAclsResponseData(WireStruct):
    throttle_time: int = 0
    error_code: int = 0
    error_message: str | None = None
    resources: Sequence[DescribeAclsResource] = ()


class AclCreation(WireStruct):
    resource_type: int = 0
    resource_name: str = ""
    resource_pattern_type: int = 3
    principal: str = ""
    host: str = ""
    operation: int = 0
    permission_type: int = 0


class CreateAclsRequestData(WireStruct):
    creations: Sequence[AclCreation] = ()


class AclCreationResult(WireStruct):
    error_code: int = 0
    error_message: str | None = None


class CreateAclsResponseData(WireStruct):
    throttle_time: int = 0
    results: Sequence[AclCreationResult] = ()


class DeleteAclsFilter(WireStruct):
    resource_type_filter: int = 0
    resource_name_filter: str | None = None
    pattern_type_filter: int = 3
    principal_filter: str | None = None
    host_filter: str | None = None
    operation: int = 0
    permission_type: int = 0


class DeleteAclsRequestData(WireStruct):
    filters: Sequence[DeleteAclsFilter] = ()


class DeleteAclsMatchingAcl(WireStruct):
    error_code: int = 0
    error_message: str | None = None
    resource_type: int = 0
    resource_name: str = ""
    pattern_type: int = 3
    principal: str = ""
    host: str = ""
    operation: int = 0
    permission_type: int = 0


class DeleteAclsFilterResult(WireStruct):
    error_code: int = 0
    error_message: str | None = None
    matching_acls: Sequence[DeleteAclsMatchingAcl] = ()


class DeleteAclsResponseData(WireStruct):
    throttle_time: int = 0
    filter_results: Sequence[DeleteAclsFilterResult] = ()
