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
    """What makes one controller differ from another; it holds no state."""

    def thresholds(self, image: MetadataImage, settings: ClusterSettings, topic: str) -> Thresholds:
        """As every leader of the topic must count: the topic's value, else the cluster's."""
        return thresholds_of(image, settings, topic, None)

    def may_lead(self, image: MetadataImage, broker: BrokerId) -> bool:
        registered = image.brokers.get(broker)
        return registered is not None and registered.active

    def shut_down_cleanly(self, before: BrokerImage, registration: BrokerRegistration) -> bool:
        """Its clean-shutdown mark is from its last registration (KIP-966); without it the end of its logs may be lost."""
        mark = registration.previous_broker_epoch
        return mark != NO_EPOCH and mark == before.broker_epoch

    def is_new_attempt(self, last: int, request: AlterPartition) -> bool:
        """A rejected change may travel on in a retry: accepted late, it would put in sync who is no longer."""
        return request.attempt > last

    def is_current(self, state: PartitionState, change: IsrChange) -> bool:
        return change.partition_epoch == state.partition_epoch

    def may_join(self, image: MetadataImage, broker: BrokerId, broker_epoch: int) -> bool:
        """Alive, and the same process that the leader saw catch up (KIP-903)."""
        registered = image.brokers.get(broker)
        return registered is not None and registered.active and registered.broker_epoch == broker_epoch

    def changed(self, before: PartitionState, change: PartitionChange, conditions: Conditions) -> PartitionState:
        return changed(before, change, conditions)
