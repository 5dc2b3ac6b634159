"""A topic that is deleted and created again under a stream, at every point where that can happen, on the embedded cluster."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from rackspan.cluster import EmbeddedCluster
from rackspan.errors import ClusterRequestFailed
from rackspan.kafka_source.cluster import SourceCluster, SourceMetadata
from rackspan.kafka_source.data_source import KafkaReader
from rackspan.kafka_source.options import parse
from rackspan.kafka_source.range_partition import RangePartition
from rackspan.kafka_source.reading.task import _RangeReader
from rackspan.kafka_source.stream_reader import KafkaStreamReader
from tests.kafka_fixtures import create_topic
from tests.kafka_source.filled_topics import created, deleted, produced
from tests.waiting import WITHIN_SECONDS

Document = dict[str, dict[str, Any]]


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(KafkaStreamReader, "_sleep", lambda *_: None)
    monkeypatch.setattr("rackspan.kafka_source.reading.progress.OTHER_IDS", 2)


def create_again(cluster: EmbeddedCluster, topic: str, records: int, partitions: int = 2) -> None:
    deleted(cluster, topic)
    fill_new(cluster, topic, records, partitions)


def fill_new(cluster: EmbeddedCluster, topic: str, records: int, partitions: int = 2) -> None:
    create_topic(cluster, topic, partitions=partitions, replication_factor=3, config={"retention.ms": "-1"})
    produced(cluster.bootstrap_servers, topic, records, partitions=partitions)


class Stream:
    """A reader as Spark drives it: a micro-batch a call, its end the start of the next one, the checkpoint as JSON."""

    def __init__(self, cluster: EmbeddedCluster, **options: str) -> None:
        given = {
            "kafka.bootstrap.servers": cluster.bootstrap_servers,
            "startingOffsets": "earliest",
            "kafka.client.rack": "r1",
        }
        self.reader = KafkaStreamReader(parse({**given, **options}, streaming=True), ("partition", "offset"))
        self.checkpoint: str = "null"

    def plan(self) -> tuple[Document, list[RangePartition]]:
        start = json.loads(self.checkpoint) or self.reader.initialOffset()
        end = json.loads(json.dumps(self.reader.latestOffset(start, self.reader.getDefaultReadLimit())))
        return end, self.reader.partitions(start, end)  # type: ignore[return-value]

    def rows(self, tasks: list[RangePartition]) -> list[tuple[int, int]]:
        batches = [batch for task in tasks for batch in self.reader.read(task)]
        return [
            row
            for batch in batches
            for row in zip(batch["partition"].to_pylist(), batch["offset"].to_pylist(), strict=True)
        ]

    def run(self) -> list[tuple[int, int]]:
        end, tasks = self.plan()
        found = self.rows(tasks)
        self.checkpoint = json.dumps(end)
        return found


@pytest.fixture
def streams(cluster: EmbeddedCluster) -> Iterator[Any]:
    made: list[Stream] = []

    def stream(checkpoint: str = "null", **options: str) -> Stream:
        made.append(Stream(cluster, **options))
        made[-1].checkpoint = checkpoint
        return made[-1]

    yield stream
    for opened in made:
        opened.reader.stop()


def read_50(cluster: EmbeddedCluster, streams: Any, **options: str) -> tuple[str, str]:
    """A topic of 50 records, and the checkpoint of a stream that read them."""
    topic = created(cluster)
    produced(cluster.bootstrap_servers, topic, 50)
    stream = streams(subscribe=topic, **options)
    assert len(stream.run()) == 50
    return topic, stream.checkpoint


def offsets(*counts: int) -> list[tuple[int, int]]:
    return [(number, offset) for number, count in enumerate(counts) for offset in range(count)]


@pytest.mark.slow
@pytest.mark.parametrize(("records", "partitions"), [(80, 2), (50, 2), (20, 2), (0, 2), (80, 1), (80, 4)])
def test_it_fails_the_query_or_is_read_from_its_first_record(
    cluster: EmbeddedCluster, streams: Any, records: int, partitions: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Longer, equal, shorter or empty, with fewer and more partitions; 50 of 80 records were lost silently before."""
    topic, checkpoint = read_50(cluster, streams)
    old = json.loads(checkpoint)[topic]["topicId"]
    create_again(cluster, topic, records, partitions)
    for _ in range(2):
        with pytest.raises(ClusterRequestFailed) as raised:
            streams(checkpoint, subscribe=topic).run()
        assert re.fullmatch(
            rf"topic {topic} was deleted and created again: its id was {re.escape(old)} when the stream read it last, and is \S{{22}} now, "
            "so that what was not read of the old topic is gone and the new one is to be read from its beginning; "
            "set failOnDataLoss=false to do so, or give the query a new checkpointLocation",
            str(raised.value),
        )
    capsys.readouterr()
    tolerant = streams(checkpoint, subscribe=topic, failOnDataLoss="false")
    assert sorted(tolerant.run()) == offsets(*[records // partitions] * partitions)
    assert [line.split(":")[1] for line in capsys.readouterr().err.splitlines()] == [
        f" topic {topic} was deleted and created again"
    ]
    # The checkpoint is one of the new topic: the next run loses nothing, and says nothing.
    produced(cluster.bootstrap_servers, topic, partitions, partitions=partitions, first=records)
    assert len(streams(tolerant.checkpoint, subscribe=topic).run()) == partitions
    assert capsys.readouterr().err == ""


@pytest.mark.slow
def test_a_limited_batch_begins_at_its_first_record_too(cluster: EmbeddedCluster, streams: Any) -> None:
    topic, checkpoint = read_50(cluster, streams)
    create_again(cluster, topic, 80)
    stream = streams(checkpoint, subscribe=topic, failOnDataLoss="false", maxOffsetsPerTrigger="30")
    assert sorted(stream.run() + stream.run() + stream.run()) == offsets(40, 40)


def test_records_of_the_new_topic_that_are_gone_already_are_reported(
    cluster: EmbeddedCluster, streams: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    topic, checkpoint = read_50(cluster, streams)
    create_again(cluster, topic, 80)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    admin.delete_records([TopicPartition(topic, 1, 7)])[TopicPartition(topic, 1)].result()
    capsys.readouterr()
    stream = streams(checkpoint, subscribe=topic, failOnDataLoss="false")
    assert sorted(stream.run()) == sorted({*offsets(40, 40)} - {*offsets(0, 7)})
    assert capsys.readouterr().err.splitlines()[1:] == [
        f"rackspan-kafka: {topic}-1 of the new topic begins at offset 7: the records before it are gone"
    ]


@pytest.mark.slow
@pytest.mark.parametrize("choice", ["subscribePattern", "assign"])
def test_it_is_noticed_however_topics_are_chosen(cluster: EmbeddedCluster, streams: Any, choice: str) -> None:
    topic, checkpoint = read_50(cluster, streams)
    create_again(cluster, topic, 80)
    chosen = {choice: f"^{topic}$" if choice == "subscribePattern" else json.dumps({topic: [0, 1]})}
    with pytest.raises(ClusterRequestFailed, match="was deleted and created again"):
        streams(checkpoint, **chosen).run()
    assert len(streams(checkpoint, failOnDataLoss="false", **chosen).run()) == 80


@pytest.mark.slow
def test_it_happens_between_planning_and_reading(
    cluster: EmbeddedCluster, streams: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    for strict in (True, False):
        topic, checkpoint = read_50(cluster, streams)
        produced(cluster.bootstrap_servers, topic, 20, first=50)
        stream = streams(checkpoint, subscribe=topic, failOnDataLoss=str(strict).lower())
        end, tasks = stream.plan()
        create_again(cluster, topic, 80)
        if strict:
            with pytest.raises(ClusterRequestFailed, match=f"-0: offsets 25 to 35 are gone; topic {topic} was deleted"):
                stream.rows(tasks)
            continue
        assert stream.rows(tasks) == []
        assert "-1: offsets 25 to 35 are skipped; topic" in capsys.readouterr().err
        stream.checkpoint = json.dumps(end)
        assert sorted(stream.run()) == offsets(40, 40)


@pytest.mark.slow
def test_it_happens_while_a_range_is_read(cluster: EmbeddedCluster, streams: Any) -> None:
    topic = created(cluster)
    for first in range(0, 4000, 100):
        produced(cluster.bootstrap_servers, topic, 100, first=first)
    stream = streams(subscribe=topic, **{"kafka.max.partition.fetch.bytes": "3000"})
    _, tasks = stream.plan()
    batches = stream.reader.read(tasks[0])
    read = next(batches).num_rows
    create_again(cluster, topic, 5000)
    assert read < 2000
    with pytest.raises(ClusterRequestFailed, match=f"to 2000 are gone; topic {topic} was deleted and created again"):
        list(batches)


def test_a_batch_that_is_planned_again_after_a_restart_reads_no_other_topic(
    cluster: EmbeddedCluster, streams: Any
) -> None:
    """Spark plans it by the offsets that it logged: of the old topic."""
    topic, checkpoint = read_50(cluster, streams)
    produced(cluster.bootstrap_servers, topic, 20, first=50)
    end, _ = streams(checkpoint, subscribe=topic).plan()
    create_again(cluster, topic, 80)
    again = streams(subscribe=topic)
    with pytest.raises(ClusterRequestFailed, match="offsets 25 to 35 are gone"):
        again.rows(again.reader.partitions(json.loads(checkpoint), end))
    tolerant = streams(subscribe=topic, failOnDataLoss="false")
    assert tolerant.rows(tolerant.reader.partitions(json.loads(checkpoint), end)) == []
    # Logged as offsets of the new topic, it is planned from their first one, however often.
    fresh, _ = streams(checkpoint, subscribe=topic, failOnDataLoss="false").plan()
    for _ in range(2):
        assert sorted(tolerant.rows(tolerant.reader.partitions(json.loads(checkpoint), fresh))) == offsets(40, 40)


@pytest.mark.slow
def test_available_now_keeps_its_target_to_the_new_topic(cluster: EmbeddedCluster, streams: Any) -> None:
    topic, checkpoint = read_50(cluster, streams)
    produced(cluster.bootstrap_servers, topic, 20, first=50)
    stream = streams(checkpoint, subscribe=topic, failOnDataLoss="false", maxOffsetsPerTrigger="10")
    stream.reader.prepareForTriggerAvailableNow()
    assert len(stream.run()) == 10
    create_again(cluster, topic, 80)
    assert stream.run() == []
    after = streams(stream.checkpoint, subscribe=topic, failOnDataLoss="false")
    after.reader.prepareForTriggerAvailableNow()
    assert sorted(after.run()) == offsets(40, 40)
    assert after.run() == []


@pytest.mark.slow
def test_a_topic_that_is_deleted_and_not_created_again(
    cluster: EmbeddedCluster, streams: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    topic, checkpoint = read_50(cluster, streams)
    deleted(cluster, topic)
    for strict in ("true", "false"):
        with pytest.raises(ClusterRequestFailed, match=rf"topic {topic}: UNKNOWN_TOPIC_OR_PARTITION \(3\); create it"):
            streams(checkpoint, subscribe=topic, failOnDataLoss=strict).run()
    with pytest.raises(ClusterRequestFailed, match=f"{topic}-0 was read up to offset 25 and is no longer there"):
        streams(checkpoint, subscribePattern=f"^{topic}$").run()
    stream = streams(checkpoint, subscribePattern=f"^{topic}$", failOnDataLoss="false")
    assert stream.run() == []
    assert capsys.readouterr().err.count(f"{topic}-1 was read up to offset 25 and is no longer there") == 1
    fill_new(cluster, topic, 80)
    assert sorted(stream.run()) == offsets(40, 40)


def without_ids(checkpoint: str) -> str:
    document = json.loads(checkpoint)
    return json.dumps({topic: {n: v for n, v in row.items() if n != "topicId"} for topic, row in document.items()})


@pytest.mark.slow
def test_a_checkpoint_without_ids_adopts_the_present_ones(
    cluster: EmbeddedCluster, streams: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    topic, checkpoint = read_50(cluster, streams)
    produced(cluster.bootstrap_servers, topic, 10, first=50)
    stream = streams(without_ids(checkpoint), subscribe=topic)
    capsys.readouterr()
    assert [len(stream.run()), len(stream.run())] == [10, 0]
    (line,) = (line for line in capsys.readouterr().err.splitlines() if "adopted" in line)
    topic_id = json.loads(checkpoint)[topic]["topicId"]
    assert line == (
        f"rackspan-kafka: the checkpoint has no topic ids; the present ones are adopted: {topic} ({topic_id})"
    )
    create_again(cluster, topic, 80)
    with pytest.raises(ClusterRequestFailed, match="was deleted and created again"):
        stream.run()


def test_brokers_without_topic_ids_are_read_with_a_line(
    cluster: EmbeddedCluster, streams: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    topic, checkpoint = read_50(cluster, streams)
    produced(cluster.bootstrap_servers, topic, 10, first=50)
    with monkeypatch.context() as patch:
        patch.setattr("rackspan.kafka_source.cluster.topic_id_text", lambda _: None)
        stream = streams(checkpoint, subscribe=topic)
        capsys.readouterr()
        assert [len(stream.run()), len(stream.run())] == [10, 0]
        new = streams(subscribe=topic)
        assert len(new.run()) == 60
    lines = [line for line in capsys.readouterr().err.splitlines() if "topic ids" in line]
    assert (
        lines
        == [
            f"rackspan-kafka: the brokers have no topic ids of {topic}: a topic that is created again is noticed only if its log is shorter"
        ]
        * 2
    )
    assert "topicId" not in new.checkpoint
    # What was known stays known.
    create_again(cluster, topic, 80)
    with pytest.raises(ClusterRequestFailed, match="was deleted and created again"):
        streams(stream.checkpoint, subscribe=topic).run()


def test_brokers_that_fetch_by_name_are_compared_before_and_after(
    cluster: EmbeddedCluster, streams: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kafka 2.8 to 3.0: Metadata has topic ids, Fetch has none."""
    fetch = SourceCluster.fetch
    monkeypatch.setattr(SourceCluster, "fetch", lambda self, broker, _, *rest: fetch(self, broker, None, *rest))
    topic, checkpoint = read_50(cluster, streams)
    produced(cluster.bootstrap_servers, topic, 20, first=50)
    stream = streams(checkpoint, subscribe=topic)
    _, tasks = stream.plan()
    finish = _RangeReader._finish
    done: list[bool] = []

    def then_created_again(self: _RangeReader, pending: Any) -> Any:
        response = finish(self, pending)
        if not done:
            done.append(True)
            create_again(cluster, topic, 80)
        return response

    monkeypatch.setattr(_RangeReader, "_finish", then_created_again)
    with pytest.raises(ClusterRequestFailed, match="was deleted and created again while it was read: its id was"):
        stream.rows(tasks)


@pytest.mark.slow
def test_an_open_transaction_of_the_new_topic_is_not_waited_for(cluster: EmbeddedCluster, streams: Any) -> None:
    """Its log is longer than what was read of the old one, and none of it can be read yet."""
    topic, checkpoint = read_50(cluster, streams)
    create_again(cluster, topic, 0)
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": topic})
    producer.init_transactions(30)
    producer.begin_transaction()
    for number in range(80):
        producer.produce(topic, b"v", partition=number % 2)
    assert producer.flush(WITHIN_SECONDS) == 0
    committed = {"kafka.isolation.level": "read_committed", "failOnDataLoss": "false"}
    end, tasks = streams(checkpoint, subscribe=topic, **committed).plan()
    assert (end[topic]["0"], end[topic]["1"], tasks) == (0, 0, [])
    producer.abort_transaction(30)


def test_a_broker_that_is_late_to_list_the_new_topic_is_no_other_one(
    cluster: EmbeddedCluster, streams: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It lists the old id twice, after another broker listed the new one."""
    topic, checkpoint = read_50(cluster, streams)
    late, ids = [{topic: "AAAAAAAAAAAAAAAAAAAAAQ"}] * 2, SourceMetadata.topic_ids
    monkeypatch.setattr(SourceMetadata, "topic_ids", lambda self: late.pop() if late else ids(self))
    assert streams(checkpoint, subscribe=topic).run() == []
    assert late == []


@pytest.mark.slow
def test_it_happens_between_the_two_requests_of_planning(
    cluster: EmbeddedCluster, streams: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The id is that of the old topic, the end that of the new one."""
    topic, checkpoint = read_50(cluster, streams)
    ends, pending = SourceCluster.offsets, [topic]

    def then(self: SourceCluster, *arguments: Any, **named: Any) -> Any:
        if pending:
            create_again(cluster, pending.pop(), 80)
        return ends(self, *arguments, **named)

    monkeypatch.setattr(SourceCluster, "offsets", then)
    stream = streams(checkpoint, subscribe=topic)
    with pytest.raises(ClusterRequestFailed, match="offsets 25 to 40 are gone; topic"):
        stream.run()
    tolerant = streams(checkpoint, subscribe=topic, failOnDataLoss="false")
    assert sorted(tolerant.run()) == offsets(40, 40)


@pytest.mark.slow
@pytest.mark.parametrize("strict", [True, False])
def test_it_happens_under_a_batch(cluster: EmbeddedCluster, strict: bool, capsys: pytest.CaptureFixture[str]) -> None:
    topic = created(cluster)
    produced(cluster.bootstrap_servers, topic, 50)
    given = {"kafka.bootstrap.servers": cluster.bootstrap_servers, "subscribe": topic, "minPartitions": "4"}
    reader = KafkaReader(parse({**given, "failOnDataLoss": str(strict).lower()}, streaming=False), ("offset",))
    tasks = reader.partitions()
    create_again(cluster, topic, 80)
    for task in tasks:
        if strict:
            with pytest.raises(ClusterRequestFailed, match=f"are gone; topic {topic} was deleted and created again"):
                list(reader.read(task))
        else:
            assert list(reader.read(task)) == []
    assert capsys.readouterr().err.count("are skipped; topic") == (0 if strict else 4)


def test_the_driver_names_options_without_effect_once(
    cluster: EmbeddedCluster, streams: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    stream = streams(subscribe=created(cluster), **{"kafka.fetch.min.bytes": "5"})
    assert stream.run() == stream.run() == []
    assert capsys.readouterr().err == "rackspan-kafka: options without effect here: kafka.fetch.min.bytes\n"
