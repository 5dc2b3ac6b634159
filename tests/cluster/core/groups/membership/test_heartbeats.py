"""How long a member's session lasts, and which requests extend it."""

from collections.abc import Callable

import pytest

from rackspan.cluster.core.groups.requests import (
    Heartbeat,
    HeartbeatResponse,
    JoinGroupResponse,
    SyncGroup,
    SyncGroupResponse,
)
from rackspan.kafka_bytes.error_codes import ErrorCode
from tests.cluster.core.groups.world import World


def beat(world: World, member: JoinGroupResponse) -> object:
    return world.call(Heartbeat("g", member.generation, member.member_id), HeartbeatResponse)


def sync(world: World, member: JoinGroupResponse) -> object:
    return world.call(SyncGroup("g", member.generation, member.member_id), SyncGroupResponse)


def join(world: World, member: JoinGroupResponse) -> object:
    return world.joined(world.join(member.member_id))


@pytest.mark.parametrize("request_", [beat, sync, join])
def test_each_request_of_a_follower_extends_its_session(
    request_: Callable[[World, JoinGroupResponse], object],
) -> None:
    world = World()
    leader, follower = world.stable(2)
    for _ in range(3):
        world.passes(5_000)
        beat(world, leader)
        assert getattr(request_(world, follower), "error", None) is ErrorCode.NONE
    world.passes(5_000)
    beat(world, leader)
    world.passes(4_999)
    assert len(world.coordinator.describe("g").members) == 2
    world.passes(1)
    assert [each.member_id for each in world.coordinator.describe("g").members] == [leader.member_id]


def test_a_member_that_waits_for_its_assignment_outlives_a_leader_lost_at_the_same_time() -> None:
    """ClassicGroup.resetAndPropagateAssignmentWithError: the response that fails its sync begins its session anew."""
    world = World()
    leader, follower = world.stable(2)
    world.passes(9_000)
    beat(world, follower)
    world.join(leader.member_id)
    joined = world.joined(world.join(follower.member_id))
    world.passes(9_999)
    syncing = world.sync(joined)
    assert world.waits(syncing)
    # Both joined at the same time, so that both sessions would end now.
    world.passes(1)
    assert world.response(syncing, SyncGroupResponse).error is ErrorCode.REBALANCE_IN_PROGRESS
    assert [each.member_id for each in world.coordinator.describe("g").members] == [follower.member_id]
    world.passes(9_999)
    assert len(world.coordinator.describe("g").members) == 1
    world.passes(1)
    assert world.coordinator.describe("g").members == ()


def test_a_member_lost_while_all_others_have_joined_completes_the_rebalance() -> None:
    world = World()
    leader, follower = world.stable(2)
    waiting = world.join(leader.member_id)
    assert world.waits(waiting), "for the follower"
    world.passes(10_000)
    joined = world.joined(waiting)
    assert (joined.error, joined.generation) == (ErrorCode.NONE, leader.generation + 1)
    assert [each.member_id for each in joined.members] == [leader.member_id]
    assert follower.member_id not in {each.member_id for each in world.coordinator.describe("g").members}
