"""Fetch, ListOffsets, OffsetForLeaderEpoch, DeleteRecords: what can be read, and from where."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait

from tests.conformance.behaviour import Acts, Outcome, behaviour, behaviour_in_loss
from tests.conformance.subject import LOST, Subject, fresh
from tests.conformance.wire import Body, batch, records
from tests.waiting import eventually

BUSY = {
    "COORDINATOR_LOAD_IN_PROGRESS": 14,
    "NOT_COORDINATOR": 16,
    "NOT_ENOUGH_REPLICAS": 19,
    "CONCURRENT_TRANSACTIONS": 51,
}
"""Of a coordinator that is loading, has moved, or is busy with the transaction before; 19 is how a leader passes it on."""


def filled(subject: Subject, count: int = 5) -> str:
    """A topic with as many batches of one record."""
    topic = subject.topic()
    for number in range(count):
        subject.produce(topic, batch(b"%d" % number, times=[1_000 * (number + 1)]))
    return topic


@behaviour("fetch")
def records_come_from_the_offset_on(subject: Subject) -> Outcome:
    topic = filled(subject)
    return [records(subject.fetch(topic, offset)["records"]) for offset in (0, 3, 5)]


@behaviour("fetch")
def an_offset_within_a_batch_gives_the_whole_batch(subject: Subject) -> Outcome:
    topic = subject.topic()
    subject.produce(topic, batch(b"a", b"b", b"c"))
    return records(subject.fetch(topic, 1)["records"])


@behaviour("fetch")
def an_offset_beyond_the_end_is_out_of_range(subject: Subject) -> Outcome:
    response = subject.fetch(filled(subject), 6)
    return [
        response["error_code"],
        response["high_watermark"],
        response["last_stable_offset"],
        response["log_start_offset"],
    ]


@behaviour("fetch")
def a_negative_offset_is_out_of_range(subject: Subject) -> Outcome:
    return subject.fetch(filled(subject), -5)["error_code"]


@behaviour("fetch")
def the_response_has_high_watermark_and_log_start(subject: Subject) -> Outcome:
    response = subject.fetch(filled(subject))
    return [response["high_watermark"], response["last_stable_offset"], response["log_start_offset"]]


@behaviour("fetch")
def of_an_oversized_first_batch_all_is_given(subject: Subject) -> Outcome:
    topic = subject.topic()
    subject.produce(topic, batch(b"x" * 5_000))
    subject.produce(topic, batch(b"next"))
    response = subject.fetch(topic, partition_max_bytes=100, max_bytes=100)
    return records(response["records"])[0]


@behaviour("fetch")
def a_small_limit_gives_at_least_the_first_batch(subject: Subject) -> Outcome:
    return records(subject.fetch(filled(subject), 2, partition_max_bytes=1)["records"])[:1]


@behaviour("fetch")
def an_empty_end_is_waited_at(subject: Subject) -> Outcome:
    topic = filled(subject)
    began = time.monotonic()
    response = subject.fetch(topic, 5, max_wait_ms=400)
    return [response["error_code"], records(response["records"]), time.monotonic() - began >= 0.35]


@behaviour("fetch")
def without_least_bytes_nothing_is_waited_for(subject: Subject) -> Outcome:
    topic = filled(subject)
    began = time.monotonic()
    subject.fetch(topic, 5, max_wait_ms=20_000, min_bytes=0)
    return time.monotonic() - began < 10


@behaviour("fetch")
def an_error_in_one_partition_keeps_nobody_from_waiting(subject: Subject) -> Outcome:
    topic = filled(subject)
    wanted = {topic: {0: 5}, fresh("absent"): {0: 0}}
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(subject.fetch_session, wanted, broker=subject.leader(topic), max_wait_ms=60_000)
        # A fetch that does not wait has returned by then; for one that waits nothing depends on it.
        wait([waiting], 0.3)
        subject.produce(topic, batch(b"late"))
    parts = [part for one in waiting.result()["responses"] for part in one["partitions"]]
    return sorted([part["error_code"], records(part["records"])] for part in parts)


@behaviour("fetch")
def a_topic_that_is_not_there_is_unknown(subject: Subject) -> Outcome:
    return subject.fetch(fresh("absent"), broker=1)["error_code"]


@behaviour("fetch")
def who_holds_no_replica_does_not_serve(subject: Subject) -> Outcome:
    topic = subject.topic(replicas=[[1, 2]])
    return subject.fetch(topic, broker=3)["error_code"]


@behaviour("fetch")
def a_follower_serves_up_to_its_high_watermark(subject: Subject) -> Outcome:
    topic = subject.topic(replicas=[[1, 2]])
    subject.produce(topic, batch(b"a"))
    response: Body = {}

    def served() -> bool:
        response.update(subject.fetch(topic, broker=2))
        return bool(records(response["records"]))

    eventually(served, "broker 2 has heard of the high watermark, with its next fetch")
    return [response["error_code"], records(response["records"])]


def log_end(subject: Subject, topic: str, broker: int, epoch: int) -> Outcome:
    """What a fetch beyond every log's end says of the log: error, high watermark, log start, diverging epoch, records."""
    response = subject.fetch(
        topic, 1 << 62, broker=broker, max_wait_ms=0, min_bytes=0, max_bytes=0, last_fetched_epoch=epoch
    )
    diverging = response["diverging_epoch"] or {"epoch": -1, "end_offset": -1}
    return [
        response["error_code"],
        response["high_watermark"],
        response["log_start_offset"],
        [diverging["epoch"], diverging["end_offset"]],
        len(records(response["records"])),
    ]


