"""Messages between nodes of one process: in order, over links that can be cut or made slow.

Nothing is delivered while a node is still acting on something else: every message waits for the loop's next turn, so that
nodes meet as they do over sockets.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from typing import TypeAlias

from rackspan.cluster.core.ids import NodeId
from rackspan.cluster.core.messages import Message

Receive: TypeAlias = Callable[[NodeId, Message], None]
"""A node's door: (source, message)."""

Link: TypeAlias = tuple[NodeId, NodeId]
"""One direction: (from, to)."""


class Network:
    """Of one cluster. `carried` hears of every message that is delivered, as (from, to, message)."""

    def __init__(self, loop: asyncio.AbstractEventLoop, carried: Callable[[NodeId, NodeId, Message], None]) -> None:
        self._loop = loop
        self._carried = carried
        self._doors: dict[NodeId, Receive] = {}
        self._cut: set[Link] = set()
        self._delay_ms: dict[Link, int] = {}
        self._under_way: deque[tuple[NodeId, NodeId, NodeId, Message]] = deque()

    def attach(self, node: NodeId, receive: Receive) -> None:
        self._doors[node] = receive

    def detach(self, node: NodeId) -> None:
        """Whatever is sent there from now on is lost, and what it has sent itself and is still under way.

        The heartbeat of a broker that is gone would unfence it, and its leaders take it back into the ISR.
        """
        self._doors.pop(node, None)

    def send(self, source: NodeId, destination: NodeId, message: Message, *, signed: NodeId | None = None) -> None:
        """Over the link from source to destination; the receiver sees `signed` as its source where that differs."""
        link = (source, destination)
        if link in self._cut:
            return
        delay_ms = self._delay_ms.get(link, 0)
        sent = (source, destination, source if signed is None else signed, message)
        if delay_ms:
            self._loop.call_later(delay_ms / 1000, self._deliver, *sent)
            return
        if not self._under_way:
            self._loop.call_soon(self._deliver_all)
        self._under_way.append(sent)

    def cut(self, *links: Link) -> None:
        self._cut.update(links)

    def heal(self, *links: Link) -> None:
        self._cut.difference_update(links)

    def delay(self, milliseconds: int, *links: Link) -> None:
        """0 takes the delay away."""
        for link in links:
            self._delay_ms[link] = milliseconds

    def mend(self) -> None:
        """Every link holds, at its own speed."""
        self._cut.clear()
        self._delay_ms.clear()

    @property
    def cuts(self) -> list[Link]:
        return sorted(self._cut)

    @property
    def delays_ms(self) -> dict[Link, int]:
        return {link: late for link, late in sorted(self._delay_ms.items()) if late}

    def _deliver_all(self) -> None:
        # What these messages bring about waits for the next turn: sockets are served in between.
        turn, self._under_way = self._under_way, deque()
        for sent in turn:
            self._deliver(*sent)

    def _deliver(self, source: NodeId, destination: NodeId, signed: NodeId, message: Message) -> None:
        door = self._doors.get(destination)
        if door is None or source not in self._doors or (source, destination) in self._cut:
            return
        self._carried(source, destination, message)
        door(signed, message)


def both_ways(one: NodeId, others: Iterator[NodeId] | list[NodeId]) -> list[Link]:
    return [link for other in others for link in ((one, other), (other, one))]
