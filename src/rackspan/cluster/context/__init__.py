"""What a request handler receives: the request (call.py), and the broker's state that it may read or change.

Begin with call.py. Nothing here imports a handler or the broker host.
"""

from rackspan.cluster.context.broker_context import CONTROLLER_ID, BrokerContext
from rackspan.cluster.context.call import Call, EncodedResponse, Handler, Response
from rackspan.cluster.context.delayed_fetches import DelayedFetches
from rackspan.cluster.context.metadata_cache import MAX_CACHED_RESPONSES, MetadataCache
from rackspan.cluster.context.metadata_updates import MetadataUpdates
from rackspan.cluster.context.producer_ids import ProducerIds
from rackspan.cluster.context.record_traffic import Flow, Path, RecordTraffic
from rackspan.cluster.context.requests import BuildRequest, CoordinatorRequest, PendingResponses, Requests

__all__ = [
    "CONTROLLER_ID",
    "MAX_CACHED_RESPONSES",
    "BrokerContext",
    "BuildRequest",
    "Call",
    "CoordinatorRequest",
    "DelayedFetches",
    "EncodedResponse",
    "Flow",
    "Handler",
    "MetadataCache",
    "MetadataUpdates",
    "Path",
    "PendingResponses",
    "ProducerIds",
    "RecordTraffic",
    "Requests",
    "Response",
]
