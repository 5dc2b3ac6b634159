"""Numbers for idempotent producers, from a block that the controller gives this broker (KIP-730)."""

import asyncio
from typing import TYPE_CHECKING, Final

from rackspan.cluster.core.messages import AllocateProducerIds, ProducerIdBlock

if TYPE_CHECKING:
    from rackspan.cluster.host.broker_host import BrokerHost

_TIMEOUT_MS: Final = 5_000


class ProducerIds:
    """The rest of a broker's block; a new one is asked for when it is used up. Never twice the same."""

    def __init__(self, broker: "BrokerHost") -> None:
        self._broker = broker
        self._left = iter(range(0))
        self._asking = asyncio.Lock()

    async def next(self) -> int | None:
        """None where the controller does not answer in time."""
        async with self._asking:
            found = next(self._left, None)
            if found is not None:
                return found
            block: ProducerIdBlock | None = await self._broker.controller_response(
                lambda correlation_id: AllocateProducerIds(correlation_id, self._broker.id), _TIMEOUT_MS, None
            )
            if block is None:
                return None
            self._left = iter(range(block.first, block.first + block.length))
            return next(self._left)
