"""Minimum-cost flow over integers, with a proof of every answer. Knows nothing of Kafka.

Begin with network.py (the value), then min_cost_flow.py (OR-tools answers) and certificate.py (our own code checks the
answer and refuses one it cannot prove). Nobody outside this room sees a flow that was not certified.
"""

from rackspan.flow.certificate import Certificate, certify
from rackspan.flow.min_cost_flow import CertifiedFlow, solve
from rackspan.flow.network import Arcs, FlowNetwork, arcs, connect, network, split

__all__ = [
    "Arcs",
    "Certificate",
    "CertifiedFlow",
    "FlowNetwork",
    "arcs",
    "certify",
    "connect",
    "network",
    "solve",
    "split",
]
