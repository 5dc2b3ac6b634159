"""Requests from the client to the broker, byte by byte and rule by rule, between two ends without sockets."""

import logging
from itertools import pairwise
from struct import pack
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackspan.gateway.core.apis import Treatment
from rackspan.gateway.net.byte_flow import Exchange
from rackspan.wire.apis import ApiKey
from tests.gateway.net.flows import Taking, ends, list_groups, produce, request


def test_requests_are_forwarded_as_they_came_many_of_them_in_one_piece() -> None:
    pair = ends()
    three = b"".join(map(list_groups, (5, 6, 7)))
    pair.receive(three)
    assert pair.far.sent == [three]
    assert [(one.api_key, one.version, one.correlation_id, one.treatment) for one in pair.exchanges] == [
        (16, 0, number, Treatment.STREAM) for number in (5, 6, 7)
    ]
    assert list(pair.awaited) == list(pair.exchanges)
    assert pair.shared.requests == {16: 3}
    assert pair.shared.buffers.in_use == 0
    assert (pair.near.reading, pair.near.rests, pair.closed) == (True, 1, False)


@pytest.mark.parametrize("at", range(1, 27))
def test_a_request_that_comes_in_two_parts_is_forwarded_with_the_one_before_it(at: int) -> None:
    pair, both = ends(), list_groups(5) + list_groups(6)
    pair.receive(both[:at], both[at:])
    assert b"".join(pair.far.sent) == both
    assert [one.correlation_id for one in pair.awaited] == [5, 6]
    assert pair.flow.at_boundary


def test_requests_that_come_byte_by_byte_are_forwarded() -> None:
    pair, three = ends(), b"".join(map(list_groups, (5, 6, 7)))
    pair.receive(*[bytes([byte]) for byte in three])
    assert b"".join(pair.far.sent) == three
    assert [one.correlation_id for one in pair.exchanges] == [5, 6, 7]


def test_a_request_is_half_forwarded_until_its_last_byte() -> None:
    pair = ends()
    pair.receive(list_groups(5)[:13])
    assert (pair.flow.is_half_forwarded, pair.flow.is_half_received, pair.flow.at_boundary) == (True, True, False)
    pair.receive(list_groups(5)[13:])
    assert (pair.flow.is_half_forwarded, pair.flow.is_half_received, pair.flow.at_boundary) == (False, False, True)


def test_a_hundred_requests_without_a_response_keep_the_next_in_the_socket() -> None:
    pair = ends()
    pair.receive(b"".join(map(list_groups, range(102))))
    assert [one.correlation_id for one in pair.exchanges] == list(range(100))
    assert b"".join(pair.far.sent) == b"".join(map(list_groups, range(99))), "the last of them waits with its bytes"
    assert not pair.near.reading
    pair.exchanges.popleft()
    pair.flow.resume()
    assert [one.correlation_id for one in pair.awaited] == list(range(101))
    assert not pair.near.reading
    pair.exchanges.clear()
    pair.flow.resume()
    assert len(pair.awaited) == 102
    assert (pair.near.reading, pair.shared.buffers.in_use) == (True, 0)


def test_while_a_response_waits_for_a_rack_no_further_request_is_read_and_what_has_begun_goes_on() -> None:
    pair = ends()
    pair.receive(list_groups(5)[:13])
    pair.stalled = 1
    pair.receive(list_groups(5)[13:])
    pair.receive(list_groups(6))
    assert [one.correlation_id for one in pair.awaited] == [5]
    assert (pair.near.reading, pair.near.receives, pair.shared.buffers.in_use) == (False, [list_groups(6)], 0)
    pair.stalled = 0
    pair.flow.resume()
    pair.flow.readable()
    assert [one.correlation_id for one in pair.awaited] == [5, 6]
    assert pair.near.reading


def test_a_client_that_closes_is_noticed_while_its_response_waits_for_a_rack() -> None:
    pair = ends()
    pair.receive(list_groups(5))
    pair.stalled = 1
    pair.near.has_ended_unseen = True
    pair.flow.readable()
    assert pair.closed


def test_a_request_whose_memory_is_taken_is_received_whole_while_a_response_waits_for_a_rack() -> None:
    """Else others would wait for its memory as long as it does."""
    pair, sent = Taking(), produce(5)
    pair.receive(sent[:20])
    assert pair.shared.frames.used == 20
    pair.stalled = 1
    pair.receive(sent[20:])
    assert (b"".join(pair.far.sent), pair.shared.frames.used) == (sent, 0)


