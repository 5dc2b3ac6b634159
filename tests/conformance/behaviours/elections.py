"""Who leads, who is in sync, and how replicas move."""

from tests.conformance.behaviour import Acts, Outcome, behaviour, behaviour_in_loss
from tests.conformance.subject import LOST, Subject, fresh
from tests.conformance.wire import batch, records
from tests.waiting import eventually

PREFERRED, UNCLEAN = 0, 1


def reassigned(subject: Subject, topic: str, replicas: list[int] | None, partition: int = 0) -> list[int]:
    """Whole error, partition's error. None cancels."""
    topics = [{"name": topic, "partitions": [{"partition_index": partition, "replicas": replicas}]}]
    response = subject.request("AlterPartitionReassignments", 0, timeout_ms=9_000, topics=topics)
    return [response["error_code"], response["responses"][0]["partitions"][0]["error_code"]]


def moving(subject: Subject, topic: str) -> list[list[list[int]]]:
    """Replicas, adding, removing of partitions on the move."""
    topics = [{"name": topic, "partition_indexes": [0]}]
    response = subject.request("ListPartitionReassignments", 0, timeout_ms=9_000, topics=topics)
    return [
        [one["replicas"], one["adding_replicas"], one["removing_replicas"]]
        for each in response["topics"]
        for one in each["partitions"]
    ]


def elected(subject: Subject, topic: str, kind: int = PREFERRED, partition: int = 0) -> list[int]:
    """Whole error, then the partition's if it is named."""
    requested = [{"topic": topic, "partitions": [partition]}]
    response = subject.request("ElectLeaders", 2, election_type=kind, topic_partitions=requested, timeout_ms=9_000)
    codes = [one["error_code"] for each in response["replica_election_results"] for one in each["partition_result"]]
    return [response["error_code"], *codes]


def at_rest(subject: Subject, topic: str) -> None:
    eventually(lambda: not moving(subject, topic), f"{topic} has moved")


@behaviour("elections")
def the_first_replica_leads_a_new_partition_and_all_are_in_sync(subject: Subject) -> Outcome:
    topic = subject.topic(replicas=[[2, 3, 1]])
    one = subject.partition(topic)
    return [one["leader_id"], one["leader_epoch"], sorted(one["isr_nodes"])]


@behaviour("elections")
def a_new_order_of_replicas_elects_nobody(subject: Subject) -> Outcome:
    topic = subject.topic(replicas=[[1, 2]])
    code = reassigned(subject, topic, [2, 1])
    at_rest(subject, topic)
    eventually(lambda: subject.partition(topic)["replica_nodes"] == [2, 1], "the order is known")
    return [code, subject.leader(topic)]


@behaviour("elections")
def the_preferred_leader_is_elected_on_request(subject: Subject) -> Outcome:
    topic = subject.topic(replicas=[[1, 2]])
    reassigned(subject, topic, [2, 1])
    before = subject.partition(topic)["leader_epoch"]
    codes = elected(subject, topic)
    eventually(lambda: subject.leader(topic) == 2, "broker 2 leads")
    return [codes, subject.partition(topic)["leader_epoch"] - before]


@behaviour("elections")
def who_leads_already_needs_no_election(subject: Subject) -> Outcome:
    topic = subject.topic()
    return [elected(subject, topic), elected(subject, topic, UNCLEAN)]


@behaviour("elections")
def a_partition_that_is_not_there_elects_nobody(subject: Subject) -> Outcome:
    return [elected(subject, fresh("absent")), elected(subject, subject.topic(), partition=4)]


@behaviour("elections")
def an_election_of_an_unknown_kind_is_refused(subject: Subject) -> Outcome:
    topic = subject.topic()
    requested = [{"topic": topic, "partitions": [0]}]
    try:
        response = subject.request("ElectLeaders", 2, election_type=9, topic_partitions=requested, timeout_ms=9_000)
    except ConnectionError:
        return "hung up"
    return [response["error_code"], len(response["replica_election_results"])]


@behaviour("elections")
def a_partition_moves_to_other_brokers(subject: Subject) -> Outcome:
    topic = subject.topic(replicas=[[1, 2]])
    subject.produce(topic, batch(b"a", b"b"))
    code = reassigned(subject, topic, [3, 2])
    at_rest(subject, topic)
    eventually(lambda: subject.leader(topic) == 3, "broker 3 leads")
    one = subject.partition(topic)
    return [code, one["replica_nodes"], sorted(one["isr_nodes"]), records(subject.fetch(topic)["records"])]


