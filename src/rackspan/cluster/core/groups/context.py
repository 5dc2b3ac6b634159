"""What every rule of the group coordinator is given beside the group."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Final, TypeAlias
from uuid import UUID

from rackspan.cluster.core.coordination import CoordinatorRecord, Writes, encode_batch
from rackspan.cluster.core.errors import KafkaError
from rackspan.cluster.core.groups.group import Group
from rackspan.cluster.core.groups.records import GroupMetadataKey, encode_group, encode_key
from rackspan.cluster.core.groups.settings import GroupSettings

Stored: TypeAlias = Callable[[int, KafkaError], None]
"""What follows a group's write: (now in ms, NONE or the error a client is told)."""

_TOLD: Final = {
    KafkaError.UNKNOWN_TOPIC_OR_PARTITION: KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_ENOUGH_REPLICAS: KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND: KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_ENOUGH_RACKS: KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_ENOUGH_RACKS_AFTER_APPEND: KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.REQUEST_TIMED_OUT: KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_OR_FOLLOWER: KafkaError.NOT_COORDINATOR,
    KafkaError.KAFKA_STORAGE_ERROR: KafkaError.NOT_COORDINATOR,
    KafkaError.FENCED_LEADER_EPOCH: KafkaError.NOT_COORDINATOR,
    KafkaError.MESSAGE_TOO_LARGE: KafkaError.INVALID_COMMIT_OFFSET_SIZE,
    KafkaError.RECORD_LIST_TOO_LARGE: KafkaError.INVALID_COMMIT_OFFSET_SIZE,
    KafkaError.INVALID_FETCH_SIZE: KafkaError.INVALID_COMMIT_OFFSET_SIZE,
}


def told(error: KafkaError) -> KafkaError:
    """What a client is told of an append's error: the log's troubles become the coordinator's (CoordinatorRuntime)."""
    return _TOLD.get(error, error)


@dataclass(frozen=True, slots=True)
class Context:
    """`rng` make member ids."""

    settings: GroupSettings
    rng: Random
    writes: Writes

    def new_member_id(self, prefix: str) -> str:
        return f"{prefix}-{UUID(int=self.rng.getrandbits(128), version=4)}"

    def store_group(self, now: int, group: Group, assignments: dict[str, bytes], then: Stored) -> None:
        """Persist the group with these assignments; `then` is called once they are safe, or are known not to be."""
        value = encode_group(group.record_of(assignments, now))
        record = CoordinatorRecord(encode_key(GroupMetadataKey(group.group_id)), value)

        def stored(later: int, error: KafkaError, _offset: int) -> None:
            group.persisted = group.persisted or error is KafkaError.NONE
            then(later, told(error))

        self.writes.append(group.partition, encode_batch([record], now), stored)
