"""Produce: what a leader takes, what it refuses, and what it responses."""

from crc32c import crc32c
from kafka.record.default_records import DefaultRecordBatch

from rackspan.wire.apis import ApiKey
from rackspan.wire.codec import read_response, write_request
from rackspan.wire.messages.produce import PartitionProduceData, ProduceRequestData, TopicProduceData
from tests.conformance.behaviour import Acts, Outcome, behaviour, behaviour_in_loss
from tests.conformance.subject import LOST, Subject, fresh
from tests.conformance.wire import batch, batches, records

COMPRESSIONS = {"gzip": 1}


@behaviour("produce")
def the_first_record_gets_offset_0_and_the_next_batch_follows_the_last(subject: Subject) -> Outcome:
    topic = subject.topic()
    sent = [subject.produce(topic, batch(*[b"x"] * count)) for count in (3, 1, 2)]
    return [[one["error_code"], one["base_offset"], one["log_start_offset"]] for one in sent]


@behaviour("produce")
def the_log_append_time_is_returned_only_where_it_counts(subject: Subject) -> Outcome:
    return subject.produce(subject.topic())["log_append_time_ms"]


@behaviour("produce")
def acks_0_gets_no_response_and_is_appended(subject: Subject) -> Outcome:
    topic = subject.topic(factor=1)
    response = subject.produce(topic, acks=0)
    found = subject.fetch(topic, max_wait_ms=5_000)
    return [response, records(found["records"])]


@behaviour("produce")
def an_error_with_acks_0_ends_the_connection(subject: Subject) -> Outcome:
    topic = subject.topic(replicas=[[1, 2]])
    data = [PartitionProduceData(index=0, records=memoryview(batch(b"one")))]
    body = ProduceRequestData(acks=0, timeout=5_000, topic_data=[TopicProduceData(name=topic, partition_data=data)])
    request = b"".join(write_request(ApiKey.PRODUCE, 9, 1, None, body))
    return subject.request_raw(request, broker=2)


@behaviour("produce")
def an_internal_topic_takes_no_records_of_clients(subject: Subject) -> Outcome:
    subject.coordinator(fresh("group"))
    response = subject.produce("__consumer_offsets")
    return [response["error_code"], response["base_offset"]]


@behaviour("produce")
def acks_1_is_enough(subject: Subject) -> Outcome:
    return subject.produce(subject.topic(), acks=1)["error_code"]


@behaviour("produce")
def acks_2_is_no_number_of_acks(subject: Subject) -> Outcome:
    response = subject.produce(subject.topic(), acks=2)
    return [response["error_code"], response["base_offset"]]


@behaviour("produce")
def a_batch_whose_bytes_were_changed_is_corrupt(subject: Subject) -> Outcome:
    topic = subject.topic()
    data = bytearray(batch(b"precious"))
    data[-2] ^= 0x55
    return [subject.produce(topic, bytes(data))["error_code"], subject.end(topic)]


@behaviour("produce")
def a_batch_larger_than_the_topic_allows_is_refused(subject: Subject) -> Outcome:
    topic = subject.topic(max_message_bytes=1000)
    return [subject.produce(topic, batch(b"x" * size))["error_code"] for size in (2000, 500)]


@behaviour("produce")
def a_batch_begins_at_offset_0(subject: Subject) -> Outcome:
    """One that was fetched is not sent again as it is."""
    topic = subject.topic()
    subject.produce(topic, batch(b"one", b"two"))
    subject.produce(topic, batch(b"three"))
    sent = (7).to_bytes(8) + batch(b"four")[8:]
    return [subject.produce(topic, sent)["error_code"], subject.end(topic)]


@behaviour("produce")
def two_batches_in_one_partition_of_a_request_are_refused(subject: Subject) -> Outcome:
    topic = subject.topic()
    return [subject.produce(topic, batch(b"a") + batch(b"b"))["error_code"], subject.end(topic)]


@behaviour("produce")
def an_unknown_magic_is_refused(subject: Subject) -> Outcome:
    data = bytearray(batch(b"a"))
    data[16] = 3
    return subject.produce(subject.topic(), bytes(data))["error_code"]


@behaviour("produce")
def a_codec_that_is_none_is_refused(subject: Subject) -> Outcome:
    """Numbers 5 to 7 name none."""
    outcomes = []
    for codec in (5, 6, 7):
        topic, data = subject.topic(), bytearray(batch(b"a"))
        data[22] |= codec
        data[17:21] = crc32c(bytes(data[21:])).to_bytes(4)
        records = [PartitionProduceData(index=0, records=memoryview(bytes(data)))]
        body = ProduceRequestData(
            acks=-1, timeout=5_000, topic_data=[TopicProduceData(name=topic, partition_data=records)]
        )
        request = b"".join(write_request(ApiKey.PRODUCE, 9, 1, None, body))
        response = subject.request_raw(request, broker=subject.leader(topic))
        code = None
        if response is not None:
            read = read_response(ApiKey.PRODUCE, 9, response)
            code = read.responses[0].partition_responses[0].error_code
        outcomes.append([code, subject.end(topic)])
    return outcomes


