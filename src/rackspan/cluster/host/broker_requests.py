"""What a broker's handlers ask of this broker, of others and of the controller, and how long they wait."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Final

from rackspan.cluster.context.delayed_fetches import until
from rackspan.cluster.core.ids import CLIENT, CONTROLLER, CorrelationId, NodeId
from rackspan.cluster.core.messages import Message
from rackspan.cluster.core.metadata import MetadataImage
from rackspan.cluster.host.shared_services import SharedServices
from rackspan.model.ids import BrokerId

_CAUGHT_UP_MS: Final = 1_000
"""A broker that learns late is a fault of its own: whoever administers the cluster through it is not kept for long."""


class Questions(ABC):
    """The part of a broker's host that asks. Whoever waits when its process ends is never answered."""

    def __init__(self, shared: SharedServices, broker: BrokerId) -> None:
        self.id = broker
        self._shared = shared
        self._open_correlation_ids: set[CorrelationId] = set()
        self._image_news = asyncio.Event()

    @property
    @abstractmethod
    def image(self) -> MetadataImage:
        """The metadata as this broker knows it."""

    @abstractmethod
    def _act(self, source: NodeId, message: Message) -> None:
        """Let the broker's process take a message."""

    def _tell_image_moved(self) -> None:
        self._image_news.set()
        self._image_news = asyncio.Event()

    def _forget_questions(self) -> None:
        self._shared.pending_responses.forget(self._open_correlation_ids)
        self._open_correlation_ids.clear()

    def send_to_core(
        self, question: Callable[[CorrelationId], Message], answered: Callable[[Any], None]
    ) -> CorrelationId:
        """Ask this broker; `answered` is called once, perhaps at once, or never if the process ends first."""
        correlation_id = self._shared.pending_responses.draw(answered)
        self._open_correlation_ids.add(correlation_id)
        self._act(CLIENT, question(correlation_id))
        return correlation_id

    async def core_response(self, question: Callable[[CorrelationId], Message], timeout_ms: int, otherwise: Any) -> Any:
        """The broker's answer, or `otherwise` when the time is over."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        self.send_to_core(question, lambda result: None if future.done() else future.set_result(result))
        return await _within(future, timeout_ms, otherwise)

    def send_to_broker(
        self,
        broker: BrokerId,
        question: Callable[[CorrelationId], Message],
        answered: Callable[[Any], None],
        timeout_ms: int,
        otherwise: Any,
    ) -> None:
        """Ask another broker, or this one, over the link between them; `otherwise` where it is silent for so long."""
        correlation_id = self._shared.pending_responses.draw(answered)
        self._open_correlation_ids.add(correlation_id)
        self._shared.network.send(self.id, broker, question(correlation_id), signed=CLIENT)
        asyncio.get_running_loop().call_later(
            timeout_ms / 1000, self._shared.pending_responses.answer, correlation_id, otherwise
        )

    async def controller_response(
        self, question: Callable[[CorrelationId], Message], timeout_ms: int, otherwise: Any
    ) -> Any:
        """The controller's answer, over this broker's link to it, or `otherwise` when the time is over."""
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        correlation_id = self._shared.pending_responses.draw(
            lambda result: None if future.done() else future.set_result(result)
        )
        self._shared.network.send(self.id, CONTROLLER, question(correlation_id), signed=CLIENT)
        try:
            return await _within(future, timeout_ms, otherwise)
        finally:
            self._shared.pending_responses.forget([correlation_id])

    async def wait_for_image(self, holds: Callable[[MetadataImage], bool], timeout_ms: int) -> bool:
        """Wait until this broker's metadata says so; False when the time is over."""
        return await until(lambda: holds(self.image), lambda: self._image_news.wait(), timeout_ms / 1000)

    async def wait_until_caught_up(self, timeout_ms: int) -> bool:
        """Wait until this broker knows what the controller has committed by now; False when the time is over."""
        offset = self._shared.committed_offset()
        return await self.wait_for_image(lambda image: image.offset >= offset, min(timeout_ms, _CAUGHT_UP_MS))


async def _within(future: "asyncio.Future[Any]", timeout_ms: int, otherwise: Any) -> Any:
    try:
        return await asyncio.wait_for(future, timeout_ms / 1000)
    except TimeoutError:
        return otherwise
