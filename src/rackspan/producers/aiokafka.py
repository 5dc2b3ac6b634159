"""GuardedAIOKafkaProducer: aiokafka's AIOKafkaProducer, whose acknowledgements come after the racks were counted."""

from collections.abc import Mapping
from typing import Any

from aiokafka import AIOKafkaProducer

from rackspan.producers.logins import kafka_python_login, server_list
from rackspan.producers.verifier import VERIFY_SECONDS, RecordVerifier, refuse_weak_acks


class GuardedAIOKafkaProducer:
    """`config` is aiokafka's; `min_insync_racks` gives the racks required by topic. Used between `start` and `stop`."""

    def __init__(
        self, min_insync_racks: Mapping[str, int], *, verify_seconds: float = VERIFY_SECONDS, **config: Any
    ) -> None:
        """Errors: UsageError for acks other than all."""
        refuse_weak_acks(config, "acks")
        servers = server_list(config.get("bootstrap_servers", "localhost"))
        login = kafka_python_login({"sasl_mechanism": "PLAIN", **config})
        self._records = RecordVerifier(servers, login, min_insync_racks, seconds=verify_seconds)
        self._producer = AIOKafkaProducer(**{**config, "acks": "all"})

    async def start(self) -> None:
        await self._producer.start()

    async def stop(self) -> None:
        await self._producer.stop()
        self._records.close()

    async def send_and_wait(
        self, topic: str, value: bytes | None = None, key: bytes | None = None, partition: int | None = None
    ) -> Any:
        """The record's metadata. Errors: NotEnoughRacks, NotEnoughRacksAfterAppend, ClusterUnreachable, and those of the client."""
        if not self._records.requires(topic):
            return await self._producer.send_and_wait(topic, value, key=key, partition=partition)
        error = await self._records.before(topic, partition)
        if error is not None:
            raise error
        metadata = await self._producer.send_and_wait(topic, value, key=key, partition=partition)
        error = await self._records.verified(topic, metadata.partition, metadata.offset)
        if error is not None:
            raise error
        return metadata
