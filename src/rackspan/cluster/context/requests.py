"""Requests of a broker's handlers to its own core and to the controller, matched to responses by correlation id."""

import asyncio
from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

from rackspan.cluster.core.groups.requests import GroupRequest
from rackspan.cluster.core.ids import CLIENT, CONTROLLER, CorrelationId, NodeId
from rackspan.cluster.core.messages import Message
from rackspan.cluster.core.transactions.requests import TransactionRequest
from rackspan.model.ids import BrokerId

BuildRequest: TypeAlias = Callable[[CorrelationId], Message]
OnResponse: TypeAlias = Callable[[Any], None]
CoordinatorRequest: TypeAlias = GroupRequest | TransactionRequest


class PendingResponses:
    """The callbacks of requests without a response yet, for all brokers of a cluster. A correlation id is never used twice."""

    def __init__(self) -> None:
        self._last = 0
        self._callbacks: dict[CorrelationId, tuple[object, OnResponse]] = {}

    def register(self, on_response: OnResponse, owner: object = None) -> CorrelationId:
        """A new correlation id, whose response calls `on_response` once."""
        self._last += 1
        self._callbacks[self._last] = (owner, on_response)
        return self._last

    def resolve(self, correlation_id: CorrelationId, response: Any) -> None:
        """Call the callback of the request. A second response, or one for a dropped request, is ignored."""
        registered = self._callbacks.pop(correlation_id, None)
        if registered is not None:
            registered[1](response)

    def drop(self, correlation_id: CorrelationId) -> None:
        self._callbacks.pop(correlation_id, None)

    def drop_all(self, owner: object) -> None:
        """Drop the requests that were registered with `owner`."""
        for correlation_id, (registered_owner, _) in tuple(self._callbacks.items()):
            if registered_owner is owner:
                del self._callbacks[correlation_id]

    def __len__(self) -> int:
        return len(self._callbacks)


class NetworkSend(Protocol):
    """Network.send: `signed` is the source that the receiver sees."""

    def __call__(
        self, source: NodeId, destination: NodeId, message: Message, *, signed: NodeId | None = None
    ) -> None: ...


class Requests:
    """Sends the requests of one run of a broker. Responses are dropped once it has ended.

    `deliver` passes a message to the broker's core, `coordinate` a request to its coordinators, `send` a message over the network.
    """

    def __init__(
        self,
        broker: BrokerId,
        pending: PendingResponses,
        deliver: Callable[[Message], None],
        coordinate: Callable[[CorrelationId, CoordinatorRequest], None],
        send: NetworkSend,
    ) -> None:
        self._broker = broker
        self._pending = pending
        self._deliver = deliver
        self._coordinate = coordinate
        self._send = send
        self._coordinator_responses: set[asyncio.Future[Any]] = set()

    def register(self, on_response: OnResponse) -> CorrelationId:
        """A correlation id for a request of this broker."""
        return self._pending.register(on_response, owner=self)

    def drop_all(self) -> None:
        """The broker has stopped: its callbacks are never called, and requests to its coordinators are cancelled."""
        self._pending.drop_all(owner=self)
        for response in tuple(self._coordinator_responses):
            response.cancel()

    def send_to_core(self, build: BuildRequest, on_response: OnResponse) -> None:
        """To this broker's core. `on_response` is called once, perhaps before this returns, or never if the broker stops first."""
        self._deliver(build(self.register(on_response)))

    async def core_response(self, build: BuildRequest, timeout_ms: int, default: Any) -> Any:
        """The response of this broker's core, `default` on timeout."""
        response: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.send_to_core(build, lambda value: _set_once(response, value))
        return await _within(response, timeout_ms, default)

    async def coordinator_response(self, request: CoordinatorRequest) -> Any:
        """The response of this broker's group or transaction coordinator. Cancelled if the broker stops first."""
        response: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._coordinator_responses.add(response)
        response.add_done_callback(self._coordinator_responses.discard)
        self._coordinate(self.register(lambda value: _set_once(response, value)), request)
        return await response

    async def controller_response(self, build: BuildRequest, timeout_ms: int, default: Any) -> Any:
        """The controller's response, over this broker's link to it, `default` on timeout."""
        response: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        correlation_id = self._pending.register(lambda value: _set_once(response, value))
        self._send(self._broker, CONTROLLER, build(correlation_id), signed=CLIENT)
        try:
            return await _within(response, timeout_ms, default)
        finally:
            self._pending.drop(correlation_id)


def _set_once(future: "asyncio.Future[Any]", value: Any) -> None:
    if not future.done():
        future.set_result(value)


async def _within(future: "asyncio.Future[Any]", timeout_ms: int, default: Any) -> Any:
    try:
        return await asyncio.wait_for(future, timeout_ms / 1000)
    except TimeoutError:
        return default
