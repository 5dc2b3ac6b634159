import json
from pathlib import Path
from typing import Any

import pytest

from rackspan.errors import InvalidReassignment
from rackspan.plan import read_plan
from rackspan.plan.reassignment_file import (
    read_broker_list,
    read_reassignment,
    read_topics_to_move,
    reassignment_json,
)
from rackspan.reassign import PartitionReassignment

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "placement.json").read_text())["cases"]


def vectors(prefix: str) -> list[dict[str, Any]]:
    return [case for case in VECTORS if case["id"].startswith(prefix)]


def test_a_file_is_written_as_kafka_writes_it() -> None:
    (case,) = vectors("r-current-text")
    entries = [PartitionReassignment("foo", 1, (4, 5, 6)), PartitionReassignment("bar", 0, (7, 8))]
    assert reassignment_json(entries) == case["expect"]["lines"][2]


@pytest.mark.parametrize("case", vectors("r-execute-parse-err"), ids=lambda case: case["id"])
def test_what_kafka_refuses_to_execute_is_refused_in_its_words(case: dict[str, Any]) -> None:
    if not case["input"]["partitions"]:
        # What `reassign plan` writes where nothing is to move. `reassign lint` has Kafka's words for it.
        assert not len(read_plan(json.dumps(case["input"])))
        return
    with pytest.raises(InvalidReassignment) as refused:
        read_plan(json.dumps(case["input"]))
    assert str(refused.value) == case["expect"]["error"]


@pytest.mark.parametrize("case", vectors("r-generate-args"), ids=lambda case: case["id"])
def test_topics_and_brokers_to_move_are_read_as_kafka_reads_them(case: dict[str, Any]) -> None:
    def read() -> dict[str, list[Any]]:
        return {
            "brokers": list(read_broker_list(case["input"]["broker_list"])),
            "topics": list(read_topics_to_move(json.dumps(case["input"]["topics_json"]))),
        }

    if "error" in case["expect"]:
        with pytest.raises(InvalidReassignment) as refused:
            read()
        assert str(refused.value) == case["expect"]["error"]
    else:
        assert read() == case["expect"]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "not JSON: Expecting value: line 1 column 1 (char 0); is the file complete?"),
        ("[" * 100_000, "brackets nested too deep; write the file again"),
        ("[]", "not a reassignment file: it is [], not an object"),
        ("{}", "partitions is null, not a list"),
        ('{"partitions": {"a": 0}}', 'partitions is {"a": 0}, not a list'),
        ('{"version": 2, "partitions": []}', "Not supported version field value 2"),
        ('{"version": true, "partitions": []}', "Not supported version field value true"),
        ('{"partitions": [1]}', "partitions[0] is 1, not an object"),
        ('{"partitions": [{"topic": 1}]}', "partitions[0]: topic is 1, not a string"),
        ('{"partitions": [{"topic": "a", "partition": "0"}]}', 'a: partition is "0", not a whole number'),
        ('{"partitions": [{"topic": "a", "partition": 0}]}', "a-0: replicas is null, not a list of broker ids"),
        (
            '{"partitions": [{"topic": "a", "partition": 0, "replicas": [true]}]}',
            "a-0: replicas is [true], not a list of broker ids",
        ),
        (
            '{"partitions": [{"topic": "a", "partition": 0, "replicas": [1], "log_dirs": [1]}]}',
            "a-0: log_dirs is [1], not a list of strings",
        ),
        (
            '{"partitions": [{"topic": "a", "partition": 0, "replicas": [1, 2], "log_dirs": ["any"]}]}',
            "Size of replicas list [1, 2] is different from size of log dirs list [any] for partition a-0",
        ),
        ('{"partitions": [{"topic": "a", "partition": 0, "replicas": []}]}', "a-0 would have no replicas"),
        (
            '{"partitions": [{"topic": "a", "partition": 0, "replicas": [-1]}]}',
            "a-0 names broker -1, but an id is not negative",
        ),
    ],
)
def test_a_file_that_is_wrong_is_refused_in_one_line(text: str, line: str) -> None:
    with pytest.raises(InvalidReassignment) as refused:
        read_plan(text)
    assert str(refused.value) == line


def test_unsound_entries_are_left_to_the_judge_when_only_read() -> None:
    document = read_reassignment(
        '{"version": 3, "partitions": [7, {"topic": "a", "partition": 0, "replicas": [1, 1]}]}'
    )
    assert [entry.name for entry in document.partitions] == ["a-0"]
    assert [fault.reason for fault in document.malformed] == [
        "Not supported version field value 3",
        "partitions[0] is 7, not an object",
    ]


@pytest.mark.parametrize(
    ("entry", "topic", "partition"),
    [
        (7, None, None),
        ({"topic": 1, "partition": 2}, None, None),
        ({"topic": "a", "partition": "2"}, "a", None),
        ({"topic": "a", "partition": 2, "replicas": 3}, "a", 2),
        ({"topic": "a", "partition": 2, "replicas": [3], "log_dirs": [4]}, "a", 2),
    ],
)
def test_a_malformed_entry_is_reported_with_its_topic_and_partition_as_far_as_it_names_them(
    entry: object, topic: str | None, partition: int | None
) -> None:
    (fault,) = read_reassignment(json.dumps({"partitions": [entry]})).malformed
    assert (fault.constraint, fault.topic, fault.partition) == ("plan-format", topic, partition)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('{"version": 2, "topics": []}', "Not supported version field value 2"),
        ('{"topics": {}}', 'topics is {}, not a list; write {"topics": [{"topic": "orders"}]}'),
        ('{"topics": [{"topic": 1}]}', "topics[0]: topic is 1, not a string; name a topic"),
    ],
)
def test_topics_that_are_wrong_are_refused_in_one_line(text: str, line: str) -> None:
    with pytest.raises(InvalidReassignment) as refused:
        read_topics_to_move(text)
    assert str(refused.value) == line


@pytest.mark.parametrize("text", ["", "1,", "a", "1,-2", "٣"])
def test_a_broker_list_holds_ids_alone(text: str) -> None:
    with pytest.raises(InvalidReassignment, match="is not a broker id; list ids such as 0,1,2"):
        read_broker_list(text)
