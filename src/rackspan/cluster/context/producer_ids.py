"""Ids for idempotent producers, from blocks that the controller allocates to this broker (KIP-730)."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from rackspan.cluster.core.messages import ProducerIdBlock

AllocateBlock: TypeAlias = Callable[[], Awaitable[ProducerIdBlock | None]]


class ProducerIds:
    """The unused rest of a broker's block; `allocate_block` requests the next one from the controller. No id is given twice."""

    def __init__(self, allocate_block: AllocateBlock) -> None:
        self._allocate_block = allocate_block
        self._unused = iter(range(0))
        self._allocating = asyncio.Lock()

    async def next(self) -> int | None:
        """None where the controller does not respond in time."""
        async with self._allocating:
            producer_id = next(self._unused, None)
            if producer_id is not None:
                return producer_id
            block = await self._allocate_block()
            if block is None:
                return None
            self._unused = iter(range(block.first, block.first + block.length))
            return next(self._unused)
