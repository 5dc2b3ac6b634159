"""Bytes that cross racks by path, topic and group, and their price.

Begin with reading.py (all that a cluster is read for, and what passed between two readings), logs.py (two readings of logs to bytes),
flows.py (the rows), restores.py (state of Kafka Streams), measured.py (what gateways counted), followers.py (what brokers did), then prices.py and price_file.py (prices, and the file of them) and bill.py. Pure: a snapshot, bytes in and reads are arguments.
It never reports an estimate without its assumption, nor an unknown figure as zero.
Depends on: audit, clients, consumers, model, streams.
"""

from rackspan.traffic.bill import Bill, BillRow, bill
from rackspan.traffic.flows import Basis, TrafficFlow, TrafficPath, consume_flows, produce_flows, replication_flows
from rackspan.traffic.followers import BrokerBytes, bytes_out_between, follower_bounds
from rackspan.traffic.logs import ClusterLogs, Volumes, volumes_between
from rackspan.traffic.measured import CountedBytes, CountedFlow, measured_flows, produced_flows, read_bytes
from rackspan.traffic.prices import Price, PriceFile, Side, Unit, prices_json
from rackspan.traffic.progress import GroupProgress, group_progress
from rackspan.traffic.reading import ClusterReading, Interval, counted_between, reads_of
from rackspan.traffic.restores import restore_flows
from rackspan.traffic.what_if import reading_as_measured

__all__ = [
    "Basis",
    "Bill",
    "BillRow",
    "BrokerBytes",
    "ClusterLogs",
    "ClusterReading",
    "CountedBytes",
    "CountedFlow",
    "GroupProgress",
    "Interval",
    "Price",
    "PriceFile",
    "Side",
    "TrafficFlow",
    "TrafficPath",
    "Unit",
    "Volumes",
    "bill",
    "bytes_out_between",
    "consume_flows",
    "counted_between",
    "follower_bounds",
    "group_progress",
    "measured_flows",
    "prices_json",
    "produce_flows",
    "produced_flows",
    "read_bytes",
    "reading_as_measured",
    "reads_of",
    "replication_flows",
    "restore_flows",
    "volumes_between",
]
