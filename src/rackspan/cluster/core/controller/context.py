"""The controller's state, which every kind of request reads and changes."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import TypeAlias

from rackspan.cluster.core.controller.metadata_log import MetadataLog
from rackspan.cluster.core.controller.partition_change import Conditions, PartitionChange
from rackspan.cluster.core.controller.placement.broker_load import BrokerLoad
from rackspan.cluster.core.controller.rules import ControllerRules
from rackspan.cluster.core.metadata import MetadataImage, PartitionSet, PartitionState, Record
from rackspan.cluster.core.settings import ClusterSettings
from rackspan.model import Broker, BrokerId, RackId, TopicPartition
from rackspan.placement.cluster_placer import ClusterPlacer

Locate: TypeAlias = Callable[[Sequence[Broker]], Mapping[BrokerId, RackId]]
"""Rack by broker, called at every creation (KIP-36, draft: RackLocator.getRackInfo)."""


@dataclass(slots=True)
class Session:
    """What the controller keeps of a registered broker beside the metadata. Times in ms."""

    broker_epoch: int
    last_heartbeat_ms: int
    metadata_offset: int = -1
    last_attempt: int = -1
    """The newest AlterPartition of this broker epoch."""
    warned_of_racks: bool = False
    """Whether this start's warning about min.insync.racks was given, if there was one to give."""
    shutting_down_since: int | None = None
    """The metadata offset from which on it leads nothing; set by its request to shut down."""


@dataclass(slots=True)
class ControllerContext:
    """The controller's state. `settings` may be replaced while it runs: each value is read where it is used."""

    settings: ClusterSettings
    rng: Random
    rules: ControllerRules
    log: MetadataLog
    placer: ClusterPlacer
    locate: Locate | None = None
    broker_load: BrokerLoad = field(default_factory=BrokerLoad)
    sessions: dict[BrokerId, Session] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    warned: set[str] = field(default_factory=set)
    next_rebalance: int = 0

    @property
    def image(self) -> MetadataImage:
        return self.log.image

    def brokers_for_placement(self) -> Sequence[Broker]:
        """The brokers, in the racks of the locator if there is one, else in their registered racks."""
        brokers = self.image.model_brokers()
        if self.locate is None:
            return brokers
        racks = self.locate(brokers)
        return [replace(broker, rack=racks.get(broker.id)) for broker in brokers]

    def write(self, *records: Record) -> None:
        self.log.write(records)

    def write_all(self, records: Iterable[Record]) -> None:
        self.log.write(records)

    def warn_once(self, line: str) -> None:
        """Log a warning that holds for the whole run."""
        if line not in self.warned:
            self.warned.add(line)
            self.warnings.append(line)

    def conditions(self, topic: str, without: BrokerId | None = None) -> Conditions:
        """The conditions of a change in one of the topic's partitions. `without` may not lead, whatever the image has."""
        image = self.image
        return Conditions(
            may_lead=lambda broker: broker != without and self.rules.may_lead(image, broker),
            racks=image.racks,
            required=self.rules.thresholds(image, self.settings, topic),
            elr=self.settings.elr,
        )

    def change(
        self, partition: TopicPartition, state: PartitionState, change: PartitionChange, conditions: Conditions
    ) -> PartitionSet | None:
        """The record of a change; None if nothing changes."""
        after = self.rules.changed(state, change, conditions)
        return None if after is state else PartitionSet(partition, after)

    def partitions(self) -> Iterator[tuple[TopicPartition, PartitionState]]:
        for topic in self.image.topics.values():
            for index, state in enumerate(topic.partitions):
                yield TopicPartition(topic.name, index), state
