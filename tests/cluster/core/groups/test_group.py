"""One group's state: its members and their order, its leader, protocols and generations."""

from dataclasses import replace
from typing import Any

import pytest

from rackspan.cluster.core.groups.group import Group, GroupState
from rackspan.cluster.core.groups.member import new_member
from rackspan.cluster.core.groups.records import GroupMetadataValue, MemberMetadata
from rackspan.cluster.core.groups.requests import JoinGroup, Protocol

RANGE, STICKY, OTHER = Protocol("range", b"r"), Protocol("sticky", b"s"), Protocol("other", b"o")


def group_of(**members: tuple[Protocol, ...]) -> Group:
    group = Group("g", 0)
    for member_id, protocols in members.items():
        add(group, member_id, protocols)
    return group


def add(group: Group, member_id: str, protocols: tuple[Protocol, ...] = (RANGE,), **fields: Any) -> None:
    join = replace(JoinGroup("g", "consumer", protocols, 10, 60), **fields)
    group.add(new_member(member_id, join), join.protocol_type)


def test_a_new_group_is_empty() -> None:
    group = Group("g", 3)
    assert (group.state, group.generation) == (GroupState.EMPTY, 0)
    assert (group.protocol_type, group.protocol, group.leader) == (None, None, None)
    assert (group.join_deadline, group.sync_deadline, group.initial_delay_left_ms) == (None, None, None)
    assert (group.new_member_joined, group.persisted, group.members, group.pending_joins) == (False, False, {}, {})
    assert (group.storing_generation, group.rebalance_timeout_ms, group.waiting_to_join) == (None, 0, 0)
    assert (group.is_unused, group.all_joined) == (True, True)


@pytest.mark.parametrize(
    "change",
    [
        {"state": GroupState.STABLE},
        {"generation": 1},
        {"persisted": True},
        {"pending_joins": {"m": 5}},
    ],
)
def test_a_group_is_in_use_by_a_generation_a_record_or_an_id_handed_out(change: dict[str, Any]) -> None:
    group = Group("g", 0)
    for name, value in change.items():
        setattr(group, name, value)
    assert not group.is_unused


def test_the_first_member_leads_and_sets_the_protocol_type() -> None:
    group = Group("g", 0, pending_joins={"a": 5, "z": 6})
    add(group, "a", group_instance_id="i")
    add(group, "b", protocol_type="connect", rebalance_timeout_ms=70)
    assert (group.leader, group.protocol_type, list(group.members)) == ("a", "consumer", ["a", "b"])
    assert (group.static_members, group.pending_joins) == ({"i": "a"}, {"z": 6})
    assert group.rebalance_timeout_ms == 70, "the longest"
    group.remove("a")
    assert (group.leader, group.static_members) == ("b", {})
    group.remove("b")
    assert (group.leader, group.members) == (None, {})
    add(group, "c", protocol_type="connect")
    assert (group.leader, group.protocol_type) == ("c", "connect")


def test_a_member_that_is_removed_leaves_nothing_and_its_instances_next_id_alone() -> None:
    group = Group("g", 0, pending_syncs={"a", "b"})
    add(group, "a", group_instance_id="i")
    add(group, "b")
    group.static_members["i"] = "newer"
    assert group.remove("a").member_id == "a"
    assert (group.pending_syncs, group.static_members) == ({"b"}, {"i": "newer"})


def test_a_static_member_keeps_its_place_under_a_new_id() -> None:
    group = group_of(a=(RANGE,))
    add(group, "s", group_instance_id="i")
    add(group, "c")
    group.pending_syncs = {"a", "s"}
    assert group.replace_static("s", "t").member_id == "t"
    assert (list(group.members), group.leader) == (["a", "t", "c"], "a")
    assert (group.static_members, group.pending_syncs) == ({"i": "t"}, {"a", "t"})
    group.pending_syncs = {"a"}
    group.leader = "t"
    group.replace_static("t", "u")
    assert (group.leader, group.pending_syncs) == ("u", {"a"})


