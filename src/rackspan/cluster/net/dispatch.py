"""Decodes a request, calls its handler, encodes the response."""

import asyncio
from collections.abc import Awaitable, Coroutine

from rackspan.cluster.context import BrokerContext, Call, EncodedResponse, Response
from rackspan.cluster.handlers import HANDLERS
from rackspan.cluster.handlers.api_versions import unsupported_version
from rackspan.errors import MalformedRequest
from rackspan.wire.apis import VERSIONS, ApiKey
from rackspan.wire.codec import RequestHeader, peek_header, read_body, read_header, response_header, write_response
from rackspan.wire.framing import Request


def dispatch(
    broker: BrokerContext, request: Request, client_host: str
) -> list[bytes] | Awaitable[list[bytes] | None] | None:
    """The response to one request, now or later. Errors: MalformedRequest, also for an API or version without a handler.

    Kafka closes the connection there too. ApiVersions alone gets a response in every version.
    """
    api_key, version, correlation_id = peek_header(request)
    handler = HANDLERS.get(api_key)
    if handler is None or version not in VERSIONS[ApiKey(api_key)]:
        if api_key == ApiKey.API_VERSIONS:
            # The client reads version 0, whatever it sent.
            return write_response(RequestHeader(api_key, 0, correlation_id, None, 0), unsupported_version())
        raise MalformedRequest(f"API key {api_key} version {version} is not offered here")
    header = read_header(request)
    response = handler(Call(header, read_body(request, header), broker, client_host))
    if isinstance(response, (asyncio.Future, Coroutine)):
        return _write_later(header, response)
    return _write(header, response)


async def _write_later(header: RequestHeader, response: Awaitable[Response]) -> list[bytes] | None:
    return _write(header, await response)


def _write(header: RequestHeader, response: Response) -> list[bytes] | None:
    if response is None:
        return None
    if isinstance(response, EncodedResponse):
        return [response_header(header), *response.parts]
    return write_response(header, response)
