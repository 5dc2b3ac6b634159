"""The plug-in for kafka-python 3: `KafkaConsumer(…, **in_rack("eu-1a"))`."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from kafka.cluster import ClusterMetadata
from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor, RebalanceProtocol
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

from rackspan.assignor.conversation import PROTOCOL, Conversation
from rackspan.assignor.replica_racks import Replicas, racks_of_brokers, readable_in
from rackspan.consumers import Member
from rackspan.consumers.member_data import assignment_data, by_topic, read_member
from rackspan.model import BrokerId
from rackspan.model.ids import TopicPartition

SUBSCRIPTION_VERSION = 3
"""The first with rackId, so that tools and other assignors see the rack where they look for it."""


class RackAwareAssignor(AbstractPartitionAssignor):  # type: ignore[misc] # kafka-python publishes no types
    """Balance first, then the fewest partitions read across racks, then the fewest moves; proven at every rebalance.

    `client_rack` is the consumer's own. `followers` says whether brokers let consumers fetch from followers (KIP-392); all
    members of a group should say the same, the leader's word counts. `cooperative` keeps reading during a rebalance
    (KIP-429); kafka-python then accepts no eager strategy beside it. One consumer, one assignor.
    """

    name = PROTOCOL

    def __init__(self, client_rack: str, *, followers: bool = True, cooperative: bool = False) -> None:
        self._conversation = Conversation(client_rack, cooperative=cooperative)
        self._followers = followers
        self._protocol = RebalanceProtocol.COOPERATIVE if cooperative else RebalanceProtocol.EAGER

    def supported_protocols(self) -> list[RebalanceProtocol]:
        return [self._protocol]

    def metadata(self, topics: Iterable[str]) -> ConsumerProtocolSubscription:
        return ConsumerProtocolSubscription(
            version=SUBSCRIPTION_VERSION,
            topics=sorted(topics),
            user_data=self._conversation.user_data(),
            owned_partitions=[],
            generation_id=-1,
            rack_id=self._conversation.client_rack or None,
        )

    def assign(self, cluster: ClusterMetadata, members: Sequence[Any]) -> dict[str, ConsumerProtocolAssignment]:
        joined = [_member(one.member_id, one.metadata) for one in members]
        racks = racks_of_brokers((broker.node_id, broker.rack) for broker in cluster.brokers())
        replicas = _replicas(cluster, {topic for member in joined for topic in member.topics})
        decision = self._conversation.lead(joined, readable_in(replicas, racks, followers=self._followers))
        return {
            member: ConsumerProtocolAssignment(
                0, list(by_topic(partitions).items()), assignment_data(decision.epoch, member)
            )
            for member, partitions in decision.told.items()
        }

    def on_assignment(self, assignment: ConsumerProtocolAssignment, generation: int) -> None:  # noqa: ARG002
        self._conversation.on_assignment(assignment.partitions(), assignment.user_data)


def in_rack(
    client_rack: str, *, followers: bool = True, cooperative: bool = False, also: Sequence[Any] = ()
) -> Mapping[str, Any]:
    """Keyword arguments of KafkaConsumer: the rack, said once, and the strategy.

    `also` are strategies that members of older versions run, in order of preference: the group uses the first that all
    members offer. Every consumer gets an assignor of its own, so one answer serves many.
    """
    ours = partial(RackAwareAssignor, client_rack, followers=followers, cooperative=cooperative)
    return {"client_rack": client_rack, "partition_assignment_strategy": (ours, *also)}


def _member(member_id: str, said: ConsumerProtocolSubscription) -> Member:
    return read_member(member_id, said.topics, said.user_data, getattr(said, "rack_id", None))


def _replicas(cluster: ClusterMetadata, topics: Iterable[str]) -> dict[TopicPartition, Replicas]:
    """kafka-python shows partitions and leaders, but replicas only one broker at a time; its table has them all."""
    return {
        TopicPartition(topic, one.partition_index): Replicas(
            BrokerId(one.leader_id), tuple(map(BrokerId, one.replica_nodes))
        )
        for topic in topics
        for one in cluster._partitions.get(topic, {}).values()
    }
