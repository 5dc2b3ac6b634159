"""Groups of clients as their coordinators describe them: classic, consumer (KIP-848), share (KIP-932) and streams (KIP-1071)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from rackspan.model.ids import RackId, TopicPartition

SubtopologyTasks: TypeAlias = Mapping[str, tuple[int, ...]]
"""Tasks by sub-topology: the numbers of their partitions."""


class GroupKind(StrEnum):
    """Kafka's group types, by the names of ListGroups."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    SHARE = "share"
    STREAMS = "streams"


@dataclass(frozen=True, slots=True)
class StreamsMember:
    """What a member of a streams group has beside a consumer's fields (KIP-1071).

    `offsets` has the changelog position of each (sub-topology, partition), None if the broker did not fill them.
    """

    process_id: str
    tags: Mapping[str, str]
    active: SubtopologyTasks
    standby: SubtopologyTasks
    warmup: SubtopologyTasks
    offsets: Mapping[tuple[str, int], int] | None = None


@dataclass(frozen=True, slots=True)
class MemberDescription:
    """One member. `rack` is what it declared, and `declares_rack` whether its protocol has a field for one.

    `topics` are those it subscribes to by name, None if it subscribes by pattern or its kind does not say. `partitions` are
    those assigned to it now. `metadata` and `assignment` are the bytes of a classic member.
    """

    member_id: str
    client_id: str
    metadata: bytes = b""
    assignment: bytes = b""
    host: str = ""
    rack: RackId | None = None
    declares_rack: bool = True
    topics: frozenset[str] | None = None
    partitions: tuple[TopicPartition, ...] = ()
    streams: StreamsMember | None = None


@dataclass(frozen=True, slots=True)
class SubtopologyTopics:
    """One part of a streams topology: the topics of its tasks."""

    sources: tuple[str, ...]
    changelogs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GroupDescription:
    """One group. `protocol` is the name of its assignor; `error_message` is Kafka's own, None without one.

    `topology` has the sub-topologies of a streams group by id.
    """

    group_id: str
    state: str
    protocol_type: str
    protocol: str
    members: tuple[MemberDescription, ...] = ()
    error_message: str | None = None
    kind: GroupKind = GroupKind.CLASSIC
    topology: Mapping[str, SubtopologyTopics] = field(default_factory=dict)
