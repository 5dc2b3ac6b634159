"""The controller's state, which every kind of request reads and changes."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import TypeAlias

from rackspan.acks.config import ConfigVerdict, SetAt, judge_broker_config
from rackspan.cluster.core.configs import broker_value
from rackspan.cluster.core.controller.metadata_log import MetadataLog
from rackspan.cluster.core.controller.partition_change import Conditions, PartitionChange
from rackspan.cluster.core.controller.rules import ControllerRules
from rackspan.cluster.core.metadata import MetadataImage, PartitionSet, PartitionState, Record, TopicImage
from rackspan.cluster.core.settings import ClusterSettings
from rackspan.model import MIN_INSYNC_RACKS, Broker, BrokerId, RackId, TopicPartition
from rackspan.placement.cluster_placer import ClusterPlacer


class BrokerLoad:
    """Preferred leaders and replicas per broker as of the last `update`. Partitions under reassignment count for their targets.

    An image shares unchanged topics with the image before it, so that a topic has changed if it is another object.
    Bound: one comparison a topic, and the partitions of topics that changed.
    """

    __slots__ = ("_topics", "leaders", "replicas")

    def __init__(self) -> None:
        self.leaders: Counter[BrokerId] = Counter()
        self.replicas: Counter[BrokerId] = Counter()
        self._topics: Mapping[str, TopicImage] = {}

    def update(self, topics: Mapping[str, TopicImage]) -> None:
        """Count the topics of a newer image. `topics` must not be changed afterwards."""
        before, self._topics = self._topics, topics
        for name, topic in topics.items():
            known = before.get(name)
            if known is not topic:
                self._count(topic, 1)
                self._count(known, -1)
        for deleted in before.keys() - topics.keys():
            self._count(before[deleted], -1)

    def _count(self, topic: TopicImage | None, times: int) -> None:
        for state in () if topic is None else topic.partitions:
            staying = [broker for broker in state.replicas if broker not in state.removing]
            self.leaders[staying[0]] += times
            for broker in staying:
                self.replicas[broker] += times


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


def judge_min_insync_racks(
    context: ControllerContext, image: MetadataImage, at: SetAt, broker: BrokerId, rack: RackId | None
) -> ConfigVerdict:
    """The verdict on the value that `image` gives to the broker, which need not be registered yet.

    A value above 1 requires a rack of every broker that it applies to (min.insync.racks, Validation). The one in effect counts:
    the broker's own dynamic value over the cluster-wide one over the static one.
    """
    value = broker_value(image, context.settings, MIN_INSYNC_RACKS, broker).value or "1"
    others = [other for other in image.model_brokers() if other.id != broker]
    return judge_broker_config(value, at, rack, [*others, Broker(broker, rack)])
