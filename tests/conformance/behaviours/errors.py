"""Invalid requests, and what becomes of the clients that send them."""

import socket
from struct import pack, unpack
from typing import Any

from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.conformance.behaviour import Outcome, behaviour
from tests.conformance.behaviours.fetch import begin, end_code, ended, in_transaction, of_a_ready_coordinator
from tests.conformance.behaviours.groups import Group
from tests.conformance.subject import Subject, fresh, new_topic
from tests.conformance.wire import batch, connected, received
from tests.waiting import WITHIN_SECONDS, eventually


def header(api: int, version: int, client: bytes = b"conformance") -> bytes:
    return pack(">hhih", api, version, 7, len(client)) + client


def made(subject: Subject, **topic: Any) -> int:
    return int(subject.create(new_topic(**{"name": fresh("topic"), **topic}))[0]["error_code"])


@behaviour("errors")
def api_versions_in_an_unknown_version_gets_version_0(subject: Subject) -> Outcome:
    response = subject.request_raw(header(18, 99) + b"\0")
    assert response is not None
    correlation, code, count = unpack(">ihi", response[:10])
    return [correlation, code, len(response) == 10 + 6 * count]


@behaviour("errors")
def any_other_unknown_version_costs_the_connection(subject: Subject) -> Outcome:
    return [subject.request_raw(header(3, 99)), subject.request_raw(header(1, 0)), subject.request_raw(header(19, 0))]


@behaviour("errors")
def an_unknown_request_costs_the_connection(subject: Subject) -> Outcome:
    return [subject.request_raw(header(999, 0)), subject.request_raw(header(-3, 0))]


@behaviour("errors")
def a_request_cut_short_costs_the_connection(subject: Subject) -> Outcome:
    return [
        subject.request_raw(header(3, 1) + b"\x00\x00"),
        subject.request_raw(b"\x00\x03\x00"),
        subject.request_raw(b""),
    ]


@behaviour("errors")
def a_size_below_0_costs_the_connection(subject: Subject) -> Outcome:
    with connected(subject.address(1)) as link:
        link.sendall(pack(">i", -5))
        return link.recv(1).decode()


@behaviour("errors")
def responses_come_in_the_order_of_requests(subject: Subject) -> Outcome:
    with connected(subject.address(1)) as link:
        for correlation in range(5):
            request = pack(">hhih", 18, 0, correlation, -1)
            link.sendall(pack(">i", len(request)) + request)
        return [unpack(">i", received(link)[:4])[0] for _ in range(5)]


@behaviour("errors")
def a_client_may_be_nameless(subject: Subject) -> Outcome:
    response = subject.request_raw(pack(">hhih", 18, 0, 3, -1))
    return None if response is None else list(unpack(">ih", response[:6]))


@behaviour("errors")
def a_client_that_goes_in_the_middle_is_missed_by_nobody(subject: Subject) -> Outcome:
    link: socket.socket = connected(subject.address(1))
    link.sendall(pack(">i", 100) + b"half")
    link.close()
    return subject.request("ApiVersions", 0)["error_code"]


@behaviour("errors")
def a_program_without_a_name_is_refused(subject: Subject) -> Outcome:
    names = ((b"", b""), (b"-odd-", b"1"), (b"fine", b"1.0"))
    responses = [
        subject.request_raw(header(18, 3) + b"\0" + _compact(name) + _compact(one) + b"\0") for name, one in names
    ]
    return [None if response is None else unpack(">h", response[4:6])[0] for response in responses]


def _compact(text: bytes) -> bytes:
    return bytes([len(text) + 1]) + text


@behaviour("errors")
def a_client_that_means_another_broker_or_cluster_has_to_start_again(subject: Subject) -> Outcome:
    """KIP-1242, against connections that a load balancer leads elsewhere."""
    own = subject.request("Metadata", 2, topics=[])["cluster_id"].encode()
    meant = ((None, -1), (None, 2), (own, 1), (own, 2), (own, -1), (b"another", 1))
    start = header(18, 5) + b"\0" + _compact(b"fine") + _compact(b"1.0")
    responses = [
        subject.request_raw(start + (_compact(cluster) if cluster else b"\0") + pack(">i", broker) + b"\0")
        for cluster, broker in meant
    ]
    return [None if response is None else unpack(">h", response[4:6])[0] for response in responses]


@behaviour("errors")
def the_least_versions_of_what_clients_use_are_offered(subject: Subject) -> Outcome:
    offered = {one["api_key"]: one["min_version"] for one in subject.request("ApiVersions", 0)["api_keys"]}
    keys = [*range(4), *range(8, 17), *range(18, 29), 32, 33, 37, 42, 43, 44, 45, 46, 47, 60, 61, 65, 66, 75]
    return {key: offered.get(key) for key in keys}


