"""Requests are split from a stream, in whatever portions it arrives."""

import resource
from collections import deque
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackspan.errors import MalformedRequest
from rackspan.wire.framing import FrameBuffer, Request, first_pieces, pieces
from tests.cluster.raw import framed


def fed(buffer: FrameBuffer, data: bytes, rng: Random | None = None) -> list[Request]:
    """As asyncio does: take the next buffer, fill a part of it, report how many bytes."""
    requests: list[Request] = []
    at = 0
    while at < len(data):
        target = buffer.next_buffer()
        count = min(len(target), len(data) - at, rng.randint(1, 200_000) if rng else len(data))
        target[:count] = data[at : at + count]
        del target  # asyncio has released it before it takes the next one
        requests += buffer.received(count)
        at += count
    return requests


def resident_bytes() -> int:
    """Of this process, in memory now (Linux)."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


@given(st.lists(st.binary(max_size=300), max_size=30), st.randoms(use_true_random=False))
def test_small_requests_are_received_as_sent(requests: list[bytes], rng: Random) -> None:
    assert fed(FrameBuffer(), b"".join(framed([request]) for request in requests), rng) == requests


@pytest.mark.parametrize("size", [0, 1, 65_531, 65_532, 65_533, 65_536, 1 << 20, (1 << 20) + 1, 5_000_000])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_large_requests_between_small_ones_are_received_as_sent(size: int, seed: int) -> None:
    rng = Random(seed)
    requests = [b"before", rng.randbytes(size), b"", rng.randbytes(size), b"after" * 100]
    assert fed(FrameBuffer(), b"".join(framed([request]) for request in requests), rng) == requests


@pytest.mark.parametrize("size", [-1, -(2**31), 1025, 2**31 - 1])
def test_an_invalid_size_is_malformed_before_anything_is_allocated(size: int) -> None:
    with pytest.raises(MalformedRequest, match=str(size)):
        fed(FrameBuffer(max_bytes=1024), size.to_bytes(4, "big", signed=True) + b"x" * 10)


def test_whole_requests_before_an_invalid_size_are_still_returned() -> None:
    returned: list[Request] = []
    buffer = FrameBuffer(max_bytes=1024)
    data = framed([b"whole"]) + b"\xff\xff\xff\xff"
    buffer.next_buffer()[: len(data)] = data
    with pytest.raises(MalformedRequest):
        returned.extend(buffer.received(len(data)))  # extend keeps what came before the error
    assert returned == [b"whole"]


def test_memory_for_a_large_request_grows_with_its_received_bytes() -> None:
    before = resident_bytes()
    buffers = [FrameBuffer() for _ in range(20)]
    for buffer in buffers:
        fed(buffer, (90 * 1024 * 1024).to_bytes(4, "big") + b"only this")
    assert [len(buffer.next_buffer()) for buffer in buffers] == [90 * 1024 * 1024 - len(b"only this")] * 20
    # Of 1,800 MB that were claimed; a small request each is received in 64 KB.
    assert resident_bytes() - before < 20 * 1024 * 1024


@given(st.lists(st.lists(st.sampled_from((0, 1, 100, 65_535, 65_536, 300_000, 700_001)), max_size=4), max_size=4))
def test_a_response_in_pieces_has_the_bytes_of_the_joined_one(sizes: list[list[int]]) -> None:
    responses = [[bytes([index]) * size for index, size in enumerate(part_sizes)] for part_sizes in sizes]
    outgoing = deque(piece for response in responses for piece in pieces(response))
    sent = b""
    while outgoing:
        sent += bytes(first_pieces(outgoing))
    assert sent == b"".join(map(framed, responses))


def test_large_parts_are_not_copied_and_small_ones_are_joined() -> None:
    large = bytes(2 * 256 * 1024)
    outgoing = deque([*pieces([b"header", large]), *pieces([b"one"]), *pieces([b"two"])])
    writes = [first_pieces(outgoing) for _ in range(4)]
    assert [isinstance(write, memoryview) and write.obj is large for write in writes] == [False, True, True, False]
    assert writes[-1] == framed([b"one"]) + framed([b"two"])
