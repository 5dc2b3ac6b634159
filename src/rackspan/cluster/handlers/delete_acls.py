"""DeleteAcls (key 31), versions 1-3: every filter is refused, since no authorizer is configured."""

from rackspan.cluster.context import Call
from rackspan.cluster.handlers.common import NO_AUTHORIZER
from rackspan.wire.messages.acls import DeleteAclsFilterResult, DeleteAclsRequestData, DeleteAclsResponseData


def handle(call: Call[DeleteAclsRequestData]) -> DeleteAclsResponseData:
    error, message = NO_AUTHORIZER
    return DeleteAclsResponseData(
        filter_results=[DeleteAclsFilterResult(error_code=error, error_message=message) for _ in call.request.filters]
    )
