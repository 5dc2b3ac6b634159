"""The entry points of a group coordinator: which groups it has, what it returns for those it has not, and elections."""

from random import Random
from typing import Final

import pytest

from rackspan.cluster.core.batch import Marker
from rackspan.cluster.core.groups import GroupCoordinator, GroupSettings
from rackspan.cluster.core.groups.requests import (
    CommittedOffset,
    DeleteGroup,
    DeleteGroupResponse,
    DescribedMember,
    DescribeGroupResponse,
    FetchedOffset,
    GroupRequest,
    GroupResponse,
    Heartbeat,
    HeartbeatResponse,
    JoinGroup,
    JoinGroupResponse,
    LeaveGroup,
    LeaveGroupResponse,
    LeavingMember,
    ListedGroup,
    OffsetCommit,
    OffsetCommitResponse,
    OffsetDelete,
    OffsetDeleteResponse,
    OffsetFetch,
    OffsetFetchResponse,
    SyncGroup,
    SyncGroupResponse,
    TxnOffsetCommit,
)
from rackspan.cluster.core.messages import Respond
from rackspan.kafka_bytes.error_codes import ErrorCode
from rackspan.model.ids import TopicPartition
from tests.cluster.core.groups.world import RANGE, World

E: Final = ErrorCode
P0: Final = TopicPartition("orders", 0)
OFFSETS: Final = {P0: CommittedOffset(5)}
LEAVING: Final = LeavingMember("m")


def join(group_id: str = "g", session_timeout_ms: int = 10_000) -> JoinGroup:
    return JoinGroup(group_id, "consumer", RANGE, session_timeout_ms, 60_000, client_id="c")


@pytest.mark.parametrize(
    ("request_", "response"),
    [
        (SyncGroup("g", 1, "m"), SyncGroupResponse(E.UNKNOWN_MEMBER_ID)),
        (Heartbeat("g", 1, "m"), HeartbeatResponse(E.UNKNOWN_MEMBER_ID)),
        (LeaveGroup("g", (LEAVING,)), LeaveGroupResponse(E.NONE, ((LEAVING, E.UNKNOWN_MEMBER_ID),))),
        (OffsetCommit("g", OFFSETS, 0, "m"), OffsetCommitResponse({P0: E.ILLEGAL_GENERATION})),
        (TxnOffsetCommit("g", 7, 0, OFFSETS, 0, "m"), OffsetCommitResponse({P0: E.ILLEGAL_GENERATION})),
        (OffsetDelete("g", (P0,)), OffsetDeleteResponse(E.GROUP_ID_NOT_FOUND)),
        (DeleteGroup("g"), DeleteGroupResponse(E.GROUP_ID_NOT_FOUND)),
    ],
)
def test_a_request_for_a_group_that_does_not_exist(request_: GroupRequest, response: GroupResponse) -> None:
    world = World()
    assert world.responses[world.send(request_)] == response
    assert world.coordinator.list_groups() == [], "it creates none"


@pytest.mark.parametrize(
    ("request_", "response"),
    [
        (join(), JoinGroupResponse(E.COORDINATOR_NOT_AVAILABLE)),
        (SyncGroup("g", 1, "m"), SyncGroupResponse(E.COORDINATOR_NOT_AVAILABLE)),
        (Heartbeat("g", 1, "m"), HeartbeatResponse(E.COORDINATOR_NOT_AVAILABLE)),
        (LeaveGroup("g", (LEAVING,)), LeaveGroupResponse(E.COORDINATOR_NOT_AVAILABLE)),
        (OffsetCommit("g", OFFSETS), OffsetCommitResponse({P0: E.COORDINATOR_NOT_AVAILABLE})),
        (TxnOffsetCommit("g", 7, 0, OFFSETS), OffsetCommitResponse({P0: E.COORDINATOR_NOT_AVAILABLE})),
        (OffsetDelete("g", (P0,)), OffsetDeleteResponse(E.GROUP_ID_NOT_FOUND)),
        (DeleteGroup("g"), DeleteGroupResponse(E.GROUP_ID_NOT_FOUND)),
    ],
)
def test_a_request_for_a_group_that_is_being_deleted(request_: GroupRequest, response: GroupResponse) -> None:
    world = World()
    world.call(OffsetCommit("g", OFFSETS), OffsetCommitResponse)
    world.send(DeleteGroup("g"))
    assert world.responses[world.send(request_)] == response
    assert len(world.in_flight) == 1, "the tombstones alone"
    assert world.coordinator.fetch_offsets(OffsetFetch("g", (P0,))).offsets == {P0: FetchedOffset()}
    assert world.coordinator.describe("g") == DescribeGroupResponse(E.NONE, "g", "Dead", "", "", ())


