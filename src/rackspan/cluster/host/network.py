"""Messages between the brokers and the controller of one cluster: in order, over links that can be cut or delayed.

A message is delivered in the event loop's next iteration, never while its sender still handles another one: as over a socket.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from typing import TypeAlias

from rackspan.cluster.core.ids import NodeId
from rackspan.cluster.core.messages import Message

Receive: TypeAlias = Callable[[NodeId, Message], None]
"""A node's method for messages: (source, message)."""

Link: TypeAlias = tuple[NodeId, NodeId]
"""One direction: (from, to)."""


class Network:
    """The network of one cluster. `on_delivered` is called with every delivered message: (source, destination, message)."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, on_delivered: Callable[[NodeId, NodeId, Message], None]
    ) -> None:
        self._loop = loop
        self._on_delivered = on_delivered
        self._receivers: dict[NodeId, Receive] = {}
        self._cut: set[Link] = set()
        self._delay_ms: dict[Link, int] = {}
        self._undelivered: deque[tuple[NodeId, NodeId, NodeId, Message]] = deque()

    def attach(self, node: NodeId, receive: Receive) -> None:
        self._receivers[node] = receive

    def detach(self, node: NodeId) -> None:
        """Drop messages to the node, and its own that are not delivered yet.

        The heartbeat of a killed broker would unfence it, and leaders would take it back into the ISR.
        """
        self._receivers.pop(node, None)

    def send(self, source: NodeId, destination: NodeId, message: Message, *, signed: NodeId | None = None) -> None:
        """Send over the link from source to destination. `signed` is the source that the receiver sees, if it differs."""
        link = (source, destination)
        if link in self._cut:
            return
        delay_ms = self._delay_ms.get(link, 0)
        sent = (source, destination, source if signed is None else signed, message)
        if delay_ms:
            self._loop.call_later(delay_ms / 1000, self._deliver, *sent)
            return
        if not self._undelivered:
            self._loop.call_soon(self._deliver_all)
        self._undelivered.append(sent)

    def cut(self, *links: Link) -> None:
        self._cut.update(links)

    def heal(self, *links: Link) -> None:
        self._cut.difference_update(links)

    def delay(self, milliseconds: int, *links: Link) -> None:
        """0 removes the delay."""
        for link in links:
            self._delay_ms[link] = milliseconds

    def heal_all(self) -> None:
        """Undo every cut and delay."""
        self._cut.clear()
        self._delay_ms.clear()

    @property
    def cuts(self) -> list[Link]:
        return sorted(self._cut)

    @property
    def delays_ms(self) -> dict[Link, int]:
        return {link: delay_ms for link, delay_ms in sorted(self._delay_ms.items()) if delay_ms}

    def _deliver_all(self) -> None:
        # Messages that these cause are delivered in the next iteration: sockets are served in between.
        current, self._undelivered = self._undelivered, deque()
        for sent in current:
            self._deliver(*sent)

    def _deliver(self, source: NodeId, destination: NodeId, signed: NodeId, message: Message) -> None:
        receive = self._receivers.get(destination)
        if receive is None or source not in self._receivers or (source, destination) in self._cut:
            return
        self._on_delivered(source, destination, message)
        receive(signed, message)


def both_ways(one: NodeId, others: Iterator[NodeId] | list[NodeId]) -> list[Link]:
    return [link for other in others for link in ((one, other), (other, one))]
