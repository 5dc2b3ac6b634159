"""CreateAcls (key 30), versions 1-3: every creation is refused, since no authorizer is configured."""

from rackspan.cluster.context import Call
from rackspan.cluster.handlers.common import NO_AUTHORIZER
from rackspan.wire.messages.acls import AclCreationResult, CreateAclsRequestData, CreateAclsResponseData


def handle(call: Call[CreateAclsRequestData]) -> CreateAclsResponseData:
    error, message = NO_AUTHORIZER
    return CreateAclsResponseData(
        results=[AclCreationResult(error_code=error, error_message=message) for _ in call.request.creations]
    )