@behaviour("errors")
def a_topics_name_has_its_rules(subject: Subject) -> Outcome:
    names = ("", ".", "..", "a b", "ä", "x" * 250, "a/b")
    return [made(subject, name=name) for name in names]


@behaviour("errors")
def counts_that_cannot_be_are_refused(subject: Subject) -> Outcome:
    tries = [{"partitions": 0}, {"partitions": -2}, {"factor": 0}, {"factor": -2}, {"factor": 4}]
    return [made(subject, **one) for one in tries]


@behaviour("errors")
def replicas_by_hand_that_cannot_be_are_refused(subject: Subject) -> Outcome:
    rows: list[list[list[int]]] = [[[1, 1]], [[9]], [[]], [[1, 2], [3]], [[-1]]]
    return [made(subject, replicas=one) for one in rows]


@behaviour("errors")
def replicas_by_hand_and_counts_do_not_go_together(subject: Subject) -> Outcome:
    both = {**new_topic(fresh("topic"), replicas=[[1]]), "num_partitions": 1}
    gap = {**new_topic(fresh("topic"), replicas=[[1]]), "assignments": [{"partition_index": 1, "broker_ids": [1]}]}
    return [subject.create(one)[0]["error_code"] for one in (both, gap)]


@behaviour("errors")
def wrong_configs_keep_a_topic_from_coming(subject: Subject) -> Outcome:
    return [made(subject, no_such_key="1"), made(subject, retention_ms="soon"), made(subject, cleanup_policy="burn")]


@behaviour("errors")
def transactions_have_bounds(subject: Subject) -> Outcome:
    def code(name: str | None, timeout_ms: int) -> int:
        broker = subject.coordinator(name or "x", 1)
        body = {"transaction_timeout_ms": timeout_ms, "producer_id": -1, "producer_epoch": -1}
        return int(subject.request("InitProducerId", 4, broker=broker, transactional_id=name, **body)["error_code"])

    subject.producer_id(fresh("txn"))
    return [code(fresh("txn"), 0), code(fresh("txn"), 10**9), code("", 1000)]


@behaviour("errors")
def a_second_producer_of_the_name_fences_the_first(subject: Subject) -> Outcome:
    topic, name, first = in_transaction(subject)
    second = subject.producer_id(name)
    return [
        second[0] == first[0],
        second[1] > first[1],
        begin(subject, name, first, topic),
        ended(subject, topic, name, first, committed=True),
    ]


@behaviour("errors")
def a_transaction_that_did_not_begin_does_not_end(subject: Subject) -> Outcome:
    name = fresh("txn")
    producer = subject.producer_id(name)
    topic = subject.topic()
    return ended(subject, topic, name, producer, committed=True)


@behaviour("errors")
def a_transaction_of_an_unknown_producer_is_refused(subject: Subject) -> Outcome:
    topic, name = subject.topic(), fresh("txn")
    producer, epoch = subject.producer_id(name)
    tries = ((producer + 1, epoch), (producer, epoch + 1))
    return [begin(subject, name, one, topic) for one in tries]


@behaviour("errors")
def a_transaction_that_ended_is_not_ended_otherwise(subject: Subject) -> Outcome:
    topic, name, producer = in_transaction(subject)
    return [ended(subject, topic, name, producer, committed=one) for one in (True, True, False)]


@behaviour("errors")
def a_transactional_batch_outside_its_transaction_is_refused(subject: Subject) -> Outcome:
    return [_sent_outside(subject, version) for version in (9, 11)]


@behaviour("errors")
def from_version_12_on_a_transactional_batch_adds_its_partition(subject: Subject) -> Outcome:
    topic, name = subject.topic(), fresh("txn")
    producer = subject.producer_id(name)
    data = batch(b"a", producer=producer, sequence=0, transactional=True)
    sent = of_a_ready_coordinator(
        lambda: int(subject.produce(topic, data, transactional_id=name, version=12)["error_code"])
    )
    open_end = subject.offsets(topic, -1, isolation=1)["offset"]
    return [sent, open_end, ended(subject, topic, name, producer, committed=True), subject.end(topic)]


@behaviour("errors")
def from_version_12_on_a_batch_of_a_fenced_producer_adds_nothing(subject: Subject) -> Outcome:
    topic, name = subject.topic(), fresh("txn")
    producer = subject.producer_id(name)
    subject.producer_id(name)
    data = batch(b"a", producer=producer, sequence=0, transactional=True)
    sent = of_a_ready_coordinator(
        lambda: int(subject.produce(topic, data, transactional_id=name, version=12)["error_code"])
    )
    return [sent, subject.end(topic)]


