"""The parts of a gateway that applies min.insync.racks to acknowledgements, each complete when it is made."""

import asyncio
import logging
from collections.abc import Coroutine, Iterator
from typing import Any, Final

from rackspan.client.errors import message_of
from rackspan.client.observations import read_metadata
from rackspan.errors import ClusterUnreachable, RackspanError
from rackspan.gateway.backend import Backend
from rackspan.gateway.config import GatewayConfig
from rackspan.gateway.core.acknowledgement.guard import AcknowledgementGuard, AcknowledgementMode, GuardSettings
from rackspan.gateway.core.config_lease import LEASE_SECONDS
from rackspan.gateway.core.endpoints import Addresses
from rackspan.gateway.core.policies import Policies
from rackspan.gateway.handlers.produce import AdvisingHandler, ProduceHandler
from rackspan.gateway.handlers.refusals import PERIOD_SECONDS
from rackspan.gateway.upstream.config_ends import ConfigEndReader
from rackspan.gateway.upstream.config_topic import ConfigTopic
from rackspan.gateway.upstream.guard_readers import BrokerMetadata, CommittedMetadata, IsrSource
from rackspan.gateway.upstream.guarded_isr import GuardedIsr
from rackspan.gateway.upstream.quorum import MetadataQuorum
from rackspan.kafka_bytes.config_resources import ConfigResourceType
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model import MIN_INSYNC_REPLICAS
from rackspan.wire.apis import ApiKey
from rackspan.wire.messages.configs import DescribeConfigsRequestData, DescribeConfigsResource

log = logging.getLogger(__name__)

REPLICAS_SECONDS: Final = 5.0
"""Between two reads of min.insync.replicas, and of ids."""


class Guarding:
    """Everything that decides about Produce requests, and the metrics of ISRs.

    `config_topic` is None if the config has none, `quorum` if not in mode strict, `isr` if no metrics are served.
    """

    def __init__(
        self,
        backend: Backend,
        addresses: Addresses,
        config_topic: ConfigTopic | None,
        quorum: MetadataQuorum | None,
    ) -> None:
        config = backend.config
        self.config_topic = config_topic
        self.quorum = quorum
        self._backend = backend
        self._source: IsrSource = (
            BrokerMetadata(backend.cluster, backend.policies)
            if quorum is None
            else CommittedMetadata(quorum, backend.cluster, backend.policies)
        )
        settings = guard_settings(config)
        self.ends = config_topic.ends if config_topic is not None and settings.refuses_before else None
        """Keeps the lease on the values of the config topic, if that is there and anything is refused by them."""
        lease = None if self.ends is None else TopicLease(self.ends, backend.policies)
        self.guard = AcknowledgementGuard(settings, required=backend.policies.requirement, lease=lease)
        self.isr = (
            None
            if config.http is None
            else GuardedIsr(backend.cluster, backend.policies, reads_brokers=settings.checks_after)
        )
        handler = ProduceHandler if settings.refuses_before else AdvisingHandler
        self.produce = handler(self.guard, backend, addresses, self._source)
        if self.ends is not None:
            self.ends.renewed = self.produce.leased

    def reload(self, config: GatewayConfig) -> None:
        """Take over a config that was read again."""
        self.guard.settings = guard_settings(config)

    def tasks(self) -> Iterator[Coroutine[Any, Any, None]]:
        """The work that runs until the gateway ends."""
        if self.config_topic is not None:
            yield self.config_topic.follow()
        if self.ends is not None:
            yield self.ends.follow()
        if self.isr is not None:
            yield self.isr.follow()
        yield self._follow_replicas()
        yield self._backend.unenforced.follow()
        yield self._end_log_periods()

    async def _follow_replicas(self) -> None:
        """Read min.insync.replicas of guarded topics, which decides which of the two errors a refusal is, and the ids of topics with lower values."""
        while True:
            try:
                await self._read_topic_ids()
                await self._read_replicas()
            except (OSError, RackspanError) as error:
                log.warning("ids or min.insync.replicas of topics could not be read: %s", error)
            await asyncio.sleep(REPLICAS_SECONDS)

    async def _read_topic_ids(self) -> None:
        """Read the ids of topics whose own value lowers what they require: a topic that was created anew has not that value."""
        topics = self._backend.policies.lowering_topics()
        if not topics:
            return
        metadata = await read_metadata(await self._backend.cluster.any_connection(), topics)
        for topic in metadata.topics:
            if topic.error_code == ErrorCode.NONE and topic.name:
                self._backend.policies.record_topic(topic.name, topic.topic_id, asyncio.get_running_loop().time())

    async def _read_replicas(self) -> None:
        topics = self._backend.policies.guarded_topics()
        if not topics:
            return
        connection = await self._backend.cluster.any_connection()
        resources = [
            DescribeConfigsResource(
                resource_type=ConfigResourceType.TOPIC,
                resource_name=topic,
                configuration_keys=[MIN_INSYNC_REPLICAS],
            )
            for topic in topics
        ]
        response = await connection.call(ApiKey.DESCRIBE_CONFIGS, DescribeConfigsRequestData(resources=resources))
        self._backend.policies.record_min_insync_replicas(
            {
                result.resource_name: int(config.value)
                for result in response.results
                for config in result.configs
                if config.value
            }
        )

    async def _end_log_periods(self) -> None:
        while True:
            await asyncio.sleep(PERIOD_SECONDS)
            self.produce.refusals.end_period()

    def close(self) -> None:
        self.produce.close()
        if self.config_topic is not None:
            self.config_topic.close()
        self._source.close()


class TopicLease:
    """The lease on the values of the config topic, and what they may be."""

    def __init__(self, ends: ConfigEndReader, policies: Policies) -> None:
        self.is_current = ends.is_current
        self.is_raisable = policies.is_raisable


async def open_guarding(backend: Backend, addresses: Addresses) -> Guarding:
    """Read the config topic, and in mode strict the controllers' log, to their ends. Errors: RackspanError."""
    config = backend.config
    config_topic = None if config.config_topic is None else backend.config_topic(config.config_topic)
    try:
        if config_topic is not None:
            await config_topic.start()
            if guard_settings(config).refuses_before:
                await config_topic.ends.begin(LEASE_SECONDS)
        return Guarding(backend, addresses, config_topic, await _open_quorum(backend))
    except BaseException:
        if config_topic is not None:
            config_topic.close()
        raise


async def _open_quorum(backend: Backend) -> MetadataQuorum | None:
    if backend.config.mode is not AcknowledgementMode.STRICT:
        return None
    quorum = backend.quorum()
    try:
        await quorum.current()
    except OSError as error:
        quorum.close()
        raise ClusterUnreachable(f"the controllers' log cannot be read: {message_of(error)}") from error
    except BaseException:
        quorum.close()
        raise
    return quorum


def guard_settings(config: GatewayConfig) -> GuardSettings:
    return GuardSettings(
        mode=config.mode,
        max_staleness_seconds=config.max_staleness_ms / 1000,
        hold_memory_bytes=config.hold_memory_bytes,
    )
