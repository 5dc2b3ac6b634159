"""OffsetFetch (key 9), versions 1-9. Generated from kio's schemas by tools/wire_messages.py: do not edit."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from rackspan.wire.messages.base import WireStruct


class OffsetFetchRequestTopic(WireStruct):
    __slots__ = ("name", "partition_indexes")

    def __init__(self, *, name: str = "", partition_indexes: Sequence[int] = ()) -> None:
        self.name = name
        self.partition_indexes = partition_indexes


class OffsetFetchRequestTopics(WireStruct):
    __slots__ = ("name", "partition_indexes")

    def __init__(self, *, name: str = "", partition_indexes: Sequence[int] = ()) -> None:
        self.name = name
        self.partition_indexes = partition_indexes


class OffsetFetchRequestGroup(WireStruct):
    __slots__ = ("group_id", "member_id", "member_epoch", "topics")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"topics": OffsetFetchRequestTopics}

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str | None = None,
        member_epoch: int = -1,
        topics: Sequence[OffsetFetchRequestTopics] | None = None,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.topics = topics


class OffsetFetchRequestData(WireStruct):
    __slots__ = ("group_id", "topics", "groups", "require_stable")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {
        "topics": OffsetFetchRequestTopic,
        "groups": OffsetFetchRequestGroup,
    }

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: Sequence[OffsetFetchRequestTopic] | None = None,
        groups: Sequence[OffsetFetchRequestGroup] = (),
        require_stable: bool = False,
    ) -> None:
        self.group_id = group_id
        self.topics = topics
        self.groups = groups
        self.require_stable = require_stable


class OffsetFetchResponsePartition(WireStruct):
    __slots__ = ("partition_index", "committed_offset", "committed_leader_epoch", "metadata", "error_code")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        committed_offset: int = 0,
        committed_leader_epoch: int = -1,
        metadata: str | None = None,
        error_code: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.committed_offset = committed_offset
        self.committed_leader_epoch = committed_leader_epoch
        self.metadata = metadata
        self.error_code = error_code


class OffsetFetchResponseTopic(WireStruct):
    __slots__ = ("name", "partitions")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"partitions": OffsetFetchResponsePartition}

    def __init__(self, *, name: str = "", partitions: Sequence[OffsetFetchResponsePartition] = ()) -> None:
        self.name = name
        self.partitions = partitions


class OffsetFetchResponsePartitions(WireStruct):
    __slots__ = ("partition_index", "committed_offset", "committed_leader_epoch", "metadata", "error_code")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        committed_offset: int = 0,
        committed_leader_epoch: int = -1,
        metadata: str | None = None,
        error_code: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.committed_offset = committed_offset
        self.committed_leader_epoch = committed_leader_epoch
        self.metadata = metadata
        self.error_code = error_code


class OffsetFetchResponseTopics(WireStruct):
    __slots__ = ("name", "partitions")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"partitions": OffsetFetchResponsePartitions}

    def __init__(self, *, name: str = "", partitions: Sequence[OffsetFetchResponsePartitions] = ()) -> None:
        self.name = name
        self.partitions = partitions


class OffsetFetchResponseGroup(WireStruct):
    __slots__ = ("group_id", "topics", "error_code")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {"topics": OffsetFetchResponseTopics}

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: Sequence[OffsetFetchResponseTopics] = (),
        error_code: int = 0,
    ) -> None:
        self.group_id = group_id
        self.topics = topics
        self.error_code = error_code


class OffsetFetchResponseData(WireStruct):
    __slots__ = ("throttle_time", "topics", "error_code", "groups")
    STRUCTS: ClassVar[Mapping[str, type[WireStruct]]] = {
        "topics": OffsetFetchResponseTopic,
        "groups": OffsetFetchResponseGroup,
    }

    def __init__(
        self,
        *,
        throttle_time: int = 0,
        topics: Sequence[OffsetFetchResponseTopic] = (),
        error_code: int = 0,
        groups: Sequence[OffsetFetchResponseGroup] = (),
    ) -> None:
        self.throttle_time = throttle_time
        self.topics = topics
        self.error_code = error_code
        self.groups = groups
