"""GuardedAIOKafkaProducer: aiokafka's AIOKafkaProducer, whose acknowledgements come after the racks were counted."""

from collections.abc import Mapping
from typing import Any, Final

from aiokafka import AIOKafkaProducer

from rackspan.client.identity import IdentityMode, identity_of
from rackspan.ends import awaited_within
from rackspan.producers.logins import kafka_python_login, server_list
from rackspan.producers.verifier import VERIFY_SECONDS, RecordVerifier, refuse_weak_acks
from rackspan.producers.waiting import copied

STOP_SECONDS: Final = 60.0
"""aiokafka sends what it holds before it stops, or lets it expire."""


class GuardedAIOKafkaProducer:
    """`config` is aiokafka's; `min_insync_racks` gives the racks required by topic. Used between `start` and `stop`."""

    def __init__(
        self,
        min_insync_racks: Mapping[str, int],
        *,
        verify_seconds: float = VERIFY_SECONDS,
        broker_identity: str = IdentityMode.PROVED.value,
        **config: Any,
    ) -> None:
        """Errors: UsageError for acks other than all."""
        refuse_weak_acks(config, "acks")
        servers = server_list(config.get("bootstrap_servers", "localhost"))
        login = kafka_python_login({"sasl_mechanism": "PLAIN", **config})
        identity = identity_of("broker_identity", broker_identity)
        self._records = RecordVerifier(servers, login, min_insync_racks, seconds=verify_seconds, identity=identity)
        self._serializers = {name: config.pop(f"{name}_serializer", None) or _as_given for name in ("key", "value")}
        self._producer = AIOKafkaProducer(**{**config, "acks": "all"})
        self._unacknowledged = 0
        """Calls of `send_and_wait` that have not returned."""

    async def start(self) -> None:
        """May be called again after an error. Errors: UnprovableBroker and OtherBroker, unless `broker_identity` is "address"; those of the client."""
        try:
            await self._records.start_now()
        except BaseException:
            self._records.close()
            raise
        await self._producer.start()

    async def stop(self) -> None:
        """Returns when every record was delivered, after STOP_SECONDS at most."""
        try:
            end = self._producer.stop()
            await awaited_within("AIOKafkaProducer", end, STOP_SECONDS, unacknowledged=lambda: self._unacknowledged)
        finally:
            self._records.close()

    async def send_and_wait(self, topic: str, value: Any = None, key: Any = None, partition: int | None = None) -> Any:
        """The record's metadata. Errors: NotEnoughRacks, NotEnoughRacksAfterAppend, ClusterUnreachable, TypeError, and those of the client."""
        # Before anything is awaited: another coroutine may change what is given here.
        value, key = (copied(name, self._serializers[name](given)) for name, given in (("value", value), ("key", key)))
        self._unacknowledged += 1
        try:
            return await self._send_and_wait(topic, value, key, partition)
        finally:
            self._unacknowledged -= 1

    async def _send_and_wait(self, topic: str, value: bytes | None, key: bytes | None, partition: int | None) -> Any:
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


def _as_given(given: Any) -> Any:
    return given