@behaviour("produce")
def a_control_batch_of_a_client_is_refused(subject: Subject) -> Outcome:
    topic, data = subject.topic(), bytearray(batch(b"a", keys=[b"\0\0\0\1"]))
    data[22] |= 0x20
    data[17:21] = crc32c(bytes(data[21:])).to_bytes(4)
    return [subject.produce(topic, bytes(data))["error_code"], subject.end(topic)]


@behaviour("produce")
def a_producer_id_without_a_sequence_number_is_refused(subject: Subject) -> Outcome:
    topic, producer = subject.topic(), subject.producer_id()
    return [subject.produce(topic, batch(b"a", producer=producer, sequence=-1))["error_code"], subject.end(topic)]


@behaviour("produce")
def a_batch_whose_count_or_last_offset_is_wrong_is_refused(subject: Subject) -> Outcome:
    outcomes = []
    for at, value in ((23, 5), (57, 7), (57, 0), (57, -1)):
        topic, data = subject.topic(), bytearray(batch(b"a", b"b"))
        data[at : at + 4] = value.to_bytes(4, signed=True)
        data[17:21] = crc32c(bytes(data[21:])).to_bytes(4)
        outcomes.append([subject.produce(topic, bytes(data))["error_code"], subject.end(topic)])
    return outcomes


@behaviour("produce")
def compressed_records_are_kept_as_they_came(subject: Subject) -> Outcome:
    topic = subject.topic()
    codes = [
        subject.produce(topic, batch(b"x" * 300, compression=codec))["error_code"] for codec in COMPRESSIONS.values()
    ]
    found = batches(subject.fetch(topic)["records"])
    return [codes, [one.compression_type for one in found]]


@behaviour("produce")
def a_topic_with_a_compression_of_its_own_is_written_in_it(subject: Subject) -> Outcome:
    topic = subject.topic(compression_type="gzip")
    subject.produce(topic, batch(b"x" * 300))
    found = batches(subject.fetch(topic)["records"])
    return [one.compression_type for one in found]


@behaviour("produce")
def a_compacted_topic_refuses_records_without_keys(subject: Subject) -> Outcome:
    topic = subject.topic(cleanup_policy="compact")
    codes = [subject.produce(topic, one)["error_code"] for one in (batch(b"a"), batch(b"a", keys=[b"k"]))]
    return [codes, subject.end(topic)]


@behaviour("produce")
def records_without_keys_are_named_one_by_one(subject: Subject) -> Outcome:
    topic = subject.topic(cleanup_policy="compact")
    response = subject.produce(topic, batch(b"a", b"b", b"c", keys=[None, b"k", None]))
    errors = [[error["batch_index"], error["batch_index_error_message"]] for error in response["record_errors"]]
    named = [[index, message.replace(topic, "TOPIC")] for index, message in errors]
    return [response["error_code"], named, response["error_message"].replace(topic, "TOPIC")]


@behaviour("produce")
def blanks_in_a_cleanup_policy_change_nothing(subject: Subject) -> Outcome:
    topic = subject.topic(cleanup_policy=" delete , compact ")
    codes = [subject.produce(topic, one)["error_code"] for one in (batch(b"a"), batch(b"a", keys=[b"k"]))]
    return [codes, subject.end(topic)]


@behaviour("produce")
def a_topic_with_log_append_time_returns_it(subject: Subject) -> Outcome:
    topic = subject.topic(message_timestamp_type="LogAppendTime")
    response = subject.produce(topic, batch(b"old", times=[5]))
    (found,) = batches(subject.fetch(topic)["records"])
    return [
        response["log_append_time_ms"] > 1_000_000_000_000,
        found.timestamp_type,
        found.max_timestamp == response["log_append_time_ms"],
    ]


@behaviour("produce")
def a_record_from_a_far_future_is_refused(subject: Subject) -> Outcome:
    far = 4_000_000_000_000
    return subject.produce(subject.topic(), batch(b"soon", times=[far]))["error_code"]


@behaviour("produce")
def a_timestamp_older_than_the_topic_bears_is_refused(subject: Subject) -> Outcome:
    topic = subject.topic(message_timestamp_before_max_ms=1000)
    return subject.produce(topic, batch(b"old", times=[5]))["error_code"]


@behaviour("produce")
def a_broker_that_does_not_lead_refuses(subject: Subject) -> Outcome:
    topic = subject.topic(replicas=[[1, 2]])
    return [subject.produce(topic, broker=broker)["error_code"] for broker in (2, 3)]


@behaviour("produce")
def from_version_10_on_the_refusal_names_the_leader(subject: Subject) -> Outcome:
    topic = subject.topic(replicas=[[1, 2]])
    response = subject.produce(topic, broker=2, version=10)
    return [response["error_code"], response["current_leader"]]


