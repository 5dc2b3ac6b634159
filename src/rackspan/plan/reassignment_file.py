"""The files of kafka-reassign-partitions: reassignments, topics to move, lists of brokers."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal, NotRequired, TypedDict

from rackspan import json_text
from rackspan.documents import Count
from rackspan.errors import InvalidReassignment
from rackspan.json_text import NotJson, shown
from rackspan.reassign import ListedPartition, PartitionReassignment, ReassignmentDocument
from rackspan.reassign.document import EMPTY, Fault, faults

VERSION: Final = 1

ANY_LOG_DIR: Final = "any"
"""Kafka's word for a replica whose log directory is the broker's to choose."""


class TargetDocument(TypedDict):
    topic: str
    partition: Count
    replicas: list[int]


class LogDirsEntry(TargetDocument):
    log_dirs: NotRequired[list[str]]


class ReassignmentFile(TypedDict):
    version: Literal[1]
    partitions: list[LogDirsEntry]


def reassignment_file(partitions: Iterable[PartitionReassignment]) -> ReassignmentFile:
    """A reassignment file as Kafka's tool writes it, sorted by topic and partition."""
    entries: list[LogDirsEntry] = [
        {
            "topic": entry.topic,
            "partition": entry.partition,
            "replicas": list(entry.replicas),
            "log_dirs": [ANY_LOG_DIR] * len(entry.replicas),
        }
        for entry in sorted(partitions, key=lambda entry: entry.topic_partition)
    ]
    return {"version": VERSION, "partitions": entries}


def reassignment_json(partitions: Iterable[PartitionReassignment]) -> str:
    """The file's text, in one line."""
    return json.dumps(reassignment_file(partitions), separators=(",", ":"), ensure_ascii=False)


def read_reassignment(text: str | bytes) -> ReassignmentDocument:
    """A reassignment file as it stands; what is wrong inside is kept for `lint` to report.

    Errors: InvalidReassignment where the text is no JSON object.
    """
    return reassignment_of(reassignment_object(text))


def reassignment_object(text: str | bytes) -> dict[str, object]:
    """The file's JSON object, not yet checked. Errors: InvalidReassignment."""
    return _top(text, "reassignment")


def reassignment_of(top: dict[str, object]) -> ReassignmentDocument:
    """The entries of a parsed file, and what is wrong inside."""
    malformed = list(_version_faults(top))
    partitions = top.get("partitions")
    if not isinstance(partitions, list):
        malformed.append(Fault("plan-format", None, None, f"partitions is {shown(partitions)}, not a list"))
        return ReassignmentDocument((), tuple(malformed))
    entries = [_entry(item, index) for index, item in enumerate(partitions)]
    return ReassignmentDocument(
        tuple(entry for entry in entries if isinstance(entry, ListedPartition)),
        (*malformed, *(entry for entry in entries if isinstance(entry, Fault))),
    )


def sound(document: ReassignmentDocument) -> ReassignmentDocument:
    """The document itself where nothing is wrong with it; it may be empty. Errors: InvalidReassignment, with the first fault."""
    for fault in faults(document):
        if fault.constraint != EMPTY:
            raise InvalidReassignment(fault.reason)
    return document


def read_topics_to_move(text: str | bytes) -> tuple[str, ...]:
    """Topics of a topics-to-move file. Errors: InvalidReassignment."""
    top = _top(text, "topics-to-move")
    for fault in _version_faults(top):
        raise InvalidReassignment(fault.reason)
    topics = top.get("topics")
    if not isinstance(topics, list):
        raise InvalidReassignment(f'topics is {shown(topics)}, not a list; write {{"topics": [{{"topic": "orders"}}]}}')
    names = [_topic_name(item, index) for index, item in enumerate(topics)]
    twice = _twice(names)
    if twice:
        raise InvalidReassignment(f"List of topics to reassign contains duplicate entries: [{', '.join(twice)}]")
    return tuple(names)


def _topic_name(item: object, index: int) -> str:
    name = item.get("topic") if isinstance(item, dict) else item
    if not isinstance(name, str):
        raise InvalidReassignment(f"topics[{index}]: topic is {shown(name)}, not a string; name a topic")
    return name


def read_broker_list(text: str) -> tuple[int, ...]:
    """`--broker-list 0,1,2`. Errors: InvalidReassignment."""
    items = [item.strip() for item in text.split(",")]
    for item in items:
        if not item.isascii() or not item.isdigit():
            raise InvalidReassignment(f"--broker-list {text}: {item!r} is not a broker id; list ids such as 0,1,2")
    twice = _twice([str(int(item)) for item in items])
    if twice:
        raise InvalidReassignment(f"Broker list contains duplicate entries: [{', '.join(twice)}]")
    return tuple(map(int, items))


def _top(text: str | bytes, what: str) -> dict[str, object]:
    try:
        top = json_text.parse(text)
    except NotJson as error:
        raise InvalidReassignment(str(error)) from None
    if not isinstance(top, dict):
        raise InvalidReassignment(f"not a {what} file: it is {shown(top)}, not an object")
    return top


def _version_faults(top: dict[str, object]) -> Iterator[Fault]:
    version = top.get("version", VERSION)
    if type(version) is not int or version != VERSION:
        yield Fault("plan-format", None, None, f"Not supported version field value {shown(version)}")


def _entry(item: object, index: int) -> ListedPartition | Fault:
    if not isinstance(item, dict):
        return Fault("plan-format", None, None, f"partitions[{index}] is {shown(item)}, not an object")
    topic, partition = item.get("topic"), item.get("partition")
    if not isinstance(topic, str):
        return Fault("plan-format", None, None, f"partitions[{index}]: topic is {shown(topic)}, not a string")
    if type(partition) is not int:
        return Fault("plan-format", topic, None, f"{topic}: partition is {shown(partition)}, not a whole number")
    replicas, log_dirs = item.get("replicas"), item.get("log_dirs")
    if not isinstance(replicas, list) or not all(type(broker) is int for broker in replicas):
        why = f"{topic}-{partition}: replicas is {shown(replicas)}, not a list of broker ids"
        return Fault("plan-format", topic, partition, why)
    if log_dirs is not None and not (
        isinstance(log_dirs, list) and all(isinstance(log_dir, str) for log_dir in log_dirs)
    ):
        why = f"{topic}-{partition}: log_dirs is {shown(log_dirs)}, not a list of strings"
        return Fault("plan-format", topic, partition, why)
    return ListedPartition(topic, partition, tuple(replicas), None if log_dirs is None else tuple(log_dirs))


def _twice(names: Sequence[str]) -> list[str]:
    return [name for name, times in Counter(names).items() if times > 1]
