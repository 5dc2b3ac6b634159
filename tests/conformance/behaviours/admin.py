"""Topics come, grow and go; the cluster is described."""

from uuid import UUID

from tests.conformance.behaviour import Acts, Outcome, behaviour, behaviour_in_loss
from tests.conformance.subject import LOST, Subject, fresh, new_topic
from tests.conformance.wire import Body, batch
from tests.waiting import eventually


def created(subject: Subject, *topics: Body, validate_only: bool = False) -> list[list[int]]:
    """Error, partitions, replication factor of each."""
    responses = subject.create(*topics, validate_only=validate_only)
    return [[one["error_code"], one["num_partitions"], one["replication_factor"]] for one in responses]


def grown(subject: Subject, topic: str, count: int, assignments: list[list[int]] | None = None, validate_only: bool = False) -> int:  # fmt: skip
    given = None if assignments is None else [{"broker_ids": row} for row in assignments]
    topics = [{"name": topic, "count": count, "assignments": given}]
    response = subject.request("CreatePartitions", 3, topics=topics, timeout_ms=9_000, validate_only=validate_only)
    return int(response["results"][0]["error_code"])


@behaviour("admin")
def a_new_topics_response_has_its_size(subject: Subject) -> Outcome:
    return created(subject, new_topic(fresh("topic"), 3, 2))


@behaviour("admin")
def minus_1_requests_the_brokers_defaults(subject: Subject) -> Outcome:
    return created(subject, new_topic(fresh("topic"), -1, -1))


@behaviour("admin")
def a_topic_is_created_once(subject: Subject) -> Outcome:
    topic = subject.topic()
    return created(subject, new_topic(topic))


@behaviour("admin")
def one_refused_topic_stops_no_other(subject: Subject) -> Outcome:
    return created(subject, new_topic(fresh("topic"), factor=9), new_topic(fresh("topic"), 2, 1))


@behaviour("admin")
def a_name_twice_in_a_request_is_refused(subject: Subject) -> Outcome:
    name = fresh("topic")
    return [one["error_code"] for one in subject.create(new_topic(name), new_topic(name))]


@behaviour("admin")
def validating_creates_nothing(subject: Subject) -> Outcome:
    name = fresh("topic")
    response = created(subject, new_topic(name, 2, 2), validate_only=True)
    return [response, subject.partition(name)]


@behaviour("admin")
def names_that_would_be_one_metric_collide(subject: Subject) -> Outcome:
    name = fresh("topic")
    subject.create(new_topic(f"{name}.a"))
    return created(subject, new_topic(f"{name}_a"))[0][0]


@behaviour("admin")
def replicas_by_hand_are_taken_as_given(subject: Subject) -> Outcome:
    topic = subject.topic(replicas=[[3, 1], [2, 3]])
    found = [subject.partition(topic, one) for one in (0, 1)]
    return [[one["leader_id"], one["replica_nodes"], one["leader_epoch"]] for one in found]


@behaviour("admin")
def a_topic_is_deleted_by_name(subject: Subject) -> Outcome:
    topic = subject.topic()
    response = subject.request("DeleteTopics", 5, topic_names=[topic], timeout_ms=9_000)["responses"]
    eventually(lambda: not subject.partition(topic), "it is gone")
    return [[one["error_code"] for one in response], subject.produce(topic, broker=1)["error_code"]]


@behaviour("admin")
def a_topic_is_deleted_by_id(subject: Subject) -> Outcome:
    topic = subject.topic()
    (known,) = subject.request("Metadata", 12, topics=[{"name": topic}])["topics"]
    requested = [{"name": None, "topic_id": known["topic_id"]}]
    (response,) = subject.request("DeleteTopics", 6, topics=requested, timeout_ms=9_000)["responses"]
    return [response["error_code"], response["name"] == topic, response["topic_id"] == known["topic_id"]]


@behaviour("admin")
def a_topic_that_is_not_there_cannot_be_deleted(subject: Subject) -> Outcome:
    requested = [{"name": fresh("absent")}, {"name": None, "topic_id": UUID(int=77)}]
    responses = subject.request("DeleteTopics", 6, topics=requested, timeout_ms=9_000)["responses"]
    return sorted(one["error_code"] for one in responses)


@behaviour("admin")
def a_topic_created_anew_has_another_id(subject: Subject) -> Outcome:
    topic = subject.topic()
    before = subject.request("Metadata", 12, topics=[{"name": topic}])["topics"][0]["topic_id"]
    subject.produce(topic, batch(b"old"))
    subject.request("DeleteTopics", 5, topic_names=[topic], timeout_ms=9_000)
    eventually(lambda: all(not subject.partition(topic, broker=one) for one in (1, 2, 3)), "it is gone")
    (again,) = subject.create(new_topic(topic))
    subject.await_led(topic)
    return [again["error_code"], again["topic_id"] == before, subject.end(topic)]


