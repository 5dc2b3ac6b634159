"""Responses from the broker to the client, byte by byte and rule by rule, between two ends without sockets."""

import asyncio
from collections.abc import Sequence
from struct import pack

import pytest

from rackspan.gateway.core.apis import Treatment
from rackspan.gateway.net import responses
from rackspan.gateway.net.byte_flow import Exchange
from rackspan.gateway.net.responses import ResponseFlow
from rackspan.wire.framing import Piece
from tests.gateway.net.flows import Ends, framed

STREAM, WHOLE = Treatment.STREAM, Treatment.WHOLE


class Responding(Ends):
    """Ends whose client expects responses. Those that are complete are kept."""

    def __init__(self, *exchanges: Exchange) -> None:
        super().__init__()
        self.flow = ResponseFlow(self)
        self.exchanges.extend(exchanges)
        self.awaited.extend(exchanges)
        self.completed: list[tuple[int, bytes]] = []

    def complete(self, exchange: Exchange, parts: Sequence[Piece]) -> None:
        self.completed.append((exchange.correlation_id, b"".join(map(bytes, parts))))

    def receive(self, *parts: bytes) -> None:
        """Receive each part by itself."""
        for part in parts:
            self.far.receives.append(part)
            self.flow.readable()

    @property
    def forwarded(self) -> bytes:
        return b"".join(self.near.sent)


def expected(correlation_id: int, treatment: Treatment = STREAM, api_key: int = 16, version: int = 0) -> Exchange:
    return Exchange(api_key, version, correlation_id, treatment)


def response(correlation_id: int, rest: bytes = b"groups") -> bytes:
    return framed(pack(">i", correlation_id) + rest)


def test_responses_are_forwarded_as_they_came() -> None:
    pair, both = Responding(expected(5), expected(6)), response(5) + response(6)
    pair.receive(both)
    assert pair.forwarded == both
    assert (len(pair.exchanges), len(pair.awaited), pair.reported) == (0, 0, ["ready", "ready"])
    assert (pair.far.reading, pair.shared.buffers.in_use, pair.closed) == (True, 0, False)


@pytest.mark.parametrize("at", range(1, 28))
def test_a_response_may_come_in_two_parts(at: int) -> None:
    pair, both = Responding(expected(5), expected(6)), response(5) + response(6)
    pair.receive(both[:at], both[at:])
    assert pair.forwarded == both
    assert not pair.exchanges


def test_what_is_there_of_a_response_is_forwarded_before_the_rest() -> None:
    pair = Responding(expected(5))
    pair.receive(response(5)[:10])
    assert pair.forwarded == response(5)[:10]
    assert (len(pair.exchanges), len(pair.awaited), pair.reported) == (1, 0, [])


def test_a_client_that_accepts_no_more_has_no_further_response_read() -> None:
    pair = Responding(expected(5), expected(6))
    pair.near.slow = True
    pair.receive(response(5))
    assert (pair.far.reading, pair.shared.buffers.in_use) == (False, 1)
    pair.receive(response(6))
    assert b"".join(map(bytes, pair.near.outgoing)) == response(5)
    pair.near.slow = False
    pair.near.flush()
    pair.flow.resume()
    assert (pair.far.reading, pair.shared.buffers.in_use) == (True, 0)


def test_a_response_that_is_forwarded_waits_for_those_before_it() -> None:
    first = expected(5)
    pair = Responding(expected(6))
    pair.exchanges.appendleft(first)
    pair.receive(response(6))
    assert (pair.forwarded, pair.far.reading, len(pair.awaited)) == (b"", False, 1)
    pair.exchanges.popleft()
    pair.flow.resume()
    assert (pair.forwarded, pair.far.reading, len(pair.awaited)) == (response(6), True, 0)


def test_a_response_that_is_read_whole_waits_for_none() -> None:
    whole = expected(6, WHOLE)
    whole.on_response = lambda data: [data]
    pair = Responding(whole)
    pair.exchanges.appendleft(expected(5))
    pair.receive(response(6))
    assert pair.completed == [(6, pack(">i", 6) + b"groups")]
    assert (len(pair.exchanges), pair.reported, pair.forwarded) == (2, [], b"")


