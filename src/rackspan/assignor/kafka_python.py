"""The plug-in for kafka-python 3: `KafkaConsumer(…, **in_rack("eu-1a"))`."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from kafka.cluster import ClusterMetadata
from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor, RebalanceProtocol
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

from rackspan.assignor.membership import Membership
from rackspan.assignor.replica_racks import Replicas, racks_of_brokers, readable_in
from rackspan.consumers import GroupMember
from rackspan.consumers.group import PROTOCOL
from rackspan.consumers.member_data import assignment_data, by_topic, read_member
from rackspan.model.ids import BrokerId, TopicPartition

SUBSCRIPTION_VERSION = 3
"""The first version with rackId, so that tools and other assignors find the rack in the protocol's own field."""


class KafkaPythonAssignor(AbstractPartitionAssignor):  # type: ignore[misc] # kafka-python publishes no types
    """Balance first, then the fewest partitions read across racks, then the fewest moves; proven at every rebalance.

    `client_rack` is the consumer's own. `followers` says whether brokers let consumers fetch from followers (KIP-392). Give all
    members of a group the same value: the group leader's counts. `cooperative` keeps reading during a rebalance
    (KIP-429); kafka-python then accepts no eager strategy beside it. One assignor for one consumer.
    """

    name = PROTOCOL

    def __init__(self, client_rack: str, *, followers: bool = True, cooperative: bool = False) -> None:
        self._membership = Membership(client_rack, cooperative=cooperative)
        self._followers = followers
        self._protocol = RebalanceProtocol.COOPERATIVE if cooperative else RebalanceProtocol.EAGER

    def supported_protocols(self) -> list[RebalanceProtocol]:
        return [self._protocol]

    def metadata(self, topics: Iterable[str]) -> ConsumerProtocolSubscription:
        return ConsumerProtocolSubscription(
            version=SUBSCRIPTION_VERSION,
            topics=sorted(topics),
            user_data=self._membership.user_data(),
            owned_partitions=[],
            generation_id=-1,
            rack_id=self._membership.client_rack or None,
        )

    def assign(self, cluster: ClusterMetadata, members: Sequence[Any]) -> dict[str, ConsumerProtocolAssignment]:
        joined = [_member(member.member_id, member.metadata) for member in members]
        racks = racks_of_brokers((broker.node_id, broker.rack) for broker in cluster.brokers())
        replicas = _replicas(cluster, {topic for member in joined for topic in member.topics})
        decision = self._membership.decide_rebalance(joined, readable_in(replicas, racks, followers=self._followers))
        return {
            member: ConsumerProtocolAssignment(
                0, list(by_topic(partitions).items()), assignment_data(decision.epoch, member)
            )
            for member, partitions in decision.assigned.items()
        }

    def on_assignment(self, assignment: ConsumerProtocolAssignment, generation: int) -> None:  # noqa: ARG002 - kafka-python's signature
        self._membership.on_assignment(assignment.partitions(), assignment.user_data)


def in_rack(
    client_rack: str, *, followers: bool = True, cooperative: bool = False, also: Sequence[Any] = ()
) -> Mapping[str, Any]:
    """Keyword arguments of KafkaConsumer: the rack and the strategy.

    `also` lists the strategies of members that run an older version, in order of preference: the group uses the first that
    all members offer. Every consumer makes its own assignor, so the same arguments may be used for many consumers.
    """
    strategy = partial(KafkaPythonAssignor, client_rack, followers=followers, cooperative=cooperative)
    return {"client_rack": client_rack, "partition_assignment_strategy": (strategy, *also)}


def _member(member_id: str, subscription: ConsumerProtocolSubscription) -> GroupMember:
    return read_member(member_id, subscription.topics, subscription.user_data, getattr(subscription, "rack_id", None))


def _replicas(cluster: ClusterMetadata, topics: Iterable[str]) -> dict[TopicPartition, Replicas]:
    """Replicas by partition. kafka-python's methods return replicas for one broker at a time; its private table has all."""
    return {
        TopicPartition(topic, partition.partition_index): Replicas(
            BrokerId(partition.leader_id), tuple(map(BrokerId, partition.replica_nodes))
        )
        for topic in topics
        for partition in cluster._partitions.get(topic, {}).values()
    }
