import logging
from collections.abc import Sequence

import pytest

from rackspan.assignor import membership
from rackspan.assignor.membership import Membership
from rackspan.consumers import GroupMember
from rackspan.consumers.member_data import assignment_data, read_member
from rackspan.model import RackId
from rackspan.model.ids import TopicPartition

RACKS = {TopicPartition("orders", one): frozenset({RackId(f"r{one % 2 + 1}")}) for one in range(4)}
ORDERS = frozenset({"orders"})


def member(name: str, rack: str) -> GroupMember:
    return read_member(name, ORDERS, Membership(rack, cooperative=False).user_data())


def warned(caplog: pytest.LogCaptureFixture) -> Sequence[str]:
    messages = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    caplog.clear()
    return messages


def test_off_is_logged_once_and_on_again_once(caplog: pytest.LogCaptureFixture) -> None:
    leader = Membership("r1", cooperative=False)
    racked, rackless = [member("a", "r1"), member("b", "r2")], member("c", "")
    leader.decide_rebalance(racked, RACKS)
    assert warned(caplog) == []
    leader.decide_rebalance([*racked, rackless], RACKS)
    assert warned(caplog) == [
        "rack awareness is off for the group: consumer c has no client.rack; partitions are balanced and stay where they are"
    ]
    leader.decide_rebalance([racked[0], rackless], RACKS)
    assert warned(caplog) == []
    leader.decide_rebalance(racked, RACKS)
    assert warned(caplog) == ["rack awareness is on again: every member of the group has a rack"]
    leader.decide_rebalance(racked, RACKS)
    assert warned(caplog) == []


def test_another_reason_is_logged_too(caplog: pytest.LogCaptureFixture) -> None:
    leader = Membership("r1", cooperative=False)
    leader.decide_rebalance([member("a", "")], RACKS)
    leader.decide_rebalance([read_member("a", ORDERS, b"?")], RACKS)
    rackless, unreadable = warned(caplog)
    assert "consumer a has no client.rack" in rackless
    assert "consumer a sent user data that is not ours" in unreadable


def test_a_rack_without_replicas_is_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    leader = Membership("r9", cooperative=False)
    for _ in range(2):
        leader.decide_rebalance([member("a", "r9")], RACKS)
    assert warned(caplog) == [
        "consumer a is in rack r9, where no replica of the group's topics is; is client.rack right?"
    ]


def test_a_topic_without_partitions_is_no_reason_to_warn(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "rackspan.assignor")
    decision = Membership("r1", cooperative=False).decide_rebalance([member("a", "r1")], {})
    assert decision.assigned == {"a": ()}
    assert "topic orders has no partitions that are known here; it is left out" in caplog.messages
    assert warned(caplog) == []


def test_a_consumer_claims_its_last_assignment() -> None:
    consumer = Membership("r1", cooperative=True)
    owned = [TopicPartition("orders", 3)]
    consumer.on_assignment(owned, assignment_data(8, member("a", "r1").id))
    read = read_member("a", ORDERS, consumer.user_data())
    assert (read.owned, read.epoch, read.still_reads) == (frozenset(owned), 8, True)


def test_warnings_of_several_members_are_in_order(caplog: pytest.LogCaptureFixture) -> None:
    names = [f"consumer-{number:02}" for number in range(20)]
    Membership("r9", cooperative=False).decide_rebalance([member(name, "r9") for name in reversed(names)], RACKS)
    assert [line.split()[1] for line in warned(caplog)] == names


def test_the_solver_is_loaded_before_the_first_rebalance(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[str] = []
    monkeypatch.setattr(membership, "import_module", loaded.append)
    Membership("r1", cooperative=False)
    assert loaded == ["ortools.graph.python.min_cost_flow"]


def test_each_rebalance_is_summed_up_in_a_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "rackspan.assignor")
    leader = Membership("r1", cooperative=False)
    leader.decide_rebalance([member("a", "r1"), member("b", "r2")], RACKS)
    leader.decide_rebalance([member("a", "r1")], RACKS)
    leader.decide_rebalance([member("a", "")], RACKS)
    assert [line for line in caplog.messages if " to " in line and "across racks" in line] == [
        "4 partitions to 2 members: 0 across racks, 0 moved, 0 waiting for the member that reads them",
        "4 partitions to 1 member: 2 across racks, 0 moved, 0 waiting for the member that reads them",
        "4 partitions to 1 member: not counted across racks, 0 moved, 0 waiting for the member that reads them",
    ]


def test_an_epoch_is_the_time_in_milliseconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Members of both clients compare them: the greatest is the latest assignment."""
    monkeypatch.setattr(membership, "time_ns", lambda: 1_700_000_000_123_456_789)
    decision = Membership("r1", cooperative=False).decide_rebalance([member("a", "r1")], RACKS)
    assert decision.epoch == 1_700_000_000_123