@pytest.mark.parametrize("at", range(1, 14))
def test_a_response_that_is_read_whole_may_come_in_two_parts(at: int) -> None:
    whole = expected(6, WHOLE)
    whole.on_response = lambda data: [data]
    pair = Responding(whole)
    pair.receive(response(6)[:at])
    assert pair.completed == []
    pair.receive(response(6)[at:])
    assert pair.completed == [(6, pack(">i", 6) + b"groups")]


def test_a_response_that_is_decided_later_completes_nothing_now() -> None:
    whole = expected(6, WHOLE)
    whole.on_response = lambda _: None
    pair = Responding(whole)
    pair.receive(response(6))
    assert (pair.completed, len(pair.exchanges), pair.closed) == ([], 1, False)


def test_a_response_to_the_gateway_itself_goes_to_who_waits_for_it() -> None:
    async def scenario() -> None:
        internal = expected(6, WHOLE)
        internal.future = asyncio.get_running_loop().create_future()
        pair = Responding(internal)
        pair.receive(response(6))
        assert await internal.future == pack(">i", 6) + b"groups"
        assert (pair.completed, pair.forwarded) == ([], b"")
        pair.awaited.append(internal)
        pair.receive(response(6))
        assert not pair.closed, "nobody waits any more"

    asyncio.run(scenario())


def coordinator(host: bytes, port: int) -> bytes:
    """FindCoordinator, version 0: broker 2."""
    return pack(">ihih", 7, 0, 2, len(host)) + host + pack(">i", port)


def test_a_response_with_an_address_that_nobody_else_decides_about_has_the_gateways() -> None:
    pair = Responding(expected(7, WHOLE, 10))
    pair.receive(framed(coordinator(b"broker", 9092)))
    assert pair.completed == [(7, coordinator(b"gateway-2", 9002))]


@pytest.mark.parametrize(("api_key", "proven"), [(18, False), (17, False), (36, False), (16, True), (3, True)])
def test_a_client_is_proven_by_a_response_that_needs_a_login_where_one_is_required(api_key: int, proven: bool) -> None:
    pair = Responding(expected(5, STREAM, api_key))
    pair.receive(response(5)[:8])
    assert pair.is_proven is proven
    pair = Responding(expected(5, STREAM, api_key))
    pair.is_proven = True
    pair.receive(response(5))
    assert pair.is_proven


# Metadata.


def metadata(host: bytes, port: int, rest: bytes = b"topics and more") -> bytes:
    """Version 0: broker 3, and what else there is."""
    return framed(pack(">iiih", 7, 1, 3, len(host)) + host + pack(">i", port) + rest)


@pytest.mark.parametrize("at", [1, 4, 7, 8, 9, 12, 20, 27, 28, 29, 40])
def test_of_metadata_the_brokers_are_rewritten_and_the_rest_is_forwarded_as_it_comes(at: int) -> None:
    pair, sent = Responding(expected(7, Treatment.BROKERS_FIRST, 3)), metadata(b"broker", 9092)
    pair.receive(sent[:at], sent[at:])
    assert pair.forwarded == metadata(b"gateway-3", 9003)
    assert (len(pair.exchanges), pair.reported) == (0, ["ready"])


def test_of_metadata_what_is_behind_the_brokers_does_not_wait_for_its_end() -> None:
    pair = Responding(expected(7, Treatment.BROKERS_FIRST, 3))
    pair.receive(metadata(b"broker", 9092)[:32])
    assert pair.forwarded == metadata(b"gateway-3", 9003)[:35]


