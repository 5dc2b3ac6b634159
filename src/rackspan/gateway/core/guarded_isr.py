"""Metrics of the ISRs of guarded partitions, from metadata (min.insync.racks, New Monitoring)."""

from collections.abc import Mapping

from rackspan.acks.metrics import partition_values
from rackspan.acks.min_insync_racks import RackBits
from rackspan.gateway.core.policies import Policies
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model import BrokerId
from rackspan.wire.messages.metadata import MetadataResponseData

Partitions = list[tuple[str, int, Mapping[str, int]]]
"""Topic, partition number and metrics of each."""


def partitions_by_leader(
    metadata: MetadataResponseData, policies: Policies, racks: RackBits
) -> dict[BrokerId, Partitions]:
    """The partitions of `metadata` that require more than one rack, by leader: -1 for those without one."""
    by_leader: dict[BrokerId, Partitions] = {}
    for topic in metadata.topics:
        if topic.error_code not in (ErrorCode.NONE, ErrorCode.LEADER_NOT_AVAILABLE) or topic.name is None:
            continue
        for partition in topic.partitions:
            requirement = policies.requirement(topic.name, partition.leader_id)
            if requirement is not None:
                isr_racks = racks.count(map(BrokerId, partition.isr_nodes))
                values = partition_values(isr_racks, requirement.thresholds.min_insync_racks)
                led = by_leader.setdefault(BrokerId(partition.leader_id), [])
                led.append((topic.name, partition.partition_index, values))
    return by_leader
