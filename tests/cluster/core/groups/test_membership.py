"""What Kafka documents of joining, syncing, living and leaving, case by case."""

from dataclasses import replace
from typing import Any

import pytest

from rackspan.cluster.core.groups import GroupSettings
from rackspan.cluster.core.groups.requests import (
    Heartbeat,
    HeartbeatResponse,
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

DELAYED = GroupSettings(offsets_topic_num_partitions=1, group_initial_rebalance_delay_ms=3_000)


def assignment(world: World, joined: JoinGroupResponse) -> SyncGroupResponse:
    return world.response(world.sync(joined, lambda _member: b""), SyncGroupResponse)


def beat(world: World, joined: JoinGroupResponse, instance_id: str | None = None) -> ErrorCode:
    request = Heartbeat("g", joined.generation, joined.member_id, instance_id)
    return world.call(request, HeartbeatResponse).error


def state(world: World) -> str:
    return world.coordinator.describe("g").state


def test_a_new_member_is_given_its_id_before_it_joins() -> None:
    world = World()
    first = world.joined(world.join())
    assert first.error is ErrorCode.MEMBER_ID_REQUIRED
    assert first.member_id.startswith("c-")
    assert world.joined(world.join(first.member_id)).error is ErrorCode.NONE


def test_a_client_of_before_kip_394_joins_at_once() -> None:
    world = World()
    assert world.joined(world.join(require_known_member_id=False)).generation == 1


def test_the_leader_alone_gets_the_members_of_the_generation() -> None:
    leader, follower = World().stable(2)
    assert {member.member_id for member in leader.members} == {leader.member_id, follower.member_id}
    assert follower.members == ()
    assert follower.leader == leader.member_id


def test_each_member_receives_what_the_leader_gave_it() -> None:
    world = World()
    for member in world.stable(3):
        assert assignment(world, member).assignment == member.member_id.encode()


def test_no_member_gets_an_assignment_before_it_is_committed() -> None:
    world = World()
    correlation_id = world.sync(world.joined(world.new_member()))
    assert world.waits(correlation_id)
    world.acknowledge()
    assert world.response(correlation_id, SyncGroupResponse).error is ErrorCode.NONE
    assert state(world) == "Stable"


def test_an_assignment_that_could_not_be_written_begins_another_rebalance() -> None:
    world = World()
    joined = world.joined(world.new_member())
    correlation_id = world.sync(joined)
    world.acknowledge(ErrorCode.NOT_ENOUGH_REPLICAS, kept=False)
    assert world.response(correlation_id, SyncGroupResponse).error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert state(world) == "PreparingRebalance"
    assert beat(world, joined) is ErrorCode.REBALANCE_IN_PROGRESS


def test_the_first_of_two_assignments_of_one_generation_counts_for_every_later_coordinator() -> None:
    world = World()
    joined = world.joined(world.new_member())
    world.sync(joined, lambda _member: b"first")
    second = world.sync(joined, lambda _member: b"second")
    world.settle()
    assert world.response(second, SyncGroupResponse).assignment == b"first"
    world.fail_over()
    assert assignment(world, joined).assignment == b"first"


def test_a_member_that_joins_starts_a_rebalance_and_heartbeats_report_it() -> None:
    world = World()
    (member,) = world.stable(1)
    newcomer = world.new_member()
    assert world.waits(newcomer)
    assert beat(world, member) is ErrorCode.REBALANCE_IN_PROGRESS
    assert world.joined(world.join(member.member_id)).generation == 2
    assert world.joined(newcomer).generation == 2


def test_a_member_that_does_not_join_again_in_time_is_out() -> None:
    world = World()
    (late,) = world.stable(1)
    newcomer = world.new_member()
    for _ in range(12):
        world.passes(5_000)
        beat(world, late)
    assert [member.member_id for member in world.joined(newcomer).members] == [world.joined(newcomer).member_id]
    assert beat(world, late) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_whose_session_ends_is_out() -> None:
    world = World()
    lost, alive = world.stable(2)
    world.passes(9_000)
    beat(world, alive)
    world.passes(2_000)
    assert beat(world, alive) is ErrorCode.REBALANCE_IN_PROGRESS
    assert beat(world, lost) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_waits_for_the_others_is_alive_without_heartbeats() -> None:
    world = World()
    slow, quick = world.stable(2)
    correlation_id = world.join(quick.member_id, protocols=(Protocol("range", b"new"),))
    for _ in range(3):
        world.passes(8_000)
        beat(world, slow)
    assert world.waits(correlation_id)


def test_members_that_never_sync_are_removed() -> None:
    world = World()
    pending_responses = [world.new_member(require_known_member_id=True)]
    joined = world.joined(pending_responses[0])
    for _ in range(13):
        world.passes(5_000)
        beat(world, joined)
    assert beat(world, joined) is ErrorCode.UNKNOWN_MEMBER_ID
    assert state(world) == "Empty"


def test_the_last_member_to_leave_leaves_an_empty_group_of_a_later_generation() -> None:
    world = World()
    (member,) = world.stable(1)
    response = world.call(LeaveGroup("g", (LeavingMember(member.member_id),)), LeaveGroupResponse)
    assert [error for _, error in response.members] == [ErrorCode.NONE]
    assert state(world) == "Empty"
    world.fail_over()
    assert world.joined(world.new_member()).generation == 3


def test_members_that_leave_together_get_an_error_each() -> None:
    world = World()
    first, second = world.stable(2)
    leaving = tuple(LeavingMember(member_id) for member_id in (first.member_id, "stranger", second.member_id))
    response = world.call(LeaveGroup("g", leaving), LeaveGroupResponse)
    assert [error for _, error in response.members] == [ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.NONE]


A, B, C = Protocol("a", b""), Protocol("b", b""), Protocol("c", b"")


@pytest.mark.parametrize(
    ("preferences", "elected"),
    [
        ([(C, A, B), (B, A), (A, B)], "a"),  # c is not supported by all: its vote goes to a.
        ([(C, B, A), (B, A), (A, B)], "b"),
        ([(B, A), (A, B), (A, B)], "a"),
        ([(B, A), (A, B)], "b"),  # A tie: the vote of the older member decides.
        ([(A, B), (B, A)], "a"),
    ],
)
def test_the_protocol_that_most_members_prefer_is_elected_among_those_all_support(
    preferences: list[tuple[Protocol, ...]], elected: str
) -> None:
    world = World(settings=DELAYED)
    joins = [world.new_member(protocols=protocols) for protocols in preferences]
    world.passes(3_000)
    world.passes(3_000)  # Members joined during the first delay, so that there is a second.
    assert {world.joined(join).protocol for join in joins} == {elected}


@pytest.mark.parametrize(
    "fields", [{"protocol_type": "connect"}, {"protocols": (Protocol("other", b""),)}], ids=["type", "protocols"]
)
def test_a_member_that_could_not_be_assigned_to_is_refused(fields: dict[str, Any]) -> None:
    world = World()
    world.stable(1)
    assert world.joined(world.join(**fields)).error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"group_id": ""}, ErrorCode.INVALID_GROUP_ID),
        ({"session_timeout_ms": 1}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"session_timeout_ms": 2_000_000}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"member_id": "stranger"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"protocols": ()}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_type": ""}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
    ],
)
def test_a_join_that_makes_no_sense_is_refused(fields: dict[str, Any], error: ErrorCode) -> None:
    world = World()
    assert world.joined(world.join(**fields)).error is error