@behaviour("admin")
def a_topic_grows(subject: Subject) -> Outcome:
    topic = subject.topic()
    code = grown(subject, topic, 3)
    subject.await_led(topic, 3)
    return [code, len(subject.partition(topic, 2)["replica_nodes"])]


@behaviour("admin")
def a_topic_never_shrinks(subject: Subject) -> Outcome:
    topic = subject.topic(3)
    return [grown(subject, topic, count) for count in (2, 3, 0)]


@behaviour("admin")
def a_topic_that_is_not_there_does_not_grow(subject: Subject) -> Outcome:
    return grown(subject, fresh("absent"), 3)


@behaviour("admin")
def new_partitions_are_placed_by_hand(subject: Subject) -> Outcome:
    topic = subject.topic(replicas=[[1, 2]])
    tries: tuple[list[list[int]], ...] = ([[2, 3], [3, 1]], [[2, 3, 1]], [[9, 1]], [[2, 2]], [[]], [[3, 1]])
    codes = [grown(subject, topic, 2, rows) for rows in tries]
    subject.await_led(topic, 2)
    return [codes, subject.partition(topic, 1)["replica_nodes"]]


@behaviour("admin")
def growth_can_be_tried(subject: Subject) -> Outcome:
    topic = subject.topic()
    return [grown(subject, topic, 4, validate_only=True), subject.partition(topic, 3)]


@behaviour("admin")
def metadata_of_what_is_no_topics_name_says_so(subject: Subject) -> Outcome:
    names = ("", ".", "..", "a b", "x" * 250, "a/b", "fine")
    return [
        [
            one["error_code"]
            for one in subject.request("Metadata", 9, topics=[{"name": name}], allow_auto_topic_creation=False)[
                "topics"
            ]
        ]
        for name in names
    ]


@behaviour("admin")
def metadata_of_no_topics_is_the_brokers(subject: Subject) -> Outcome:
    response = subject.request("Metadata", 9, topics=[])
    return [response["topics"], sorted(one["node_id"] for one in response["brokers"])]


@behaviour("admin")
def metadata_of_a_topic_that_is_not_there_says_so(subject: Subject) -> Outcome:
    requested = [{"topic_id": UUID(int=0), "name": fresh("absent")}, {"topic_id": UUID(int=99), "name": None}]
    response = subject.request("Metadata", 12, topics=requested, allow_auto_topic_creation=False)["topics"]
    return [[one["error_code"], one["name"] is None, one["partitions"]] for one in response]


@behaviour("admin")
def metadata_is_requested_by_id(subject: Subject) -> Outcome:
    topic = subject.topic()
    (known,) = subject.request("Metadata", 12, topics=[{"name": topic}])["topics"]
    (response,) = subject.request("Metadata", 12, topics=[{"topic_id": known["topic_id"], "name": None}])["topics"]
    return [response["error_code"], response["name"] == topic]


@behaviour("admin")
def where_topics_do_not_come_by_themselves_a_missing_one_stays_missing(subject: Subject) -> Outcome:
    topic = fresh("absent")
    codes = [
        subject.request("Metadata", version, topics=[{"name": topic}])["topics"][0]["error_code"]
        for version in (1, 4, 9)
    ]
    return [codes, subject.partition(topic)]


@behaviour("admin")
def partitions_are_described_with_their_eligible_replicas(subject: Subject) -> Outcome:
    topic = subject.topic(replicas=[[1, 2]])
    body: Body = {"response_partition_limit": 10, "cursor": None}
    (response,) = subject.request("DescribeTopicPartitions", 0, topics=[{"name": topic}], **body)["topics"]
    names = ("error_code", "leader_id", "replica_nodes", "isr_nodes", "eligible_leader_replicas", "last_known_elr", "offline_replicas")  # fmt: skip
    return [{name: one[name] for name in names} for one in response["partitions"]]


@behaviour("admin")
def partitions_are_described_a_page_at_a_time(subject: Subject) -> Outcome:
    topic = subject.topic(3)
    body: Body = {"topics": [{"name": topic}], "response_partition_limit": 2}
    first = subject.request("DescribeTopicPartitions", 0, **body, cursor=None)
    cursor = first["next_cursor"]
    rest = subject.request("DescribeTopicPartitions", 0, **body, cursor=cursor)
    return [
        [[one["partition_index"] for one in each["topics"][0]["partitions"]] for each in (first, rest)],
        cursor["partition_index"],
        rest["next_cursor"],
    ]


@behaviour("admin")
def the_cluster_is_described(subject: Subject) -> Outcome:
    response = subject.request("DescribeCluster", 2, include_cluster_authorized_operations=False, endpoint_type=1)
    brokers = sorted([one["broker_id"], one["rack"], one["is_fenced"]] for one in response["brokers"])
    return [response["error_code"], response["endpoint_type"], brokers]


