"""The files of kafka-reassign-partitions: reassignments, topics to move, lists of brokers.

A reassignment is read from the output of `--generate` too, and from the proposals of Cruise Control.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NotRequired, TypedDict

from rackspan import json_text
from rackspan.documents import Count
from rackspan.errors import InvalidReassignment
from rackspan.json_text import NotJson, shown
from rackspan.reassign import ListedPartition, PartitionReassignment, ReassignmentDocument
from rackspan.reassign.document import ANY_LOG_DIR, EMPTY, Fault, faults
from rackspan.text import count_noun

VERSION: Final = 1

CURRENT: Final = "Current partition replica assignment"
PROPOSED: Final = "Proposed partition reassignment configuration"
"""What kafka-reassign-partitions --generate prints above each of its two assignments."""

_PROPOSALS: Final = "proposals"


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
    read = reassignment_text(text)
    return reassignment_of(read.top, read.read_as)


@dataclass(frozen=True, slots=True)
class ReassignmentText:
    """A reassignment file's JSON object, not yet checked, and `read_as` in words if it is a part of the file or made from it."""

    top: dict[str, object]
    read_as: str | None = None


def reassignment_text(text: str | bytes) -> ReassignmentText:
    """The reassignment in a file: the file itself, the proposed part of what `--generate` prints, or Cruise Control's proposals.

    Errors: InvalidReassignment.
    """
    try:
        content = json_text.decoded(text)
    except NotJson as error:
        raise InvalidReassignment(str(error)) from None
    lines = [line.strip() for line in content.splitlines()]
    if CURRENT in lines or PROPOSED in lines:
        return _generated(content, lines)
    top = _top(content, "reassignment", allow_nan=f'"{_PROPOSALS}"' in content)
    if "partitions" not in top and (_PROPOSALS in top or top.keys() & _OF_CRUISE_CONTROL):
        return _proposed(top)
    return ReassignmentText(top)


def _generated(content: str, lines: Sequence[str]) -> ReassignmentText:
    """The proposed assignment of the output of `--generate`: the last of the two, or the only one."""
    if lines.count(PROPOSED) != 1:
        found = f"it has {lines.count(PROPOSED)} of {PROPOSED!r}" if PROPOSED in lines else f"{PROPOSED!r} is missing"
        raise InvalidReassignment(
            f"not the output of one kafka-reassign-partitions --generate: {found}; save the whole output of one run"
        )
    at = lines.index(PROPOSED)
    # Blank lines in the place of those above, so that an error names the line of the file.
    proposed = "\n".join(["" for _ in range(at + 1)] + content.splitlines()[at + 1 :])
    try:
        top = _top(proposed, "reassignment")
    except InvalidReassignment as error:
        raise InvalidReassignment(f"below {PROPOSED!r}: {error}") from None
    current = f"; {CURRENT!r} above it is left out" if CURRENT in lines[:at] else ""
    return ReassignmentText(top, f"the proposal of kafka-reassign-partitions --generate: {PROPOSED!r}{current}")


_OF_CRUISE_CONTROL: Final = frozenset({"goalSummary", "loadAfterOptimization", "progress"})
"""Keys of a response of Cruise Control that may lack its proposals."""


def _proposed(top: Mapping[str, object]) -> ReassignmentText:
    """Cruise Control's proposals as reassignments: the new replicas in their order, the new leader first.

    Source: OptimizationResult and ExecutionProposal of Cruise Control. Moves between the disks of a broker show no change there.
    """
    proposals = top.get(_PROPOSALS)
    if not isinstance(proposals, list):
        raise InvalidReassignment(
            f"a response of Cruise Control without {_PROPOSALS}: request it with json=true and verbose=true, once it has ended"
        )
    read_as = f"{count_noun(len(proposals), 'proposal')} of Cruise Control"
    unchanged = sum(
        isinstance(item, dict) and "newReplicas" in item and item.get("oldReplicas") == item["newReplicas"]
        for item in proposals
    )
    if unchanged:
        read_as += f", {unchanged} of them without a change of replicas: moves between log directories are not judged"
    return ReassignmentText({"version": VERSION, "partitions": [_of_proposal(item) for item in proposals]}, read_as)


def _of_proposal(item: object) -> object:
    """The entry of a proposal; what is no proposal stays as it is, to be reported."""
    if not isinstance(item, dict) or not isinstance(item.get("topicPartition"), dict):
        return item
    of = item["topicPartition"]
    return {"topic": of.get("topic"), "partition": of.get("partition"), "replicas": item.get("newReplicas")}


def reassignment_of(top: Mapping[str, object], read_as: str | None = None) -> ReassignmentDocument:
    """The entries of a parsed file, and what is wrong inside."""
    malformed = list(_version_faults(top))
    partitions = top.get("partitions")
    if not isinstance(partitions, list):
        malformed.append(Fault("plan-format", None, None, f"partitions is {shown(partitions)}, not a list"))
        return ReassignmentDocument((), tuple(malformed), read_as)
    entries = [_entry(item, index) for index, item in enumerate(partitions)]
    return ReassignmentDocument(
        tuple(entry for entry in entries if isinstance(entry, ListedPartition)),
        (*malformed, *(entry for entry in entries if isinstance(entry, Fault))),
        read_as,
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


def _top(text: str | bytes, what: str, *, allow_nan: bool = False) -> dict[str, object]:
    try:
        top = json_text.parse(text, allow_nan=allow_nan)
    except NotJson as error:
        raise InvalidReassignment(str(error)) from None
    if not isinstance(top, dict):
        raise InvalidReassignment(f"not a {what} file: it is {shown(top)}, not an object")
    return top


def _version_faults(top: Mapping[str, object]) -> Iterator[Fault]:
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
