"""Call: one request with the broker that received it, and the types of handlers and responses."""

from asyncio import Future
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from rackspan.cluster.context.broker_context import BrokerContext
from rackspan.wire.codec import RequestHeader

Body: TypeAlias = Mapping[str, Any]
"""A response's fields by kio's names. Fields that the request's version does not have are left out when it is written."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """A response body that is already encoded, for responses that are cached."""

    parts: Sequence[bytes]


Response: TypeAlias = Body | Encoded | None
"""None: the client expects no response (acks=0)."""


@dataclass(frozen=True, slots=True)
class Call:
    """One request of one client to one broker."""

    header: RequestHeader
    body: dict[str, Any]
    broker: BrokerContext
    client_host: str

    @property
    def version(self) -> int:
        return self.header.api_version


Handle: TypeAlias = Callable[[Call], Response | Future[Response] | Coroutine[Any, Any, Response]]


@dataclass(frozen=True, slots=True)
class Handler:
    """The function and the versions of one API. `advertised_from` is the lowest version in ApiVersions where that differs."""

    versions: range
    handle: Handle
    advertised_from: int | None = None

    @property
    def lowest_advertised(self) -> int:
        return self.versions[0] if self.advertised_from is None else self.advertised_from
