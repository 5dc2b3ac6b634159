"""The state that all parts of one broker share, and what they read from its metadata."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from rackspan.acks import RackBits, Thresholds
from rackspan.acks.metrics import leader_values
from rackspan.cluster.core.broker.lifecycle import Lifecycle
from rackspan.cluster.core.broker.record_validation import RECORD_CONFIG_KEYS, RecordConfig
from rackspan.cluster.core.broker.rules import BrokerRules
from rackspan.cluster.core.configs import thresholds_of, topic_value
from rackspan.cluster.core.disk import Disk
from rackspan.cluster.core.ids import TopicId
from rackspan.cluster.core.log import COMPACTION_KEYS, CompactionConfig, PartitionLog
from rackspan.cluster.core.messages import Effect
from rackspan.cluster.core.metadata import EMPTY_IMAGE, MetadataImage
from rackspan.cluster.core.settings import ClusterSettings
from rackspan.model.ids import BrokerId, RackId, TopicPartition
from rackspan.model.topic import parse_config_list

TrafficKey = tuple[str, RackId | None, RackId | None]
"""Topic, the leader's rack, the follower's rack."""


@dataclass(slots=True)
class Counters:
    """Since the broker started, or the cluster was reset. `replicated_bytes` counts what followers fetched, within a rack too."""

    rack_check_failures: int = 0
    """Produces refused for want of racks, those that timed out waiting for racks included (RackCheckFailureRate)."""
    replicated_bytes: Counter[TrafficKey] = field(default_factory=Counter)

    def clear(self) -> None:
        self.rack_check_failures = 0
        self.replicated_bytes.clear()


def broker_metrics(partitions: Iterable[dict[str, int]], counters: Counters) -> dict[str, int]:
    """The metrics of a broker, from those of each partition that it leads."""
    return {**leader_values(list(partitions)), "rackspan_rack_check_failures_total": counters.rack_check_failures}


@dataclass(frozen=True, slots=True)
class LeaderConfig:
    """A leader's configs and racks, as of the metadata. Sizes in bytes; `retained_bytes` None keeps everything.

    `bounded_by_cluster`: it is the cluster's bound on a log, below the topic's own. `retention_ms` None keeps any age.
    """

    required: Thresholds
    racks: RackBits
    max_message_bytes: int
    retained_bytes: int | None
    bounded_by_cluster: bool = False
    retention_ms: int | None = None


@dataclass(slots=True)
class BrokerState:
    """`image` is the broker's own, which may be stale. `effects` collects those of the message being handled."""

    id: BrokerId
    settings: ClusterSettings
    disk: Disk
    rules: BrokerRules
    lifecycle: Lifecycle
    counters: Counters = field(default_factory=Counters)
    image: MetadataImage = EMPTY_IMAGE
    effects: list[Effect] = field(default_factory=list)
    _configs: dict[str, LeaderConfig] = field(default_factory=dict)
    _record_configs: dict[str, RecordConfig] = field(default_factory=dict)
    _record_configs_image: MetadataImage = EMPTY_IMAGE

    @property
    def broker_epoch(self) -> int:
        return self.lifecycle.broker_epoch

    def rack_of(self, broker: BrokerId) -> RackId | None:
        registered = self.image.brokers.get(broker)
        return None if registered is None else registered.rack

    def log(self, partition: TopicPartition, topic_id: TopicId) -> PartitionLog:
        """The log on the disk, or a new one: a deleted topic's log is not its namesake's."""
        log = self.disk.logs.get(partition)
        if log is None or log.topic_id != topic_id:
            log = self.disk.logs[partition] = PartitionLog(topic_id)
        return log

    def leader_config(self, topic: str) -> LeaderConfig:
        """The config of every partition of the topic led here; kept until the configs or the racks change."""
        config = self._configs.get(topic)
        if config is None:
            config = self._configs[topic] = self._read_config(topic)
        return config

    def record_config(self, topic: str) -> RecordConfig:
        """What the topic's configs require of records; computed once an image."""
        if self._record_configs_image is not self.image:
            self._record_configs_image, self._record_configs = self.image, {}
        config = self._record_configs.get(topic)
        if config is None:
            values = {
                key: topic_value(self.image, self.settings, topic, key, self.id).value for key in RECORD_CONFIG_KEYS
            }
            config = self._record_configs[topic] = RecordConfig.of(values)
        return config

    def compaction_config(self, topic: str) -> CompactionConfig | None:
        """How the topic's logs are compacted; None where they are not."""
        if topic not in self.image.topics or not self.record_config(topic).compacted:
            return None
        values = {key: topic_value(self.image, self.settings, topic, key, self.id).value for key in COMPACTION_KEYS}
        return CompactionConfig.of(values)

    def forget_config(self, topic: str) -> None:
        """Read one topic's configs again at their next use."""
        self._configs.pop(topic, None)

    def forget_configs(self) -> None:
        """Read the configs again at their next use."""
        self._configs.clear()

    def _read_config(self, topic: str) -> LeaderConfig:
        def number(key: str) -> int:
            return int(topic_value(self.image, self.settings, topic, key, self.id).value or 0)

        limit, retention, retention_ms = self.settings.log_max_bytes, number("retention.bytes"), number("retention.ms")
        compacted = self.is_kept_whole(topic)
        return LeaderConfig(
            thresholds_of(self.image, self.settings, topic, self.id),
            self.image.racks,
            number("max.message.bytes"),
            None if compacted else limit if retention < 0 else min(limit, retention),
            not compacted and not 0 <= retention <= limit,
            None if compacted or retention_ms < 0 else retention_ms,
        )

    def is_kept_whole(self, topic: str) -> bool:
        """A compacted topic holds the latest record of every key, however old. Coordinators read theirs from the start."""
        policy = topic_value(self.image, self.settings, topic, "cleanup.policy", self.id).value or ""
        return set(parse_config_list(policy)) == {"compact"}