@behaviour("elections")
def a_partition_is_given_more_replicas(subject: Subject) -> Outcome:
    topic = subject.topic(replicas=[[1]])
    subject.produce(topic)
    code = reassigned(subject, topic, [1, 2, 3])
    subject.await_isr(topic)
    at_rest(subject, topic)
    return [code, subject.partition(topic)["replica_nodes"], subject.leader(topic)]


@behaviour("elections")
def a_partition_is_left_fewer_replicas(subject: Subject) -> Outcome:
    topic = subject.topic(replicas=[[1, 2, 3]])
    code = reassigned(subject, topic, [2])
    at_rest(subject, topic)
    eventually(lambda: subject.leader(topic) == 2, "broker 2 leads")
    one = subject.partition(topic)
    return [code, one["replica_nodes"], one["isr_nodes"]]


@behaviour("elections")
def a_move_to_the_same_replicas_is_no_move(subject: Subject) -> Outcome:
    topic = subject.topic(replicas=[[1, 2]])
    return [reassigned(subject, topic, [1, 2]), moving(subject, topic), subject.partition(topic)["leader_epoch"]]


@behaviour("elections")
def a_move_that_is_not_under_way_cannot_be_cancelled(subject: Subject) -> Outcome:
    return reassigned(subject, subject.topic(), None)


@behaviour("elections")
def a_move_to_impossible_replicas_is_refused(subject: Subject) -> Outcome:
    topic = subject.topic(replicas=[[1, 2]])
    return [reassigned(subject, topic, target)[1] for target in ([9, 1], [1, 1], [], [-1, 1])]


@behaviour("elections")
def what_is_not_there_cannot_move(subject: Subject) -> Outcome:
    topic = subject.topic()
    return [reassigned(subject, fresh("absent"), [1])[1], reassigned(subject, topic, [1], partition=7)[1]]


@behaviour("elections")
def the_followers_leader_epoch_ends_where_the_next_began(subject: Subject) -> Outcome:
    topic = subject.topic(replicas=[[1, 2]])
    subject.produce(topic, batch(b"a", b"b"))
    reassigned(subject, topic, [2, 1])
    elected(subject, topic)
    eventually(lambda: subject.leader(topic) == 2 and subject.end(topic) is not None, "broker 2 leads")
    response = subject.produce(topic)
    requested = {"partition": 0, "current_leader_epoch": -1, "leader_epoch": 0}
    body = {"replica_id": -1, "topics": [{"topic": topic, "partitions": [requested]}]}
    found = subject.request("OffsetForLeaderEpoch", 4, broker=2, **body)["topics"][0]["partitions"][0]
    return [response["error_code"], response["base_offset"], found["leader_epoch"], found["end_offset"]]


@behaviour_in_loss("elections")
def the_next_in_sync_replica_leads_when_the_leader_is_lost(subject: Subject) -> Acts:
    topic = subject.topic(replicas=[[LOST, 2, 1]])
    before = subject.partition(topic)["leader_epoch"]
    yield
    subject.await_isr(topic, 1, 2)
    one = subject.partition(topic)
    lost = [one["leader_id"], one["leader_epoch"] - before]
    yield
    subject.await_isr(topic)
    return [lost, subject.leader(topic)]


@behaviour_in_loss("elections")
def a_lost_follower_costs_no_election(subject: Subject) -> Acts:
    topic = subject.topic(replicas=[[1, LOST]])
    yield
    subject.await_isr(topic, 1)
    one = subject.partition(topic)
    yield
    subject.await_isr(topic, 1, LOST)
    return [one["leader_id"], subject.leader(topic)]


@behaviour_in_loss("elections")
def a_lost_preferred_leader_is_not_available(subject: Subject) -> Acts:
    topic = subject.topic(replicas=[[LOST, 1]])
    yield
    subject.await_isr(topic, 1)
    lost = elected(subject, topic)
    yield
    subject.await_isr(topic, 1, LOST)
    back = elected(subject, topic)
    eventually(lambda: subject.leader(topic) == LOST, "the preferred leader leads")
    return [lost, back]


@behaviour_in_loss("elections")
def a_partition_whose_only_replica_is_lost_has_no_leader(subject: Subject) -> Acts:
    topic = subject.topic(replicas=[[LOST]])
    yield
    eventually(lambda: subject.leader(topic) == -1, "nobody leads")
    one = subject.partition(topic)
    lost = [one["error_code"], one["isr_nodes"], one["offline_replicas"], elected(subject, topic)]
    yield
    return lost


