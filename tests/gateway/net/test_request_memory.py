"""The memory of requests from the client to the broker: what is counted, what waits for it and what gives it back."""

import pytest

from rackspan.gateway.core.apis import Treatment
from rackspan.gateway.net.byte_flow import Exchange
from rackspan.gateway.net.frames import Frame
from rackspan.wire.apis import ApiKey
from tests.gateway.net.flows import Taking, ends, list_groups, produce


def test_the_rest_of_a_request_that_is_read_whole_comes_into_its_own_memory() -> None:
    pair, whole = Taking(), produce(6, bytes(range(100)))
    pair.receive(whole[:30], whole[30:60])
    assert pair.flow.frame is not None
    assert (pair.flow.frame.filled, pair.shared.frames.used, pair.shared.buffers.in_use) == (60, 60, 0)
    assert (pair.flow.is_half_received, pair.flow.is_half_forwarded, pair.flow.at_boundary) == (True, False, False)
    assert (pair.near.rests, pair.decided, pair.shared.requests) == (2, [], {0: 1})
    pair.receive(whole[60:] + list_groups(7))
    assert pair.far.sent == [whole, list_groups(7)]
    assert pair.shared.frames.used == 0
    assert not pair.flow.is_half_received


def test_the_memory_of_a_request_is_free_when_the_broker_has_accepted_it() -> None:
    pair = Taking()
    pair.far.slow = True
    pair.receive(produce(6)[:15], produce(6)[15:])
    assert (pair.shared.frames.used, pair.near.reading) == (len(produce(6)), False)
    pair.flow.resume()
    pair.flow.readable()
    assert (pair.shared.frames.used, pair.closed) == (len(produce(6)), False), "its bytes are still to be sent"
    pair.far.slow = False
    pair.far.flush()
    pair.flow.resume()
    assert (pair.far.sent, pair.shared.frames.used, pair.near.reading) == ([produce(6)], 0, True)


def test_a_request_whose_header_alone_came_in_two_parts_leaves_its_memory_to_the_next() -> None:
    pair = Taking()
    pair.receive(produce(6)[:5], produce(6)[5:])
    assert (pair.far.sent, pair.shared.frames.used, pair.flow.at_boundary) == ([produce(6)], 0, True)
    longer = produce(8, b"more records")
    pair.receive(produce(7)[:5], produce(7)[5:] + longer[:20])
    assert pair.flow.frame is not None
    assert (pair.flow.frame.filled, pair.shared.frames.used) == (20, 20)
    pair.receive(longer[20:])
    assert pair.far.sent == [produce(6), produce(7), longer]
    assert pair.shared.frames.used == 0


def test_a_request_that_was_accepted_has_no_memory_though_a_hundred_have_no_response() -> None:
    pair = Taking()
    pair.waits = True
    pair.receive(produce(6)[:15], produce(6)[15:])
    pair.exchanges.extend(Exchange(16, 0, number, Treatment.STREAM) for number in range(100))
    pair.flow.forward(None)
    pair.flow.blocked = False
    pair.flow.resume()
    assert (pair.far.sent, pair.shared.frames.used, pair.near.reading) == ([produce(6)], 0, False)


def test_of_a_large_request_one_megabyte_is_received_at_a_time_and_counted() -> None:
    pair, whole = Taking(max_request_bytes=4_000_000, memory_bytes=4_000_000), produce(6, bytes(3_000_000))
    pair.receive(whole[:20])
    pair.near.receives = [whole[20:]]
    filled = []
    for _ in range(2):
        pair.flow.readable()
        assert pair.flow.frame is not None
        filled.append((pair.flow.frame.filled, pair.shared.frames.used))
    assert filled == [(20 + 1_048_576,) * 2, (20 + 2 * 1_048_576,) * 2]


def test_the_buffer_of_a_request_is_no_other_clients_while_it_is_being_handled() -> None:
    pair = Taking()
    pair.waits = True
    pair.receive(produce(6))
    pair.flow.resume()
    assert pair.shared.buffers.in_use == 1
    others = pair.shared.buffers.take()
    others[:] = bytes(len(others))
    pair.flow.forward(None)
    pair.flow.blocked = False
    pair.flow.resume()
    assert (pair.far.sent, pair.shared.buffers.in_use) == ([produce(6)], 1)


def test_a_request_in_its_own_memory_keeps_that_while_it_is_being_handled() -> None:
    pair = Taking()
    pair.waits = True
    pair.receive(produce(6)[:15], produce(6)[15:])
    assert (pair.shared.frames.used, pair.near.reading, pair.flow.at_boundary) == (len(produce(6)), False, False)
    pair.flow.readable()
    pair.flow.resume()
    assert pair.shared.frames.used == len(produce(6))
    pair.flow.forward(None)
    pair.flow.blocked = False
    pair.flow.resume()
    assert (pair.far.sent, pair.shared.frames.used, pair.flow.at_boundary) == ([produce(6)], 0, True)
    assert pair.near.reading


def full(pair: Taking) -> Frame:
    """Another connection's request that takes all memory, and is the one that may take more."""
    memory = pair.shared.frames
    other = memory.begin(10_000_000, 0.0)
    while not memory.is_full or memory._first is None:
        memory.fill(other, memory.receivable(other, lambda: None, 0.0))
    return other


