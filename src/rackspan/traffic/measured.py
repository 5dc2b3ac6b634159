"""Flows that gateways counted, in place of what is derived or estimated of the same bytes.

A gateway counts by client id. What it counts of produce comes off the estimate of the topic; what it counts of a member takes the place of
what is derived of that member and topic, if no other member has its client id. Bytes of which a rack is not known prove nothing.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple, TypeAlias, TypeVar

from rackspan.clients import GroupReads, ReadBytes, measured_reads
from rackspan.model.group import GroupDescription
from rackspan.model.ids import RackId
from rackspan.traffic.flows import Basis, Link, TrafficFlow, TrafficPath


class CountedFlow(NamedTuple):
    """The labels of one count. A rack that is not known is empty."""

    path: TrafficPath
    topic: str
    client_id: str
    source_rack: str
    destination_rack: str


CountedBytes: TypeAlias = Mapping[CountedFlow, int]

COUNTED: Final = "counted by gateways"
LESS_COUNTED: Final = "less what gateways counted"


Key = TypeVar("Key")


def since(before: Mapping[Key, int], after: Mapping[Key, int]) -> dict[Key, int]:
    """How far counters of one process advanced. One that went back counts from zero, since its process was restarted."""
    return {key: count - before.get(key, 0) if count >= before.get(key, 0) else count for key, count in after.items()}


def read_bytes(counted: CountedBytes) -> ReadBytes:
    """The bytes that clients read, by client id and topic."""
    read: dict[tuple[str, str], Counter[tuple[str, str]]] = {}
    for flow, size_bytes in counted.items():
        if flow.path is not TrafficPath.PRODUCE:
            of_client = read.setdefault((flow.client_id, flow.topic), Counter())
            of_client[flow.source_rack, flow.destination_rack] += size_bytes
    return read


def produced_flows(estimated: Sequence[TrafficFlow], counted: CountedBytes) -> tuple[TrafficFlow, ...]:
    """What gateways counted of produce, and of each estimate the part that is left."""
    measured = Counter[Link]()
    for flow, size_bytes in counted.items():
        if flow.path is TrafficPath.PRODUCE and flow.source_rack and flow.destination_rack and size_bytes:
            ends = RackId(flow.source_rack), RackId(flow.destination_rack)
            measured[Link(TrafficPath.PRODUCE, flow.topic, None, *ends, Basis.MEASURED, COUNTED)] += size_bytes
    of_topic, whole = Counter[str](), Counter[str]()
    for link, size_bytes in measured.items():
        of_topic[link.topic] += size_bytes
    for estimate in estimated:
        whole[estimate.link.topic] += estimate.size_bytes or 0
    left = [_less(each, of_topic[each.link.topic], whole[each.link.topic]) for each in estimated]
    return (
        *(TrafficFlow(link, size_bytes) for link, size_bytes in sorted(measured.items())),
        *(each for each in left if each.size_bytes != 0),
    )


def _less(flow: TrafficFlow, counted: int, whole: int) -> TrafficFlow:
    if not counted or flow.size_bytes is None:
        return flow
    left = flow.size_bytes * max(0, whole - counted) // whole
    return TrafficFlow(replace(flow.link, assumption=f"{flow.link.assumption}; {LESS_COUNTED}"), left)


def measured_flows(
    reads: GroupReads, every_group: Sequence[GroupDescription], counted: CountedBytes
) -> tuple[tuple[TrafficFlow, ...], GroupReads]:
    """What gateways counted of a group's members, and the reads that are left to be derived.

    `every_group` are all groups of the cluster: members of any of them may share a client id.
    """
    known = {
        key for key, of_topic in measured_reads(reads, every_group, read_bytes(counted)).items() if not of_topic.unknown
    }
    of_client = {member.member.client_id: member for member in reads.members}
    sums = Counter[Link]()
    for flow, size_bytes in counted.items():
        reader = of_client.get(flow.client_id)
        if flow.path is not TrafficPath.PRODUCE and reader and (reader.member.member_id, flow.topic) in known:
            ends = RackId(flow.source_rack), reader.rack or RackId(flow.destination_rack)
            sums[Link(flow.path, flow.topic, reads.group.group_id, *ends, Basis.MEASURED, COUNTED)] += size_bytes
    left = tuple(
        replace(
            member,
            reads=tuple(read for read in member.reads if (member.member.member_id, read.partition.topic) not in known),
        )
        for member in reads.members
    )
    flows = tuple(TrafficFlow(link, size_bytes) for link, size_bytes in sorted(sums.items()) if size_bytes)
    return flows, replace(reads, members=left)
