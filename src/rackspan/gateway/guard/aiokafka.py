"""GuardedAIOKafkaProducer: aiokafka's AIOKafkaProducer, whose acknowledgements come after the racks were counted."""

import asyncio
import time
from collections.abc import Mapping
from typing import Any, Final

from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

from rackspan.errors import RetriableProduceError
from rackspan.gateway.guard.judge import (
    KEPT_SECONDS,
    RETRIES,
    SETTLE_SECONDS,
    RackJudge,
    TopicIsr,
    refuse_weak_acks,
    topic_isr,
    unverified,
)

_CONNECTION: Final = ("bootstrap_servers", "client_id", "security_protocol", "ssl_context", "request_timeout_ms")


class GuardedAIOKafkaProducer:
    """`config` is aiokafka's; `min_insync_racks` gives the racks required by topic. Used between `start` and `stop`."""

    def __init__(
        self, min_insync_racks: Mapping[str, int], *, settle_seconds: float = SETTLE_SECONDS, **config: Any
    ) -> None:
        """Errors: UsageError for acks other than all."""
        refuse_weak_acks(config, "acks")
        self._judge = RackJudge(min_insync_racks)
        self._producer = AIOKafkaProducer(**{**config, "acks": "all"})
        of_admin = {key: value for key, value in config.items() if key.startswith("sasl_") or key in _CONNECTION}
        self._admin = AIOKafkaAdminClient(**of_admin)
        self._settle = settle_seconds
        self._kept: dict[str, tuple[float, TopicIsr]] = {}
        self._reading = asyncio.Lock()

    async def start(self) -> None:
        await self._producer.start()
        await self._admin.start()

    async def stop(self) -> None:
        await self._producer.stop()
        await self._admin.close()

    async def send_and_wait(
        self, topic: str, value: bytes | None = None, key: bytes | None = None, partition: int | None = None
    ) -> Any:
        """The record's metadata. Errors: NotEnoughRacks, NotEnoughRacksAfterAppend, and those of the client."""
        if not self._judge.requires(topic):
            return await self._producer.send_and_wait(topic, value, key=key, partition=partition)
        error = self._judge.before(
            topic, partition, await self._requested_after(topic, time.monotonic() - KEPT_SECONDS)
        )
        if error is not None:
            raise error
        metadata = await self._producer.send_and_wait(topic, value, key=key, partition=partition)
        acknowledged_at = time.monotonic()
        error = await self._verified(topic, metadata.partition, acknowledged_at)
        if error is not None:
            raise error
        return metadata

    async def _verified(self, topic: str, partition: int, acknowledged_at: float) -> RetriableProduceError | None:
        for left in reversed(range(RETRIES)):
            await asyncio.sleep(self._settle)
            try:
                isr = await self._requested_after(topic, acknowledged_at + self._settle)
            except KafkaError as failure:
                if not left:
                    return unverified(topic, partition, failure)
            else:
                return self._judge.after(topic, partition, isr)
        return None

    async def _requested_after(self, topic: str, not_before: float) -> TopicIsr:
        """Metadata that was requested at that time or later; one request serves all that wait for it."""
        async with self._reading:
            known = self._kept.get(topic)
            if known is not None and known[0] >= not_before:
                return known[1]
            requested_at = time.monotonic()
            (described,) = await self._admin.describe_topics([topic])
            cluster = await self._admin.describe_cluster()
            racks = {broker["node_id"]: broker["rack"] for broker in cluster["brokers"]}
            isr = topic_isr(racks, {one["partition"]: one["isr"] for one in described["partitions"]})
            self._kept[topic] = (requested_at, isr)
            return isr
