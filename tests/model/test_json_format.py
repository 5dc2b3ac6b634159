"""The snapshot as JSON: what is read, what is refused and in which words, and the text that is written."""

import gc
import json
from typing import Any

import pytest
from hypothesis import given

from rackspan.errors import InvalidSnapshot
from rackspan.model import Broker, BrokerId, ClusterSnapshot, Controller, Topic, TopicName, json_format
from rackspan.model.partitions import Partition
from tests.strategies import snapshots

MINIMAL: dict[str, Any] = {
    "version": 1,
    "brokers": [{"id": 1}],
    "topics": [{"name": "orders", "partitions": [{"partition": 0, "leader": 1, "replicas": [1], "isr": [1]}]}],
}


def changed(**changes: Any) -> dict[str, Any]:
    return {**json.loads(json.dumps(MINIMAL)), **changes}


def with_partition(**changes: Any) -> dict[str, Any]:
    document = changed()
    document["topics"][0]["partitions"][0].update(changes)
    return document


@given(snapshots())
def test_a_snapshot_comes_back_as_it_was_written(snapshot: ClusterSnapshot) -> None:
    read = json_format.read(json_format.write(snapshot))
    assert read.snapshot.same_as(snapshot)
    assert read.warnings == ()


@given(snapshots())
def test_writing_what_was_read_gives_the_same_bytes(snapshot: ClusterSnapshot) -> None:
    text = json_format.write(snapshot)
    assert json_format.write(json_format.read(text).snapshot) == text
    json.loads(text)


def test_a_large_document_is_not_walked_by_pythons_collector(monkeypatch: pytest.MonkeyPatch) -> None:
    collecting: list[bool] = []
    monkeypatch.setattr(json_format, "from_document", lambda _: collecting.append(gc.isenabled()))
    json_format.read("{}")
    assert (collecting, gc.isenabled()) == ([False], True)


def test_the_optional_keys_may_all_be_absent() -> None:
    snapshot = json_format.from_document(MINIMAL).snapshot
    assert (snapshot.cluster_id, snapshot.taken_at, snapshot.controllers, snapshot.partial) == (None, None, (), ())
    assert snapshot.brokers == (Broker(BrokerId(1), None, fenced=False, host=None, port=None, cordoned=False),)
    assert snapshot.topics == (Topic(TopicName("orders"), topic_id=None, internal=False, config={}),)
    assert list(snapshot.partitions) == [Partition(0, 0, 1, (1,), (1,), (), (), None)]
    (controller,) = json_format.from_document(changed(controllers=[{"id": 9}])).snapshot.controllers
    assert controller == Controller(BrokerId(9), None, voter=True, alive=None, active=None)
    assert len(json_format.from_document(changed(topics=[{"name": "a"}])).snapshot.partitions) == 0


def test_null_is_the_same_as_an_absent_key() -> None:
    nulls = with_partition(adding_replicas=None, removing_replicas=None, size_bytes=None)
    nulls |= dict.fromkeys(("cluster_id", "taken_at", "controllers", "partial"))
    nulls["brokers"][0] |= dict.fromkeys(("rack", "host", "port"))
    nulls["topics"][0] |= dict.fromkeys(("topic_id", "config"))
    assert json_format.from_document(nulls).snapshot.same_as(json_format.from_document(MINIMAL).snapshot)


def test_topics_and_partitions_are_put_in_order_with_their_rows() -> None:
    document = changed(
        topics=[
            {"name": "b", "partitions": [{"partition": p, "leader": p, "replicas": [p], "isr": [p]} for p in (3, 1)]},
            {"name": "a", "partitions": [{"partition": 0, "leader": 9, "replicas": [9, 8], "isr": []}]},
        ]
    )
    snapshot = json_format.from_document(document).snapshot
    assert [topic.name for topic in snapshot.topics] == ["a", "b"]
    assert [(row.topic, row.partition, row.leader, row.replicas) for row in snapshot.partitions] == [
        (0, 0, 9, (9, 8)),
        (1, 1, 1, (1,)),
        (1, 3, 3, (3,)),
    ]


def test_an_unknown_key_is_one_warning_however_often_it_stands() -> None:
    partition = {"partition": 0, "leader": 1, "replicas": [1], "isr": [1], "colour": "red"}
    document = changed(topics=[{"name": "orders", "partitions": [{**partition, "partition": p} for p in range(3)]}])
    assert json_format.from_document(document).warnings == ("orders-0: unknown key 'colour' ignored",)


def test_an_unknown_key_of_the_snapshot_or_of_a_broker_is_named_with_its_place() -> None:
    document = changed(colour="red", brokers=[{"id": 1}, {"id": 2, "shape": "round"}])
    assert json_format.from_document(document).warnings == (
        "snapshot: unknown key 'colour' ignored",
        "brokers[1]: unknown key 'shape' ignored",
    )


