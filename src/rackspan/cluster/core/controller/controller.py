"""The controller's entry points: messages and clock ticks."""

from collections.abc import Callable, Mapping
from random import Random
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from rackspan.cluster.core.admin_messages import (
    AllocateProducerIds,
    AlterClientQuotas,
    AlterConfigs,
    AlterPartitionReassignments,
    AlterScramCredentials,
    CreatePartitions,
    CreateTopics,
    DeleteTopics,
    DescribeQuorum,
    DescribeQuorumResponse,
    ElectLeaders,
    Observer,
    ProducerIdBlock,
    UnregisterBroker,
)
from rackspan.cluster.core.controller.admin.alter_configs import alter_configs
from rackspan.cluster.core.controller.admin.client_quotas import alter_client_quotas
from rackspan.cluster.core.controller.admin.create_partitions import create_partitions
from rackspan.cluster.core.controller.admin.reassignments import alter_reassignments
from rackspan.cluster.core.controller.admin.scram_credentials import alter_scram_credentials
from rackspan.cluster.core.controller.admin.topics import create_topics, delete_topics
from rackspan.cluster.core.controller.alter_partition import alter_partition
from rackspan.cluster.core.controller.context import ControllerContext, Locate
from rackspan.cluster.core.controller.elections import elect, restore_preferred_leaders
from rackspan.cluster.core.controller.metadata_log import MetadataLog
from rackspan.cluster.core.controller.registrations import fence, fence_expired, heartbeat, register, unregister
from rackspan.cluster.core.controller.rules import ControllerRules
from rackspan.cluster.core.ids import NodeId
from rackspan.cluster.core.messages import (
    AlterPartition,
    BrokerHeartbeat,
    BrokerRegistration,
    Effect,
    FetchMetadata,
    Message,
    Respond,
    Warned,
)
from rackspan.cluster.core.metadata import MetadataImage, ProducerIdsAllocated
from rackspan.cluster.core.settings import ClusterSettings
from rackspan.model.ids import BrokerId
from rackspan.placement.cluster_placer import ClusterPlacer
from rackspan.placement.registry import configured_placer

if TYPE_CHECKING:
    from rackspan.placement import CheckedPlacer

PlacerOf: TypeAlias = "Callable[[Mapping[str, str], Random], CheckedPlacer]"
FromBroker: TypeAlias = Callable[[ControllerContext, int, NodeId, Any], list[Effect]]
FromClient: TypeAlias = Callable[[ControllerContext, int, Any], list[Effect]]


PRODUCER_ID_BLOCK: Final = 1_000


class ControllerCore:
    """One controller, never lost. `rng` is for topic ids and placements; `rules` are its decisions."""

    def __init__(
        self,
        settings: ClusterSettings,
        rng: Random,
        rules: ControllerRules | None = None,
        placer_of: PlacerOf = configured_placer,
        locate: Locate | None = None,
    ) -> None:
        log = MetadataLog(settings.metadata_max_wait_ms, settings.metadata_records_kept)
        placer = ClusterPlacer(settings.extra_configs, lambda configs: placer_of(configs, rng))
        self._context = ControllerContext(settings, rng, rules or ControllerRules(), log, placer, locate)

    def open(self) -> None:
        """Create and configure the placer. Errors: UsageError, ReplicaPlacementException; the cluster must not start then."""
        self._context.placer.open()

    def close(self) -> None:
        """Close the placer: no topic is created after this."""
        self._context.placer.close()

    @property
    def image(self) -> MetadataImage:
        return self._context.image

    def on_message(self, now: int, source: NodeId, message: Message) -> list[Effect]:
        """Handle a broker's message or a client's request. Messages that are not for a controller are dropped."""
        handle = _FROM_BROKERS.get(type(message))
        if handle is not None:
            return self._flushed(now, handle(self._context, now, source, message))
        administer = _FROM_CLIENTS.get(type(message))
        if administer is not None:
            return self._flushed(now, administer(self._context, now, message))
        return []

    def on_tick(self, now: int) -> list[Effect]:
        fence_expired(self._context, now)
        restore_preferred_leaders(self._context, now)
        return self._flushed(now, [])

    def fence(self, now: int, broker: BrokerId) -> list[Effect]:
        """Fence a broker at once, as if its session had run out: a fault for tests."""
        fence(self._context, broker)
        return self._flushed(now, [])

    def _flushed(self, now: int, effects: list[Effect]) -> list[Effect]:
        """The effects, with responses to brokers that wait for metadata, and warnings."""
        effects.extend(self._context.log.responses(now))
        if self._context.warnings:
            effects.extend(Warned(warning) for warning in self._context.warnings)
            self._context.warnings.clear()
        return effects


def _fetch_metadata(context: ControllerContext, now: int, source: NodeId, message: FetchMetadata) -> list[Effect]:
    return context.log.fetch(now, source, message)


def _allocate_producer_ids(context: ControllerContext, _now: int, message: AllocateProducerIds) -> list[Effect]:
    """A block of producer ids, never given twice (KIP-730)."""
    first = context.image.next_producer_id
    context.write(ProducerIdsAllocated(first + PRODUCER_ID_BLOCK))
    return [Respond(message.correlation_id, ProducerIdBlock(first, PRODUCER_ID_BLOCK))]


def _describe_quorum(context: ControllerContext, now: int, message: DescribeQuorum) -> list[Effect]:
    """The length of the metadata log, and how far each broker has read it (KIP-595)."""
    observers = (
        Observer(broker, session.metadata_offset, session.last_heartbeat_ms)
        for broker, session in sorted(context.sessions.items())
    )
    return [Respond(message.correlation_id, DescribeQuorumResponse(context.image.offset, now, tuple(observers)))]


_FROM_BROKERS: Final[Mapping[type[Message], FromBroker]] = {
    BrokerRegistration: register,
    BrokerHeartbeat: heartbeat,
    FetchMetadata: _fetch_metadata,
    AlterPartition: alter_partition,
}
_FROM_CLIENTS: Final[Mapping[type[Message], FromClient]] = {
    CreateTopics: create_topics,
    DeleteTopics: delete_topics,
    CreatePartitions: create_partitions,
    AlterConfigs: alter_configs,
    AlterScramCredentials: alter_scram_credentials,
    AlterClientQuotas: alter_client_quotas,
    ElectLeaders: elect,
    AlterPartitionReassignments: alter_reassignments,
    AllocateProducerIds: _allocate_producer_ids,
    UnregisterBroker: unregister,
    DescribeQuorum: _describe_quorum,
}
