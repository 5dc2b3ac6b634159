"""Racks: returned to clients, counted by placement, read by near consumers (KIP-36, KIP-392)."""

import asyncio
from collections import Counter

from aiokafka.admin import AIOKafkaAdminClient
from confluent_kafka.admin import AdminClient
from kafka import KafkaAdminClient

from tests.conformance.behaviour import Acts, Outcome, behaviour, behaviour_in_loss
from tests.conformance.subject import BROKERS, LOST, RACKS, Subject
from tests.conformance.wire import batch, records
from tests.waiting import WITHIN_SECONDS


def racks_of(subject: Subject, topic: str, partitions: int) -> list[list[str]]:
    found = [subject.partition(topic, one)["replica_nodes"] for one in range(partitions)]
    return [sorted(RACKS[broker] for broker in replicas) for replicas in found]


@behaviour("racks")
def metadata_has_each_brokers_rack(subject: Subject) -> Outcome:
    brokers = subject.request("Metadata", 1, topics=[])["brokers"]
    return sorted([one["node_id"], one["rack"]] for one in brokers)


@behaviour("racks")
def metadata_version_0_has_no_rack(subject: Subject) -> Outcome:
    topic = subject.topic()
    response = subject.request("Metadata", 0, topics=[{"name": topic}])
    return [sorted(set(response) - {"throttle_time_ms"}), [sorted(one) for one in response["brokers"]]]


@behaviour("racks")
def metadata_version_0_with_no_topics_means_all_and_version_1_means_none(subject: Subject) -> Outcome:
    topic = subject.topic()
    all_of_0 = [one["name"] for one in subject.request("Metadata", 0, topics=[])["topics"]]
    return [topic in all_of_0, subject.request("Metadata", 1, topics=[])["topics"]]


@behaviour("racks")
def from_version_1_on_metadata_names_a_controller_and_internal_topics(subject: Subject) -> Outcome:
    topic = subject.topic()
    response = subject.request("Metadata", 1, topics=[{"name": topic}])
    return [response["controller_id"] in BROKERS, response["topics"][0]["is_internal"]]


@behaviour("racks")
def every_broker_returns_the_same_racks(subject: Subject) -> Outcome:
    return [
        sorted(
            [one["node_id"], one["rack"]] for one in subject.request("Metadata", 9, broker=broker, topics=[])["brokers"]
        )
        for broker in BROKERS
    ]


@behaviour("racks")
def the_clusters_description_has_racks(subject: Subject) -> Outcome:
    response = subject.request("DescribeCluster", 0)
    return sorted([one["broker_id"], one["rack"]] for one in response["brokers"])


@behaviour("racks")
def a_brokers_rack_is_its_config(subject: Subject) -> Outcome:
    from tests.conformance.behaviours.configs import BROKER, described

    return [described(subject, BROKER, str(broker), "broker.rack", broker=broker) for broker in BROKERS]


@behaviour("racks")
def three_replicas_are_in_three_racks(subject: Subject) -> Outcome:
    topic = subject.topic(9, 3)
    return racks_of(subject, topic, 9)


@behaviour("racks")
def two_replicas_are_in_two_racks(subject: Subject) -> Outcome:
    topic = subject.topic(9, 2)
    return [len(set(racks)) for racks in racks_of(subject, topic, 9)]


@behaviour("racks")
def leaders_go_round_the_racks(subject: Subject) -> Outcome:
    topic = subject.topic(9, 3)
    leaders = Counter(RACKS[subject.partition(topic, one)["replica_nodes"][0]] for one in range(9))
    return sorted(leaders.items())


@behaviour("racks")
def new_partitions_are_spread_over_racks_too(subject: Subject) -> Outcome:
    from tests.conformance.behaviours.admin import grown

    topic = subject.topic(1, 3)
    code = grown(subject, topic, 4)
    subject.await_led(topic, 4)
    return [code, racks_of(subject, topic, 4)]


@behaviour("racks")
def a_minus_1_factor_is_spread_over_racks_too(subject: Subject) -> Outcome:
    return racks_of(subject, subject.topic(-1, -1), 1)


@behaviour("racks")
def internal_topics_are_spread_over_racks(subject: Subject) -> Outcome:
    subject.coordinator("any group")
    (response,) = subject.request("Metadata", 9, topics=[{"name": "__consumer_offsets"}])["topics"]
    spread = {len({RACKS[broker] for broker in one["replica_nodes"]}) for one in response["partitions"]}
    return [response["is_internal"], sorted(spread)]


@behaviour("racks")
def a_reader_in_a_followers_rack_is_sent_there(subject: Subject) -> Outcome:
    topic = subject.topic(replicas=[[1, 2]])
    subject.produce(topic, batch(b"a"))
    response = subject.fetch(topic, rack="r2")
    return [response["preferred_read_replica"], records(response["records"])]


@behaviour("racks")
def whom_a_follower_serves_is_sent_nowhere_else(subject: Subject) -> Outcome:
    topic = subject.topic(replicas=[[1, 2]])
    subject.produce(topic, batch(b"a"))
    subject.fetch(topic, broker=2, max_wait_ms=2_000)
    response = subject.fetch(topic, broker=2, rack="r1")
    return [response["error_code"], response["preferred_read_replica"]]


@behaviour("racks")
def a_reader_in_the_leaders_rack_reads_from_the_leader(subject: Subject) -> Outcome:
    topic = subject.topic(replicas=[[1, 2]])
    subject.produce(topic, batch(b"a"))
    response = subject.fetch(topic, rack="r1")
    return [response["preferred_read_replica"], records(response["records"])]


@behaviour("racks")
def a_reader_in_a_rack_without_a_replica_reads_from_the_leader(subject: Subject) -> Outcome:
    topic = subject.topic(replicas=[[1, 2]])
    subject.produce(topic, batch(b"a"))
    response = subject.fetch(topic, rack="nowhere")
    return [response["preferred_read_replica"], records(response["records"])]


@behaviour("racks")
def kafka_python_sees_the_racks(subject: Subject) -> Outcome:
    admin = KafkaAdminClient(bootstrap_servers=subject.bootstrap_servers)
    try:
        return sorted([one["broker_id"], one["rack"]] for one in admin.describe_cluster()["brokers"])
    finally:
        admin.close()


@behaviour("racks")
def librdkafka_sees_the_racks(subject: Subject) -> Outcome:
    admin = AdminClient({"bootstrap.servers": subject.bootstrap_servers})
    return sorted([node.id, node.rack] for node in admin.describe_cluster().result(WITHIN_SECONDS).nodes)


@behaviour("racks")
def aiokafka_sees_the_racks(subject: Subject) -> Outcome:
    async def requested() -> Outcome:
        admin = AIOKafkaAdminClient(bootstrap_servers=subject.bootstrap_servers)
        await admin.start()
        try:
            brokers = (await admin.describe_cluster())["brokers"]
            return sorted([one["node_id"], one["rack"]] for one in brokers)
        finally:
            await admin.close()

    return asyncio.run(requested())


@behaviour_in_loss("racks")
def nobody_is_preferred_in_a_lost_rack_and_its_replicas_stay_known(subject: Subject) -> Acts:
    topic = subject.topic()
    yield
    subject.await_isr(topic, 1, 2)
    placed = subject.topic(6, 2)
    first = {subject.partition(placed, one)["replica_nodes"][0] for one in range(6)}
    yield
    subject.await_isr(topic)
    return [LOST in first, racks_of(subject, topic, 1), LOST in subject.partition(topic)["isr_nodes"]]