@behaviour("produce")
def a_topic_that_is_not_there_is_unknown(subject: Subject) -> Outcome:
    return subject.produce(fresh("absent"), broker=1)["error_code"]


@behaviour("produce")
def a_partition_that_is_not_there_is_unknown(subject: Subject) -> Outcome:
    return subject.produce(subject.topic(), partition=5, broker=1)["error_code"]


@behaviour("produce")
def an_idempotent_batch_sent_twice_is_appended_once(subject: Subject) -> Outcome:
    topic, producer = subject.topic(), subject.producer_id()
    one = batch(b"a", b"b", producer=producer, sequence=0)
    sent = [subject.produce(topic, one) for _ in range(2)]
    return [[[each["error_code"], each["base_offset"]] for each in sent], subject.end(topic)]


@behaviour("produce")
def a_gap_in_the_sequence_is_out_of_order(subject: Subject) -> Outcome:
    topic, producer = subject.topic(), subject.producer_id()
    sent = [subject.produce(topic, batch(b"a", producer=producer, sequence=one)) for one in (0, 2, 1)]
    return [[one["error_code"], one["base_offset"]] for one in sent]


@behaviour("produce")
def of_duplicates_the_last_five_batches_are_remembered(subject: Subject) -> Outcome:
    topic, producer = subject.topic(), subject.producer_id()
    made = [batch(b"a", producer=producer, sequence=one) for one in range(7)]
    for one in made:
        subject.produce(topic, one)
    return [
        [response["error_code"], response["base_offset"]] for response in (subject.produce(topic, one) for one in made)
    ]


@behaviour("produce")
def a_producer_of_an_older_epoch_is_fenced(subject: Subject) -> Outcome:
    topic, (producer, epoch) = subject.topic(), subject.producer_id()
    epochs = (epoch + 1, epoch)
    return [subject.produce(topic, batch(b"a", producer=(producer, one), sequence=0))["error_code"] for one in epochs]


@behaviour("produce")
def a_new_epoch_starts_its_sequence_at_0(subject: Subject) -> Outcome:
    topic, (producer, epoch) = subject.topic(), subject.producer_id()
    tries = ((epoch, 0), (epoch + 1, 5), (epoch + 1, 0))
    return [
        subject.produce(topic, batch(b"a", producer=(producer, one), sequence=sequence))["error_code"]
        for one, sequence in tries
    ]


@behaviour("produce")
def an_unknown_producer_may_begin_with_any_sequence(subject: Subject) -> Outcome:
    topic, producer = subject.topic(), subject.producer_id()
    return subject.produce(topic, batch(b"a", producer=producer, sequence=9))["error_code"]


@behaviour("produce")
def by_topic_id_a_batch_is_appended_and_an_unknown_id_refused(subject: Subject) -> Outcome:
    topic = subject.topic()
    (known,) = subject.request("Metadata", 12, topics=[{"name": topic}])["topics"]
    codes = []
    for topic_id in (known["topic_id"], "00000000-0000-4000-8000-0000000000aa"):
        one = {"index": 0, "records": batch(b"a")}
        body = {"transactional_id": None, "acks": -1, "timeout_ms": 5000}
        data = [{"topic_id": topic_id, "partition_data": [one]}]
        response = subject.request("Produce", 13, broker=subject.leader(topic), topic_data=data, **body)
        codes.append(response["responses"][0]["partition_responses"][0]["error_code"])
    return codes


@behaviour("produce")
def headers_and_keys_come_back_as_they_went(subject: Subject) -> Outcome:
    topic = subject.topic()
    subject.produce(topic, batch(b"v", keys=[b"k"], headers=[("h", b"1"), ("h", b"2")]))
    (one,) = batches(subject.fetch(topic)["records"])
    (record,) = one
    return [record.key.decode(), record.value.decode(), [[key, value.decode()] for key, value in record.headers]]


@behaviour("produce")
def the_leader_writes_offset_and_epoch_into_the_batch(subject: Subject) -> Outcome:
    topic = subject.topic()
    for _ in range(2):
        subject.produce(topic, batch(b"a", b"b"))
    found: list[DefaultRecordBatch] = batches(subject.fetch(topic)["records"])
    return [[one.base_offset, one.leader_epoch, one.last_offset, one.validate_crc()] for one in found]


@behaviour_in_loss("produce")
def below_min_insync_replicas_acks_all_is_refused_and_acks_1_is_not(subject: Subject) -> Acts:
    topic = subject.topic(replicas=[[1, LOST]], min_insync_replicas=2)
    yield
    subject.await_isr(topic, 1)
    # A leader without that metadata lets it wait for broker 3 in vain.
    refused = [subject.produce(topic)["error_code"] for _ in range(2)][-1]
    weak = subject.produce(topic, acks=1)["error_code"]
    yield
    subject.await_isr(topic, 1, LOST)
    return [refused, weak, subject.produce(topic)["error_code"]]
