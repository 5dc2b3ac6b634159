"""Messages between nodes of one process."""

import asyncio
from collections.abc import Callable

from rackspan.cluster.core.ids import CLIENT, NodeId
from rackspan.cluster.core.messages import FetchMetadata, Message
from rackspan.cluster.host.network import Network, both_ways
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


def test_messages_arrive_in_order_from_the_source_that_signs_them() -> None:
    requests = [FetchMetadata(BrokerId(ONE), offset, 0) for offset in range(3)]

    def happens(network: Network) -> None:
        network.send(ONE, OTHER, requests[0])
        network.send(ONE, OTHER, requests[1], signed=CLIENT)
        network.send(ONE, OTHER, requests[2])

    assert delivered(happens) == [(ONE, requests[0]), (CLIENT, requests[1]), (ONE, requests[2])]


def test_a_message_is_never_delivered_while_its_sender_handles_another() -> None:
    got: list[str] = []

    async def play() -> None:
        network = Network(asyncio.get_running_loop(), lambda *_: got.append("delivered"))

        def receive(source: NodeId, message: Message) -> None:
            got.append("begin")
            if got.count("begin") == 1:
                network.send(ONE, ONE, message)
            got.append("end")

        network.attach(ONE, receive)
        for _ in range(2):
            network.send(ONE, ONE, REQUEST)
        # What a message causes comes an iteration later: sockets are served in between.
        for delivered_by_now in (0, 2, 3):
            assert got == ["delivered", "begin", "end"] * delivered_by_now
            await asyncio.sleep(0)

    asyncio.run(play())


def test_a_link_that_is_healed_or_no_longer_slow_is_as_before() -> None:
    def happens(network: Network) -> None:
        network.cut((ONE, OTHER), (OTHER, ONE))
        network.delay(60_000, (ONE, OTHER), (OTHER, ONE))
        assert network.cuts == [(ONE, OTHER), (OTHER, ONE)]
        assert network.delays_ms == {(ONE, OTHER): 60_000, (OTHER, ONE): 60_000}
        network.heal((ONE, OTHER))
        network.delay(0, (ONE, OTHER))
        assert network.cuts == [(OTHER, ONE)]
        assert network.delays_ms == {(OTHER, ONE): 60_000}
        network.send(ONE, OTHER, REQUEST)
        network.heal_all()
        assert (network.cuts, network.delays_ms) == ([], {})
        network.send(ONE, OTHER, REQUEST)

    assert delivered(happens) == [(ONE, REQUEST)] * 2


def test_a_slow_link_delivers_after_its_delay_in_milliseconds() -> None:
    def happens(milliseconds: int) -> Callable[[Network], None]:
        def send(network: Network) -> None:
            network.delay(milliseconds, (ONE, OTHER))
            network.send(ONE, OTHER, REQUEST)

        return send

    assert delivered(happens(60_000)) == []
    assert delivered(happens(10), 0.3) == [(ONE, REQUEST)]


def test_cuts_are_listed_in_order() -> None:
    links = both_ways(1, [5, 4, 3, 2])

    def happens(network: Network) -> None:
        network.cut(*links)
        assert network.cuts == sorted(links)

    delivered(happens)


def test_both_ways_are_the_links_to_and_from_each_of_the_others() -> None:
    assert both_ways(1, [2, 3]) == [(1, 2), (2, 1), (1, 3), (3, 1)]