@behaviour("fetch")
def leader_and_follower_each_say_where_their_own_log_ends(subject: Subject) -> Outcome:
    topic = subject.topic(replicas=[[1, 2]])
    for value in (b"a", b"b", b"c"):
        subject.produce(topic, batch(value))
    eventually(lambda: log_end(subject, topic, 2, 0)[1] == 3, "broker 2 has heard of the high watermark")
    return [log_end(subject, topic, broker, 0) for broker in (1, 2)]


@behaviour("fetch")
def a_log_that_ends_in_an_earlier_epoch_is_out_of_range(subject: Subject) -> Outcome:
    topic = subject.topic(replicas=[[1, 2]])
    subject.produce(topic, batch(b"a"))
    return [log_end(subject, topic, broker, 1) for broker in (1, 2)]


@behaviour("fetch")
def an_empty_log_has_an_end_on_the_leader_alone(subject: Subject) -> Outcome:
    topic = subject.topic(replicas=[[1, 2]])
    return [log_end(subject, topic, broker, 0) for broker in (1, 2)]


@behaviour("fetch")
def a_newer_leader_epoch_than_the_leaders_is_unknown(subject: Subject) -> Outcome:
    return subject.fetch(filled(subject), leader_epoch=99)["error_code"]


@behaviour("fetch")
def the_current_leader_epoch_is_served(subject: Subject) -> Outcome:
    topic = filled(subject, 1)
    return [subject.fetch(topic, leader_epoch=0)["error_code"], subject.partition(topic)["leader_epoch"]]


@behaviour("fetch")
def an_older_leader_epoch_is_fenced(subject: Subject) -> Outcome:
    topic = subject.topic(replicas=[[1, 2]])
    requested = [{"name": topic, "partitions": [{"partition_index": 0, "replicas": [2, 1]}]}]
    subject.request("AlterPartitionReassignments", 0, timeout_ms=9_000, topics=requested)
    election = [{"topic": topic, "partitions": [0]}]
    subject.request("ElectLeaders", 2, election_type=0, topic_partitions=election, timeout_ms=9_000)
    subject.await_led(topic)
    # A broker's metadata has the epoch before its replicas have it.
    subject.settle()
    epoch = subject.partition(topic)["leader_epoch"]
    return [subject.fetch(topic, leader_epoch=one)["error_code"] for one in (epoch - 1, epoch)]


@behaviour("fetch")
def a_session_returns_only_what_changed(subject: Subject) -> Outcome:
    topic = filled(subject, 1)
    leader = subject.leader(topic)
    first = subject.fetch_session({topic: {0: 0}}, broker=leader, session=(0, 0))
    session = first["session_id"]
    second = subject.fetch_session({topic: {0: 1}}, broker=leader, session=(session, 1))
    return [first["error_code"], second["error_code"], second["responses"]]


@behaviour("fetch")
def a_session_that_is_not_there_is_not_found(subject: Subject) -> Outcome:
    topic = filled(subject, 1)
    return subject.fetch_session({topic: {0: 0}}, broker=subject.leader(topic), session=(123_456, 1))["error_code"]


@behaviour("fetch")
def without_a_session_epoch_no_session_is_made(subject: Subject) -> Outcome:
    topic = filled(subject, 1)
    return subject.fetch_session({topic: {0: 0}}, broker=subject.leader(topic), session=(0, -1))["session_id"]


@behaviour("fetch")
def of_an_unfinished_transaction_read_committed_sees_nothing(subject: Subject) -> Outcome:
    topic = in_transaction(subject)[0]
    responses = [subject.fetch(topic, isolation=isolation) for isolation in (0, 1)]
    return [[records(one["records"]), one["high_watermark"], one["last_stable_offset"]] for one in responses]


@behaviour("fetch")
def read_committed_gets_the_list_of_aborted_transactions(subject: Subject) -> Outcome:
    topic, name, producer = in_transaction(subject)
    ended(subject, topic, name, producer, committed=False)
    response = subject.fetch(topic, isolation=1)
    aborted = [[one["producer_id"] == producer[0], one["first_offset"]] for one in response["aborted_transactions"]]
    return [records(response["records"]), aborted]