@pytest.mark.parametrize(
    ("document", "line"),
    [
        ([], "snapshot: is [], not an object; fix it in the file"),
        ({"brokers": [], "topics": []}, "snapshot: version is missing; add it and run again"),
        (changed(version=2), "version: is 2, but this rackspan reads version 1; take the snapshot again"),
        (changed(version=True), "version: is true, but this rackspan reads version 1; take the snapshot again"),
        (
            changed(brokers=[]),
            "no brokers: a cluster has at least one; take the snapshot again with rackspan snapshot",
        ),
        (changed(brokers=[{"id": 1}, {"id": 1}]), "broker 1: listed twice; leave one of them out"),
        (changed(brokers=[{"id": "1"}]), 'brokers[0]: id is "1", not a whole number; fix it in the file'),
        (
            changed(brokers=[{"id": 2**31}]),
            "brokers[0]: id is 2147483648, outside 0 to 2147483647; fix it in the file",
        ),
        (changed(brokers=[{"id": 1, "rack": 7}]), "brokers[0]: rack is 7, not a string; fix it in the file"),
        (
            changed(brokers=[{"id": 1, "fenced": 0}]),
            "brokers[0]: fenced is 0, not true or false; fix it in the file",
        ),
        (
            changed(taken_at="yesterday"),
            'taken_at: is "yesterday", not a time such as 2026-11-21T02:00:00Z; fix it in the file',
        ),
        (
            changed(taken_at="2026-11-21T02:00:00"),
            "taken_at 2026-11-21T02:00:00: the offset is missing; end it with Z for UTC",
        ),
        (
            changed(topics=[{"name": "a/b"}]),
            "topic 'a/b': Kafka allows 1 to 249 letters, digits, '.', '_' and '-' in a name; fix it in the file",
        ),
        (changed(topics=[{"name": "a"}, {"name": "a"}]), "topic a: listed twice; leave one of them out"),
        (
            changed(topics=[{"name": "a", "config": {"min.insync.replicas": 2}}]),
            "topic 'a': config: min.insync.replicas is 2, not a string; fix it in the file",
        ),
        (
            changed(topics=[{"name": "a", "config": {"min.insync.racks": "two"}}]),
            "topic 'a': min.insync.racks is 'two', expected a whole number of at least 1; fix it in the snapshot",
        ),
        (
            with_partition(replicas=[1, 1]),
            "orders-0: a broker holds a partition once, but replicas names one twice; fix it in the file",
        ),
        (with_partition(replicas=[]), "orders-0: replicas is empty; a partition has at least one replica"),
        (with_partition(isr=[1, 1]), "orders-0: isr names a broker twice; fix it in the file"),
        (
            with_partition(leader=3, replicas=[1, 2], isr=[1]),
            "orders-0: the leader is not one of its replicas, which Kafka never reports; take the snapshot again",
        ),
        (
            with_partition(leader=1, replicas=[1, 2], isr=[1, 3]),
            "orders-0: isr names a broker that is not one of its replicas, which Kafka never reports; take the snapshot again",
        ),
        (with_partition(leader=-3), "orders-0: leader is -3, outside -2 to 2147483647; fix it in the file"),
        (
            with_partition(replicas=[-1]),
            "orders-0: replicas[0] is -1, outside 0 to 2147483647; fix it in the file",
        ),
        (
            with_partition(replicas=[True]),
            "orders-0: replicas[0] is true, not a whole number; fix it in the file",
        ),
        (with_partition(leader=True), "orders-0: leader is true, not a whole number; fix it in the file"),
        (
            changed(controllers=[{"id": 1, "voter": None}]),
            "controllers[0]: voter is null, not true or false; fix it in the file",
        ),
        (
            changed(controllers=[{"id": 1}, {"voter": True}]),
            "controllers[1]: id is missing; add it and run again",
        ),
        (changed(controllers=7), "snapshot: controllers is 7, not a list; fix it in the file"),
        (changed(brokers=7), "snapshot: brokers is 7, not a list; fix it in the file"),
        (
            changed(brokers=[{"id": 1, "port": 65536}]),
            "brokers[0]: port is 65536, outside 0 to 65535; fix it in the file",
        ),
        (changed(partial=["a", 1]), "snapshot: partial[1] is 1, not a string; fix it in the file"),
        (changed(taken_at=7), "snapshot: taken_at is 7, not a string; fix it in the file"),
        (changed(cluster_id=7), "snapshot: cluster_id is 7, not a string; fix it in the file"),
        (changed(topics=[{"name": 7}]), "topic 7: name is 7, not a string; fix it in the file"),
        (
            changed(topics=[{"name": "a", "topic_id": 7}]),
            "topic 'a': topic_id is 7, not a string; fix it in the file",
        ),
        (
            changed(topics=[{"name": "a", "internal": 1}]),
            "topic 'a': internal is 1, not true or false; fix it in the file",
        ),
        (
            changed(topics=[{"name": "a", "config": {"min.insync.replicas": "0"}}]),
            "topic 'a': min.insync.replicas is '0', expected a whole number of at least 1; fix it in the snapshot",
        ),
        (with_partition(isr="1"), 'orders-0: isr is "1", not a list; fix it in the file'),
        (
            with_partition(size_bytes=2**63),
            "orders-0: size_bytes is 9223372036854775808, outside 0 to 9223372036854775807; fix it in the file",
        ),
        (
            with_partition(partition=-1),
            "orders--1: partition is -1, outside 0 to 2147483647; fix it in the file",
        ),
        (
            changed(topics=[{"name": "orders", "partitions": [{"partition": 0, "leader": 1, "isr": []}]}]),
            "orders-0: replicas is missing; add it and run again",
        ),
        (
            changed(topics=[{"name": "orders", "partitions": MINIMAL["topics"][0]["partitions"] * 2}]),
            "orders-0: listed twice; leave one of them out",
        ),
    ],
)
def test_what_contradicts_the_format_is_refused_in_one_line(document: object, line: str) -> None:
    with pytest.raises(InvalidSnapshot) as refusal:
        json_format.from_document(document)
    assert str(refusal.value) == line


