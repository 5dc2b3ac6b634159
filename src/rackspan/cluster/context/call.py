"""What a handler is given and what it may answer with."""

from asyncio import Future
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from rackspan.wire.codec import RequestHeader

if TYPE_CHECKING:
    from rackspan.cluster.host.broker_host import BrokerHost

Body: TypeAlias = Mapping[str, Any]
"""A response's fields by kio's names; what a version does not have is left out when it is written."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """A body that is written already, for answers that are given again and again."""

    parts: Sequence[bytes]


Response: TypeAlias = Body | Encoded | None
"""None: the client waits for none (acks=0)."""


@dataclass(frozen=True, slots=True)
class Call:
    """One request of one client to one broker."""

    header: RequestHeader
    body: dict[str, Any]
    broker: "BrokerHost"
    client_host: str

    @property
    def version(self) -> int:
        return self.header.api_version


Handle: TypeAlias = Callable[[Call], Response | Future[Response] | Coroutine[Any, Any, Response]]


@dataclass(frozen=True, slots=True)
class Handler:
    """Who answers an API, and in which versions. `advertised_from` is what ApiVersions says where that differs."""

    versions: range
    handle: Handle
    advertised_from: int | None = None

    @property
    def lowest_advertised(self) -> int:
        return self.versions[0] if self.advertised_from is None else self.advertised_from