def test_a_client_that_leaves_256_pieces_of_responses_has_no_further_request_read() -> None:
    pair = ends()
    pair.near.slow = True
    pair.near.outgoing.extend([b"x"] * 255)
    pair.receive(list_groups(5))
    assert (pair.near.reading, len(pair.far.sent)) == (True, 1)
    pair.near.outgoing.append(b"x")
    pair.receive(list_groups(6))
    assert (pair.near.reading, len(pair.far.sent)) == (False, 1)


def test_a_broker_that_accepts_no_more_has_no_further_request_read() -> None:
    pair = ends()
    pair.far.slow = True
    pair.receive(list_groups(5))
    assert (pair.near.reading, pair.shared.buffers.in_use) == (False, 1)
    pair.receive(list_groups(6))
    pair.flow.readable()
    pair.flow.resume()
    assert [bytes(one) for one in pair.far.outgoing] == [list_groups(5)]
    assert not pair.near.reading
    pair.far.slow = False
    pair.far.flush()
    pair.flow.resume()
    assert (pair.near.reading, pair.shared.buffers.in_use) == (True, 0)


def test_at_the_end_the_rest_of_a_request_is_read_and_none_behind_it() -> None:
    pair = ends()
    pair.receive(list_groups(5)[:13])
    pair.draining = True
    pair.flow.resume()
    assert pair.near.reading
    pair.receive(list_groups(5)[13:] + list_groups(6))
    assert b"".join(pair.far.sent) == list_groups(5)
    assert [one.correlation_id for one in pair.exchanges] == [5]
    assert (pair.near.reading, pair.flow.at_boundary) == (False, True)
    idle = ends()
    idle.draining = True
    idle.flow.resume()
    assert not idle.near.reading


@pytest.mark.parametrize(("size", "closed"), [(-1, True), (7, True), (8, False), (1000, False), (1001, True)])
@pytest.mark.parametrize("parts", [[4], [3, 1], [11], [12]])
def test_a_size_is_refused_as_soon_as_it_is_there(
    size: int, closed: bool, parts: list[int], caplog: pytest.LogCaptureFixture
) -> None:
    """Kafka's smallest header has 8 bytes; 1,000 are allowed here."""
    pair, data = ends(), pack(">ihhi", size, 16, 0, 5)
    pair.receive(*[data[sum(parts[:number]) :][:part] for number, part in enumerate(parts)])
    assert pair.closed is closed
    expected = f"closing the connection of 10.0.0.1:5: a request of {size} bytes; at most 1000 are read"
    assert caplog.messages == ([expected] if closed else [])


def test_three_bytes_of_a_size_say_nothing_yet() -> None:
    pair = ends()
    pair.receive(b"\xff\xff\xff")
    assert not pair.closed


@pytest.mark.parametrize(("api_key", "version"), [(16, 99), (27, 1), (1000, 0), (-1, 0), (4, 0)])
def test_an_api_or_version_that_is_not_offered_ends_the_connection(
    api_key: int, version: int, caplog: pytest.LogCaptureFixture
) -> None:
    pair = ends()
    pair.receive(request(api_key, version, 5))
    assert (pair.closed, pair.far.sent) == (True, [])
    expected = f"closing the connection of 10.0.0.1:5: API key {api_key} version {version} is not offered here"
    assert caplog.messages == [expected]


def test_every_version_of_api_versions_is_forwarded_and_its_response_read_whole() -> None:
    pair = ends()
    pair.receive(request(18, 99, 5))
    (exchange,) = pair.exchanges
    assert (exchange.version, exchange.treatment) == (99, Treatment.WHOLE)


@pytest.mark.parametrize("at", range(1, 32))
def test_an_api_versions_request_is_read_when_all_of_it_is_there_and_without_a_login(at: int) -> None:
    pair, stream = ends(), request(18, 3, 5, b"name") + list_groups(7)
    pair.is_proven = False
    pair.receive(stream[:at])
    assert pair.reported == ([("identify", 18, stream[4:18])] if at >= 18 else [])
    pair.receive(stream[at:])
    assert pair.reported == [("identify", 18, stream[4:18])]
    assert b"".join(pair.far.sent) == stream
    assert pair.shared.frames.used == 0


@pytest.mark.parametrize(("size", "closed"), [(65_536, False), (65_537, True)])
def test_an_api_versions_request_has_a_size_limit_since_it_is_kept(
    size: int, closed: bool, caplog: pytest.LogCaptureFixture
) -> None:
    pair = ends(max_request_bytes=1_000_000)
    pair.receive(pack(">ihhi", size, 18, 3, 5))
    assert pair.closed is closed
    expected = "closing the connection of 10.0.0.1:5: an ApiVersions request of 65537 bytes; at most 65536 are read"
    assert caplog.messages == ([expected] if closed else [])


