"""The user data that members and leader exchange in the consumer protocol, as JSON. docs/formats.md shows both documents.

The rack is in the user data and not only in the protocol's own field, because a client may have no such field (aiokafka
sends subscription version 0) and members with different clients may share a group. JSON, so that an operator can read it.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeGuard

from rackspan.consumers.group import NO_EPOCH, GroupMember, MemberId
from rackspan.model.ids import RackId, TopicPartition

VERSION: Final = 1
"""Readers of version 1 ignore unknown keys, so a new key keeps the version. A change that old readers would misread raises it."""

_VERSION_KEY: Final = "rackspan"


@dataclass(frozen=True, slots=True)
class LastAssignment:
    """A member's last assignment: its partitions, the leader's epoch, and the member id it had in the group then."""

    owned: frozenset[TopicPartition] = frozenset()
    epoch: int = NO_EPOCH
    member: str = ""


def member_data(rack: str | None, last: LastAssignment, *, cooperative: bool) -> bytes:
    """The user data of a member that joins. A `cooperative` member keeps reading until its partitions are revoked."""
    owned = {"epoch": last.epoch, "member": last.member, "owned": by_topic(last.owned)}
    return _bytes({_VERSION_KEY: VERSION, "rack": rack or None, "cooperative": cooperative, **owned})


def read_member(
    member: str, topics: Iterable[str], data: bytes | None, protocol_rack: str | None = None
) -> GroupMember:
    """A member from its subscription. Unreadable data becomes the member's `fault`; nothing a member sends raises an error.

    `protocol_rack` is the subscription's own rackId (version 3, KIP-881) and counts where there is no user data.
    """
    without_data = GroupMember(MemberId(member), frozenset(topics), rack=_rack(protocol_rack))
    if not data:
        fault = None if without_data.rack else "sent no rack: it is of another version or runs another assignor"
        return GroupMember(without_data.id, without_data.topics, without_data.rack, fault=fault)
    try:
        return _member(without_data, _document(data))
    except (ValueError, RecursionError) as unreadable:
        return GroupMember(without_data.id, without_data.topics, fault=str(unreadable))


def assignment_data(epoch: int, member: MemberId) -> bytes:
    """The user data that the leader sends to each member with its partitions."""
    return _bytes({_VERSION_KEY: VERSION, "epoch": epoch, "member": member})


def read_assignment(owned: Iterable[TopicPartition], data: bytes | None) -> LastAssignment:
    """A member's assignment. Unreadable data from the leader gives NO_EPOCH, a claim weaker than every other."""
    partitions = frozenset(TopicPartition(*partition) for partition in owned)
    try:
        document = _document(data or b"")
        return LastAssignment(partitions, _epoch(document), str(document.get("member")))
    except (ValueError, RecursionError):
        return LastAssignment(partitions)


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Topics and their partitions, both ascending, as Kafka's protocol lists them."""
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        topics.setdefault(topic, []).append(partition)
    return topics


def _bytes(document: Mapping[str, object]) -> bytes:
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode()


def _document(data: bytes) -> dict[str, object]:
    """The user data as JSON. Errors: ValueError, worded to follow "consumer c1 "."""
    try:
        document = json.loads(data)
    except ValueError:
        raise ValueError("sent user data that is not ours: another assignor's, or damaged") from None
    version = document.get(_VERSION_KEY) if isinstance(document, dict) else None
    if not _is_count(version):
        raise ValueError("sent user data that is not ours: another assignor's, or damaged")
    if version != VERSION:
        raise ValueError(f"sent user data of version {version}, and version {VERSION} is known here")
    return dict(document)


def _member(without_data: GroupMember, document: Mapping[str, object]) -> GroupMember:
    rack, cooperative = document.get("rack"), document.get("cooperative", False)
    if not isinstance(rack, str | None) or not isinstance(cooperative, bool):
        raise ValueError("sent damaged user data: rack or cooperative is of the wrong type")
    # A consumer with a new member id has left the group since, and lost its partitions; clients do not report that to assignors.
    still_reads = cooperative and document.get("member") == without_data.id
    owned = _owned(document.get("owned", {}))
    return GroupMember(
        without_data.id, without_data.topics, _rack(rack), owned, epoch=_epoch(document), still_reads=still_reads
    )


def _owned(topics: object) -> frozenset[TopicPartition]:
    if not isinstance(topics, dict):
        raise ValueError("sent damaged user data: owned is not a table of topics")
    return frozenset(
        TopicPartition(topic, partition) for topic, listed in topics.items() for partition in _partitions(listed)
    )


def _partitions(listed: object) -> list[int]:
    if not isinstance(listed, list) or not all(map(_is_count, listed)):
        raise ValueError("sent damaged user data: a list of owned partitions holds something else")
    return listed


def _epoch(document: Mapping[str, object]) -> int:
    epoch = document.get("epoch", NO_EPOCH)
    if epoch == NO_EPOCH:
        return NO_EPOCH
    if not _is_count(epoch):
        raise ValueError("sent damaged user data: epoch is not a whole number")
    return epoch


def _is_count(value: object) -> TypeGuard[int]:
    # JSON's true is Python's 1.
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _rack(name: str | None) -> RackId | None:
    """An empty client.rack is none, as in Kafka."""
    return RackId(name) if name else None
