"""What repeats for ever, without the waits; and what is over at once that else takes seconds."""

import asyncio


class Sleeps:
    """Stands in for asyncio.sleep: `seconds` are those of each call, and the last of so many calls is cancelled."""

    def __init__(self, calls: int) -> None:
        self._calls = calls
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)
        if len(self.seconds) == self._calls:
            raise asyncio.CancelledError


class Limits:
    """Stands in for asyncio.timeout: `seconds` are those of each call, of which the Nth is over at once and no other ever."""

    def __init__(self, number: int) -> None:
        self._number, self._timeout = number, asyncio.timeout
        self.seconds: list[float | None] = []

    def __call__(self, seconds: float | None) -> asyncio.Timeout:
        self.seconds.append(seconds)
        return self._timeout(0 if len(self.seconds) == self._number else None)
