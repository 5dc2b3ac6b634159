"""Call: one request with the broker that received it, and the types of handlers and responses."""

from asyncio import Future
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

from rackspan.cluster.context.broker_context import BrokerContext
from rackspan.wire.codec import RequestHeader
from rackspan.wire.messages.base import WireStruct

RequestT = TypeVar("RequestT", covariant=True)


@dataclass(frozen=True, slots=True)
class EncodedResponse:
    """A response body that is already encoded, for responses that are cached."""

    parts: Sequence[bytes]


Response: TypeAlias = WireStruct | EncodedResponse | None
"""None: the client expects no response (acks=0)."""


@dataclass(frozen=True, slots=True)
class Call(Generic[RequestT]):
    """One request of one client to one broker. `request` is of a class of rackspan.wire.messages."""

    header: RequestHeader
    request: RequestT
    broker: BrokerContext
    client_host: str

    @property
    def version(self) -> int:
        return self.header.api_version


Handler: TypeAlias = Callable[[Call[Any]], Response | Future[Response] | Coroutine[Any, Any, Response]]
