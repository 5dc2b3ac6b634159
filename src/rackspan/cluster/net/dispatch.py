"""From a request's bytes to its handler, and from the answer to bytes."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any

from rackspan.cluster.context.call import Call, Encoded, Handler, Response
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

if TYPE_CHECKING:
    from rackspan.cluster.host.broker_host import BrokerHost


def dispatch(
    handlers: Mapping[int, Handler],
    broker: "BrokerHost",
    request: Request,
    client_host: str,
    refuse_version: Callable[[], Mapping[str, Any]],
) -> list[bytes] | Awaitable[list[bytes] | None] | None:
    """The response to one request, now or later. Errors: MalformedRequest, also where nobody handles the version.

    Kafka closes the connection there too, except of a client that asks which versions there are.
    """
    api_key, version, correlation = peek_header(request)
    handler = handlers.get(api_key)
    if handler is None or version not in handler.versions:
        if api_key == API_VERSIONS:
            return [*_written(RequestHeader(API_VERSIONS, 0, correlation, None, 0), refuse_version())]
        raise MalformedRequest(f"API key {api_key} version {version} is not offered here")
    header = read_header(request)
    answer = handler.handle(Call(header, read_body(request, header), broker, client_host))
    if isinstance(answer, (asyncio.Future, Coroutine)):
        return _later(header, answer)
    return _encoded(header, answer)


async def _later(header: RequestHeader, answer: Awaitable[Response]) -> list[bytes] | None:
    return _encoded(header, await answer)


def _encoded(header: RequestHeader, answer: Response) -> list[bytes] | None:
    if answer is None:
        return None
    if isinstance(answer, Encoded):
        return [response_header(header), *answer.parts]
    return _written(header, answer)


def _written(header: RequestHeader, body: Mapping[str, Any]) -> list[bytes]:
    return [response_header(header), *write_body(header.api_key, header.api_version, body)]
