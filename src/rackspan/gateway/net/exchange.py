"""One request of a connection and its response."""

import asyncio
from collections.abc import Callable, Sequence

from rackspan.gateway.core.apis import Treatment
from rackspan.wire.framing import Piece


class Exchange:
    """One request and its response."""

    __slots__ = ("api_key", "correlation_id", "done", "future", "on_response", "parts", "treatment", "version")

    def __init__(self, api_key: int, version: int, correlation_id: int, how: Treatment) -> None:
        self.api_key = api_key
        self.version = version
        self.correlation_id = correlation_id
        self.treatment = how
        self.parts: Sequence[Piece] | None = None
        """The response, unframed, once it is `done`; None where the client expects none."""
        self.done = False
        self.future: asyncio.Future[bytes] | None = None
        """Of a request of the gateway's own on the client's connection."""
        self.on_response: Callable[[bytes], list[Piece] | None] | None = None
        """Called with a whole response; returns what the client gets, or None where it is decided later."""
