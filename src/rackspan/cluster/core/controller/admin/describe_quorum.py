"""DescribeQuorum (KIP-595): the length of the metadata log, and how far each broker has read it."""

from rackspan.cluster.core.controller.context import ControllerContext
from rackspan.cluster.core.messages import DescribeQuorum, DescribeQuorumResponse, Effect, Observer, Respond


def describe_quorum(context: ControllerContext, now: int, message: DescribeQuorum) -> list[Effect]:
    observers = (
        Observer(broker, session.metadata_offset, session.last_heartbeat_ms)
        for broker, session in sorted(context.sessions.items())
    )
    return [Respond(message.correlation_id, DescribeQuorumResponse(context.image.offset, now, tuple(observers)))]
