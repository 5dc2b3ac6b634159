"""Tasks that each send one broker a request at a time, while something is wanted of it."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from rackspan.errors import MalformedRequest, RackspanError

log = logging.getLogger(__name__)

_INTERVAL_SECONDS: Final = 0.0005
"""Between two requests to one broker: what is wanted meanwhile shares the next."""

_BACKOFF_SECONDS: Final = 0.05


class BrokerLoops:
    """`work` is run for a broker from the time that `wanted_at` gives, until it gives None."""

    def __init__(
        self,
        wanted_at: Callable[[int], float | None],
        work: Callable[[int], Awaitable[None]],
        failed: Callable[[int, Exception], None],
    ) -> None:
        self._wanted_at = wanted_at
        self._work = work
        self._failed = failed
        self._loop = asyncio.get_running_loop()
        self._running: dict[int, asyncio.Task[None]] = {}
        self._sleeping: dict[int, tuple[float, asyncio.Event]] = {}
        self._failing: set[int] = set()

    def wake(self, broker: int) -> None:
        """Something is wanted of the broker, perhaps sooner than what was."""
        if broker not in self._running:
            task = self._running[broker] = self._loop.create_task(self._run(broker))
            task.add_done_callback(lambda ended: self._ended(broker, ended))
        elif broker in self._sleeping:
            until, sooner = self._sleeping[broker]
            wanted_at = self._wanted_at(broker)
            if wanted_at is not None and wanted_at < until:
                sooner.set()

    def _ended(self, broker: int, task: "asyncio.Task[None]") -> None:
        """Called later than the end itself: there may be another task by then."""
        if self._running.get(broker) is task:
            del self._running[broker]

    async def _run(self, broker: int) -> None:
        while True:
            wanted_at = self._wanted_at(broker)
            if wanted_at is None:
                # Taken out here: an event between the last look and the end of the task would be missed.
                self._running.pop(broker, None)
                return
            now = self._loop.time()
            if wanted_at > now:
                await self._sleep(broker, wanted_at)
                continue
            try:
                await self._work(broker)
            except (OSError, TimeoutError, MalformedRequest, RackspanError) as error:
                if broker not in self._failing:
                    self._failing.add(broker)
                    log.warning("broker %d could not be sampled: %s: %s", broker, type(error).__name__, error)
                self._failed(broker, error)
                await asyncio.sleep(_BACKOFF_SECONDS)
            else:
                self._failing.discard(broker)
                left = now + _INTERVAL_SECONDS - self._loop.time()
                if left > 0:
                    await asyncio.sleep(left)

    async def _sleep(self, broker: int, until: float) -> None:
        sooner = asyncio.Event()
        self._sleeping[broker] = until, sooner
        try:
            async with asyncio.timeout_at(until):
                await sooner.wait()
        except TimeoutError:
            pass
        finally:
            del self._sleeping[broker]

    def close(self) -> None:
        for task in tuple(self._running.values()):
            task.cancel()
