"""Coordinators with a mistake, each a method overridden; planted.py says in which world each is found."""

from collections.abc import Iterable
from dataclasses import replace
from random import Random

from rackspan.cluster.core.batch import RecordBatch
from rackspan.cluster.core.coordination import Append, CoordinatorEffect
from rackspan.cluster.core.groups import GroupCoordinator, GroupSettings
from rackspan.cluster.core.groups.requests import GroupRequest, JoinGroup, OffsetCommit, SyncGroup
from rackspan.cluster.core.ids import NO_OFFSET, CorrelationId
from rackspan.kafka_bytes.error_codes import ErrorCode


class AcknowledgesAtOnce(GroupCoordinator):
    """Treats an append as written as soon as it is requested."""

    def kinds(self) -> tuple[type, ...]:
        raise NotImplementedError

    def __init__(self, settings: GroupSettings, rng: Random) -> None:
        super().__init__(settings, rng)
        self._place = 10**9

    def on_request(self, now: int, correlation_id: CorrelationId, request: GroupRequest) -> list[CoordinatorEffect]:
        effects = super().on_request(now, correlation_id, request)
        if not isinstance(request, self.kinds()):
            return effects
        writes = [effect.write for effect in effects if isinstance(effect, Append)]
        self._place += 1
        return effects + [one for write in writes for one in self.on_appended(now, write, ErrorCode.NONE, self._place)]


class CommitsUnreplicated(AcknowledgesAtOnce):
    """A commit is acknowledged before anybody else holds it."""

    def kinds(self) -> tuple[type, ...]:
        return (OffsetCommit,)


class AssignsUnreplicated(AcknowledgesAtOnce):
    """Assignments are handed out before anybody else holds them."""

    def kinds(self) -> tuple[type, ...]:
        return (SyncGroup,)


class TakesAnyGeneration(GroupCoordinator):
    """A commit counts whatever generation it is of."""

    def on_request(self, now: int, correlation_id: CorrelationId, request: GroupRequest) -> list[CoordinatorEffect]:
        group = self._group(request)
        if isinstance(request, OffsetCommit) and group is not None:
            request = replace(request, generation=group.generation)
        return super().on_request(now, correlation_id, request)


class TakesAnybody(GroupCoordinator):
    """A commit counts though its member was put out of the group."""

    def on_request(self, now: int, correlation_id: CorrelationId, request: GroupRequest) -> list[CoordinatorEffect]:
        group = self._group(request)
        if isinstance(request, OffsetCommit) and group is not None and group.members:
            known = request.member_id if request.member_id in group.members else next(iter(group.members))
            request = replace(request, generation=group.generation, member_id=known)
        return super().on_request(now, correlation_id, request)


class KeepsOldLeadership(GroupCoordinator):
    """Elected again, it resumes from its old state, and does not read what others wrote meanwhile."""

    def on_elected(
        self, now: int, partition: int, leader_epoch: int, batches: Iterable[RecordBatch]
    ) -> list[CoordinatorEffect]:
        if partition in self._partitions:
            self._leader_epochs[partition] = leader_epoch
            return []
        return super().on_elected(now, partition, leader_epoch, batches)

    def on_resigned(self, now: int, partition: int) -> list[CoordinatorEffect]:
        return []


class ReadsTheLastBatchAlone(GroupCoordinator):
    """A new leader reads the end of the log, not all of it."""

    def on_elected(
        self, now: int, partition: int, leader_epoch: int, batches: Iterable[RecordBatch]
    ) -> list[CoordinatorEffect]:
        return super().on_elected(now, partition, leader_epoch, list(batches)[-8:])


class GivesAllToEverybody(GroupCoordinator):
    """Each member is handed what all of them were to share."""

    def on_request(self, now: int, correlation_id: CorrelationId, request: GroupRequest) -> list[CoordinatorEffect]:
        if isinstance(request, SyncGroup) and len(request.assignments) > 1:
            everything = b"".join(request.assignments.values())
            request = replace(request, assignments=dict.fromkeys(request.assignments, everything))
        return super().on_request(now, correlation_id, request)


class CountsAnew(GroupCoordinator):
    """A group that was emptied begins again at generation one."""

    def on_request(self, now: int, correlation_id: CorrelationId, request: GroupRequest) -> list[CoordinatorEffect]:
        group = self._group(request)
        if isinstance(request, JoinGroup) and group is not None and not group.members:
            group.generation = 0
        return super().on_request(now, correlation_id, request)


class ForgetsFailures(GroupCoordinator):
    """A write that failed is reported as one that succeeded."""

    def on_appended(
        self, now: int, write: int, error: ErrorCode, base_offset: int = NO_OFFSET
    ) -> list[CoordinatorEffect]:
        return super().on_appended(now, write, ErrorCode.NONE, max(base_offset, 0))
