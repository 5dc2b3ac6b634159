"""The memory of half requests, on a virtual clock: bounded, always lent to one that can finish, taken from those that stall."""

import ctypes
from collections.abc import Callable
from pathlib import Path
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


def received(memory: FrameMemory, frame: Frame, size: int, now: float = 0.0) -> int:
    """Receive at most so many bytes, in as many parts as the memory allows; how many they were."""
    left = size
    while left and (free := memory.receivable(frame, nothing, now)):
        memory.fill(frame, min(free, left))
        left -= min(free, left)
    return size - left


def begun(memory: FrameMemory, size: int, filled: int, now: float = 0.0) -> Frame:
    frame = memory.begin(size, now)
    assert received(memory, frame, filled, now) == filled
    return frame


def full(memory: FrameMemory) -> Frame:
    """A request that takes all memory, and is the one that may take more."""
    frame = begun(memory, 3 * MOST, MOST + 1)
    assert memory.is_full
    return frame


def test_a_request_takes_what_has_arrived_and_nothing_for_what_it_announces() -> None:
    memory = FrameMemory(MOST)
    frame = memory.begin(900_000, 0.0)
    assert memory.used == 0
    for arrived in (18, 0, 300_000, 1):
        before = memory.used
        assert memory.receivable(frame, nothing, 0.0) >= arrived
        memory.fill(frame, arrived)
        assert memory.used - before == arrived
    memory.end(frame)
    assert memory.used == 0


def test_a_receive_has_the_memory_that_is_left_and_one_megabyte_at_most() -> None:
    memory = FrameMemory(3 * 1024 * 1024)
    large = begun(memory, 50 * MOST, 2 * 1024 * 1024 + 1)
    assert memory.receivable(large, nothing, 0.0) == 1024 * 1024 - 1
    assert memory.receivable(memory.begin(10, 0.0), nothing, 0.0) == 10
    empty = FrameMemory(3 * 1024 * 1024)
    assert empty.receivable(empty.begin(50 * MOST, 0.0), nothing, 0.0) == 1024 * 1024


def test_a_request_of_any_size_is_read_when_nothing_else_is() -> None:
    memory = FrameMemory(MOST)
    frame = begun(memory, 50 * MOST, 50 * MOST)
    assert frame.is_whole
    memory.end(frame)
    assert memory.used == 0