@behaviour_in_loss("elections")
def of_a_partition_without_a_leader_nothing_is_produced(subject: Subject) -> Acts:
    topic = subject.topic(replicas=[[LOST]])
    yield
    eventually(lambda: subject.leader(topic) == -1, "nobody leads")
    lost = [subject.produce(topic, broker=1)["error_code"], subject.fetch(topic, broker=1)["error_code"]]
    yield
    return lost


def lost_broker_known(subject: Subject) -> None:
    eventually(
        lambda: LOST not in {one["node_id"] for one in subject.request("Metadata", 9, topics=[])["brokers"]},
        "it is lost",
    )


@behaviour_in_loss("elections")
def a_move_to_a_lost_broker_waits_and_can_be_cancelled(subject: Subject) -> Acts:
    topic = subject.topic(replicas=[[1, 2]])
    yield
    lost_broker_known(subject)
    code = reassigned(subject, topic, [1, LOST])
    under_way = moving(subject, topic)
    cancelled = reassigned(subject, topic, None)
    at_rest(subject, topic)
    yield
    return [code, under_way, cancelled, subject.partition(topic)["replica_nodes"]]


@behaviour_in_loss("elections")
def with_nobody_else_an_unclean_election_finds_another(subject: Subject) -> Acts:
    topic = subject.topic(replicas=[[1, LOST]])
    yield
    subject.await_isr(topic, 1)
    lost = elected(subject, topic, UNCLEAN)
    yield
    subject.await_isr(topic, 1, LOST)
    return lost


@behaviour_in_loss("elections")
def a_replica_that_comes_back_catches_up_before_it_is_in_sync(subject: Subject) -> Acts:
    topic = subject.topic(replicas=[[1, LOST]])
    yield
    subject.await_isr(topic, 1)
    subject.produce(topic, batch(b"while it was away"))
    yield
    subject.await_isr(topic, 1, LOST)
    follower = subject.fetch(topic, broker=LOST, max_wait_ms=3_000)
    return [follower["error_code"], records(follower["records"])]


def _shape(subject: Subject, topic: str) -> Outcome:
    """What is moving, or where the replicas are if nothing is; and who is in sync, with the leader."""
    one = subject.partition(topic)
    return [moving(subject, topic) or one["replica_nodes"], sorted(one["isr_nodes"]), one["leader_id"]]


@behaviour_in_loss("elections")
def a_move_goes_on_until_the_replicas_that_stay_are_in_sync_too(subject: Subject) -> Acts:
    topic = subject.topic(replicas=[[1, LOST]])
    yield
    subject.await_isr(topic, 1)
    code = reassigned(subject, topic, [2, LOST])
    eventually(lambda: 2 in subject.partition(topic)["isr_nodes"], "broker 2 is in sync")
    under_way = _shape(subject, topic)
    yield
    at_rest(subject, topic)
    subject.await_isr(topic, 2, LOST)
    return [code, under_way, _shape(subject, topic)]


@behaviour_in_loss("elections")
def fewer_replicas_are_left_only_when_those_that_stay_are_in_sync(subject: Subject) -> Acts:
    topic = subject.topic(replicas=[[1, 2, LOST]])
    yield
    subject.await_isr(topic, 1, 2)
    code = reassigned(subject, topic, [1, LOST])
    under_way = _shape(subject, topic)
    yield
    at_rest(subject, topic)
    subject.await_isr(topic, 1, LOST)
    return [code, under_way, _shape(subject, topic)]


@behaviour_in_loss("elections")
def a_move_that_replaces_another_removes_at_its_end_what_that_one_added(subject: Subject) -> Acts:
    topic = subject.topic(replicas=[[1]])
    yield
    lost_broker_known(subject)
    codes = [reassigned(subject, topic, [2, LOST])]
    subject.await_isr(topic, 1, 2)
    shapes = [_shape(subject, topic)]
    for target in ([1, LOST], [LOST], [2, LOST, 1], [LOST, 2]):
        codes.append(reassigned(subject, topic, target))
        subject.settle()
        shapes.append(_shape(subject, topic))
    codes.append(reassigned(subject, topic, None))
    subject.settle()
    shapes.append(_shape(subject, topic))
    yield
    return [codes, shapes]


@behaviour_in_loss("elections")
def a_move_that_replaced_another_is_cancelled_to_the_replicas_before_it(subject: Subject) -> Acts:
    topic = subject.topic(replicas=[[1, 2]])
    yield
    lost_broker_known(subject)
    codes = [reassigned(subject, topic, [1, LOST]), reassigned(subject, topic, [2, LOST])]
    subject.settle()
    shapes = [_shape(subject, topic)]
    codes.append(reassigned(subject, topic, None))
    subject.settle()
    shapes.append(_shape(subject, topic))
    yield
    return [codes, shapes]
