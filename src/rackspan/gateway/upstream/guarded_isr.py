"""The ISRs of guarded partitions, read from time to time for metrics. What is acknowledged does not depend on them."""

import asyncio
import logging
from typing import Final

from rackspan.acks.min_insync_racks import rack_bits
from rackspan.errors import RackspanError
from rackspan.gateway.core.guarded_isr import Partitions, partitions_by_leader
from rackspan.gateway.core.policies import Policies
from rackspan.gateway.upstream.cluster import UpstreamCluster
from rackspan.model import BrokerId
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.metadata import MetadataRequestData, MetadataRequestTopic, MetadataResponseData

log = logging.getLogger(__name__)

READ_SECONDS: Final = 5.0
"""Between two reads."""


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
            except (OSError, TimeoutError, RackspanError) as error:
                self.by_leader = None
                log.warning("the ISRs of guarded partitions could not be read for metrics: %s", error)
            await asyncio.sleep(READ_SECONDS)

    async def read(self) -> None:
        """Errors: OSError, TimeoutError, RackspanError."""
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
