"""When reads of a broker begin: at once, the second beside the first for what that does not cover, and sooner than a timer was set for."""

import asyncio
from collections.abc import Awaitable, Callable

from rackspan.gateway.upstream.guard_readers import BrokerRead, BrokerReads
from tests.waiting import WITHIN_SECONDS

BROKER = 1


class Readings:
    """Reads that end when a test ends them, of records that were acknowledged at the times in `due`."""

    def __init__(self) -> None:
        self.due: list[float] = []
        self.begun: list[asyncio.Future[None]] = []
        self.failed = 0
        self._loop = asyncio.get_running_loop()
        self.reads = BrokerReads(self._due_at, self._read, self._fail)

    def acknowledge(self) -> None:
        self.due.append(self._loop.time())
        self.reads.wake(BROKER)

    async def begins(self, count: int) -> None:
        async with asyncio.timeout(WITHIN_SECONDS):
            while len(self.begun) < count:
                await asyncio.sleep(0.001)

    def _due_at(self, _broker: int, covered: float) -> float | None:
        return min((at for at in self.due if at > covered), default=None)

    async def _read(self, _broker: int, read: BrokerRead) -> None:
        read.sent_at = self._loop.time()
        covered = [at for at in self.due if at <= read.sent_at]
        self.begun.append(self._loop.create_future())
        await self.begun[-1]
        self.due = [at for at in self.due if at not in covered]

    def _fail(self, _broker: int, _error: Exception) -> None:
        self.failed += 1


def run(scenario: Callable[[Readings], Awaitable[None]]) -> None:
    async def running() -> None:
        readings = Readings()
        await scenario(readings)
        readings.reads.close()

    asyncio.run(running())


def test_what_is_acknowledged_while_a_read_is_in_flight_is_read_beside_it_and_nothing_twice() -> None:
    async def scenario(readings: Readings) -> None:
        readings.acknowledge()
        await readings.begins(1)
        readings.reads.wake(BROKER)
        await asyncio.sleep(0.05)
        assert len(readings.begun) == 1, "the read in flight covers all that is due"
        readings.acknowledge()
        await readings.begins(2)
        readings.acknowledge()
        await asyncio.sleep(0.05)
        assert len(readings.begun) == 2, "not three at once"
        readings.begun[0].set_result(None)
        await readings.begins(3)
        for read in readings.begun:
            if not read.done():
                read.set_result(None)
        await asyncio.sleep(0.05)
        assert (len(readings.begun), readings.due) == (3, [])

    run(scenario)


def test_a_read_for_later_begins_sooner_if_something_is_due_sooner() -> None:
    async def scenario(readings: Readings) -> None:
        readings.due.append(asyncio.get_running_loop().time() + 600)
        readings.reads.wake(BROKER)
        await asyncio.sleep(0.05)
        assert not readings.begun
        readings.acknowledge()
        await readings.begins(1)

    run(scenario)


def test_a_read_that_fails_covers_nothing_and_is_repeated_after_a_pause() -> None:
    async def scenario(readings: Readings) -> None:
        loop = asyncio.get_running_loop()
        readings.acknowledge()
        await readings.begins(1)
        failed_at = loop.time()
        readings.begun[0].set_exception(ConnectionResetError("planted"))
        await readings.begins(2)
        assert (readings.failed, loop.time() - failed_at >= 0.05) == (1, True)

    run(scenario)
