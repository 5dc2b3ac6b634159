"""JoinGroup and LeaveGroup, case by case: static members that return, ids that were handed out, full groups."""

from dataclasses import replace

import pytest

from rackspan.cluster.core.groups import GroupSettings
from rackspan.cluster.core.groups.requests import (
    JoinGroupResponse,
    LeaveGroup,
    LeaveGroupResponse,
    LeavingMember,
    Protocol,
    SyncGroup,
    SyncGroupResponse,
)
from rackspan.kafka_bytes.error_codes import ErrorCode
from tests.cluster.core.groups.world import RANGE, World, stable_static, static

STICKY = Protocol("sticky", b"s")


def state(world: World) -> str:
    return world.coordinator.describe("g").state


def test_requests_of_the_process_that_a_static_member_replaces_are_fenced() -> None:
    world = World()
    joining = static(world)
    joined = world.joined(joining)
    syncing = world.sync(joined)
    follower = world.new_member()
    assert world.response(syncing, SyncGroupResponse).error is ErrorCode.REBALANCE_IN_PROGRESS
    rejoining = world.join(joined.member_id, group_instance_id="i")
    follower_joined = world.joined(follower)
    waiting = world.sync(world.joined(rejoining), lambda _member: b"")
    assert world.waits(waiting)
    static(world)
    assert world.response(waiting, SyncGroupResponse) == SyncGroupResponse(ErrorCode.FENCED_INSTANCE_ID)
    assert follower_joined.generation == 2


def test_a_join_of_the_process_that_a_static_member_replaces_is_fenced() -> None:
    world = World()
    stable_static(world)
    world.new_member()
    old_id = world.coordinator.describe("g").members[0].member_id
    world.join()  # An id is handed out and not used: the rebalance waits for it.
    waiting = world.join(old_id, group_instance_id="i")
    assert world.waits(waiting)
    newer = static(world)
    assert world.joined(waiting) == JoinGroupResponse(ErrorCode.FENCED_INSTANCE_ID, old_id)
    assert world.waits(newer)


def test_a_static_member_whose_return_could_not_be_written_is_as_it_was_before() -> None:
    """GroupMetadataManager.updateStaticMemberThenRebalanceOrCompleteJoin: the response has no member id."""
    world = World()
    before = stable_static(world)
    correlation_id = static(world, session_timeout_ms=7_000, rebalance_timeout_ms=8_000, protocols=(*RANGE, STICKY))
    world.acknowledge(ErrorCode.NOT_ENOUGH_REPLICAS, kept=False)
    assert world.joined(correlation_id) == JoinGroupResponse(
        ErrorCode.COORDINATOR_NOT_AVAILABLE, "", 1, "consumer", "range", before.member_id, ()
    )
    (member,) = world.coordinator.describe("g").members
    assert (member.member_id, member.metadata) == (before.member_id, b"r")
    # Its own timeouts and protocols are back: a member that supports `sticky` alone shares none with it.
    assert world.joined(world.join(protocols=(STICKY,))).error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    world.passes(9_999)
    assert state(world) == "Stable"
    world.passes(1)
    assert state(world) == "Empty"


def test_a_static_member_that_left_before_its_return_was_written_is_unknown() -> None:
    world = World()
    before = stable_static(world)
    correlation_id = static(world)
    world.call(LeaveGroup("g", (LeavingMember("", "i"),)), LeaveGroupResponse)
    response = world.joined(correlation_id)
    assert (response.error, response.member_id, response.leader) == (
        ErrorCode.UNKNOWN_MEMBER_ID,
        "",
        before.member_id,
    )


def test_a_static_leader_that_returns_assigns_nothing_unless_it_can_skip_that() -> None:
    """KIP-814; a follower's response is the same for either client."""
    for can_skip in (False, True):
        world = World()
        before = stable_static(world)
        other = world.new_member()
        world.join(before.member_id, group_instance_id="i")
        follower = world.joined(other)
        for joined in (replace(follower, member_id=before.member_id, members=()), follower):
            world.sync(joined)
        world.call(SyncGroup("g", 2, before.member_id, "i", assignments={}), SyncGroupResponse)
        correlation_id = static(world, can_skip_assignment=can_skip)
        world.settle()
        after = world.joined(correlation_id)
        assert after.skip_assignment is can_skip
        assert after.leader == (after.member_id if can_skip else before.member_id)
        assert [each.group_instance_id for each in after.members] == (["i", None] if can_skip else [])
        assert (after.generation, after.protocol_type, after.protocol) == (2, "consumer", "range")


