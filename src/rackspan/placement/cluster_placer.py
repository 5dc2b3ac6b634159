"""The placer of a cluster (KIP-660): created and configured once, used for every topic, closed at the end.

The embedded controller and the gateway place by it. `balanced` is configured before every placement, since it uses the brokers'
load. The proposal permits that ("via an external mean").
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from rackspan.errors import InvalidPartitions, InvalidReplicationFactor, PartialRacks, RackspanError
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.placement.rack_modes import RACK_AWARE_CONFIG, RackAwareMode, aware
from rackspan.placement.registry import BROKER_DEFAULT, PLACER_CLASS_CONFIG
from rackspan.placement.usable_brokers import UsableBroker, refuse_factor
from rackspan.text import noun_and_ids

if TYPE_CHECKING:
    from rackspan.placement.placer import CheckedPlacer, TopicAssignment

log = logging.getLogger(__name__)

LOAD_AWARE: Final = frozenset({"balanced"})

NEW_PARTITIONS_MAX: Final = 10_000
"""Kafka's MAX_PARTITIONS_PER_BATCH: one request must not keep the controller from everything else."""


class ClusterPlacer:
    """`make` returns a placer that is configured with the given configs."""

    def __init__(self, configs: Mapping[str, str], make: "Callable[[Mapping[str, str]], CheckedPlacer]") -> None:
        self.configs = configs
        self._make = make
        self._placer: CheckedPlacer | None = None

    @property
    def name(self) -> str:
        """The value of `replica.placer.class.name`."""
        return self.configs.get(PLACER_CLASS_CONFIG, BROKER_DEFAULT)

    def open(self) -> None:
        """Create the placer now and not with the first topic. Errors: UsageError, ReplicaPlacementException.

        The default placer cannot fail, so that it is created with the first topic: importing it takes time.
        """
        if self.name != BROKER_DEFAULT:
            self._created()

    def place(
        self,
        start_partition: int,
        partitions: int,
        replication_factor: int,
        brokers: Sequence[UsableBroker],
        load: Callable[[], Mapping[str, str]],
        *,
        automatic: bool,
    ) -> "TopicAssignment":
        """Place partitions of one topic on the registered `brokers`; `load` returns their load as configs.

        Errors: ReplicaPlacementException; UsageError for a placer that does not exist.
        """
        refuse_factor(brokers, replication_factor)
        if automatic and not aware(brokers, RackAwareMode.SAFE):
            # KIP-36: with partial racks as if there were none, under every placer. A broker upgrade then goes on.
            brokers = tuple(replace(broker, rack=None) for broker in brokers)
        placer = self._created()
        if self.name in LOAD_AWARE:
            placer.configure({**load(), **self.configs})
        try:
            return placer.place(start_partition, partitions, replication_factor, brokers)
        except PartialRacks as error:
            # In Kafka's words the remedy is an option that no client of a cluster has.
            rackless = noun_and_ids("broker", [broker.id for broker in brokers if broker.rack is None])
            raise PartialRacks(
                f"Not all brokers have rack information, and {self.name} requires it. No rack: {rackless}. Set broker.rack there, or "
                f"{RACK_AWARE_CONFIG} to safe or disabled where the placer is configured (placement.configs.{RACK_AWARE_CONFIG} in a gateway's file)"
            ) from error

    def close(self) -> None:
        """Close the placer: no topic is created after this. One that fails is logged, and what closes it goes on, as in Kafka."""
        placer, self._placer = self._placer, None
        if placer is not None:
            try:
                placer.close()
            except Exception:
                log.exception("%s could not be closed", self.name)

    def _created(self) -> "CheckedPlacer":
        if self._placer is None:
            self._placer = self._make(self.configs)
        return self._placer


class PlacementRefusal(NamedTuple):
    """Why a topic got no replicas, for a client."""

    code: ErrorCode
    message: str


def refusal_of(error: RackspanError, replication_factor: int) -> PlacementRefusal:
    """Kafka's code for the error if it has one, else the proposal's (KIP-660, Public Interfaces 4)."""
    if isinstance(error, InvalidReplicationFactor):
        message = f"Unable to replicate the partition {replication_factor} time(s): {error}"
        return PlacementRefusal(ErrorCode.INVALID_REPLICATION_FACTOR, message)
    if isinstance(error, InvalidPartitions):
        return PlacementRefusal(ErrorCode.INVALID_PARTITIONS, str(error))
    return PlacementRefusal(ErrorCode.REPLICA_PLACEMENT_FAILED, str(error))