@behaviour("admin")
def every_broker_names_the_same_cluster(subject: Subject) -> Outcome:
    names = [subject.request("DescribeCluster", 0, broker=broker)["cluster_id"] for broker in (1, 2, 3)]
    metadata = subject.request("Metadata", 9, topics=[])["cluster_id"]
    return len({*names, metadata})


@behaviour("admin")
def producers_of_a_partition_are_described(subject: Subject) -> Outcome:
    topic, producer = subject.topic(), subject.producer_id()
    subject.produce(topic, batch(b"a", b"b", producer=producer, sequence=0))
    requested = [{"name": topic, "partition_indexes": [0]}]
    response = subject.request("DescribeProducers", 0, broker=subject.leader(topic), topics=requested)
    part = response["topics"][0]["partitions"][0]
    return [
        part["error_code"],
        [
            [
                one["producer_id"] == producer[0],
                one["producer_epoch"],
                one["last_sequence"],
                one["current_txn_start_offset"],
            ]
            for one in part["active_producers"]
        ],
    ]


@behaviour("admin")
def a_log_directory_holds_the_partitions(subject: Subject) -> Outcome:
    topic = subject.topic(replicas=[[1]])
    subject.produce(topic, batch(b"x" * 100))
    response = subject.request("DescribeLogDirs", 4, topics=[{"topic": topic, "partitions": [0]}])
    (found,) = [one for one in response["results"] if one["topics"]]
    (part,) = found["topics"][0]["partitions"]
    return [
        response["error_code"],
        found["error_code"],
        part["partition_size"],
        part["offset_lag"],
        part["is_future_key"],
    ]


@behaviour_in_loss("admin")
def a_lost_broker_is_in_no_metadata_and_its_replicas_are_offline(subject: Subject) -> Acts:
    topic = subject.topic(replicas=[[1, LOST]])
    yield
    subject.await_isr(topic, 1)
    response = subject.request("Metadata", 9, topics=[{"name": topic}])
    offline = subject.partition(topic)["offline_replicas"]
    cluster = subject.request("DescribeCluster", 2, endpoint_type=1, include_fenced_brokers=True)["brokers"]
    fenced = sorted([one["broker_id"], one["is_fenced"]] for one in cluster)
    alive = sorted(one["node_id"] for one in response["brokers"])
    yield
    subject.await_isr(topic, 1, LOST)
    return [alive, offline, fenced, subject.partition(topic)["offline_replicas"]]


@behaviour_in_loss("admin")
def a_lost_broker_counts_for_replication_and_is_given_replicas(subject: Subject) -> Acts:
    watched = subject.topic()
    yield
    subject.await_isr(watched, 1, 2)
    name = fresh("topic")
    codes = created(subject, new_topic(name, 1, 3), new_topic(fresh("topic"), 1, 4))
    subject.await_led(name)
    isr = sorted(subject.partition(name)["isr_nodes"])
    yield
    subject.await_isr(name)
    return [codes, isr]


@behaviour("admin")
def without_an_authorizer_a_client_may_do_everything(subject: Subject) -> Outcome:
    """Operations by Kafka's numbers, where the request includes them."""
    topic, flags = subject.topic(), ("include_cluster_authorized_operations", "include_topic_authorized_operations")
    found: list[Outcome] = []
    for included in (True, False):
        for name in (topic, fresh("none")):
            body: Body = {"topics": [{"topic_id": None, "name": name}], "allow_auto_topic_creation": False}
            metadata = subject.request("Metadata", 10, **body, **dict.fromkeys(flags, included))
            (one,) = metadata["topics"]
            found.append([one["error_code"], _operations(metadata), _operations(one)])
        found.append(_operations(subject.request("DescribeCluster", 0, **{flags[0]: included}, endpoint_type=1)))
    return found


def _operations(described: Body) -> Outcome:
    found = described.get("authorized_operations")
    return sorted(found) if isinstance(found, set) else found


@behaviour("admin")
def acls_are_refused_where_no_authorizer_is_configured(subject: Subject) -> Outcome:
    """ACL numbers: 2 topic, 3 literal, 3 read, 3 allow."""
    acl = {"principal": "User:a", "host": "*", "operation": 3, "permission_type": 3}
    created = {"resource_type": 2, "resource_name": "t", "resource_pattern_type": 3, **acl}
    filters: Body = {
        "resource_type_filter": 2,
        "resource_name_filter": "t",
        "pattern_type_filter": 3,
        "principal_filter": "User:a",
        "host_filter": "*",
        "operation": 3,
        "permission_type": 3,
    }
    described = subject.request("DescribeAcls", 3, **filters)
    creations = subject.request("CreateAcls", 3, creations=[created, created])["results"]
    deletions = subject.request("DeleteAcls", 3, filters=[filters, filters])["filter_results"]
    return [[one["error_code"], one["error_message"]] for one in (described, *creations, *deletions)]
