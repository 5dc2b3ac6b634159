"""The ISRs of guarded partitions, read from time to time for metrics. What is acknowledged does not depend on them."""

import asyncio
import logging
from collections.abc import Mapping
from typing import Final

from rackspan.acks.metrics import partition_values
from rackspan.acks.min_insync_racks import RackBits, rack_bits
from rackspan.errors import RackspanError
from rackspan.gateway.core.policies import Policies
from rackspan.gateway.upstream.cluster import UpstreamCluster
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model import BrokerId
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.metadata import MetadataRequestData, MetadataRequestTopic, MetadataResponseData

log = logging.getLogger(__name__)

READ_SECONDS: Final = 5.0
"""Between two reads."""

Partitions = list[tuple[str, int, Mapping[str, int]]]
"""Topic, partition number and metrics of each."""


class GuardedIsr:
    """The guarded partitions by leader as of the last read; None before the first, and after one that failed."""

    def __init__(self, cluster: UpstreamCluster, policies: Policies) -> None:
        self._cluster = cluster
        self._policies = policies
        self.by_leader: dict[BrokerId, Partitions] | None = None

    async def follow(self) -> None:
        """Read until cancelled."""
        while True:
            try:
                await self.read()
            except (OSError, RackspanError) as error:
                self.by_leader = None
                log.warning("the ISRs of guarded partitions could not be read for metrics: %s", error)
            await asyncio.sleep(READ_SECONDS)

    async def read(self) -> None:
        """Errors: OSError, RackspanError."""
        topics = None
        if not self._policies.guards_by_default:
            topics = [MetadataRequestTopic(name=topic) for topic in sorted(self._policies.guarded_topics())]
        if topics == []:
            self.by_leader = {}
            return
        connection = await self._cluster.any_connection()
        request = MetadataRequestData(topics=topics, allow_auto_topic_creation=False)
        metadata: MetadataResponseData = await connection.call(ApiKey.METADATA, request)
        self.by_leader = partitions_by_leader(metadata, self._policies, rack_bits(self._cluster.all_brokers()))


def partitions_by_leader(
    metadata: MetadataResponseData, policies: Policies, racks: RackBits
) -> dict[BrokerId, Partitions]:
    """The partitions of `metadata` that require more than one rack, by leader: -1 for those without one."""
    by_leader: dict[BrokerId, Partitions] = {}
    for topic in metadata.topics:
        if topic.error_code not in (ErrorCode.NONE, ErrorCode.LEADER_NOT_AVAILABLE) or topic.name is None:
            continue
        if topic.is_internal:
            # Brokers write it: nothing is refused there.
            continue
        for partition in topic.partitions:
            requirement = policies.requirement(topic.name, partition.leader_id)
            if requirement is not None:
                isr_racks = racks.count(map(BrokerId, partition.isr_nodes))
                values = partition_values(isr_racks, requirement.thresholds.min_insync_racks)
                led = by_leader.setdefault(BrokerId(partition.leader_id), [])
                led.append((topic.name, partition.partition_index, values))
    return by_leader
