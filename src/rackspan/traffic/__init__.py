"""Bytes that cross racks by path, topic and group, and their price.

Begin with flows.py (the rows), then prices.py (the price file) and bill.py. Pure: a snapshot, bytes in and reads are arguments.
It never reports an estimate without its assumption, nor an unknown figure as zero.
"""

from rackspan.traffic.bill import Bill, BillRow, bill
from rackspan.traffic.flows import Basis, TrafficFlow, TrafficPath, consume_flows, produce_flows, replication_flows
from rackspan.traffic.prices import Price, PriceFile, Side, Unit, price_file

__all__ = [
    "Basis",
    "Bill",
    "BillRow",
    "Price",
    "PriceFile",
    "Side",
    "TrafficFlow",
    "TrafficPath",
    "Unit",
    "bill",
    "consume_flows",
    "price_file",
    "produce_flows",
    "replication_flows",
]
