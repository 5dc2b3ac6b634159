"""The controller's decisions, each a method: a test that plants a mistake overrides one."""

from rackspan.acks import Thresholds
from rackspan.cluster.core.configs import thresholds_of
from rackspan.cluster.core.controller.partition_change import Conditions, PartitionChange, changed
from rackspan.cluster.core.ids import NO_EPOCH
from rackspan.cluster.core.messages import AlterPartition, BrokerRegistration, IsrChange
from rackspan.cluster.core.metadata import BrokerImage, MetadataImage, PartitionState
from rackspan.cluster.core.settings import ClusterSettings
from rackspan.model.ids import BrokerId


class ControllerRules:
    """The controller's decisions. Without state."""

    def thresholds(self, image: MetadataImage, settings: ClusterSettings, topic: str) -> Thresholds:
        """The thresholds that every leader of the topic counts by: the topic's value, else the cluster's."""
        return thresholds_of(image, settings, topic, None)

    def may_lead(self, image: MetadataImage, broker: BrokerId) -> bool:
        registered = image.brokers.get(broker)
        return registered is not None and registered.active

    def shut_down_cleanly(self, before: BrokerImage, registration: BrokerRegistration) -> bool:
        """Whether the clean-shutdown mark is of its last registration (KIP-966). If not, the end of its logs may be lost."""
        mark = registration.previous_broker_epoch
        return mark != NO_EPOCH and mark == before.broker_epoch

    def is_new_attempt(self, last: int, request: AlterPartition) -> bool:
        """Whether the request is newer than the last. A rejected change may arrive again in a retry; accepted late, it would add
        members that are no longer in sync."""
        return request.attempt > last

    def is_current(self, state: PartitionState, change: IsrChange) -> bool:
        return change.partition_epoch == state.partition_epoch

    def may_join(self, image: MetadataImage, broker: BrokerId, broker_epoch: int) -> bool:
        """Whether the broker is alive, and the process that caught up with the leader (KIP-903)."""
        registered = image.brokers.get(broker)
        return registered is not None and registered.active and registered.broker_epoch == broker_epoch

    def changed(self, before: PartitionState, change: PartitionChange, conditions: Conditions) -> PartitionState:
        return changed(before, change, conditions)
