"""One member: what it takes over from its join, from its record, and what others learn of it."""

from rackspan.cluster.core.groups.member import Member, loaded_member, new_member
from rackspan.cluster.core.groups.records import MemberMetadata
from rackspan.cluster.core.groups.requests import JoinedMember, JoinGroup, Protocol

RANGE, STICKY = Protocol("range", b"r"), Protocol("sticky", b"s")
JOIN = JoinGroup("g", "consumer", (RANGE, STICKY), 10, 60, "", "i", "client", "/host")
RECORD = MemberMetadata("m", "i", "client", "/host", 60, 10, b"s", b"assigned")


def test_a_new_member_is_what_its_join_says() -> None:
    assert new_member("m", JOIN) == Member(
        *("m", "i", "client", "/host", 60, 10, (RANGE, STICKY), b"", None, None),
        deadline=0,
        is_new=True,
    )


def test_a_member_is_restored_from_its_record_with_a_new_session() -> None:
    member = new_member("m", JOIN)
    assert member.record("sticky", b"assigned") == RECORD
    restored = Member(
        *("m", "i", "client", "/host", 60, 10, (STICKY,), b"assigned", None, None), deadline=1_010, is_new=False
    )
    assert loaded_member(RECORD, "sticky", 1_000) == restored
    assert loaded_member(RECORD, None, 1_000).protocols == (), "an empty group's record names no protocol"


def test_a_member_that_joins_again_replaces_its_fields() -> None:
    member = new_member("m", JOIN)
    member.rejoins(JoinGroup("g", "consumer", (STICKY,), 11, 61, "m", "i", "other", "/there"))
    fields = (member.protocols, member.session_timeout_ms, member.rebalance_timeout_ms)
    assert fields == ((STICKY,), 11, 61)
    assert (member.client_id, member.client_host) == ("other", "/there")


def test_a_member_votes_and_is_described_by_the_elected_protocol() -> None:
    member = new_member("m", JOIN)
    assert member.vote(frozenset({"sticky", "range"})) == "range"
    assert member.vote(frozenset({"sticky"})) == "sticky"
    assert member.joined("sticky") == JoinedMember("m", "i", b"s")
    assert [member.metadata(each) for each in ("range", "unknown", None)] == [b"r", b"", b""]


def test_a_member_waits_while_either_request_has_no_response() -> None:
    member = new_member("m", JOIN)
    # 0 is a correlation id like any other.
    assert not member.waits
    member.join_correlation_id = 0
    assert member.waits
    member.join_correlation_id, member.sync_correlation_id = None, 0
    assert member.waits
