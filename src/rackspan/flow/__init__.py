"""Minimum-cost flow over integers, with a proof of every solution. Independent of Kafka.

Begin with network.py (the value), then min_cost_flow.py (OR-tools solves) and certificate.py (our own code checks the
solution and raises an error if it cannot prove it). No flow leaves this package without a certificate.
Depends on no other package.
"""

from rackspan.flow.certificate import Certificate, certify
from rackspan.flow.min_cost_flow import CertifiedFlow, solve
from rackspan.flow.network import MAX_SCALED_COST, Arcs, FlowNetwork, NetworkBuilder, arcs, connect, network, split

__all__ = [
    "MAX_SCALED_COST",
    "Arcs",
    "Certificate",
    "CertifiedFlow",
    "FlowNetwork",
    "NetworkBuilder",
    "arcs",
    "certify",
    "connect",
    "network",
    "solve",
    "split",
]
