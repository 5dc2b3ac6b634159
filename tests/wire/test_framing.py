"""Requests come out of a stream as they went in, however the network cuts it."""

import resource
from collections import deque
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackspan.errors import MalformedRequest
from rackspan.wire.framing import FrameBuffer, Request, first_pieces, framed, pieces


def fed(buffer: FrameBuffer, data: bytes, rng: Random | None = None) -> list[Request]:
    """What asyncio does: ask for room, fill some of it, say how much."""
    found: list[Request] = []
    at = 0
    while at < len(data):
        room = buffer.room()
        count = min(len(room), len(data) - at, rng.randint(1, 200_000) if rng else len(data))
        room[:count] = data[at : at + count]
        del room  # as asyncio has let go of it when it asks again
        found += buffer.received(count)
        at += count
    return found


def resident_bytes() -> int:
    """Of this process, in memory now (Linux)."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


@given(st.lists(st.binary(max_size=300), max_size=30), st.randoms(use_true_random=False))
def test_small_requests_come_out_as_they_went_in(requests: list[bytes], rng: Random) -> None:
    assert fed(FrameBuffer(), b"".join(framed([request]) for request in requests), rng) == requests


@pytest.mark.parametrize("size", [0, 1, 65_531, 65_532, 65_533, 65_536, 1 << 20, (1 << 20) + 1, 5_000_000])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_large_requests_between_small_ones_come_out_as_they_went_in(size: int, seed: int) -> None:
    rng = Random(seed)
    requests = [b"before", rng.randbytes(size), b"", rng.randbytes(size), b"after" * 100]
    assert fed(FrameBuffer(), b"".join(framed([request]) for request in requests), rng) == requests


@pytest.mark.parametrize("size", [-1, -(2**31), 1025, 2**31 - 1])
def test_an_impossible_size_is_refused_before_anything_is_kept(size: int) -> None:
    with pytest.raises(MalformedRequest, match=str(size)):
        fed(FrameBuffer(max_bytes=1024), size.to_bytes(4, "big", signed=True) + b"x" * 10)


def test_whole_requests_before_an_impossible_size_are_still_given() -> None:
    given_out: list[Request] = []
    buffer = FrameBuffer(max_bytes=1024)
    data = framed([b"whole"]) + b"\xff\xff\xff\xff"
    buffer.room()[: len(data)] = data
    with pytest.raises(MalformedRequest):
        given_out.extend(buffer.received(len(data)))  # extend keeps what came before the error
    assert given_out == [b"whole"]


def test_a_claimed_size_takes_memory_only_as_its_bytes_come() -> None:
    before = resident_bytes()
    buffers = [FrameBuffer() for _ in range(20)]
    for buffer in buffers:
        fed(buffer, (90 * 1024 * 1024).to_bytes(4, "big") + b"only this")
    assert [buffer.waiting_bytes for buffer in buffers] == [len(b"only this")] * 20
    # Of 1,800 MB that were claimed; a small request each is received in 64 KB.
    assert resident_bytes() - before < 20 * 1024 * 1024


@given(st.lists(st.lists(st.sampled_from((0, 1, 100, 65_535, 65_536, 300_000, 700_001)), max_size=4), max_size=4))
def test_what_is_sent_in_pieces_is_what_would_be_sent_in_one(sizes: list[list[int]]) -> None:
    answers = [[bytes([index]) * size for index, size in enumerate(one)] for one in sizes]
    outgoing = deque(piece for answer in answers for piece in pieces(answer))
    sent = b""
    while outgoing:
        sent += bytes(first_pieces(outgoing))
    assert sent == b"".join(map(framed, answers))


def test_what_is_large_is_not_copied_and_what_is_small_is_sent_together() -> None:
    large = bytes(2 * 256 * 1024)
    outgoing = deque([*pieces([b"header", large]), *pieces([b"one"]), *pieces([b"two"])])
    taken = [first_pieces(outgoing) for _ in range(4)]
    assert [isinstance(one, memoryview) and one.obj is large for one in taken] == [False, True, True, False]
    assert taken[-1] == framed([b"one"]) + framed([b"two"])
