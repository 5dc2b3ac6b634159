"""The memory of half requests, on a virtual clock: bounded, always lent to one that can finish, taken from those that stall."""

from random import Random

import pytest

from rackspan.gateway.net.frames import (
    BYTES_PER_SECOND,
    HALF_REQUEST_SECONDS,
    WANTED_SECONDS,
    Frame,
    FrameMemory,
)

MOST = 1_000_000


def nothing() -> None:
    pass


def begun(memory: FrameMemory, size: int, filled: int, now: float = 0.0) -> Frame:
    frame = memory.begin(size, now)
    assert memory.reserve(frame, filled, nothing, now)
    frame.filled = filled
    return frame


def test_what_a_request_announces_reserves_nothing_and_what_it_sends_twice_as_much() -> None:
    memory = FrameMemory(MOST)
    frame = memory.begin(900_000, 0.0)
    assert memory.used == 0
    assert memory.reserve(frame, 14, nothing, 0.0)
    assert memory.used == 262_144
    frame.filled = 262_144
    assert memory.reserve(frame, 262_145, nothing, 0.0)
    assert memory.used == 2 * 262_144
    memory.end(frame, 0.0)
    assert memory.used == 0


def test_a_request_of_any_size_is_read_when_nothing_else_is() -> None:
    memory = FrameMemory(MOST)
    frame = begun(memory, 50 * MOST, 50 * MOST)
    assert frame.is_whole
    memory.end(frame, 0.0)
    assert memory.used == 0


def test_one_request_may_exceed_the_bound_and_the_others_wait_in_their_order() -> None:
    memory, woken = FrameMemory(MOST), []
    first = begun(memory, 3 * MOST, MOST)
    frames = [memory.begin(100_000, 0.0) for _ in range(3)]
    first.filled = MOST
    assert memory.reserve(first, 3 * MOST, nothing, 0.0)
    for number, frame in enumerate(frames):
        assert not memory.reserve(frame, 1, lambda number=number: woken.append(number), 0.0)  # type: ignore[misc]
    memory.end(first, 1.0)
    assert woken == [0, 1, 2]


@pytest.mark.parametrize(("waiting", "allowed"), [(False, HALF_REQUEST_SECONDS + 2.0), (True, WANTED_SECONDS + 0.5)])
def test_a_request_is_overdue_by_its_size_and_while_others_wait_by_what_has_arrived(
    waiting: bool, allowed: float
) -> None:
    memory = FrameMemory(MOST)
    frame = begun(memory, 2 * BYTES_PER_SECOND, BYTES_PER_SECOND // 2)
    if waiting:
        begun(memory, 3 * MOST, 1)
        assert memory.reserve(frame, BYTES_PER_SECOND // 2 + 1, nothing, 0.0)
        assert not memory.reserve(memory.begin(10, 0.0), 1, nothing, 0.0)
    assert not memory.is_overdue(frame, allowed)
    assert memory.is_overdue(frame, allowed + 0.01)


def test_the_time_in_which_a_request_waits_for_memory_does_not_count() -> None:
    memory = FrameMemory(MOST)
    other = begun(memory, 3 * MOST, MOST)
    assert memory.reserve(other, 3 * MOST, nothing, 0.0)
    frame = memory.begin(10, 0.0)
    assert not memory.reserve(frame, 1, nothing, 0.0)
    assert not memory.is_overdue(frame, 1000.0)
    memory.end(other, 1000.0)
    assert memory.reserve(frame, 1, nothing, 1000.0)
    assert not memory.is_overdue(frame, 1000.0 + HALF_REQUEST_SECONDS)
    assert memory.is_overdue(frame, 1000.1 + HALF_REQUEST_SECONDS)


@pytest.mark.parametrize("seed", range(30))
def test_every_client_that_goes_on_sending_is_served_whatever_the_others_do(seed: int) -> None:
    """A third of the clients stall after some bytes, for ever. Time goes on in steps of 0.1 s."""
    rng = Random(seed)
    memory, largest = FrameMemory(MOST), 0
    clients: list[tuple[Frame, int, bool]] = []
    ready: set[Frame] = set()
    for _ in range(60):
        frame = memory.begin(int(2 ** rng.uniform(4, 21)), 0.0)
        stalls = rng.random() < 0.3
        clients.append((frame, rng.randrange(frame.size) if stalls else frame.size, stalls))
        ready.add(frame)
        largest = max(largest, frame.size)
    open_ones = {frame: (sends, stalls) for frame, sends, stalls in clients}
    for step in range(20_000):
        now = step / 10
        for frame in rng.sample([*open_ones], len(open_ones)):
            sends, stalls = open_ones[frame]
            if frame in ready and frame.filled < sends:
                if memory.reserve(frame, frame.filled + 1, lambda frame=frame: ready.add(frame), now):  # type: ignore[misc]
                    frame.filled = min(sends, frame.reserved, frame.filled + rng.randrange(1, 300_000))
                else:
                    ready.discard(frame)
            if frame.is_whole or memory.is_overdue(frame, now):
                assert stalls or frame.is_whole
                del open_ones[frame]
                memory.end(frame, now)
            assert memory.used <= MOST + largest
        if not open_ones:
            break
    assert not open_ones
    assert memory.used == 0


@pytest.mark.parametrize(("size", "is_reused"), [(262_145, False), (262_144, True), (1, True)])
def test_memory_of_a_request_that_has_ended_is_used_again_for_one_that_fits(size: int, is_reused: bool) -> None:
    memory = FrameMemory(MOST)
    first = begun(memory, 262_144, 1)
    memory.end(first, 0.0)
    assert (memory.begin(size, 1.0).buffer is first.buffer) is is_reused
