"""Decodes a request, calls its handler, encodes the response."""

import asyncio
from collections.abc import Awaitable, Coroutine, Mapping
from typing import Any

from rackspan.cluster.context.broker_context import BrokerContext
from rackspan.cluster.context.call import Call, Encoded, Response
from rackspan.cluster.handlers import HANDLERS, refuse_version
from rackspan.errors import MalformedRequest
from rackspan.wire.codec import (
    API_VERSIONS,
    RequestHeader,
    peek_header,
    read_body,
    read_header,
    response_header,
    write_body,
)
from rackspan.wire.framing import Request


def dispatch(
    broker: BrokerContext, request: Request, client_host: str
) -> list[bytes] | Awaitable[list[bytes] | None] | None:
    """The response to one request, now or later. Errors: MalformedRequest, also for an API or version without a handler.

    Kafka closes the connection there too. ApiVersions alone gets a response in every version.
    """
    api_key, version, correlation = peek_header(request)
    handler = HANDLERS.get(api_key)
    if handler is None or version not in handler.versions:
        if api_key == API_VERSIONS:
            return [*_written(RequestHeader(API_VERSIONS, 0, correlation, None, 0), refuse_version())]
        raise MalformedRequest(f"API key {api_key} version {version} is not offered here")
    header = read_header(request)
    response = handler.handle(Call(header, read_body(request, header), broker, client_host))
    if isinstance(response, (asyncio.Future, Coroutine)):
        return _later(header, response)
    return _encoded(header, response)


async def _later(header: RequestHeader, response: Awaitable[Response]) -> list[bytes] | None:
    return _encoded(header, await response)


def _encoded(header: RequestHeader, response: Response) -> list[bytes] | None:
    if response is None:
        return None
    if isinstance(response, Encoded):
        return [response_header(header), *response.parts]
    return _written(header, response)


def _written(header: RequestHeader, body: Mapping[str, Any]) -> list[bytes]:
    return [response_header(header), *write_body(header.api_key, header.api_version, body)]
