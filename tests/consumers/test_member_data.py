import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rackspan.consumers.group import NO_EPOCH, GroupMember, MemberId
from rackspan.consumers.member_data import LastAssignment, assignment_data, member_data, read_assignment, read_member
from rackspan.model import RackId
from rackspan.model.ids import TopicPartition

OWNED = frozenset({TopicPartition("orders", 0), TopicPartition("orders", 2), TopicPartition("clicks", 1)})
DOCUMENT = {
    "rackspan": 1,
    "rack": "r1",
    "cooperative": True,
    "epoch": 7,
    "member": "c1",
    "owned": {"clicks": [1], "orders": [0, 2]},
}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


def test_the_user_data_of_a_member_is_this_document() -> None:
    sent = member_data("r1", LastAssignment(OWNED, 7, "c1"), cooperative=True)
    assert sent.decode() == json.dumps(DOCUMENT, separators=(",", ":"))
    assert read_member("c1", ["orders"], sent) == GroupMember(
        MemberId("c1"), frozenset({"orders"}), RackId("r1"), OWNED, epoch=7, still_reads=True
    )


def test_the_leaders_data_is_read_back() -> None:
    sent = assignment_data(9, MemberId("c1"))
    assert sent == b'{"rackspan":1,"epoch":9,"member":"c1"}'
    assert read_assignment(OWNED, sent) == LastAssignment(OWNED, 9, "c1")


@given(st.text(), st.frozensets(st.builds(TopicPartition, st.text(), st.integers(0))), st.integers(-1), st.text())
def test_any_rack_and_any_claim_survive_encoding(
    rack: str, owned: frozenset[TopicPartition], epoch: int, member: str
) -> None:
    if any(0xD800 <= ord(letter) < 0xE000 for letter in rack + member + "".join(one.topic for one in owned)):
        return  # Half a surrogate pair: Kafka's strings are UTF-8 and cannot hold one.
    read = read_member(member, [], member_data(rack, LastAssignment(owned, epoch, member), cooperative=False))
    assert (read.rack or "", read.owned, read.epoch, read.still_reads, read.fault) == (rack, owned, epoch, False, None)


def test_a_consumer_with_a_new_member_id_still_reads_nothing() -> None:
    sent = member_data("r1", LastAssignment(OWNED, 7, "c1"), cooperative=True)
    assert not read_member("c2", [], sent).still_reads
    assert read_member("c2", [], sent).owned == OWNED


def test_keys_of_later_versions_are_ignored() -> None:
    assert read_member("c1", [], json.dumps({**DOCUMENT, "zone": "z"}).encode()).fault is None


NOT_OURS = "sent user data that is not ours: another assignor's, or damaged"


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (b"", "sent no rack: it is of another version or runs another assignor"),
        (None, "sent no rack: it is of another version or runs another assignor"),
        (b"\x00\x00\x00\x01\x00\x06orders", NOT_OURS),
        (b"\xff\xfe", NOT_OURS),
        (b'{"rackspan":1,"rack":"r1"', NOT_OURS),
        (b"[" * 100_000, None),
        (b"[1]", NOT_OURS),
        (b"{}", NOT_OURS),
        (b'{"rackspan":true}', NOT_OURS),
        (b'{"rackspan":"1"}', NOT_OURS),
        (b'{"rackspan":2,"rack":"r1"}', "sent user data of version 2, and version 1 is known here"),
        (b'{"rackspan":0}', "sent user data of version 0, and version 1 is known here"),
        (b'{"rackspan":1,"rack":5}', "sent damaged user data: rack or cooperative is of the wrong type"),
        (b'{"rackspan":1,"cooperative":1}', "sent damaged user data: rack or cooperative is of the wrong type"),
        (b'{"rackspan":1,"owned":[]}', "sent damaged user data: owned is not a table of topics"),
        (
            b'{"rackspan":1,"owned":{"t":[-1]}}',
            "sent damaged user data: a list of owned partitions holds something else",
        ),
        (
            b'{"rackspan":1,"owned":{"t":[0.5]}}',
            "sent damaged user data: a list of owned partitions holds something else",
        ),
        (
            b'{"rackspan":1,"owned":{"t":3}}',
            "sent damaged user data: a list of owned partitions holds something else",
        ),
        (b'{"rackspan":1,"epoch":"7"}', "sent damaged user data: epoch is not a whole number"),
        (b'{"rackspan":1,"epoch":-2}', "sent damaged user data: epoch is not a whole number"),
    ],
)
def test_unreadable_data_is_a_fault_of_the_member_and_claims_nothing(data: bytes | None, fault: str | None) -> None:
    member = read_member("c1", ["orders"], data)
    assert member.fault == fault if fault else member.fault
    assert (member.topics, member.rack, member.owned, member.epoch) == (
        frozenset({"orders"}),
        None,
        frozenset(),
        NO_EPOCH,
    )


def test_without_user_data_the_rack_of_the_subscription_counts() -> None:
    member = read_member("c1", ["orders"], b"", "r2")
    assert (member.rack, member.fault) == ("r2", None)


@given(st.binary() | JSON.map(lambda value: json.dumps({**DOCUMENT, "owned": value}).encode()))
def test_nothing_a_member_sends_is_an_error(data: bytes) -> None:
    read_member("c1", [], data)
    read_assignment([], data)


@pytest.mark.parametrize("data", [b"", None, b"{", b'{"rackspan":2,"epoch":3}', b'{"rackspan":1,"epoch":"x"}'])
def test_unreadable_data_of_the_leader_gives_a_claim_without_epoch(data: Any) -> None:
    assert read_assignment(OWNED, data) == LastAssignment(OWNED, NO_EPOCH, "")
