"""Waiting until one broker's copy of the cluster metadata has changed."""

import asyncio
from collections.abc import Callable
from typing import Final

from rackspan.cluster.core.metadata import MetadataImage

_CATCH_UP_MS_MAX: Final = 1_000
"""A broker that receives metadata late is a fault that a test has injected: an admin request through it does not wait longer."""


class MetadataUpdates:
    """The metadata updates that one running broker has applied. `image` reads its metadata, `committed_offset` the offset that the controller has committed."""

    def __init__(self, image: Callable[[], MetadataImage], committed_offset: Callable[[], int]) -> None:
        self._image = image
        self._committed_offset = committed_offset
        self._changed = asyncio.Event()

    def notify(self) -> None:
        """The metadata has changed."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def wait_for(self, condition: Callable[[MetadataImage], bool], timeout_ms: int) -> bool:
        """Wait until the metadata meets `condition`; False on timeout."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_ms / 1000
        while not condition(self._image()):
            seconds_left = deadline - loop.time()
            if seconds_left <= 0:
                return False
            try:
                await asyncio.wait_for(self._changed.wait(), seconds_left)
            except TimeoutError:
                return condition(self._image())
        return True

    async def wait_until_caught_up(self, timeout_ms: int) -> bool:
        """Wait until this broker has the metadata that the controller has committed by now; False on timeout."""
        offset = self._committed_offset()
        return await self.wait_for(lambda image: image.offset >= offset, min(timeout_ms, _CATCH_UP_MS_MAX))
