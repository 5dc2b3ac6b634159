"""Messages between nodes of one process."""

import asyncio
from collections.abc import Callable

from rackspan.cluster.core.ids import NodeId
from rackspan.cluster.core.messages import FetchMetadata, Message
from rackspan.cluster.host.network import Network
from rackspan.model.ids import BrokerId

ONE, OTHER = 1, 2
QUESTION = FetchMetadata(BrokerId(ONE), 1, 0)


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


def test_what_is_sent_arrives_once() -> None:
    assert delivered(lambda network: network.send(ONE, OTHER, QUESTION)) == [(ONE, QUESTION)]


def test_what_a_node_sent_before_its_end_is_lost_with_it() -> None:
    def happens(network: Network) -> None:
        network.send(ONE, OTHER, QUESTION)
        network.detach(ONE)

    assert delivered(happens) == []


def test_so_is_what_it_sent_over_a_slow_link() -> None:
    def happens(network: Network) -> None:
        network.delay(5, (ONE, OTHER))
        network.send(ONE, OTHER, QUESTION)
        network.detach(ONE)

    assert delivered(happens, 0.05) == []


def test_what_is_under_way_when_the_link_is_cut_is_lost() -> None:
    def happens(network: Network) -> None:
        network.send(ONE, OTHER, QUESTION)
        network.cut((ONE, OTHER))

    assert delivered(happens) == []