@pytest.mark.parametrize("group_id", ["", "g"])
def test_only_offsets_may_be_of_a_group_without_a_name(group_id: str) -> None:
    """GroupCoordinatorService.isGroupIdNotEmpty; simple consumers of before KIP-289 commit without a group id."""
    world = World()
    refused = E.INVALID_GROUP_ID if not group_id else E.UNKNOWN_MEMBER_ID
    assert world.call(Heartbeat(group_id, 1, "m"), HeartbeatResponse).error is refused
    assert world.call(DeleteGroup(group_id), DeleteGroupResponse).error is (
        E.GROUP_ID_NOT_FOUND if group_id else E.INVALID_GROUP_ID
    )
    assert world.call(OffsetCommit(group_id, OFFSETS), OffsetCommitResponse).errors == {P0: E.NONE}
    in_transaction = TxnOffsetCommit(group_id, 7, 0, OFFSETS)
    assert world.call(in_transaction, OffsetCommitResponse).errors == {P0: E.NONE}
    assert world.call(OffsetDelete(group_id, (P0,)), OffsetDeleteResponse).error is E.NONE


@pytest.mark.parametrize(
    ("session_timeout_ms", "allowed"), [(5_999, False), (6_000, True), (1_800_000, True), (1_800_001, False)]
)
def test_a_session_is_as_long_as_the_brokers_configs_allow(session_timeout_ms: int, allowed: bool) -> None:
    world = World()
    expected = E.MEMBER_ID_REQUIRED if allowed else E.INVALID_SESSION_TIMEOUT
    assert world.joined(world.send(join("g", session_timeout_ms))).error is expected


def test_another_brokers_groups_are_not_known_here() -> None:
    coordinator = GroupCoordinator(GroupSettings(), Random(1))
    assert coordinator.on_request(0, 3, join()) == [Respond(3, JoinGroupResponse(E.NOT_COORDINATOR))]
    assert coordinator.fetch_offsets(OffsetFetch("g", (P0,))) == OffsetFetchResponse(E.NOT_COORDINATOR, {})
    assert coordinator.describe("g") == DescribeGroupResponse(E.NOT_COORDINATOR, "g", "", "", "", ())
    assert coordinator.list_groups() == []
    coordinator.on_marker(5, 7, Marker.COMMIT)
    assert {coordinator.partition_of(name) for name in "abcdefghijklmnop"} == set(range(10))


def test_an_election_that_is_not_newer_changes_nothing() -> None:
    world = World()
    world.call(OffsetCommit("g", OFFSETS), OffsetCommitResponse)
    waiting = world.send(OffsetCommit("g", OFFSETS))
    for epoch in (0, 1):
        assert world.coordinator.on_elected(world.now, 0, epoch, ()) == []
    assert world.coordinator.fetch_offsets(OffsetFetch("g", (P0,))).offsets[P0].offset == 5
    world.took(world.coordinator.on_elected(world.now, 0, 2, ()))
    assert world.response(waiting, OffsetCommitResponse).errors == {P0: E.NOT_COORDINATOR}
    assert world.coordinator.list_groups() == []


def test_groups_are_listed_in_order_and_described_with_their_members() -> None:
    world = World()
    world.call(OffsetCommit("z", OFFSETS), OffsetCommitResponse)
    (member,) = world.stable(1)
    listed = [ListedGroup("g", "consumer", "Stable"), ListedGroup("z", "", "Empty")]
    assert world.coordinator.list_groups() == listed
    assert world.coordinator.list_groups(["EMPTY", "dead"], ["classic"]) == listed[1:]
    members = (DescribedMember(member.member_id, None, "c", "", b"r", member.member_id.encode()),)
    described = DescribeGroupResponse(E.NONE, "g", "Stable", "consumer", "range", members)
    assert world.coordinator.describe("g") == described
    assert world.coordinator.describe("z") == DescribeGroupResponse(E.NONE, "z", "Empty", "", "", ())
    assert world.coordinator.describe("unknown") == DescribeGroupResponse(E.NONE, "unknown", "Dead", "", "", ())
    world.new_member()
    (other, _) = world.coordinator.describe("g").members
    assert (other.metadata, other.assignment) == (b"", b"")


def test_requests_that_wait_for_a_coordinator_that_resigns_get_not_coordinator() -> None:
    world = World()
    leader, follower = world.stable(2)
    world.join(leader.member_id)
    again = world.join(follower.member_id)
    syncing = world.sync(world.joined(again))
    joined = world.joined(again)
    assert world.waits(syncing)
    world.took(world.coordinator.on_resigned(world.now, 0))
    assert world.response(syncing, SyncGroupResponse) == SyncGroupResponse(E.NOT_COORDINATOR)
    world.elect()
    newcomer = world.new_member()
    world.took(world.coordinator.on_resigned(world.now, 0))
    assert world.joined(newcomer).error is E.NOT_COORDINATOR
    assert world.joined(newcomer).member_id
    assert joined.generation == 3
