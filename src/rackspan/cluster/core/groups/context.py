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
from rackspan.kafka_bytes.error_codes import ErrorCode


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """Times in ms.

    Kafka's defaults, but for two: no initial delay (3,000 in Kafka) and ten partitions of `__consumer_offsets` (50),
    because a test's cluster should start at once. A test that kills members lowers `group.min.session.timeout.ms`.
    """

    group_initial_rebalance_delay_ms: int = 0
    group_min_session_timeout_ms: int = 6_000
    group_max_session_timeout_ms: int = 1_800_000
    group_max_size: int = 2**31 - 1
    offset_metadata_max_bytes: int = 4096
    offsets_topic_num_partitions: int = 10
    new_member_join_timeout_ms: int = 300_000
    """A new member whose join waits sends no heartbeats; after this time its client counts as lost (Kafka's constant)."""


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