def test_a_full_group_takes_no_more_members() -> None:
    world = World(settings=GroupSettings(offsets_topic_num_partitions=1, group_max_size=2))
    world.stable(2)
    assert world.joined(world.join()).error is ErrorCode.GROUP_MAX_SIZE_REACHED


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"generation": 9}, ErrorCode.ILLEGAL_GENERATION),
        ({"member_id": "stranger"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"protocol": "other"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"group_id": "unknown"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_a_sync_that_is_not_of_this_generation_is_refused(change: dict[str, Any], error: ErrorCode) -> None:
    world = World()
    (member,) = world.stable(1)
    fields: dict[str, Any] = {"group_id": "g", "generation": 1, "member_id": member.member_id} | change
    assert world.call(SyncGroup(**fields), SyncGroupResponse).error is error


def test_an_initial_delay_gathers_a_group_that_starts_up() -> None:
    world = World(settings=DELAYED)
    first = world.new_member()
    world.passes(2_000)
    second = world.new_member()
    world.passes(1_000)
    assert world.waits(first), "a member came: the delay goes on"
    world.passes(3_000)
    assert world.joined(first).generation == world.joined(second).generation == 1


@pytest.mark.parametrize("delay_ms", [1, 3_000])
def test_an_initial_delay_ends_when_no_member_came_during_it(delay_ms: int) -> None:
    world = World(settings=replace(DELAYED, group_initial_rebalance_delay_ms=delay_ms))
    first = world.new_member()
    world.passes(delay_ms - 1)
    assert world.waits(first)
    world.passes(1)
    assert world.joined(first).generation == 1


def test_without_an_initial_delay_a_group_that_starts_up_does_not_wait() -> None:
    world = World(settings=replace(DELAYED, group_initial_rebalance_delay_ms=0))
    first = world.new_member()
    assert not world.waits(first)
    assert world.joined(first).generation == 1


def test_an_initial_delay_is_over_after_the_rebalance_timeout_however_many_members_come() -> None:
    """Members time out after 20 s. One comes every second: the delay is six times 3 s, then 2 s, and nothing more."""
    world = World(settings=DELAYED)
    first = world.new_member(rebalance_timeout_ms=20_000)
    for second in range(1, 20):
        world.passes(1_000)
        assert world.waits(first), second
        world.new_member(rebalance_timeout_ms=20_000)
    world.passes(1_000)
    assert world.joined(first).generation == 1


def test_a_group_that_is_not_new_rebalances_without_the_initial_delay() -> None:
    world = World(settings=DELAYED)
    first = world.new_member()
    world.passes(3_000)
    world.sync(world.joined(first))
    world.settle()
    second = world.new_member()
    assert world.waits(second), "until the first has joined again"
    world.join(world.joined(first).member_id)
    assert world.joined(second).generation == 2


# Static members.


def test_a_static_member_that_restarts_keeps_its_assignment_without_a_rebalance() -> None:
    world = World()
    before = stable_static(world)
    correlation_id = static(world)
    assert world.waits(correlation_id), "until its new id is safe"
    world.settle()
    after = world.joined(correlation_id)
    assert after.generation == before.generation
    assert after.member_id != before.member_id
    assert after.leader == before.member_id, "so that it does not assign"
    assert assignment(world, after).assignment == before.member_id.encode()


def test_a_static_leader_that_supports_it_skips_the_assignment() -> None:
    world = World()
    stable_static(world)
    correlation_id = static(world, can_skip_assignment=True)
    world.settle()
    after = world.joined(correlation_id)
    assert after.skip_assignment
    assert after.leader == after.member_id
    assert len(after.members) == 1


def test_a_client_with_the_old_id_is_fenced() -> None:
    world = World()
    before = stable_static(world)
    static(world)
    world.settle()
    assert beat(world, before, "i") is ErrorCode.FENCED_INSTANCE_ID
    leaving = LeaveGroup("g", (LeavingMember(before.member_id, "i"),))
    assert world.call(leaving, LeaveGroupResponse).members[0][1] is ErrorCode.FENCED_INSTANCE_ID


def test_a_new_id_that_could_not_be_kept_is_taken_back() -> None:
    world = World()
    before = stable_static(world)
    correlation_id = static(world)
    world.acknowledge(ErrorCode.NOT_ENOUGH_REPLICAS, kept=False)
    assert world.joined(correlation_id).error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert beat(world, before, "i") is ErrorCode.NONE


def test_a_static_member_that_subscribes_otherwise_starts_a_rebalance() -> None:
    world = World()
    sticky = Protocol("sticky", b"")
    world.sync(world.joined(static(world, protocols=(*RANGE, sticky))))
    world.settle()
    after = world.joined(static(world, protocols=(sticky,)))
    assert (after.generation, after.protocol) == (2, "sticky")


def test_a_static_member_outlives_a_rebalance_it_missed() -> None:
    world = World()
    stable_static(world)
    newcomer = world.new_member(session_timeout_ms=100_000, rebalance_timeout_ms=1_000)
    world.passes(9_000)
    static_id = world.coordinator.describe("g").members[0].member_id
    beat(world, JoinGroupResponse(ErrorCode.NONE, static_id, 1), "i")
    assert world.waits(newcomer)
    for _ in range(9):
        world.passes(6_000)
        beat(world, JoinGroupResponse(ErrorCode.NONE, static_id, 1), "i")
    assert len(world.joined(newcomer).members) == 2


def test_a_static_member_leaves_by_its_instance_id() -> None:
    world = World()
    stable_static(world)
    response = world.call(LeaveGroup("g", (LeavingMember("", "i"),)), LeaveGroupResponse)
    assert response.members[0][1] is ErrorCode.NONE
    assert state(world) == "Empty"


# The coordinator's loss.


def test_members_go_on_under_the_next_coordinator_without_a_rebalance() -> None:
    world = World()
    members = world.stable(3)
    world.fail_over()
    for member in members:
        assert beat(world, member) is ErrorCode.NONE
        assert assignment(world, member).assignment == member.member_id.encode()


def test_waiting_requests_get_not_coordinator() -> None:
    world = World()
    world.stable(1)
    joining = world.new_member()
    world.fail_over()
    assert world.joined(joining).error is ErrorCode.NOT_COORDINATOR


def test_another_brokers_group_gets_not_coordinator() -> None:
    world = World()
    world.coordinator.on_resigned(world.now, 0)
    assert world.joined(world.join()).error is ErrorCode.NOT_COORDINATOR
    assert world.coordinator.describe("g").error is ErrorCode.NOT_COORDINATOR


def test_groups_of_a_topic_that_was_created_again_are_coordinated() -> None:
    world = World()
    world.fail_over()
    world.coordinator.on_resigned(world.now, 0)
    world.coordinator.on_elected(world.now, 0, 0, ())
    assert world.coordinator.describe("g").error is not ErrorCode.NOT_COORDINATOR
    assert world.joined(world.join()).error is ErrorCode.MEMBER_ID_REQUIRED


def test_an_unused_member_id_leaves_nothing_behind() -> None:
    world = World()
    world.join()
    assert [group.group_id for group in world.coordinator.list_groups()] == ["g"]
    world.passes(10_000)
    assert world.coordinator.list_groups() == []


@pytest.mark.parametrize(
    ("states", "types", "found"),
    [((), (), 1), (("stable",), (), 1), (("Empty",), (), 0), ((), ("Consumer",), 0), ((), ("Classic",), 1)],
)
def test_groups_are_listed_by_state_and_type(states: tuple[str, ...], types: tuple[str, ...], found: int) -> None:
    world = World()
    world.stable(1)
    assert len(world.coordinator.list_groups(states, types)) == found


def test_a_groups_description_has_assignments_while_it_is_stable() -> None:
    world = World()
    (member,) = world.stable(1)
    described = world.coordinator.describe("g")
    assert (described.state, described.protocol_type, described.protocol) == ("Stable", "consumer", "range")
    assert described.members[0].assignment == member.member_id.encode()
    assert described.members[0].metadata == RANGE[0].metadata
    world.new_member()
    preparing = world.coordinator.describe("g")
    assert (preparing.state, preparing.protocol) == ("PreparingRebalance", "")
    assert {each.assignment for each in preparing.members} == {b""}
    assert world.coordinator.describe("unknown").state == "Dead"