def test_one_request_may_exceed_the_bound_and_the_others_are_woken_in_their_order_by_what_serves_them() -> None:
    """Each of three needs half of what is freed: the second is woken when the first has received, the third is not."""
    memory, woken = FrameMemory(MOST), list[int]()
    first, frames = full(memory), [memory.begin(MOST, 0.0) for _ in range(3)]
    wakes: list[Callable[[], None]] = [lambda number=number: woken.append(number) for number in range(3)]  # type: ignore[misc]
    for frame, wake in zip(frames, wakes, strict=True):
        assert memory.receivable(frame, wake, 0.0) == 0
    memory.end(first)
    assert woken == [0]
    assert memory.receivable(frames[1], wakes[1], 1.0) == 0, "it is not its turn"
    assert memory.receivable(frames[0], wakes[0], 1.0) == MOST
    assert woken == [0]
    memory.fill(frames[0], MOST // 2)
    assert woken == [0, 1]
    assert memory.receivable(frames[1], wakes[1], 1.0) == MOST // 2
    memory.fill(frames[1], MOST // 2)
    assert woken == [0, 1, 2], "the memory is full, and it is the one that may exceed it"
    assert memory.receivable(frames[2], wakes[2], 1.0) == MOST


def test_one_that_was_woken_is_not_woken_again_before_it_has_tried() -> None:
    """Thousands that are closed in one turn of the event loop free memory as often, and one waits for it."""
    memory, woken = FrameMemory(MOST), list[int]()
    others = [begun(memory, MOST, 1000) for _ in range(100)]
    first = full(memory)
    frame = memory.begin(MOST, 0.0)
    assert memory.receivable(frame, lambda: woken.append(1), 0.0) == 0
    for other in (first, *others):
        memory.end(other)
    assert woken == [1]


@pytest.mark.parametrize("leaves", [False, True])
def test_who_is_woken_and_receives_nothing_leaves_its_turn_to_the_next(leaves: bool) -> None:
    memory, woken = FrameMemory(MOST), list[int]()
    first, frames = full(memory), [memory.begin(100, 0.0) for _ in range(2)]
    for number, frame in enumerate(frames):
        assert memory.receivable(frame, lambda number=number: woken.append(number), 0.0) == 0  # type: ignore[misc]
    memory.end(first)
    assert woken == [0]
    if leaves:
        memory.end(frames[0])
    else:
        assert memory.receivable(frames[0], nothing, 1.0) == 100
        memory.fill(frames[0], 0)
    assert woken == [0, 1]


@pytest.mark.parametrize("sockets", [1000, 2000, 4500])
def test_freed_memory_wakes_as_many_as_it_serves(sockets: int) -> None:
    """Each announces 90 MB, has sent 256 KiB and stalls: those that hold memory are closed one after the other.

    Every one of the closed woke all that waited: 523,671 times for 2,000 of them, 2,966,171 for 4,500.
    """
    size, wakes, tries = 256 * 1024, 0, list[Frame]()
    memory = FrameMemory(256_000_000)
    frames = [memory.begin(90_000_000, 0.0) for _ in range(sockets)]

    def woken(frame: Frame) -> None:
        nonlocal wakes
        wakes += 1
        tries.append(frame)

    def receive(frame: Frame) -> None:
        while frame.filled < size and (free := memory.receivable(frame, lambda: woken(frame), 0.0)):
            memory.fill(frame, min(free, size - frame.filled))

    for frame in frames:
        receive(frame)
    holding = [frame for frame in frames if frame.filled]
    assert len(holding) == min(sockets, 977), "as many as have the memory, and the one that may exceed it"
    for frame in holding:
        memory.end(frame)
        while tries:
            receive(tries.pop())
    assert wakes <= 2 * (sockets - len(holding)) + 2


@pytest.mark.parametrize(("waiting", "allowed"), [(False, HALF_REQUEST_SECONDS + 2.0), (True, WANTED_SECONDS + 0.5)])
def test_a_request_is_overdue_by_its_size_and_while_others_wait_by_what_has_arrived(
    waiting: bool, allowed: float
) -> None:
    memory = FrameMemory(MOST)
    frame = begun(memory, 2 * BYTES_PER_SECOND, BYTES_PER_SECOND // 2)
    if waiting:
        full(memory)
        assert memory.receivable(memory.begin(10, 0.0), nothing, 0.0) == 0
    assert not memory.is_overdue(frame, allowed)
    assert memory.is_overdue(frame, allowed + 0.01)


def test_what_was_sent_quickly_buys_no_time_for_what_trickles_while_others_wait() -> None:
    """By the whole of it a client that has sent 99 MB could hold up everybody for 99 s with a byte a second."""
    memory = FrameMemory(100 * BYTES_PER_SECOND)
    frame = memory.begin(200 * BYTES_PER_SECOND, 0.0)
    for second in range(1, 51):
        received(memory, frame, 2 * BYTES_PER_SECOND + 1, float(second))
        assert not memory.is_overdue(frame, float(second))
    assert memory.receivable(memory.begin(10, 50.0), nothing, 50.0) == 0
    for second in (51, 52):
        received(memory, frame, 1, float(second))
        assert not memory.is_overdue(frame, float(second))
    assert memory.is_overdue(frame, 52.1)


def test_the_time_in_which_a_request_waits_for_memory_does_not_count() -> None:
    memory = FrameMemory(MOST)
    other = full(memory)
    frame = memory.begin(10, 0.0)
    assert memory.receivable(frame, nothing, 0.0) == 0
    assert not memory.is_overdue(frame, 1000.0)
    memory.end(other)
    assert memory.receivable(frame, nothing, 1000.0) == 10
    assert not memory.is_overdue(frame, 1000.0 + HALF_REQUEST_SECONDS)
    assert memory.is_overdue(frame, 1000.1 + HALF_REQUEST_SECONDS)


@pytest.mark.parametrize("seed", range(30))
def test_every_client_that_goes_on_sending_is_served_whatever_the_others_do(seed: int) -> None:
    """A third of the clients stall after some bytes, for ever. Time goes on in steps of 0.1 s.

    One that does not stall is served though nobody else ends, and no more are woken than have been served or have ended.
    """
    rng = Random(seed)
    memory, largest, wakes, receives = FrameMemory(MOST), 0, 0, 0
    open_ones: dict[Frame, tuple[int, bool]] = {}
    ready: set[Frame] = set()

    def wake(frame: Frame) -> None:
        nonlocal wakes
        wakes += 1
        ready.add(frame)

    for _ in range(60):
        frame = memory.begin(int(2 ** rng.uniform(4, 21)), 0.0)
        stalls = rng.random() < 0.3
        open_ones[frame] = rng.randrange(frame.size) if stalls else frame.size, stalls
        ready.add(frame)
        largest = max(largest, frame.size)
    for step in range(20_000):
        now = step / 10
        for frame in rng.sample([*open_ones], len(open_ones)):
            sends, stalls = open_ones[frame]
            if frame in ready:
                free = memory.receivable(frame, lambda frame=frame: wake(frame), now)  # type: ignore[misc]
                if free:
                    receives += 1
                    memory.fill(frame, min(free, sends - frame.filled, rng.randrange(1, 300_000)))
                else:
                    ready.discard(frame)
            if frame.is_whole or memory.is_overdue(frame, now):
                assert stalls or frame.is_whole
                del open_ones[frame]
                memory.end(frame)
            assert memory.used <= MOST + largest
        if not open_ones:
            break
    assert not open_ones
    assert memory.used == 0
    assert wakes <= receives + 60


@pytest.mark.parametrize(("size", "is_reused"), [(262_145, False), (262_144, True), (1, True)])
def test_memory_of_a_request_that_has_ended_is_used_again_for_one_that_fits(size: int, is_reused: bool) -> None:
    memory = FrameMemory(MOST)
    first = begun(memory, 262_144, 1)
    memory.end(first)
    assert (memory.begin(size, 1.0).buffer is first.buffer) is is_reused


@pytest.mark.skipif(
    not Path("/sys/kernel/mm/transparent_hugepage").exists(), reason="this system has no transparent huge pages"
)
def test_the_first_byte_of_a_request_takes_no_huge_page() -> None:
    """By the flags that the kernel shows of the memory: `nh` is for no huge pages (proc(5))."""
    buffer = FrameMemory(MOST).begin(90_000_000, 0.0).buffer
    address = ctypes.addressof(ctypes.c_char.from_buffer(buffer))
    flags: list[str] = []
    start = end = 0
    for line in Path("/proc/self/smaps").read_text().splitlines():
        name, _, rest = line.partition(" ")
        if "-" in name:
            start, end = (int(part, 16) for part in name.split("-"))
        elif name == "VmFlags:" and start <= address < end:
            flags = rest.split()
    assert "nh" in flags
