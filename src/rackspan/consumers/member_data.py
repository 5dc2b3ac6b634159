"""What members and leader tell each other in the user data of the consumer protocol. docs/formats.md shows both documents.

User data, not the protocol's own fields, because a client may have none for a rack (aiokafka: subscription version 0) and
all members of a group, of whatever client, must understand each other. JSON: an operator can read it.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeGuard

from rackspan.consumers.group import NO_EPOCH, Member, MemberId
from rackspan.model import RackId
from rackspan.model.ids import TopicPartition

VERSION: Final = 1
"""Readers of version 1 ignore keys they do not know, so additions keep it. It rises when an old reader would be misled."""

_VERSION_KEY: Final = "rackspan"


@dataclass(frozen=True, slots=True)
class Assigned:
    """What a member was last assigned: its partitions, the leader's epoch, and the id it had in the group then."""

    owned: frozenset[TopicPartition] = frozenset()
    epoch: int = NO_EPOCH
    member: str = ""


def member_data(rack: str | None, assigned: Assigned, *, cooperative: bool) -> bytes:
    """What a member sends when it joins. A `cooperative` one reads on until it is told otherwise."""
    owned = {"epoch": assigned.epoch, "member": assigned.member, "owned": by_topic(assigned.owned)}
    return _bytes({_VERSION_KEY: VERSION, "rack": rack or None, "cooperative": cooperative, **owned})


def read_member(member: str, topics: Iterable[str], data: bytes | None, protocol_rack: str | None = None) -> Member:
    """A member from its subscription. What cannot be read becomes its `fault`; nothing a member sends is an error here.

    `protocol_rack` is the subscription's own rackId (version 3, KIP-881) and counts where there is no user data.
    """
    bare = Member(MemberId(member), frozenset(topics), rack=_rack(protocol_rack))
    if not data:
        fault = None if bare.rack else "sent no rack: it is of another version or runs another assignor"
        return Member(bare.id, bare.topics, bare.rack, fault=fault)
    try:
        return _member(bare, _document(data))
    except (ValueError, RecursionError) as unreadable:
        return Member(bare.id, bare.topics, fault=str(unreadable))


def assignment_data(epoch: int, member: MemberId) -> bytes:
    """What the leader sends to each member with its partitions."""
    return _bytes({_VERSION_KEY: VERSION, "epoch": epoch, "member": member})


def read_assignment(owned: Iterable[TopicPartition], data: bytes | None) -> Assigned:
    """What a member was told. Where the leader's data cannot be read, the claim has NO_EPOCH and yields to all others."""
    partitions = frozenset(TopicPartition(*one) for one in owned)
    try:
        document = _document(data or b"")
        return Assigned(partitions, _epoch(document), str(document.get("member")))
    except (ValueError, RecursionError):
        return Assigned(partitions)


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Topics and their partitions, both ascending, as Kafka's protocol lists them."""
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        topics.setdefault(topic, []).append(partition)
    return topics


def _bytes(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode()


def _document(data: bytes) -> dict[str, Any]:
    """Errors: ValueError in words that complete "consumer c1 …"."""
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


def _member(bare: Member, document: Mapping[str, Any]) -> Member:
    rack, cooperative = document.get("rack"), document.get("cooperative", False)
    if not isinstance(rack, str | None) or not isinstance(cooperative, bool):
        raise ValueError("sent damaged user data: rack or cooperative is of the wrong type")
    # Who comes back under another id had left the group, and lost its partitions with it; clients do not tell assignors.
    holds = cooperative and document.get("member") == bare.id
    owned = _owned(document.get("owned", {}))
    return Member(bare.id, bare.topics, _rack(rack), owned, epoch=_epoch(document), holds=holds)


def _owned(topics: object) -> frozenset[TopicPartition]:
    if not isinstance(topics, dict):
        raise ValueError("sent damaged user data: owned is not a table of topics")
    return frozenset(TopicPartition(topic, one) for topic, listed in topics.items() for one in _partitions(listed))


def _partitions(listed: object) -> list[int]:
    if not isinstance(listed, list) or not all(map(_is_count, listed)):
        raise ValueError("sent damaged user data: a list of owned partitions holds something else")
    return listed


def _epoch(document: Mapping[str, Any]) -> int:
    epoch = document.get("epoch", NO_EPOCH)
    if not _is_count(epoch) and epoch != NO_EPOCH:
        raise ValueError("sent damaged user data: epoch is not a whole number")
    return int(epoch)


def _is_count(value: object) -> TypeGuard[int]:
    # JSON's true is Python's 1.
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _rack(name: str | None) -> RackId | None:
    """An empty client.rack is none, as in Kafka."""
    return RackId(name) if name else None
