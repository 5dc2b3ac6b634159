"""A broker's whole process without its sockets: the replicas, both coordinators, and the requests between brokers.

Begin with broker_process.py. It routes transaction markers, verifies transactional writes (KIP-890), and hands committed
markers and deleted topics to the group coordinator. It never draws a correlation id and never waits: requests to other
brokers are effects, and their responses and timeouts are events.
"""

from rackspan.cluster.core.process.broker_process import BrokerProcess
from rackspan.cluster.core.process.verification import transaction_support

__all__ = ["BrokerProcess", "transaction_support"]