@given(
    st.lists(
        st.tuples(st.sampled_from([(18, 5), (1, 12), (16, 0), (0, 9)]), st.binary(max_size=30)), min_size=1, max_size=6
    ),
    st.sets(st.integers(1, 250)),
)
def test_requests_are_the_same_however_their_bytes_are_split(
    requests: list[tuple[tuple[int, int], bytes]], cuts: set[int]
) -> None:
    stream = b"".join(request(*api, number, rest) for number, (api, rest) in enumerate(requests))
    at = [0, *sorted(cut for cut in cuts if cut < len(stream)), len(stream)]

    def outcome(*parts: bytes) -> tuple[object, ...]:
        pair = Taking()
        for part in parts:
            pair.receive(part)
        exchanges = [(one.api_key, one.version, one.correlation_id) for one in pair.exchanges]
        return pair.reported, pair.decided, b"".join(pair.far.sent), exchanges, pair.shared.requests, pair.closed

    assert outcome(*[stream[start:end] for start, end in pairwise(at)]) == outcome(stream)


def test_the_bytes_of_a_fetch_alone_are_counted_when_its_response_passes() -> None:
    pair = ends()
    pair.receive(list_groups(5) + request(1, 4, 6))
    other, fetch = pair.exchanges
    assert (other.on_partition, fetch.on_partition) == (None, pair.count_fetched)


# Requests that are read whole.


def test_a_request_that_is_read_whole_is_decided_without_its_size_and_forwarded_as_it_came() -> None:
    pair = Taking()
    pair.receive(list_groups(5) + produce(6) + list_groups(7))
    assert pair.decided == [(6, produce(6)[4:])]
    assert pair.far.sent == [list_groups(5), produce(6), list_groups(7)]
    assert [one.correlation_id for one in pair.awaited] == [5, 7], "what decides about it adds its exchange"
    assert pair.shared.requests == {16: 2, 0: 1}
    assert (pair.flow.at_boundary, pair.shared.frames.used, pair.shared.buffers.in_use) == (True, 0, 0)


@pytest.mark.parametrize("at", range(1, 51))
def test_a_request_that_is_read_whole_may_come_in_two_parts_between_others(at: int) -> None:
    pair, three = Taking(), list_groups(5) + produce(6) + list_groups(7)
    pair.receive(three[:at], three[at:])
    assert pair.decided == [(6, produce(6)[4:])]
    assert b"".join(pair.far.sent) == three
    assert pair.shared.requests == {16: 2, 0: 1}
    assert (pair.flow.at_boundary, pair.shared.frames.used, pair.shared.buffers.in_use) == (True, 0, 0)


def test_nothing_yet_or_the_end_behind_half_a_request_adds_nothing_to_it() -> None:
    pair = Taking()
    pair.receive(produce(6)[:15])
    pair.flow.readable()
    assert pair.flow.frame is not None
    assert (pair.flow.frame.filled, pair.closed) == (15, False)
    pair.receive(b"")
    assert (pair.flow.frame.filled, pair.closed, pair.decided, pair.near.rests) == (15, True, [], 1)


def test_another_request_than_the_one_that_came_is_forwarded_with_its_size() -> None:
    pair = ends()
    pair.flow.forward([b"ab", memoryview(b"cde")])
    assert pair.far.sent == [b"\0\0\0\5", b"ab", b"cde"]


def test_behind_a_request_that_is_being_handled_nothing_is_read_until_it_is() -> None:
    pair = Taking()
    pair.waits = True
    pair.receive(produce(6) + list_groups(7))
    assert (pair.far.sent, pair.near.reading, pair.flow.at_boundary) == ([], False, False)
    pair.flow.resume()
    pair.flow.readable()
    assert (pair.far.sent, len(pair.exchanges)) == ([], 0)
    pair.flow.forward(None)
    pair.flow.blocked = False
    pair.flow.resume()
    assert pair.far.sent == [produce(6), list_groups(7)]
    assert (pair.near.reading, pair.flow.at_boundary) == (True, True)


def test_nothing_is_read_behind_a_request_that_closes_the_connection() -> None:
    pair = Taking()
    pair.closes = True
    pair.receive(produce(6) + produce(7))
    assert [number for number, _ in pair.decided] == [6]


def test_a_request_that_is_being_handled_is_no_boundary_though_nothing_of_it_is_left_here() -> None:
    pair = Taking()
    pair.flow.blocked = True
    assert not pair.flow.at_boundary
    pair.flow.blocked = False
    assert pair.flow.at_boundary