def test_all_have_joined_once_each_waits_and_no_id_is_left_that_was_handed_out() -> None:
    group = group_of(a=(RANGE,), b=(RANGE,))
    group.members["a"].join_correlation_id = 0
    assert (group.all_joined, group.waiting_to_join) == (False, 1)
    group.members["b"].join_correlation_id = 9
    assert (group.all_joined, group.waiting_to_join) == (True, 2)
    group.pending_joins["c"] = 5
    assert not group.all_joined


@pytest.mark.parametrize(
    ("leader", "joined", "elected", "found"),
    [("b", "ab", "b", True), ("b", "ac", "a", True), ("b", "", "b", False), (None, "c", "c", True)],
)
def test_the_leader_stays_if_it_has_joined_else_the_oldest_that_has(
    leader: str | None, joined: str, elected: str, found: bool
) -> None:
    """ClassicGroup.maybeElectNewJoinedLeader."""
    group = group_of(a=(RANGE,), b=(RANGE,), c=(RANGE,))
    group.leader = leader
    for member_id in joined:
        group.members[member_id].join_correlation_id = 0
    assert group.elect_joined_leader() is found
    assert group.leader == elected


@pytest.mark.parametrize(
    ("members", "candidates", "elected"),
    [
        ({}, "", None),
        ({"a": (RANGE, STICKY)}, "range sticky", "range"),
        ({"a": (RANGE, STICKY), "b": (STICKY, RANGE)}, "range sticky", "range"),
        ({"a": (RANGE, STICKY), "b": (STICKY, RANGE), "c": (STICKY, RANGE)}, "range sticky", "sticky"),
        ({"a": (OTHER, RANGE), "b": (RANGE, STICKY)}, "range", "range"),
        ({"a": (RANGE,), "b": (STICKY,)}, "", None),
    ],
)
def test_members_vote_among_what_all_support(
    members: dict[str, tuple[Protocol, ...]], candidates: str, elected: str | None
) -> None:
    group = group_of(**members)
    assert group.candidates() == frozenset(candidates.split())
    assert group.elected_protocol() == elected


@pytest.mark.parametrize(
    ("protocol_type", "protocols", "empty", "full"),
    [
        ("consumer", (RANGE,), True, True),
        ("consumer", (OTHER, RANGE), True, True),
        ("consumer", (STICKY,), True, False),
        ("consumer", (), False, False),
        ("connect", (RANGE,), True, False),
        ("", (RANGE,), False, False),
    ],
)
def test_a_new_member_shares_type_and_a_protocol(
    protocol_type: str, protocols: tuple[Protocol, ...], empty: bool, full: bool
) -> None:
    assert group_of().supports(protocol_type, protocols) is empty
    assert group_of(a=(RANGE, STICKY), b=(OTHER, RANGE)).supports(protocol_type, protocols) is full


def test_a_generation_waits_for_its_members_to_sync() -> None:
    group = group_of(a=(RANGE,), b=(RANGE,))
    group.next_generation()
    assert (group.generation, group.protocol, group.pending_syncs) == (1, "range", {"a", "b"})
    assert group.is_in(GroupState.COMPLETING_REBALANCE)
    for member_id in "ab":
        group.remove(member_id)
    group.next_generation()
    assert (group.generation, group.protocol, group.pending_syncs) == (2, None, set())
    assert group.is_in(GroupState.EMPTY)


def test_a_groups_record_has_what_the_next_coordinator_needs() -> None:
    assert Group("g", 0).record_of({}, 5) == GroupMetadataValue("", 0, None, None, 5, ())
    group = group_of(a=(RANGE, STICKY), b=(STICKY, RANGE))
    group.next_generation()
    members = (
        MemberMetadata("a", None, "", "", 60, 10, b"r", b"x"),
        MemberMetadata("b", None, "", "", 60, 10, b"r", b""),
    )
    assert group.record_of({"a": b"x"}, 90) == GroupMetadataValue("consumer", 1, "range", "a", 90, members)
