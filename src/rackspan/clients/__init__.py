"""Where the members of groups read: which bytes cross racks, why, and what would bring them into the member's own rack.

Begin with reads.py (the values: who reads what from which rack), then causes.py (a finding for each cause, with its remedy).
likely_rack.py guesses the rack that a misspelt client.rack means; json_format.py writes the document. Pure: `sources` reads
groups, configs and the counters of gateways. It never says that a setting works: it says which replica Kafka's rules direct a
member to, and in measured.py what was counted.
Depends on: audit, consumers, model.
"""

from rackspan.clients.causes import ClientFinding, find_causes
from rackspan.clients.measured import Measured, ReadBytes, measured_reads
from rackspan.clients.reads import GroupReads, MemberReads, ReplicaSelectors, group_reads

__all__ = [
    "ClientFinding",
    "GroupReads",
    "Measured",
    "MemberReads",
    "ReadBytes",
    "ReplicaSelectors",
    "find_causes",
    "group_reads",
    "measured_reads",
]
