"""DescribeAcls (key 29), versions 1-3: refused, since no authorizer is configured."""

from rackspan.cluster.context import Call
from rackspan.cluster.handlers.common import NO_AUTHORIZER
from rackspan.wire.messages.acls import DescribeAclsRequestData, DescribeAclsResponseData


def handle(call: Call[DescribeAclsRequestData]) -> DescribeAclsResponseData:  # noqa: ARG001 - a handler takes its call
    error, _ = NO_AUTHORIZER
    return DescribeAclsResponseData(error_code=error, error_message="No Authorizer is configured on the broker")
