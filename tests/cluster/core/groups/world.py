"""A group coordinator, its log and the members of a group."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from rackspan.cluster.core.batch import Marker
from rackspan.cluster.core.coordination import marker_batch
from rackspan.cluster.core.groups import GroupCoordinator, GroupSettings
from rackspan.cluster.core.groups.requests import JoinGroup, JoinGroupResponse, Protocol, SyncGroup
from rackspan.kafka_bytes.error_codes import ErrorCode
from tests.cluster.core.coordinator_world import CoordinatorWorld

ONE_PARTITION = GroupSettings(offsets_topic_num_partitions=1)
RANGE = (Protocol("range", b"r"),)


@dataclass
class World(CoordinatorWorld[GroupCoordinator]):
    """One partition of `__consumer_offsets`."""

    settings: GroupSettings = ONE_PARTITION

    def new_coordinator(self) -> GroupCoordinator:
        return GroupCoordinator(self.settings, Random(self.epoch))

    def waits(self, correlation_id: int) -> bool:
        return correlation_id not in self.responses

    def end_transaction(self, producer_id: int, marker: Marker) -> None:
        self.append(marker_batch(producer_id, 0, marker, 0, self.now))
        self.coordinator.on_marker(0, producer_id, marker)

    # Members.

    def join(self, member_id: str = "", **fields: Any) -> int:
        """Any field of JoinGroup but the few that all members of group g have in common here."""
        request = JoinGroup("g", "consumer", RANGE, 10_000, 60_000, member_id, client_id="c")
        return self.send(replace(request, **fields))

    def new_member(self, **fields: Any) -> int:
        """Both rounds of a dynamic member's first join; the correlation id of the second."""
        first = self.response(self.join(**fields), JoinGroupResponse)
        assert first.error is ErrorCode.MEMBER_ID_REQUIRED
        return self.join(first.member_id, **fields)

    def joined(self, correlation_id: int) -> JoinGroupResponse:
        return self.response(correlation_id, JoinGroupResponse)

    def sync(self, joined: JoinGroupResponse, assign: Callable[[str], bytes] | None = None, group_id: str = "g") -> int:
        """A member's sync; a leader gives everybody what `assign` says, by default its own member id."""
        give = assign or str.encode
        assignments = {member.member_id: give(member.member_id) for member in joined.members}
        return self.send(SyncGroup(group_id, joined.generation, joined.member_id, assignments=assignments))

    def stable(self, members: int, group_id: str = "g") -> list[JoinGroupResponse]:
        """A group of so many members that has been synced; the leader first."""
        pending_responses = [self.new_member(group_id=group_id)]
        while len(pending_responses) < members:
            newcomer = self.new_member(group_id=group_id)
            pending_responses = [self.join(self.joined(t).member_id, group_id=group_id) for t in pending_responses] + [
                newcomer
            ]
        responses = sorted((self.joined(t) for t in pending_responses), key=lambda a: a.member_id != a.leader)
        for response in responses:
            self.sync(response, group_id=group_id)
        self.settle()
        return responses


def static(world: World, instance_id: str = "i", **fields: Any) -> int:
    """A static member joins. Returns the request's correlation id."""
    return world.join(group_instance_id=instance_id, **fields)


def stable_static(world: World) -> JoinGroupResponse:
    """A group of one static member, stable."""
    joined = world.joined(static(world))
    world.sync(joined)
    world.settle()
    return joined