@behaviour("fetch")
def a_committed_transaction_ends_with_a_marker(subject: Subject) -> Outcome:
    topic, name, producer = in_transaction(subject)
    ended(subject, topic, name, producer, committed=True)
    response = subject.fetch(topic, isolation=1)
    return [records(response["records"]), response["aborted_transactions"], response["last_stable_offset"]]


@behaviour("fetch")
def the_earliest_and_the_latest_offset_are_listed(subject: Subject) -> Outcome:
    topic = filled(subject)
    found = [subject.offsets(topic, which) for which in (-2, -1)]
    return [[one["error_code"], one["offset"], one["timestamp"], one["leader_epoch"]] for one in found]


@behaviour("fetch")
def the_offset_of_a_time_is_the_first_record_not_older(subject: Subject) -> Outcome:
    topic = filled(subject)
    found = [subject.offsets(topic, timestamp) for timestamp in (0, 2_000, 2_001, 5_000, 5_001)]
    return [[one["offset"], one["timestamp"]] for one in found]


@behaviour("fetch")
def within_a_batch_a_time_finds_its_record(subject: Subject) -> Outcome:
    topic = subject.topic()
    subject.produce(topic, batch(b"a", b"b", b"c", times=[100, 200, 300]))
    found = subject.offsets(topic, 150)
    return [found["offset"], found["timestamp"]]


@behaviour("fetch")
def the_record_of_the_highest_time_is_found(subject: Subject) -> Outcome:
    topic = subject.topic()
    subject.produce(topic, batch(b"a", b"b", b"c", times=[100, 900, 300]))
    found = subject.offsets(topic, -3)
    return [found["offset"], found["timestamp"]]


@behaviour("fetch")
def a_follower_lists_no_offsets(subject: Subject) -> Outcome:
    topic = subject.topic(replicas=[[1, 2]])
    return [subject.offsets(topic, -1, broker=broker)["error_code"] for broker in (2, 3)]


@behaviour("fetch")
def deleted_records_are_gone_for_everybody(subject: Subject) -> Outcome:
    topic = filled(subject)
    deleted = delete_records(subject, topic, 3)
    early = subject.fetch(topic, 0)["error_code"]
    late = subject.fetch(topic, 3)
    return [deleted, early, records(late["records"]), late["log_start_offset"], subject.offsets(topic, -2)["offset"]]


@behaviour("fetch")
def deleting_to_minus_1_means_to_the_high_watermark(subject: Subject) -> Outcome:
    return delete_records(subject, filled(subject), -1)


@behaviour("fetch")
def deleting_beyond_the_end_is_out_of_range(subject: Subject) -> Outcome:
    return delete_records(subject, filled(subject), 99)


@behaviour("fetch")
def the_end_of_an_epoch_is_returned(subject: Subject) -> Outcome:
    topic = filled(subject)
    return [epoch_end(subject, topic, epoch) for epoch in (0, 7)]


@behaviour("fetch")
def isolation_decides_what_the_latest_offset_is(subject: Subject) -> Outcome:
    topic = in_transaction(subject)[0]
    return [subject.offsets(topic, -1, isolation=isolation)["offset"] for isolation in (0, 1)]


@behaviour_in_loss("fetch")
def what_was_acknowledged_is_read_from_the_next_leader(subject: Subject) -> Acts:
    topic = subject.topic(replicas=[[LOST, 1, 2]])
    sent = subject.produce(topic, batch(b"kept"))["error_code"]
    yield
    subject.await_isr(topic, 1, 2)
    subject.await_led(topic)
    lost = [records(subject.fetch(topic, max_wait_ms=5_000)["records"]), epoch_end(subject, topic, 0)]
    subject.produce(topic, batch(b"later"))
    yield
    subject.await_isr(topic, 1, 2, LOST)
    return [sent, lost, records(subject.fetch(topic)["records"]), subject.partition(topic)["leader_id"]]


def in_transaction(subject: Subject) -> tuple[str, str, tuple[int, int]]:
    """A topic with one record before a transaction and one in it; the transaction's name and its producer."""
    topic, name = subject.topic(), fresh("txn")
    subject.produce(topic, batch(b"before"))
    producer = subject.producer_id(name)
    begin(subject, name, producer, topic)
    response = subject.produce(
        topic, batch(b"within", producer=producer, sequence=0, transactional=True), transactional_id=name
    )
    assert response["error_code"] == 0
    return topic, name, producer


