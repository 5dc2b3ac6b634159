"""A broker: what it leads, what it follows, when it acknowledges.

Begin with broker.py (which message goes where), then leader.py and isr.py (acknowledgement, watermark), follower.py
(truncation). It knows the cluster by its own image of the metadata alone, which may be stale. It never fences itself:
that is the controller's, and what a stale leader may still do is bounded by epochs.
"""

from rackspan.cluster.core.broker.broker import Broker, BrokerIdentity
from rackspan.cluster.core.broker.leader import Leader
from rackspan.cluster.core.broker.reading import Isolation, ReadResponse
from rackspan.cluster.core.broker.rules import BrokerRules

__all__ = ["Broker", "BrokerIdentity", "BrokerRules", "Isolation", "Leader", "ReadResponse"]
