"""Writes records to the config topic: each is acknowledged, held by replicas on enough racks, and replayed here."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

from rackspan.acks.isr_samples import LogRead
from rackspan.acks.min_insync_racks import rack_bits
from rackspan.acks.verification import AcknowledgedRecord
from rackspan.client.connection import BrokerConnection, first
from rackspan.client.observations import read_log_ends
from rackspan.errors import ClusterRequestFailed, ClusterUnreachable, RackspanError
from rackspan.gateway.core.config_lease import EndReading, replicas_to_hold
from rackspan.gateway.upstream.cluster import UpstreamCluster
from rackspan.gateway.upstream.config_ends import read_end
from rackspan.gateway.upstream.config_leader import LOOKUP_SECONDS, ConfigLeader, Lead
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.kafka_bytes.record_batch import write_batch
from rackspan.model import BrokerId
from rackspan.text import count_noun, noun_and_ids
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.produce import PartitionProduceData, ProduceRequestData, TopicProduceData

WRITE_SECONDS: Final = 15.0

_PRODUCE_MS: Final = 5_000
_PRODUCE_VERSION: Final = 12
"""The last that names topics by name."""

_BACKOFF_SECONDS: Final = 0.1

Replayed = Callable[[int], Awaitable[None]]
"""Returns when the record at an offset is replayed."""


class ConfigWriter:
    """Writes one record at a time, on a connection of its own to the leader."""

    def __init__(self, leader: ConfigLeader, cluster: UpstreamCluster) -> None:
        self._leader = leader
        self._cluster = cluster
        self._connection: tuple[int, BrokerConnection] | None = None
        self._writing = asyncio.Lock()

    async def write(self, key: bytes, value: bytes | None, racks: int, replayed: Replayed) -> None:
        """Returns when the record is committed, held by replicas on so many racks, and replayed here.

        Without that a value could be lost with one rack, and every gateway that starts later would not require it.
        Errors: ClusterRequestFailed, ClusterUnreachable.
        """
        reasons: list[str] = []
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(None) as limit:

                def begin() -> None:
                    """From its own turn on: a request may set hundreds of values."""
                    if limit.when() is None:
                        limit.reschedule(loop.time() + WRITE_SECONDS)

                while True:
                    try:
                        lead, offset = await self.write_once(key, value, begin)
                        await self._held(lead, offset + 1, racks, reasons)
                    except (OSError, RackspanError) as error:
                        reasons.append(str(error))
                        self._drop()
                        await asyncio.sleep(_BACKOFF_SECONDS)
                        continue
                    await replayed(offset)
                    return
        except TimeoutError as error:
            raise ClusterUnreachable(
                f"the config topic {self._leader.topic} could not be written to {count_noun(racks, 'rack')} in {WRITE_SECONDS:g} s, or "
                f"not be read after that: {reasons[-1] if reasons else 'no response'}; look at its leader and ISR, and alter the value again"
            ) from error

    async def write_once(
        self, key: bytes, value: bytes | None, begin: Callable[[], None] = lambda: None
    ) -> tuple[Lead, int]:
        """Returns when the record is acknowledged with acks=all: the leader that appended it, and its offset. It is not tried again.

        `begin` is called when no other write is before it. Errors: OSError, RackspanError.
        """
        async with self._writing:
            begin()
            return await self._produce(key, value)

    async def _held(self, lead: Lead, end_offset: int, racks: int, reasons: list[str]) -> None:
        """Returns when logs show the record: of in-sync replicas on so many racks, and for more than one rack in `replicas_to_hold` of them.

        For a value above 1 no broker may be left that shows a log without the record because its metadata is from before its replica was removed.
        Errors: ClusterUnreachable for a new leader.
        """
        record = AcknowledgedRecord(BrokerId(lead.leader), lead.leader_epoch, end_offset)
        bits = rack_bits(self._cluster.all_brokers())
        read = LogRead((self._leader.topic, 0), lead.topic_id, lead.leader_epoch)
        needed = replicas_to_hold(len(lead.replicas))

        def is_held() -> bool:
            return record.is_held(lead.isr, bits, racks) and len(record.holders(lead.isr)) >= needed

        while racks > 1 and not is_held():
            for replica in set(lead.isr) - set(record.holders(lead.isr)):
                with suppress(OSError, RackspanError):
                    connection = await self._cluster.connection(replica)
                    ends, _ = await read_log_ends(connection, [read], LOOKUP_SECONDS)
                    record.observe(replica, lead.leader_epoch, ends.get(read))
            if not is_held():
                await asyncio.sleep(_BACKOFF_SECONDS)
                newer = await self._leader.find()
                if newer != lead:
                    raise ClusterUnreachable("its leader changed")
                lead = newer
        while racks > 1 and (earlier := await self._earlier_replicas(lead, end_offset)):
            verb = "shows" if len(earlier) == 1 else "show"
            reasons.append(f"{noun_and_ids('broker', earlier)} still {verb} a replica that was removed")
            await asyncio.sleep(_BACKOFF_SECONDS)

    async def unresponsive(self) -> list[int]:
        """The replicas in sync whose log ends cannot be read now: what is appended is not committed before they have it. Errors: RackspanError."""
        in_sync = sorted((await self._leader.find()).isr)
        readings = await asyncio.gather(*map(self._end_of, in_sync))
        return [replica for replica, reading in zip(in_sync, readings, strict=True) if reading is None]

    async def _earlier_replicas(self, lead: Lead, end_offset: int) -> list[int]:
        """Brokers that report themselves as replicas, are none, and do not have the record: a lease could begin by their logs."""
        others = sorted(self._cluster.by_id.keys() - set(lead.replicas))
        readings = await asyncio.gather(*map(self._end_of, others))
        return [reading.replica for reading in readings if reading is not None and reading.end_offset < end_offset]

    async def _end_of(self, broker: int) -> EndReading | None:
        try:
            async with asyncio.timeout(LOOKUP_SECONDS):
                return await read_end(await self._cluster.connection(broker), self._leader.topic, broker)
        except (OSError, RackspanError):
            return None

    async def _produce(self, key: bytes, value: bytes | None) -> tuple[Lead, int]:
        lead = await self._leader.find()
        leader = lead.leader
        if self._connection is None or self._connection[0] != leader or self._connection[1].is_over:
            self._drop()
            self._connection = leader, await self._leader.open(leader)
        connection = self._connection[1]
        batch = write_batch([(key, value)], time.time_ns() // 1_000_000)
        data = PartitionProduceData(index=0, records=memoryview(batch))
        request = ProduceRequestData(
            acks=-1, timeout=_PRODUCE_MS, topic_data=[TopicProduceData(name=self._leader.topic, partition_data=[data])]
        )
        version = connection.version(ApiKey.PRODUCE, _PRODUCE_VERSION)
        response = await connection.call(ApiKey.PRODUCE, request, version, _PRODUCE_MS / 1000 + 2)
        partition = first(first(response.responses, "topic").partition_responses, "partition")
        if partition.error_code != ErrorCode.NONE:
            raise ClusterRequestFailed(partition.error_message or f"error {partition.error_code}")
        return lead, int(partition.base_offset)

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection[1].close()
            self._connection = None

    def close(self) -> None:
        self._drop()
