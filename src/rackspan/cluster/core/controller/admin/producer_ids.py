"""AllocateProducerIds (KIP-730): blocks of producer ids, never given twice."""

from typing import Final

from rackspan.cluster.core.controller.context import ControllerContext
from rackspan.cluster.core.messages import AllocateProducerIds, Effect, ProducerIdBlock, Respond
from rackspan.cluster.core.metadata import ProducerIdsAllocated

BLOCK: Final = 1_000


def allocate_producer_ids(context: ControllerContext, _now: int, message: AllocateProducerIds) -> list[Effect]:
    first = context.image.next_producer_id
    context.write(ProducerIdsAllocated(first + BLOCK))
    return [Respond(message.correlation_id, ProducerIdBlock(first, BLOCK))]
