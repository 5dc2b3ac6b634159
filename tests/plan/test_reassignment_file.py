import json
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackspan.audit import RackPolicy
from rackspan.cli.options import Output
from rackspan.cli.output import Rows, write
from rackspan.cli.pages.reassignment_plan import generate_page
from rackspan.errors import InvalidReassignment
from rackspan.model import ClusterSnapshot
from rackspan.plan import read_plan
from rackspan.plan.reassignment_file import (
    read_broker_list,
    read_reassignment,
    read_topics_to_move,
    reassignment_json,
)
from rackspan.reassign import PartitionReassignment, lint
from tests.strategies import policies, snapshots

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


HEADS = "Current partition replica assignment", "Proposed partition reassignment configuration"
"""What kafka-reassign-partitions prints above its two assignments."""


def entry(partition: int, *replicas: int) -> str:
    return json.dumps({"version": 1, "partitions": [{"topic": "a", "partition": partition, "replicas": replicas}]})


def generated(current: str = entry(0, 1, 2), proposed: str = entry(0, 3, 2), line_end: str = "\n") -> str:
    return line_end.join([HEADS[0], current, "", HEADS[1], proposed, ""])


@pytest.mark.parametrize(
    "text",
    [
        generated(),
        generated(line_end="\r\n"),
        "[2026-11-21] WARN a line of the log\n" + generated(),
        generated().encode("utf-16"),
        generated(current="not read"),
    ],
)
def test_of_the_output_of_generate_the_proposal_is_read_and_the_current_assignment_is_named(text: str | bytes) -> None:
    document = read_reassignment(text)
    assert [(one.name, one.replicas) for one in document.partitions] == [("a-0", (3, 2))]
    assert document.read_as == (
        "the proposal of kafka-reassign-partitions --generate: 'Proposed partition reassignment configuration'; "
        "'Current partition replica assignment' above it is left out"
    )
    assert [one.replicas for one in read_plan(text).partitions()] == [(3, 2)]


def test_the_proposed_part_of_the_output_alone_is_read_too() -> None:
    document = read_reassignment(f"{HEADS[1]}\n{entry(0, 3, 2)}")
    assert (
        document.read_as
        == "the proposal of kafka-reassign-partitions --generate: 'Proposed partition reassignment configuration'"
    )
    assert [one.replicas for one in document.partitions] == [(3, 2)]


def test_a_plain_file_is_read_as_it_is() -> None:
    assert read_reassignment(entry(0, 1, 2)).read_as is None


@given(snapshots(), policies(), st.data())
def test_what_generate_prints_is_linted_as_its_json(
    snapshot: ClusterSnapshot, policy: RackPolicy, data: st.DataObject
) -> None:
    names = [topic.name for topic in snapshot.topics]
    ids = st.sampled_from([int(broker.id) for broker in snapshot.brokers] + [99])
    lists = st.lists(ids, min_size=1, max_size=4, unique=True)
    current = [
        PartitionReassignment(names[row.topic], row.partition, tuple(map(int, row.replicas)))
        for row in snapshot.partitions
    ]
    proposed = [PartitionReassignment(one.topic, one.partition, tuple(data.draw(lists))) for one in current]
    printed = StringIO()
    with redirect_stdout(printed):
        write(None, Output.HUMAN, generate_page(current, proposed), Rows((), []))
    raw, plain = read_reassignment(printed.getvalue()), read_reassignment(reassignment_json(proposed))
    assert raw.partitions == plain.partitions
    assert raw.read_as is not None
    assert lint(snapshot, policy, raw) == lint(snapshot, policy, plain)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            generated(proposed=entry(0, 3, 2)[:-3]),
            "below 'Proposed partition reassignment configuration': not JSON: Expecting ',' delimiter: line 5 column 80 (char 83); "
            "is the file complete?",
        ),
        (
            generated(proposed=""),
            "below 'Proposed partition reassignment configuration': not JSON: Expecting value: line 5 column 1 (char 4); "
            "is the file complete?",
        ),
        (
            generated(proposed=f"{entry(0, 3)}\n{entry(1, 3)}"),
            "below 'Proposed partition reassignment configuration': not one JSON document: more text follows it at line 6 column 1; "
            "keep the document that is meant",
        ),
        (
            f"{entry(0, 3)}\n{entry(1, 3)}",
            "not one JSON document: more text follows it at line 2 column 1; keep the document that is meant",
        ),
        (
            f"{HEADS[0]}\n{entry(0, 1)}\n",
            "not the output of one kafka-reassign-partitions --generate: 'Proposed partition reassignment configuration' is missing; "
            "save the whole output of one run",
        ),
        (
            generated() + generated(),
            "not the output of one kafka-reassign-partitions --generate: it has 2 of 'Proposed partition reassignment configuration'; "
            "save the whole output of one run",
        ),
        (
            '{"goalSummary": [], "version": 1}',
            "a response of Cruise Control without proposals: request it with json=true and verbose=true, once it has ended",
        ),
        (
            '{"progress": [{"operation": "Proposals"}], "version": 1}',
            "a response of Cruise Control without proposals: request it with json=true and verbose=true, once it has ended",
        ),
    ],
)  # fmt: skip
def test_a_file_that_holds_no_one_reassignment_is_refused_in_one_line(text: str, line: str) -> None:
    for read in (read_plan, read_reassignment):
        with pytest.raises(InvalidReassignment) as refused:
            read(text)
        assert str(refused.value) == line


def proposal(topic: str, partition: int, before: list[int], after: list[int]) -> dict[str, Any]:
    """As ExecutionProposal of Cruise Control writes it, its TopicPartition by Gson."""
    of = {"hash": 0, "partition": partition, "topic": topic}
    return {"topicPartition": of, "oldLeader": before[0], "oldReplicas": before, "newReplicas": after}


def test_proposals_of_cruise_control_become_reassignments_with_the_new_leader_first() -> None:
    moved, led = proposal("a", 0, [1, 2, 3], [4, 2, 3]), proposal("b", 1, [1, 2], [2, 1])
    text = json.dumps({"proposals": [moved, led], "summary": {"numReplicaMovements": 1}, "version": 1})
    # Loads of brokers may be no numbers.
    text = text.replace('}, "version"', ', "onDemandBalancednessScoreAfter": NaN}, "version"')
    document = read_reassignment(text)
    assert [(one.name, one.replicas) for one in document.partitions] == [("a-0", (4, 2, 3)), ("b-1", (2, 1))]
    assert document.read_as == "2 proposals of Cruise Control"
    assert [one.replicas for one in read_plan(text).partitions()] == [(4, 2, 3), (2, 1)]


def test_proposals_that_move_between_disks_are_reported_as_not_judged() -> None:
    text = json.dumps({"proposals": [proposal("a", 0, [1, 2], [1, 2]), proposal("a", 1, [1, 2], [3, 2])]})
    assert read_reassignment(text).read_as == (
        "2 proposals of Cruise Control, 1 of them without a change of replicas: moves between log directories are not judged"
    )


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        (7, "partitions[0] is 7, not an object"),
        ({"topicPartition": {"topic": "a"}}, "a: partition is null, not a whole number"),
        ({"topicPartition": {"topic": "a", "partition": 0}}, "a-0: replicas is null, not a list of broker ids"),
    ],
)
def test_a_proposal_that_is_none_is_a_fault(item: object, reason: str) -> None:
    (fault,) = read_reassignment(json.dumps({"proposals": [item]})).malformed
    assert (fault.constraint, fault.reason) == ("plan-format", reason)
