"""Both plug-ins without a broker: real member data, through each client's own encoding, to the other client's leader."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from aiokafka.cluster import ClusterMetadata as AiokafkaCluster
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment, ConsumerProtocolMemberMetadata
from aiokafka.protocol.metadata import MetadataResponse_v1
from kafka import KafkaConsumer
from kafka.cluster import ClusterMetadata as KafkaPythonCluster
from kafka.coordinator.assignors.abstract import RebalanceProtocol
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.errors import KafkaConfigurationError
from kafka.protocol.consumer.group import JoinGroupResponse
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from kafka.protocol.metadata import MetadataResponse

from rackspan.assignor import aiokafka, kafka_python
from rackspan.consumers import MemberId
from rackspan.consumers.member_data import assignment_data, read_member

Replicas = Sequence[Sequence[int]]

REPLICAS = [[1, 2], [1, 2], [3, 2], [3, 2]]
"""Of four partitions; brokers 1, 2, 3 are in r1, r2, r3."""

BOTH_RACKS = [[1, 2], [1, 2], [2, 1], [2, 1]]


def lead_with_kafka_python(
    leader: kafka_python.KafkaPythonAssignor, members: Mapping[str, bytes], replicas: Replicas = REPLICAS
) -> dict[str, bytes]:
    cluster = KafkaPythonCluster()
    cluster.update_metadata(_kafka_python_metadata(replicas))
    joined = [
        JoinGroupResponse.JoinGroupResponseMember(
            member_id=name, group_instance_id=None, metadata=ConsumerProtocolSubscription.decode(data)
        )
        for name, data in members.items()
    ]
    return {name: bytes(one.encode()) for name, one in leader.assign(cluster, joined).items()}


def lead_with_aiokafka(
    leader: aiokafka.AiokafkaAssignor, members: Mapping[str, bytes], replicas: Replicas = REPLICAS
) -> dict[str, bytes]:
    cluster = AiokafkaCluster()
    brokers = [(broker, "127.0.0.1", 9092, f"r{broker}") for broker in (1, 2, 3)]
    rows = [(0, number, its[0], its, its) for number, its in enumerate(replicas)]
    cluster.update_metadata(MetadataResponse_v1(brokers, 1, [(0, "orders", False, rows)]))
    joined = {name: ConsumerProtocolMemberMetadata.decode(data) for name, data in members.items()}
    return {name: one.encode() for name, one in leader.assign(cluster, joined).items()}


def sent(assignor: Any, topics: tuple[str, ...] = ("orders",)) -> bytes:
    return bytes(assignor.metadata(topics).encode())


def assigned(assignments: Mapping[str, bytes]) -> dict[str, list[int]]:
    """The partition numbers of each member, as both clients decode them."""
    decoded = {name: ConsumerProtocolAssignment.decode(data).partitions() for name, data in assignments.items()}
    assert decoded == {
        name: ConsumerProtocolMemberAssignment.decode(data).partitions() for name, data in assignments.items()
    }
    return {name: [one.partition for one in partitions] for name, partitions in decoded.items()}


@pytest.mark.parametrize("leader", ["kafka-python", "aiokafka"])
def test_members_with_both_clients_share_a_group(leader: str) -> None:
    near_1, near_3 = kafka_python.KafkaPythonAssignor("r1"), aiokafka.AiokafkaAssignor("r3")
    members = {"a": sent(near_1), "b": sent(near_3)}
    assignments = (
        lead_with_kafka_python(near_1, members) if leader == "kafka-python" else lead_with_aiokafka(near_3, members)
    )
    assert assigned(assignments) == {"a": [0, 1], "b": [2, 3]}


def test_what_was_assigned_is_claimed_at_the_next_join_and_stays() -> None:
    first, second = kafka_python.KafkaPythonAssignor("r2"), aiokafka.AiokafkaAssignor("r2")
    before = lead_with_kafka_python(first, {"a": sent(first), "b": sent(second)})
    first.on_assignment(ConsumerProtocolAssignment.decode(before["a"]), 1)
    second.on_assignment(ConsumerProtocolMemberAssignment.decode(before["b"]))
    # In the other order: the first member would get the first partitions if ownership did not count.
    after = lead_with_aiokafka(second, {"a": sent(second), "b": sent(first)})
    assert assigned(after) == {"a": assigned(before)["b"], "b": assigned(before)["a"]}


@pytest.mark.parametrize("leader", ["kafka-python", "aiokafka"])
def test_each_member_claims_what_either_leader_gave_to_it_and_when(leader: str) -> None:
    first, second = kafka_python.KafkaPythonAssignor("r1"), aiokafka.AiokafkaAssignor("r3")
    members = {"a": sent(first), "b": sent(second)}
    given = lead_with_kafka_python(first, members) if leader == "kafka-python" else lead_with_aiokafka(second, members)
    first.on_assignment(ConsumerProtocolAssignment.decode(given["a"]), 1)
    second.on_assignment(ConsumerProtocolMemberAssignment.decode(given["b"]))
    of_a = ConsumerProtocolSubscription.decode(sent(first)).user_data
    of_b = ConsumerProtocolMemberMetadata.decode(sent(second)).user_data
    claimed = [read_member(name, ["orders"], data) for name, data in (("a", of_a), ("b", of_b))]
    assert [sorted(partition.partition for partition in one.owned) for one in claimed] == [[0, 1], [2, 3]]
    assert claimed[0].epoch == claimed[1].epoch > 0
    # An assignment names its member: another one's is not claimed.
    data = {name: ConsumerProtocolAssignment.decode(one).user_data for name, one in given.items()}
    assert data == {name: assignment_data(claimed[0].epoch, MemberId(name)) for name in members}


@pytest.mark.parametrize(("followers", "near_1"), [(False, [0, 1]), (True, [0, 2])])
def test_where_followers_are_not_read_the_leaders_decide(followers: bool, near_1: list[int]) -> None:
    first, second = (kafka_python.KafkaPythonAssignor(rack, followers=followers) for rack in ("r1", "r2"))
    assignments = lead_with_kafka_python(first, {"a": sent(first), "b": sent(second)}, BOTH_RACKS)
    assert assigned(assignments)["a"] == near_1


def test_the_rack_is_in_the_subscriptions_own_field_too() -> None:
    subscription = ConsumerProtocolSubscription.decode(sent(kafka_python.KafkaPythonAssignor("r2")))
    assert (subscription.rack_id, subscription.topics) == ("r2", ["orders"])


def test_an_unknown_topic_is_left_out() -> None:
    assignor = aiokafka.AiokafkaAssignor("r1")
    assert assigned(lead_with_aiokafka(assignor, {"a": sent(assignor, ("nowhere", "orders"))})) == {"a": [0, 1, 2, 3]}


def test_a_cooperative_member_keeps_its_partitions_until_they_are_revoked() -> None:
    holding, joining = kafka_python.KafkaPythonAssignor("r1", cooperative=True), aiokafka.AiokafkaAssignor("r3")
    alone = lead_with_kafka_python(holding, {"a": sent(holding)})
    holding.on_assignment(ConsumerProtocolAssignment.decode(alone["a"]), 1)
    assert assigned(lead_with_aiokafka(joining, {"a": sent(holding), "b": sent(joining)})) == {"a": [0, 1], "b": []}


def test_kafka_python_makes_an_assignor_for_every_consumer() -> None:
    strategy = kafka_python.in_rack("r1", also=[RangePartitionAssignor])["partition_assignment_strategy"]
    first, second = strategy[0](), strategy[0]()
    assert isinstance(first, kafka_python.KafkaPythonAssignor)
    assert first is not second
    assert strategy[1] is RangePartitionAssignor


def test_in_rack_returns_keyword_arguments_of_the_clients() -> None:
    assert kafka_python.in_rack("r1")["client_rack"] == aiokafka.in_rack("r1")["client_rack"] == "r1"
    assert set(kafka_python.in_rack("r1")) <= set(KafkaConsumer.DEFAULT_CONFIG)
    assert aiokafka.in_rack("r1")["partition_assignment_strategy"][0].name == kafka_python.KafkaPythonAssignor.name


@pytest.mark.parametrize("followers", [False, True, None])
def test_in_rack_passes_on_whether_followers_are_read(followers: bool | None) -> None:
    """They are by default."""
    for client in (kafka_python, aiokafka):
        given = {} if followers is None else {"followers": followers}
        made = client.in_rack("r1", **given)["partition_assignment_strategy"][0]
        assignor = made() if client is kafka_python else made
        members = {"a": sent(assignor), "b": sent(kafka_python.KafkaPythonAssignor("r2"))}
        near_1 = [0, 1] if followers is False else [0, 2]
        if client is kafka_python:
            assert assigned(lead_with_kafka_python(assignor, members, BOTH_RACKS))["a"] == near_1
        else:
            assert assigned(lead_with_aiokafka(assignor, members, BOTH_RACKS))["a"] == near_1


def test_aiokafkas_strategies_of_older_members_come_after_it() -> None:
    older = object()
    first, second = aiokafka.in_rack("r1", also=[older])["partition_assignment_strategy"]
    assert (type(first), second) == (aiokafka.AiokafkaAssignor, older)


@pytest.mark.parametrize("cooperative", [False, True])
def test_in_rack_passes_on_whether_reading_goes_on_in_a_rebalance(cooperative: bool) -> None:
    made = kafka_python.in_rack("r1", cooperative=cooperative)["partition_assignment_strategy"][0]()
    protocol = RebalanceProtocol.COOPERATIVE if cooperative else RebalanceProtocol.EAGER
    assert made.supported_protocols() == [protocol]


def test_members_name_their_topics_in_one_order() -> None:
    topics = tuple("hgfedcba")
    assert ConsumerProtocolSubscription.decode(sent(kafka_python.KafkaPythonAssignor("r1"), topics)).topics == [
        *"abcdefgh"
    ]
    decoded = ConsumerProtocolMemberMetadata.decode(sent(aiokafka.AiokafkaAssignor("r1"), topics))
    assert list(decoded.subscription) == [*"abcdefgh"]


def test_a_consumer_that_joins_claims_nothing_in_the_protocols_own_fields() -> None:
    """What it owns is in the user data, for every version of the protocol."""
    subscription = kafka_python.KafkaPythonAssignor("r1").metadata(["orders"])
    assert (subscription.owned_partitions, subscription.generation_id) == ([], -1)


def test_a_consumer_without_a_rack_sends_none() -> None:
    subscription = ConsumerProtocolSubscription.decode(sent(kafka_python.KafkaPythonAssignor("")))
    assert subscription.rack_id is None


def test_kafka_python_refuses_range_beside_a_cooperative_assignor() -> None:
    assert kafka_python.KafkaPythonAssignor("r1").supported_protocols() == [RebalanceProtocol.EAGER]
    assert kafka_python.KafkaPythonAssignor("r1", cooperative=True).supported_protocols() == [
        RebalanceProtocol.COOPERATIVE
    ]
    mixed = kafka_python.in_rack("r1", cooperative=True, also=[RangePartitionAssignor])
    with pytest.raises(KafkaConfigurationError, match="do not support a common RebalanceProtocol"):
        KafkaConsumer(bootstrap_servers="127.0.0.1:1", api_version=(2, 5), group_id="g", **mixed)


def _kafka_python_metadata(replicas: Replicas) -> MetadataResponse:
    of_broker, of_topic = MetadataResponse.MetadataResponseBroker, MetadataResponse.MetadataResponseTopic
    partitions = [
        of_topic.MetadataResponsePartition(
            version=7,
            error_code=0,
            partition_index=number,
            leader_id=its[0],
            leader_epoch=1,
            replica_nodes=its,
            isr_nodes=its,
            offline_replicas=[],
        )
        for number, its in enumerate(replicas)
    ]
    brokers = [of_broker(version=7, node_id=one, host="127.0.0.1", port=9092, rack=f"r{one}") for one in (1, 2, 3)]
    topic = of_topic(version=7, error_code=0, name="orders", is_internal=False, partitions=partitions)
    return MetadataResponse(version=7, brokers=brokers, controller_id=1, topics=[topic])