def test_the_beginning_of_a_request_is_kept_though_the_memory_is_full_and_the_rest_waits_for_it() -> None:
    pair = Taking(memory_bytes=100)
    memory, other = pair.shared.frames, full(pair)
    used = memory.used
    pair.receive(list_groups(5) + produce(6)[:15])
    assert (pair.far.sent, memory.used, pair.shared.buffers.in_use) == ([list_groups(5)], used + 15, 0)
    assert (pair.flow.at_boundary, pair.flow.is_half_received, pair.flow.is_mid_request) == (False, True, True)
    pair.now = 7.0
    pair.near.receives = [produce(6)[15:]]
    for _ in range(3):
        pair.flow.readable()
        pair.flow.resume()
    assert pair.flow.frame is not None
    assert (pair.near.reading, pair.flow.frame.filled, pair.flow.frame.unread_since) == (False, 15, 7.0)
    memory.end(other)
    assert (pair.near.reading, pair.decided) == (True, []), "not while another connection is closed"
    (step,) = pair.soon
    step()
    assert pair.far.sent == [list_groups(5), produce(6)]
    assert (memory.used, pair.shared.requests) == (0, {16: 1, 0: 1})


def test_a_connection_that_was_closed_meanwhile_is_not_read_when_memory_is_free() -> None:
    pair = Taking(memory_bytes=100)
    other = full(pair)
    pair.receive(produce(6)[:15], produce(6)[15:])
    pair.shared.frames.end(other)
    pair.closed = True
    pair.soon[0]()
    assert (pair.decided, len(pair.near.receives)) == ([], 1)


def test_hundreds_of_requests_that_wait_are_completed_one_after_the_other_by_what_each_frees() -> None:
    """In turns of the event loop: none within another's, which would be a call a request deep."""
    first = Taking(memory_bytes=100)
    pairs = [Taking() for _ in range(500)]
    for pair in pairs:
        pair.shared = first.shared
        pair.soon = first.soon
        pair._loop = first._loop
        pair.shared.takes = {ApiKey.PRODUCE: lambda session, exchange, whole: session.take(session, exchange, whole)}
    other = full(first)
    for pair in pairs:
        pair.receive(produce(6)[:15])
        pair.near.receives = [produce(6)[15:]]
        pair.flow.readable()
    first.shared.frames.end(other)
    turns = 0
    while first.soon:
        assert len(first.soon) == 1, "one is woken at a time"
        first.soon.pop(0)()
        turns += 1
    assert (turns, [len(pair.decided) for pair in pairs], first.shared.frames.used) == (500, [1] * 500, 0)


@pytest.mark.parametrize(("is_full", "most"), [(False, 262_144), (True, 16_384)])
def test_a_first_receive_is_small_while_the_memory_is_full(is_full: bool, most: int) -> None:
    pair = Taking(max_request_bytes=2_000_000, memory_bytes=1_000_000)
    if is_full:
        full(pair)
    pair.near.receives = [produce(6, bytes(900_000))]
    pair.flow.readable()
    assert pair.flow.frame is not None
    assert pair.flow.frame.filled == most


def test_a_connection_that_ends_gives_its_memory_back() -> None:
    pair = Taking()
    pair.receive(produce(6)[:15])
    pair.flow.release()
    assert (pair.flow.frame, pair.shared.frames.used) == (None, 0)
    waiting = Taking()
    waiting.waits = True
    waiting.receive(produce(6))
    waiting.flow.release()
    assert (len(waiting.flow._current), waiting.shared.buffers.in_use) == (0, 0)
    slow = ends()
    slow.far.slow = True
    slow.receive(list_groups(5))
    slow.flow.release()
    slow.flow.release()
    assert slow.shared.buffers.in_use == 0


# Both directions.


@pytest.mark.parametrize("held_by", ["broker", "responses"])
def test_while_the_gateway_reads_nothing_of_a_request_its_client_is_not_too_slow(held_by: str) -> None:
    """The broker does not take what is before it, or the client takes no responses."""
    pair = Taking(memory_bytes=100)
    memory = pair.shared.frames
    pair.far.slow = held_by == "broker"
    pair.receive(list_groups(5) + produce(6)[:14])
    frame = pair.flow.frame
    assert frame is not None
    if held_by == "responses":
        pair.near.outgoing.extend([b"response"] * 256)
        pair.flow.resume()
    full(pair)
    assert memory.receivable(memory.begin(10, 0.0), lambda: None, 0.0) == 0, "another waits"
    assert (pair.near.reading, memory.is_overdue(frame, 1000.0)) == (False, False)
    pair.now, pair.far.slow = 1000.0, False
    pair.far.flush()
    pair.near.outgoing.clear()
    memory._first = frame
    pair.flow.resume()
    pair.receive(produce(6)[14:15])
    assert (pair.near.reading, frame.filled) == (True, 15)
    assert not memory.is_overdue(frame, 1002.0)
    assert memory.is_overdue(frame, 1002.1), "now it is read"
