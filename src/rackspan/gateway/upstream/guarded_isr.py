"""The ISRs of guarded partitions, and whether the brokers in them respond here: read from time to time for metrics and /readyz.

What is acknowledged does not depend on them.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import Final

from rackspan.acks.metrics import partition_values
from rackspan.acks.min_insync_racks import RackBits, rack_bits
from rackspan.acks.verification import Requirement
from rackspan.errors import OtherBroker, RackspanError, UnprovableBroker
from rackspan.gateway.core.policies import Policies
from rackspan.gateway.upstream.cluster import UpstreamCluster
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model import BrokerId
from rackspan.text import count_noun
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.metadata import (
    MetadataRequestData,
    MetadataRequestTopic,
    MetadataResponseData,
    MetadataResponsePartition,
)

log = logging.getLogger(__name__)

READ_SECONDS: Final = 5.0
"""Between two reads."""

RESPONSE_SECONDS: Final = 2.0
"""A broker that does not respond in this time counts as one whose log cannot be read."""

_MOST_NAMED: Final = 5

Partitions = list[tuple[str, int, Mapping[str, int]]]
"""Topic, partition number and metrics of each."""


class GuardedIsr:
    """The guarded partitions by leader as of the last read; None before the first, and after one that failed.

    `reads_brokers`: acknowledgements depend on what brokers respond to the gateway itself, as in modes verified and strict.
    """

    def __init__(self, cluster: UpstreamCluster, policies: Policies, *, reads_brokers: bool) -> None:
        self._cluster = cluster
        self._policies = policies
        self._reads_brokers = reads_brokers
        self.by_leader: dict[BrokerId, Partitions] | None = None
        self.stopped: Mapping[str, int] = {}
        """By topic, the partitions whose ISR has enough racks, in too few of which a broker responds to this gateway."""
        self._silent: tuple[int, ...] = ()
        """Brokers that do not respond, or whose responses do not count."""
        self._unproved: dict[int, str] = {}
        """Why responses do not count, by the broker whose address they are from."""

    async def follow(self) -> None:
        """Read until cancelled."""
        while True:
            try:
                await self.read()
            except (OSError, RackspanError) as error:
                self.by_leader, self.stopped = None, {}
                log.warning("the ISRs of guarded partitions could not be read for metrics: %s", error)
            await asyncio.sleep(READ_SECONDS)

    async def read(self) -> None:
        """Errors: OSError, RackspanError."""
        topics = None
        if not self._policies.guards_by_default:
            topics = [MetadataRequestTopic(name=topic) for topic in sorted(self._policies.guarded_topics())]
        if topics == []:
            self.by_leader, self.stopped, self._silent, self._unproved = {}, {}, (), {}
            return
        # First: requests to a broker that does not respond end its connection, and metadata is then read from another.
        self._silent = await self._brokers_without_response() if self._reads_brokers else ()
        connection = await self._cluster.any_connection()
        request = MetadataRequestData(topics=topics, allow_auto_topic_creation=False)
        metadata: MetadataResponseData = await connection.call(ApiKey.METADATA, request)
        racks = rack_bits(self._cluster.all_brokers())
        self.by_leader = partitions_by_leader(metadata, self._policies, racks)
        self.stopped = stopped_partitions(metadata, self._policies, racks, self._silent)

    async def _brokers_without_response(self) -> tuple[int, ...]:
        brokers = sorted(self._cluster.by_id)
        unproved: dict[int, str] = {}
        responds = await asyncio.gather(*(self._responds(broker, unproved) for broker in brokers))
        # Now: a warning that holds is there while the brokers are tried again.
        self._unproved = unproved
        return tuple(broker for broker, is_there in zip(brokers, responds, strict=True) if not is_there)

    async def _responds(self, broker: int, unproved: dict[int, str]) -> bool:
        """Whether it does. Into `unproved` comes why a response does not count."""
        nothing = MetadataRequestData(topics=[], allow_auto_topic_creation=False)
        try:
            async with asyncio.timeout(RESPONSE_SECONDS):
                connection = await self._cluster.connection(broker)
                await connection.call(ApiKey.METADATA, nothing, seconds=RESPONSE_SECONDS)
        except (OtherBroker, UnprovableBroker) as error:
            unproved[broker] = str(error)
            return False
        except (OSError, RackspanError):
            return False
        return True

    def warnings(self) -> Iterator[str]:
        """A sentence for each broker that is not proved, and one if topics are stopped by a link of this gateway."""
        for _, reason in sorted(self._unproved.items()):
            yield reason
        if self.stopped:
            without = [broker for broker in self._silent if broker not in self._unproved]
            brokers = without or self._silent
            what = (
                f"did not respond to this gateway in {RESPONSE_SECONDS:g} s"
                if without
                else "gave this gateway no proof"
            )
            topics = sorted(self.stopped)
            named = ", ".join(topics[:_MOST_NAMED]) + (" and others" if len(topics) > _MOST_NAMED else "")
            yield (
                f"{'broker' if len(brokers) == 1 else 'brokers'} {', '.join(map(str, brokers))} {what}, so that acks=all is refused on {count_noun(sum(self.stopped.values()), 'partition')} of {named}, whose "
                "ISR has enough racks; look at the link to them, and let clients use another gateway meanwhile"
            )


def partitions_by_leader(
    metadata: MetadataResponseData, policies: Policies, racks: RackBits
) -> dict[BrokerId, Partitions]:
    """The partitions of `metadata` that require more than one rack, by leader: -1 for those without one."""
    by_leader: dict[BrokerId, Partitions] = {}
    for topic, partition, requirement in _guarded(metadata, policies):
        min_racks = requirement.thresholds.min_insync_racks
        isr_racks = racks.count(map(BrokerId, partition.isr_nodes))
        led = by_leader.setdefault(BrokerId(partition.leader_id), [])
        led.append((topic, partition.partition_index, partition_values(isr_racks, min_racks)))
    return by_leader


def stopped_partitions(
    metadata: MetadataResponseData, policies: Policies, racks: RackBits, silent: Collection[int]
) -> dict[str, int]:
    """By topic, the partitions that have enough racks in sync, and too few without the brokers that do not respond.

    Without its leader's response nothing is verified. Partitions with too few racks in sync are not counted: they are under their
    minimum for every reader. Nor are those with fail_open, which are acknowledged if they cannot be verified.
    """
    stopped: Counter[str] = Counter()
    for topic, partition, requirement in _guarded(metadata, policies):
        if requirement.fail_open:
            continue
        min_racks = requirement.thresholds.min_insync_racks
        responding = [BrokerId(broker) for broker in partition.isr_nodes if broker not in silent]
        is_read = partition.leader_id not in silent and racks.count(responding) >= min_racks
        if not is_read and racks.count(map(BrokerId, partition.isr_nodes)) >= min_racks:
            stopped[topic] += 1
    return stopped


def _guarded(
    metadata: MetadataResponseData, policies: Policies
) -> Iterator[tuple[str, MetadataResponsePartition, Requirement]]:
    """The partitions that require more than one rack, each with its topic and its requirement."""
    for topic in metadata.topics:
        if topic.error_code not in (ErrorCode.NONE, ErrorCode.LEADER_NOT_AVAILABLE) or topic.name is None:
            continue
        if topic.is_internal:
            # Brokers write it: nothing is refused there.
            continue
        for partition in topic.partitions:
            requirement = policies.requirement(topic.name, partition.leader_id)
            if requirement is not None:
                yield topic.name, partition, requirement
