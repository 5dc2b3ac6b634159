"""The plug-in for aiokafka: `AIOKafkaConsumer(…, **in_rack("eu-1a"))`."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from aiokafka.cluster import ClusterMetadata
from aiokafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment, ConsumerProtocolMemberMetadata

from rackspan.assignor.conversation import PROTOCOL, Conversation
from rackspan.assignor.replica_racks import Replicas, racks_of_brokers, readable_in
from rackspan.consumers.member_data import assignment_data, by_topic, read_member
from rackspan.model import BrokerId
from rackspan.model.ids import TopicPartition


class RackAwareAssignor(AbstractPartitionAssignor):  # type: ignore[misc] # aiokafka publishes no types
    """Balance first, then the fewest partitions read across racks, then the fewest moves; proven at every rebalance.

    `client_rack` is the consumer's own. `followers` says whether brokers let consumers fetch from followers (KIP-392); all
    members of a group should say the same, the leader's word counts. Eager, as aiokafka is. aiokafka calls its own
    assignors as classes; ours is an object, because what it remembers belongs to one consumer: never hand it to two.
    """

    name = PROTOCOL

    def __init__(self, client_rack: str, *, followers: bool = True) -> None:
        self._conversation = Conversation(client_rack, cooperative=False)
        self._followers = followers

    def metadata(self, topics: Iterable[str]) -> ConsumerProtocolMemberMetadata:
        return ConsumerProtocolMemberMetadata(0, sorted(topics), self._conversation.user_data())

    def assign(
        self, cluster: ClusterMetadata, members: Mapping[str, ConsumerProtocolMemberMetadata]
    ) -> dict[str, ConsumerProtocolMemberAssignment]:
        joined = [read_member(name, said.subscription, said.user_data) for name, said in members.items()]
        racks = racks_of_brokers((broker.nodeId, broker.rack) for broker in cluster.brokers())
        replicas = _replicas(cluster, {topic for member in joined for topic in member.topics})
        decision = self._conversation.lead(joined, readable_in(replicas, racks, followers=self._followers))
        return {
            member: ConsumerProtocolMemberAssignment(
                0, list(by_topic(partitions).items()), assignment_data(decision.epoch, member)
            )
            for member, partitions in decision.told.items()
        }

    def on_assignment(self, assignment: ConsumerProtocolMemberAssignment) -> None:
        self._conversation.on_assignment(assignment.partitions(), assignment.user_data)


def in_rack(client_rack: str, *, followers: bool = True, also: Sequence[Any] = ()) -> Mapping[str, Any]:
    """Keyword arguments of one AIOKafkaConsumer: the rack, said once, and the strategy. Ask anew for every consumer.

    `also` are strategies that members of older versions run, in order of preference: the group uses the first that all
    members offer.
    """
    return {
        "client_rack": client_rack,
        "partition_assignment_strategy": (RackAwareAssignor(client_rack, followers=followers), *also),
    }


def _replicas(cluster: ClusterMetadata, topics: Iterable[str]) -> dict[TopicPartition, Replicas]:
    """aiokafka shows partitions and leaders; replicas stand only in its own table."""
    return {
        TopicPartition(topic, one.partition): Replicas(BrokerId(one.leader), tuple(map(BrokerId, one.replicas)))
        for topic in topics
        for one in cluster._partitions.get(topic, {}).values()
    }