def begin(subject: Subject, name: str, producer: tuple[int, int], topic: str) -> int:
    """Add the topic to the transaction; the code."""
    body = {
        "v3_and_below_transactional_id": name,
        "v3_and_below_producer_id": producer[0],
        "v3_and_below_producer_epoch": producer[1],
        "v3_and_below_topics": [{"name": topic, "partitions": [0]}],
    }

    def requested() -> int:
        response = subject.request("AddPartitionsToTxn", 3, broker=subject.coordinator(name, 1), **body)
        (result,) = response["results_by_topic_v3_and_below"][0]["results_by_partition"]
        return int(result["partition_error_code"])

    return of_a_ready_coordinator(requested)


def ended(subject: Subject, topic: str, name: str, producer: tuple[int, int], *, committed: bool) -> int:
    """End it, and wait for its marker where one is coming; the code."""
    code = of_a_ready_coordinator(lambda: end_code(subject, name, producer, committed=committed))
    if code == 0:
        eventually(
            lambda: subject.offsets(topic, -1, isolation=1)["offset"] == subject.end(topic), "its marker is written"
        )
    return code


def end_code(subject: Subject, name: str, producer: tuple[int, int], *, committed: bool) -> int:
    who = {"transactional_id": name, "producer_id": producer[0], "producer_epoch": producer[1]}
    response = subject.request("EndTxn", 3, broker=subject.coordinator(name, 1), committed=committed, **who)
    return int(response["error_code"])


def of_a_ready_coordinator(requested: Callable[[], int]) -> int:
    """The first code that is not of a coordinator that is busy."""
    codes: list[int] = []

    def is_ready() -> bool:
        codes.append(requested())
        return codes[-1] not in BUSY.values()

    eventually(is_ready, "the transaction's coordinator is ready")
    return codes[-1]


@behaviour("fetch")
def deleting_what_is_deleted_succeeds(subject: Subject) -> Outcome:
    """As Kafka Streams deletes from repartition topics, of which retention may have deleted more."""
    topic = filled(subject)
    return [delete_records(subject, topic, offset) for offset in (2, 1, 0, -2)]


@behaviour("fetch")
def a_special_time_is_known_from_its_version_on(subject: Subject) -> Outcome:
    topic = filled(subject)
    tries = [(time, version) for time in (-3, -4, -5, -6) for version in range(1, 12)] + [(-99, 7)]
    return [_special_code(subject, topic, time, version) for time, version in tries]


def _special_code(subject: Subject, topic: str, time: int, version: int) -> int | None:
    """None if the version is not offered: the connection is closed."""
    try:
        return int(subject.offsets(topic, time, version=version)["error_code"])
    except ConnectionError:
        return None


@behaviour("fetch")
def of_a_topic_that_is_only_compacted_nothing_is_deleted(subject: Subject) -> Outcome:
    topics = [subject.topic(cleanup_policy=policy) for policy in ("compact", "compact,delete")]
    for topic in topics:
        subject.produce(topic, batch(b"one", keys=[b"key"]))
    return [delete_records(subject, topic, 1) for topic in topics]


@behaviour("fetch")
def of_an_internal_topic_nothing_is_deleted(subject: Subject) -> Outcome:
    subject.coordinator(fresh("group"))
    return delete_records(subject, "__consumer_offsets", 0)


def delete_records(subject: Subject, topic: str, offset: int) -> list[int]:
    partitions = [{"partition_index": 0, "offset": offset}]
    body = {"topics": [{"name": topic, "partitions": partitions}], "timeout_ms": 9_000}
    response = subject.request("DeleteRecords", 2, broker=subject.leader(topic), **body)["topics"][0]["partitions"][0]
    return [response["error_code"], response["low_watermark"]]


def epoch_end(subject: Subject, topic: str, epoch: int) -> list[int]:
    one = {"partition": 0, "current_leader_epoch": -1, "leader_epoch": epoch}
    body = {"replica_id": -1, "topics": [{"topic": topic, "partitions": [one]}]}
    response = subject.request("OffsetForLeaderEpoch", 4, broker=subject.leader(topic), **body)["topics"][0][
        "partitions"
    ][0]
    return [response["error_code"], response["leader_epoch"], response["end_offset"]]


@behaviour("fetch")
def an_internal_topic_is_in_no_transaction_of_clients(subject: Subject) -> Outcome:
    subject.coordinator(fresh("group"))
    name = fresh("tx")
    producer = subject.producer_id(name)
    return [begin(subject, name, producer, "__consumer_offsets"), begin(subject, name, producer, subject.topic())]


@behaviour("fetch")
def the_leader_epoch_of_an_empty_log(subject: Subject) -> Outcome:
    topic = subject.topic()
    empty = [subject.offsets(topic, at) for at in (-1, -2, -3, 0)]
    subject.produce(topic, batch(b"a"))
    filled = [subject.offsets(topic, at) for at in (-1, -2, -3, 0)]
    return [[[one["offset"], one["timestamp"] > 0, one["leader_epoch"]] for one in found] for found in (empty, filled)]
