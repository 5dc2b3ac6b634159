"""The plug-in for aiokafka: `AIOKafkaConsumer(…, **in_rack("eu-1a"))`."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from aiokafka.cluster import ClusterMetadata
from aiokafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment, ConsumerProtocolMemberMetadata

from rackspan.assignor.membership import Membership
from rackspan.assignor.replica_racks import Replicas, racks_of_brokers, readable_in
from rackspan.consumers.group import PROTOCOL
from rackspan.consumers.member_data import assignment_data, by_topic, read_member
from rackspan.model.ids import BrokerId, TopicPartition


class AiokafkaAssignor(AbstractPartitionAssignor):  # type: ignore[misc] # aiokafka publishes no types
    """Balance first, then the fewest partitions read across racks, then the fewest moves; proven at every rebalance.

    `client_rack` is the consumer's own. `followers` says whether brokers let consumers fetch from followers (KIP-392). Give all
    members of a group the same value: the group leader's counts. Eager, as aiokafka is. aiokafka uses
    its own assignors as classes; this one is an object, because it holds the state of one consumer: never share it.
    """

    name = PROTOCOL

    def __init__(self, client_rack: str, *, followers: bool = True) -> None:
        self._membership = Membership(client_rack, cooperative=False)
        self._followers = followers

    def metadata(self, topics: Iterable[str]) -> ConsumerProtocolMemberMetadata:
        return ConsumerProtocolMemberMetadata(0, sorted(topics), self._membership.user_data())

    def assign(
        self, cluster: ClusterMetadata, members: Mapping[str, ConsumerProtocolMemberMetadata]
    ) -> dict[str, ConsumerProtocolMemberAssignment]:
        joined = [
            read_member(name, subscription.subscription, subscription.user_data)
            for name, subscription in members.items()
        ]
        racks = racks_of_brokers((broker.nodeId, broker.rack) for broker in cluster.brokers())
        replicas = _replicas(cluster, {topic for member in joined for topic in member.topics})
        decision = self._membership.decide_rebalance(joined, readable_in(replicas, racks, followers=self._followers))
        return {
            member: ConsumerProtocolMemberAssignment(
                0, list(by_topic(partitions).items()), assignment_data(decision.epoch, member)
            )
            for member, partitions in decision.assigned.items()
        }

    def on_assignment(self, assignment: ConsumerProtocolMemberAssignment) -> None:
        self._membership.on_assignment(assignment.partitions(), assignment.user_data)


def in_rack(client_rack: str, *, followers: bool = True, also: Sequence[Any] = ()) -> Mapping[str, Any]:
    """Keyword arguments of one AIOKafkaConsumer: the rack and the strategy. Call it again for every consumer.

    `also` lists the strategies of members that run an older version, in order of preference: the group uses the first that
    all members offer.
    """
    return {
        "client_rack": client_rack,
        "partition_assignment_strategy": (AiokafkaAssignor(client_rack, followers=followers), *also),
    }


def _replicas(cluster: ClusterMetadata, topics: Iterable[str]) -> dict[TopicPartition, Replicas]:
    """Replicas by partition. aiokafka's methods return partitions and leaders; replicas are only in its private table."""
    return {
        TopicPartition(topic, partition.partition): Replicas(
            BrokerId(partition.leader), tuple(map(BrokerId, partition.replicas))
        )
        for topic in topics
        for partition in cluster._partitions.get(topic, {}).values()
    }
