"""A broker: the partitions it leads and follows, and when it acknowledges.

Begin with broker.py (entry points), then leadership/leader.py (acknowledgement, high watermark) and follower.py (truncation).
A broker decides by its own image of the metadata alone, which may be stale. It never fences itself: the controller does, and
epochs bound what a stale leader may still do.
"""

from rackspan.cluster.core.broker.broker import BrokerCore, BrokerIdentity
from rackspan.cluster.core.broker.client_fetch import ClientFetch, FetchRead, PartitionFetch
from rackspan.cluster.core.broker.leadership.leader import Leader
from rackspan.cluster.core.broker.reading import Isolation, ReadResponse
from rackspan.cluster.core.broker.rules import BrokerRules

__all__ = [
    "BrokerCore",
    "BrokerIdentity",
    "BrokerRules",
    "ClientFetch",
    "FetchRead",
    "Isolation",
    "Leader",
    "PartitionFetch",
    "ReadResponse",
]
