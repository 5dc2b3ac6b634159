"""Requests of this broker's handlers to its own group and transaction coordinators."""

import asyncio
from collections.abc import Callable
from typing import Any

from rackspan.cluster.context.requests import OnResponse
from rackspan.cluster.core.groups.requests import GroupRequest
from rackspan.cluster.core.ids import CorrelationId
from rackspan.cluster.core.transactions.requests import TransactionRequest


class CoordinatorRequests:
    """`register` draws a correlation id; `send` passes a request with its id to the broker's process."""

    def __init__(
        self,
        register: Callable[[OnResponse], CorrelationId],
        send: Callable[[CorrelationId, GroupRequest | TransactionRequest], None],
    ) -> None:
        self._register = register
        self._send = send
        self._responses: set[asyncio.Future[Any]] = set()

    async def response(self, request: GroupRequest | TransactionRequest) -> Any:
        """The coordinator's response. Cancelled if the broker's process ends first."""
        response: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._responses.add(response)
        response.add_done_callback(self._responses.discard)
        correlation_id = self._register(lambda value: None if response.done() else response.set_result(value))
        self._send(correlation_id, request)
        return await response

    def stop(self) -> None:
        """The process has ended: requests without a response are cancelled."""
        for response in tuple(self._responses):
            response.cancel()