WRITTEN = """\
{"version": 1,
 "cluster_id": "c",
 "taken_at": "2026-11-21T02:00:00Z",
 "controllers": [{"id": 8, "rack": "a", "voter": true, "alive": true, "active": false}, \
{"id": 9, "rack": null, "voter": false, "alive": null, "active": null}],
 "partial": ["sizes of broker 2"],
 "brokers": [
  {"id": 1, "host": "b1", "port": 9092, "rack": "a", "fenced": false, "cordoned": true},
  {"id": 2, "host": null, "port": null, "rack": null, "fenced": true}],
 "topics": [
  {"name": "empty", "topic_id": null, "internal": true, "config": {}, "partitions": []},
  {"name": "orders", "topic_id": "AAAAAAAAAAAAAAAAAAAAAQ", "internal": false, \
"config": {"cleanup.policy": "delete", "min.insync.replicas": "2"}, "partitions": [
    {"partition": 0, "leader": 1, "replicas": [1, 2], "isr": [1], \
"adding_replicas": [2], "removing_replicas": [1], "size_bytes": 7},
    {"partition": 3, "leader": -1, "replicas": [2], "isr": [], \
"adding_replicas": [], "removing_replicas": [], "size_bytes": null}]}]}
"""


def test_what_is_written_has_a_line_for_each_broker_topic_and_partition() -> None:
    read = json_format.read(WRITTEN)
    assert json_format.write(read.snapshot) == WRITTEN
    assert [broker.cordoned for broker in read.snapshot.brokers] == [True, False]
    assert [(one.rack, one.voter, one.alive, one.active) for one in read.snapshot.controllers] == [
        ("a", True, True, False),
        (None, False, None, None),
    ]
    assert [(row.adding_replicas, row.removing_replicas) for row in read.snapshot.partitions] == [
        ((2,), (1,)),
        ((), ()),
    ]


def test_failed_directories_and_leaders_that_are_not_known_are_written_only_where_there_are_any() -> None:
    document = with_partition(leader=-2, offline_replicas=[1])
    document["brokers"][0] |= {"failed_log_dirs": ["/data/b"]}
    snapshot = json_format.from_document(document).snapshot
    assert snapshot.brokers[0].failed_log_dirs == ("/data/b",)
    assert (snapshot.partitions.row(0).leader, snapshot.partitions.row(0).offline_replicas) == (-2, (1,))
    written = json_format.write(snapshot)
    assert '"failed_log_dirs": ["/data/b"]' in written
    assert '"size_bytes": null, "offline_replicas": [1]}' in written
    assert json_format.read(written).snapshot.same_as(snapshot)
    assert "offline" not in WRITTEN
    assert "failed" not in WRITTEN


def test_a_snapshot_of_no_known_time_is_written_without_one() -> None:
    assert '"taken_at": null,' in json_format.write(json_format.from_document(MINIMAL).snapshot)


def test_text_beyond_ascii_is_written_as_it_is() -> None:
    snapshot = json_format.from_document(changed(cluster_id="Zürich")).snapshot
    assert '"cluster_id": "Zürich"' in json_format.write(snapshot)


@pytest.mark.parametrize("text", ["", '{"version": 1', "\x00", b"\xff\xfe\x00{", "[" * 100_000])
def test_what_is_no_json_is_refused_in_one_line(text: str | bytes) -> None:
    with pytest.raises(InvalidSnapshot) as refusal:
        json_format.read(text)
    assert "\n" not in str(refusal.value)
