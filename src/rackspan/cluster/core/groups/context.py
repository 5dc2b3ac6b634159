"""What the functions of the group coordinator get beside the group: settings, random ids, writes."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import TypeAlias
from uuid import UUID

from rackspan.cluster.core.coordination import CoordinatorRecord, Writes, encode_batch
from rackspan.cluster.core.groups.errors import coordinator_error
from rackspan.cluster.core.groups.group import Group
from rackspan.cluster.core.groups.records import GroupMetadataKey, encode_group, encode_key
from rackspan.cluster.core.groups.settings import GroupSettings
from rackspan.kafka_bytes.error_codes import ErrorCode

Stored: TypeAlias = Callable[[int, ErrorCode], None]
"""Called after a group's write: (now in ms, NONE or the error for clients)."""


@dataclass(frozen=True, slots=True)
class GroupContext:
    """The coordinator's settings and writes; `rng` makes member ids."""

    settings: GroupSettings
    rng: Random
    writes: Writes

    def new_member_id(self, prefix: str) -> str:
        return f"{prefix}-{UUID(int=self.rng.getrandbits(128), version=4)}"

    def store_group(self, now: int, group: Group, assignments: dict[str, bytes], then: Stored) -> None:
        """Write the group with these assignments; `then` is called once they are committed, or with the error."""
        value = encode_group(group.record_of(assignments, now))
        record = CoordinatorRecord(encode_key(GroupMetadataKey(group.group_id)), value)

        def stored(later: int, error: ErrorCode, _offset: int) -> None:
            group.persisted = group.persisted or error is ErrorCode.NONE
            then(later, coordinator_error(error))

        self.writes.append(group.partition, encode_batch([record], now), stored)
