"""Messages between nodes of one process."""

import asyncio
from collections.abc import Callable

from rackspan.cluster.core.ids import NodeId
from rackspan.cluster.core.messages import FetchMetadata, Message
from rackspan.cluster.host.network import Network
from rackspan.model.ids import BrokerId

ONE, OTHER = 1, 2
REQUEST = FetchMetadata(BrokerId(ONE), 1, 0)


def delivered(happens: Callable[[Network], None], seconds: float = 0.0) -> list[tuple[NodeId, Message]]:
    """What `OTHER` was given of what happened."""
    found: list[tuple[NodeId, Message]] = []

    async def play() -> None:
        network = Network(asyncio.get_running_loop(), lambda *_: None)
        network.attach(ONE, lambda *_: None)
        network.attach(OTHER, lambda source, message: found.append((source, message)))
        happens(network)
        await asyncio.sleep(seconds)
        await asyncio.sleep(0)

    asyncio.run(play())
    return found


def test_a_message_arrives_once() -> None:
    assert delivered(lambda network: network.send(ONE, OTHER, REQUEST)) == [(ONE, REQUEST)]


def test_messages_of_a_detached_node_are_lost() -> None:
    def happens(network: Network) -> None:
        network.send(ONE, OTHER, REQUEST)
        network.detach(ONE)

    assert delivered(happens) == []


def test_a_message_sent_before_a_detach_over_a_slow_link_is_lost() -> None:
    def happens(network: Network) -> None:
        network.delay(5, (ONE, OTHER))
        network.send(ONE, OTHER, REQUEST)
        network.detach(ONE)

    assert delivered(happens, 0.05) == []


def test_messages_on_a_link_that_is_cut_are_lost() -> None:
    def happens(network: Network) -> None:
        network.send(ONE, OTHER, REQUEST)
        network.cut((ONE, OTHER))

    assert delivered(happens) == []
