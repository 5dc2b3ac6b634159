"""What repeats for ever, without the waits."""

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