def test_metadata_without_an_end_of_its_brokers_ends_the_connection(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    pair = Responding(expected(7, Treatment.BROKERS_FIRST, 3))
    pair.receive(framed(pack(">iiih", 7, 1, 3, 99)))
    assert (pair.closed, pair.forwarded) == (True, b"")
    assert caplog.messages == ["closing the connection of 10.0.0.1:5: a Metadata response that ends too early"]
    monkeypatch.setattr(responses, "MAX_WHOLE_RESPONSE_BYTES", 20)
    for size, closed in ((20, False), (21, True)):
        pair = Responding(expected(7, Treatment.BROKERS_FIRST, 3))
        pair.receive(pack(">i", 99) + pack(">iiih", 7, 1, 3, 99) + bytes(size - 14))
        assert pair.closed is closed
    assert caplog.messages[1:] == [
        "closing the connection of 10.0.0.1:5: a Metadata response without an end of its brokers"
    ]


# Responses with endpoints at their end.


def fetch(endpoints: bytes, records: bytes = b"records") -> bytes:
    """Version 16: one partition of one topic with these records, and tagged fields at the end."""
    of_partition = pack(">i", 4) + bytes(26) + b"\1" + pack(">i", -1) + bytes([len(records) + 1]) + records + b"\0"
    return pack(">i", 7) + b"\0" + bytes(10) + b"\2" + bytes(16) + b"\2" + of_partition + b"\0" + endpoints


def endpoints(host: bytes, port: int) -> bytes:
    """Broker 2 is a new leader; it has no rack."""
    one = pack(">i", 2) + bytes([len(host) + 1]) + host + pack(">i", port) + b"\0\0"
    return b"\1\0" + bytes([len(one) + 1]) + b"\2" + one


def fetching() -> Responding:
    pair = Responding(expected(7, Treatment.ENDPOINTS_LAST, 1, 16))
    pair.exchanges[0].on_partition = pair.count_fetched
    return pair


FETCHED = ("fetched", bytes(16), 4, 7)


@pytest.mark.parametrize("at", [1, 5, 7])
def test_a_fetch_that_is_all_there_behind_its_header_has_the_gateways_endpoints_and_its_own_size(at: int) -> None:
    pair, sent = fetching(), framed(fetch(endpoints(b"broker", 9092)))
    pair.receive(sent)
    assert pair.forwarded == framed(fetch(endpoints(b"gateway-2", 9002)))
    pair = fetching()
    pair.receive(sent[:at], sent[at:])
    assert pair.forwarded == framed(fetch(endpoints(b"gateway-2", 9002)))
    assert pair.reported == [FETCHED, "ready"]


@pytest.mark.parametrize("at", [8, 9, 30, 70, 80, 90, 92, 119])
@pytest.mark.parametrize("header_bytes", [0, 5])
def test_a_fetch_that_comes_in_parts_keeps_its_size(at: int, header_bytes: int) -> None:
    pair, sent = fetching(), framed(fetch(endpoints(b"a-long-name-of-a-broker", 9092)))
    pair.receive(*([sent[:header_bytes]] if header_bytes else []), sent[header_bytes:at])
    assert pair.forwarded[: min(at, 70)] == sent[:at][:70], "what is there is forwarded"
    pair.receive(sent[at:])
    assert len(pair.forwarded) == len(sent)
    assert (b"broker" in pair.forwarded, b"gateway-2" in pair.forwarded) == (False, True)
    assert pair.reported == [FETCHED, "ready"]


@pytest.mark.parametrize("at", [5, 60, 84, 85])
def test_a_fetch_without_endpoints_is_forwarded_as_it_came(at: int) -> None:
    sent = framed(fetch(b"\0"))
    for parts in ([sent], [sent[:at], sent[at:]]):
        pair = fetching()
        pair.receive(*parts)
        assert pair.forwarded == sent
        assert not pair.exchanges


@pytest.mark.parametrize("at", [0, 30])
def test_a_fetch_that_ends_too_early_ends_the_connection(at: int, caplog: pytest.LogCaptureFixture) -> None:
    pair, sent = fetching(), framed(fetch(b"")[:-10])
    pair.receive(*([sent] if not at else [sent[:at], sent[at:]]))
    assert pair.closed
    assert caplog.messages == ["closing the connection of 10.0.0.1:5: a response to API key 1 that ends too early"]


def test_the_bytes_of_a_fetch_without_endpoints_of_its_version_are_counted_as_they_pass() -> None:
    """Version 4: a topic by its name, no epoch, and records of 7 bytes."""
    body = pack(">iiih", 7, 0, 1, 6) + b"orders" + pack(">ii", 1, 4) + bytes(18) + pack(">ii", 0, 7) + b"records"
    pair = Responding(expected(7, STREAM, 1, 4), expected(8))
    pair.exchanges[0].on_partition = pair.count_fetched
    pair.receive(framed(body) + response(8))
    assert pair.forwarded == framed(body) + response(8)
    assert pair.reported == [("fetched", "orders", 4, 7), "ready", "ready"]


# What no broker sends.


@pytest.mark.parametrize("size", [-1, 0, 3])
@pytest.mark.parametrize("parts", [[4], [8], [2, 2]])
def test_a_size_too_small_for_a_correlation_id_ends_the_connection(
    size: int, parts: list[int], caplog: pytest.LogCaptureFixture
) -> None:
    pair, data = Responding(expected(5)), pack(">ii", size, 5)
    pair.receive(*[data[sum(parts[:number]) :][:part] for number, part in enumerate(parts)])
    assert pair.closed
    of_size = "without a correlation id" if parts != [8] else f"of {size} bytes to a request that was not sent, 5"
    assert caplog.messages == [f"closing the connection of 10.0.0.1:5: a response {of_size}"]


def test_a_response_of_a_correlation_id_alone_is_one() -> None:
    pair = Responding(expected(5))
    pair.receive(response(5, b"")[:4])
    assert not pair.closed
    pair.receive(response(5, b"")[4:])
    assert (pair.forwarded, pair.closed, len(pair.exchanges)) == (response(5, b""), False, 0)


def test_a_response_to_another_request_or_to_none_ends_the_connection(caplog: pytest.LogCaptureFixture) -> None:
    for exchanges in ([], [expected(6), expected(5)]):
        pair = Responding(*exchanges)
        pair.receive(response(5))
        assert (pair.closed, pair.forwarded) == (True, b"")
    message = "closing the connection of 10.0.0.1:5: a response of 10 bytes to a request that was not sent, 5"
    assert caplog.messages == [message] * 2


def test_a_response_that_is_read_whole_has_64_mib_at_most_and_others_what_they_have(
    caplog: pytest.LogCaptureFixture,
) -> None:
    for treatment, size, closed in ((WHOLE, 67_108_864, False), (WHOLE, 67_108_865, True), (STREAM, 2**31 - 1, False)):
        pair = Responding(expected(5, treatment))
        pair.receive(pack(">ii", size, 5))
        assert pair.closed is closed
    assert caplog.messages == ["closing the connection of 10.0.0.1:5: a response of 67108865 bytes to API key 16"]


def test_behind_a_response_that_closes_the_connection_none_is_read() -> None:
    def closes(_: bytes) -> None:
        pair.closed = True

    first, second = expected(5, WHOLE), expected(6, WHOLE)
    first.on_response = closes
    pair = Responding(first, second)
    pair.receive(response(5) + response(6))
    assert list(pair.awaited) == [second]


def test_responses_of_the_gateways_own_that_the_client_has_not_accepted_keep_the_brokers_in_the_socket() -> None:
    pair = Responding(expected(5))
    pair.near.slow = True
    pair.near.outgoing.append(b"refused")
    pair.receive(response(5))
    assert (pair.far.reading, len(pair.awaited), pair.shared.buffers.in_use) == (False, 1, 0)


def test_each_response_is_read_by_itself_after_one_in_parts_and_after_one_that_ended_early() -> None:
    sent = framed(fetch(endpoints(b"a-long-name-of-a-broker", 9092)))
    pair = fetching()
    other = expected(8, Treatment.ENDPOINTS_LAST, 1, 16)
    pair.exchanges.append(other)
    pair.awaited.append(other)
    pair.receive(sent[:80], sent[80:])
    first = pair.forwarded
    sent = sent[:4] + pack(">i", 8) + sent[8:]
    pair.receive(sent[:80], sent[80:])
    assert pair.forwarded[len(first) :] == sent[:4] + pack(">i", 8) + first[8:]
    early, behind = expected(7, STREAM, 1, 4), expected(8)
    pair = Responding(early, behind)
    early.on_partition = pair.count_fetched
    pair.receive(framed(pack(">iiih", 7, 0, 1, 6) + b"orders" + pack(">i", 1)))
    pair.receive(response(8, bytes(18) + pack(">ii", 0, 7) + b"records"))
    assert pair.reported == ["ready", "ready"]


def test_the_end_of_the_brokers_connection_is_reported() -> None:
    pair = Responding()
    pair.receive(b"")
    assert (pair.reported, pair.closed) == (["upstream ended"], False)