@behaviour("errors")
def once_verified_a_transaction_goes_on_and_ends_for_its_batches(subject: Subject) -> Outcome:
    topic, name, producer = in_transaction(subject)

    def sent(sequence: int) -> int:
        data = batch(b"a", producer=producer, sequence=sequence, transactional=True)
        return of_a_ready_coordinator(lambda: int(subject.produce(topic, data, transactional_id=name)["error_code"]))

    return [sent(1), ended(subject, topic, name, producer, committed=True), sent(2), subject.end(topic)]


@behaviour("errors")
def a_transactional_batch_of_an_unknown_name_or_epoch_is_refused(subject: Subject) -> Outcome:
    _, name, (producer, epoch) = in_transaction(subject)
    other = subject.topic()
    tries = ((fresh("txn"), (producer, epoch)), (name, (producer, epoch + 1)), (name, (producer + 1, epoch)))
    return [
        subject.produce(other, batch(b"a", producer=one, sequence=0, transactional=True), transactional_id=who)[
            "error_code"
        ]
        for who, one in tries
    ]


@behaviour("errors")
def a_transactional_batch_needs_a_transactions_name(subject: Subject) -> Outcome:
    topic, name = subject.topic(), fresh("txn")
    data = batch(b"a", producer=subject.producer_id(name), sequence=0, transactional=True)
    plain = batch(b"a", producer=subject.producer_id(), sequence=0)
    return [
        subject.produce(topic, data)["error_code"],
        subject.produce(topic, plain, transactional_id=name)["error_code"],
        subject.end(topic),
    ]


@behaviour("errors")
def offsets_outside_their_transaction_are_not_committed_with_it(subject: Subject) -> Outcome:
    group, topic, name = Group.of(subject), subject.topic(), fresh("txn")
    producer = subject.producer_id(name)

    def code(version: int) -> int:
        return of_a_ready_coordinator(lambda: group.commit_in(name, producer, topic, 4, version))

    return [code(3), code(4), group.committed(topic)]


@behaviour("errors")
def from_version_5_on_offsets_add_their_group_to_the_transaction(subject: Subject) -> Outcome:
    group, topic, name = Group.of(subject), subject.topic(), fresh("txn")
    producer = subject.producer_id(name)
    code = of_a_ready_coordinator(lambda: group.commit_in(name, producer, topic, 4, 5))
    end = of_a_ready_coordinator(lambda: end_code(subject, name, producer, committed=True))
    eventually(lambda: group.committed(topic)[0][1] == 4, "the marker has come")
    return [code, end]


def _sent_outside(subject: Subject, version: int) -> int:
    topic, name = subject.topic(), fresh("txn")
    data = batch(b"a", producer=subject.producer_id(name), sequence=0, transactional=True)
    return int(subject.produce(topic, data, transactional_id=name, version=version)["error_code"])


@behaviour("errors")
def a_partition_that_is_not_there_joins_no_transaction(subject: Subject) -> Outcome:
    name = fresh("txn")
    return begin(subject, name, subject.producer_id(name), fresh("absent"))


@behaviour("errors")
def a_kind_of_coordinator_that_is_none_is_refused(subject: Subject) -> Outcome:
    response = subject.request("FindCoordinator", 3, key="x", key_type=9)
    return [response["error_code"], response["node_id"]]


@behaviour("errors")
def records_of_nothing_are_not_deleted(subject: Subject) -> Outcome:
    from tests.conformance.behaviours.fetch import delete_records

    topic = subject.topic()
    requested = [{"name": fresh("absent"), "partitions": [{"partition_index": 0, "offset": 1}]}]
    response = subject.request("DeleteRecords", 2, topics=requested, timeout_ms=900)["topics"][0]["partitions"][0]
    return [response["error_code"], delete_records(subject, topic, -7)]


@behaviour("errors")
def librdkafka_names_what_was_refused(subject: Subject) -> Outcome:
    admin = AdminClient({"bootstrap.servers": subject.bootstrap_servers})
    observed = []
    for topic in (NewTopic("bad name", 1, 1), NewTopic(fresh("t"), 1, 9), NewTopic(fresh("t"), 0, 1)):
        try:
            admin.create_topics([topic])[topic.topic].result(WITHIN_SECONDS)
        except KafkaException as refused:
            observed.append(refused.args[0].name())
    return observed


@behaviour("errors")
def librdkafka_gives_up_a_batch_that_is_too_large(subject: Subject) -> Outcome:
    topic, observed = subject.topic(max_message_bytes=100), []
    producer = Producer({"bootstrap.servers": subject.bootstrap_servers})
    producer.produce(topic, b"x" * 500, on_delivery=lambda error, _: observed.append(error.name() if error else None))
    producer.flush(WITHIN_SECONDS)
    return observed