def test_a_member_id_that_was_handed_out_is_of_no_static_member() -> None:
    world = World()
    handed = world.joined(world.join())
    refused = world.joined(world.join(handed.member_id, group_instance_id="i"))
    assert refused == JoinGroupResponse(ErrorCode.UNKNOWN_SERVER_ERROR, handed.member_id)
    assert handed == JoinGroupResponse(ErrorCode.MEMBER_ID_REQUIRED, handed.member_id)


def test_member_ids_begin_with_the_client_id_or_the_instance_id() -> None:
    world = World()
    assert world.joined(world.join()).member_id.startswith("c-")
    world = World()
    assert world.joined(static(world, "instance")).member_id.startswith("instance-")


def test_a_member_id_that_was_handed_out_may_leave() -> None:
    world = World()
    handed = world.joined(world.join())
    assert leave_all(world, LeavingMember(handed.member_id)) == [ErrorCode.NONE]
    assert world.joined(world.join(handed.member_id)).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert leave_all(world, LeavingMember("", "nobody"), LeavingMember("")) == [ErrorCode.UNKNOWN_MEMBER_ID] * 2


def leave_all(world: World, *members: LeavingMember) -> list[ErrorCode]:
    response = world.call(LeaveGroup("g", members), LeaveGroupResponse)
    assert response.error is ErrorCode.NONE
    return [error for _, error in response.members]


@pytest.mark.parametrize(("passed", "joined"), [(9_999, True), (10_000, False)])
def test_an_id_that_was_handed_out_is_kept_for_one_session(passed: int, joined: bool) -> None:
    world = World()
    handed = world.joined(world.join())
    world.passes(passed)
    error = world.joined(world.join(handed.member_id)).error
    assert error is (ErrorCode.NONE if joined else ErrorCode.UNKNOWN_MEMBER_ID)


def test_a_join_that_the_same_members_next_one_supersedes_is_refused() -> None:
    world = World()
    first, _ = world.stable(2)
    superseded = world.join(first.member_id)
    latest = world.join(first.member_id)
    refused = JoinGroupResponse(ErrorCode.REBALANCE_IN_PROGRESS, first.member_id)
    assert world.joined(superseded) == refused
    assert world.waits(latest)


def test_a_follower_that_joins_a_stable_group_gets_the_generation_again_and_a_leader_a_rebalance() -> None:
    world = World()
    leader, follower = world.stable(2)
    again = world.joined(world.join(follower.member_id))
    assert again == JoinGroupResponse(
        ErrorCode.NONE, follower.member_id, follower.generation, "consumer", "range", leader.member_id, ()
    )
    assert state(world) == "Stable"
    assert world.waits(world.join(leader.member_id))
    assert state(world) == "PreparingRebalance"


def test_while_members_gather_those_that_join_first_have_the_places() -> None:
    """KIP-389."""
    world = World(settings=GroupSettings(offsets_topic_num_partitions=1, group_max_size=3))
    first, *others = world.stable(3)
    world.join(first.member_id)
    handed = world.joined(world.join())
    assert handed.error is ErrorCode.MEMBER_ID_REQUIRED, "one of three has joined"
    waiting = [world.join(member.member_id) for member in others]
    assert all(map(world.waits, waiting)), "for the member whose id was handed out"
    for member_id in ("", handed.member_id):
        assert world.joined(world.join(member_id)).error is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert world.waits(world.join(first.member_id)), "it has its place already"


def test_a_full_groups_members_may_join_again() -> None:
    world = World(settings=GroupSettings(offsets_topic_num_partitions=1, group_max_size=1))
    (member,) = world.stable(1)
    assert world.joined(world.join()).error is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert world.joined(world.join(member.member_id)).generation == 2
    assert leave_all(world, LeavingMember(member.member_id)) == [ErrorCode.NONE]
    assert world.joined(world.join()).error is ErrorCode.MEMBER_ID_REQUIRED