# A client without a login.


def test_nothing_is_read_whole_for_a_client_that_the_broker_has_not_served_yet() -> None:
    pair = Taking()
    pair.is_proven = False
    pair.receive(list_groups(5) + produce(6)[:20])
    assert (pair.reported, pair.far.sent, pair.near.reading) == (["prove"], [list_groups(5)], False)
    assert (pair.flow.frame, pair.shared.requests) == (None, {16: 1})
    pair.flow.resume()
    assert pair.reported == ["prove"], "once is enough"
    pair.is_proven = True
    pair.flow.proven()
    assert pair.near.reading
    pair.receive(produce(6)[20:])
    assert pair.decided == [(6, produce(6)[4:])]
    assert pair.reported == ["prove"]


# Memory.


def test_nothing_is_received_while_a_buffer_is_still_being_sent() -> None:
    """What TLS has decrypted is reported later than it is there: the broker may have accepted the buffer meanwhile."""
    pair = ends()
    pair.far.slow = True
    pair.receive(list_groups(5))
    pair.far.slow = False
    pair.far.flush()
    pair.near.receives = [list_groups(6)]
    pair.near.reading = True
    pair.flow.readable()
    assert (pair.near.receives, pair.near.reading) == ([list_groups(6)], False)
    pair.flow.resume()
    pair.receive()
    assert (pair.far.sent, pair.shared.buffers.in_use) == ([list_groups(5), list_groups(6)], 0)


def test_a_connection_that_is_closed_is_not_read_again() -> None:
    pair = ends()
    pair.closed, pair.near.reading = True, False
    pair.flow.resume()
    assert (pair.near.reading, pair.near.rests) == (False, 0)


def test_a_connection_that_is_closed_by_what_it_sends_is_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    pair = ends()

    def closes() -> bool:
        pair.close()
        pair.flow.release()
        pair.far.outgoing.clear()
        return True

    monkeypatch.setattr(pair.far, "flush", closes)
    pair.receive(list_groups(5))
    assert (pair.closed, pair.near.rests, pair.shared.buffers.in_use) == (True, 0, 0)


def test_a_client_that_closes_its_connection_ends_it() -> None:
    pair = ends()
    pair.receive(b"")
    assert (pair.closed, pair.shared.buffers.in_use) == (True, 0)


def test_a_receive_without_bytes_takes_no_buffer() -> None:
    pair = ends()
    pair.flow.readable()
    assert (pair.closed, pair.near.reading, pair.shared.buffers.in_use) == (False, True, 0)


def test_a_connection_that_fails_ends_and_says_so_to_who_looks_for_it(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    pair = ends()
    pair.near.receives.append(ConnectionResetError("reset"))
    pair.flow.readable()
    assert (pair.closed, pair.shared.buffers.in_use) == (True, 0)
    assert [(one.levelname, one.getMessage()) for one in caplog.records] == [
        ("DEBUG", "connection of 10.0.0.1:5: reset")
    ]


def test_a_bug_ends_its_connection_and_is_logged_with_its_place(caplog: pytest.LogCaptureFixture) -> None:
    pair = ends()

    def fail() -> None:
        raise ValueError("a fault")

    pair.run_guarded(fail)
    assert pair.closed
    (entry,) = caplog.records
    assert (entry.levelname, entry.getMessage()) == ("ERROR", "closing the connection of 10.0.0.1:5")
    assert entry.exc_info is not None


def test_a_closed_connection_forwards_nothing_that_it_received_before() -> None:
    pair = ends()
    pair.far.slow = True
    pair.receive(list_groups(5) + list_groups(6)[:13])
    pair.closed, pair.far.slow = True, False
    pair.far.flush()
    pair.near.reading = False
    pair.flow.resume()
    assert not pair.near.reading


def test_a_step_that_is_running_is_not_begun_again_from_inside() -> None:
    """What decides about a request responds at once, which resumes the direction that it is called from."""
    pair = Taking()
    decided: list[tuple[int, int]] = []

    def take(_session: Any, exchange: Exchange, _whole: memoryview) -> None:
        pair.flow.resume()
        decided.append((exchange.correlation_id, pair.shared.buffers.in_use))

    pair.shared.takes = {ApiKey.PRODUCE: take}
    pair.receive(produce(6) + produce(7))
    assert decided == [(6, 1), (7, 1)], "the buffer is still read"
    assert (pair.near.reading, pair.shared.buffers.in_use) == (True, 0)
