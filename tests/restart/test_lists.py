"""The lists of a judged stop, word for word, each on the smallest cluster that shows it."""

import re
from collections.abc import Sequence
from typing import Any

import pytest

from rackspan.audit import RackPolicy
from rackspan.errors import UsageError
from rackspan.model import BrokerId, ClusterSnapshot, Controller, Topic, TopicName, columns
from rackspan.restart import BlockOn, StopJudgement, StopPolicy, SufferingPartition, judge_stop
from rackspan.restart.lists import Suffering
from tests.snapshots import of_one_topic

RACKS = {1: "a", 2: "b", 3: "c", 4: "a"}


def judged(
    replicas: Sequence[Sequence[int]],
    brokers: set[int],
    stop: StopPolicy = StopPolicy(),
    minimum: int = 2,
    config: dict[str, str] | None = None,
    **parts: Any,
) -> StopJudgement:
    config = {"min.insync.replicas": str(minimum), **(config or {})}
    return judge_stop(of_one_topic(RACKS, replicas, config=config, **parts), brokers, RackPolicy(), stop)


def reasons(suffering: Suffering) -> list[tuple[int, str]]:
    assert {one.topic for one in suffering} <= {"orders"}
    return [(one.partition, one.reason) for one in suffering]


def lists_with_entries(judgement: StopJudgement) -> set[str]:
    names = ("loses_leader", "refuses_writes", "one_copy", "single_replica", "below_margin", "without_margin")
    return {name for name in (*names, "accepted", "already") if getattr(judgement, name)}


def test_each_partition_is_in_the_list_of_its_harm() -> None:
    found = judged([[1, 2], [2, 3], [3, 4], [1], [4, 2, 3]], {1, 2}, minimum=1)
    assert found.loses_leader == (SufferingPartition("orders", 0, "no replica left in sync: in sync now 1,2"),)
    assert reasons(found.one_copy) == [(1, "broker 3 left in sync")]
    assert reasons(found.single_replica) == [(3, "its only replica is on broker 1")]
    assert lists_with_entries(found) == {"loses_leader", "one_copy", "single_replica"}
    assert (found.safe, found.brokers) == (False, (1, 2))


def test_too_few_replicas_or_racks_refuse_writes() -> None:
    found = judged([[1, 2], [1, 4, 2]], {2}, config={"min.insync.racks": "2"})
    assert reasons(found.refuses_writes) == [
        (0, "broker 1 left in sync, min.insync.replicas requires 2"),
        (1, "1 rack left in sync, min.insync.racks requires 2"),
    ]
    found = judged([[1, 2, 3, 4]], {2}, config={"min.insync.racks": "3"})
    assert reasons(found.refuses_writes) == [(0, "2 racks left in sync, min.insync.racks requires 3")]
    assert lists_with_entries(found) == {"refuses_writes"}


def test_a_rack_that_keeps_a_replica_in_sync_is_not_lost() -> None:
    assert judged([[1, 4, 2]], {4}, config={"min.insync.racks": "2"}).safe


def test_with_one_copy_named_it_blocks() -> None:
    two = [[1, 2], [1]]
    assert judged(two, {1}, minimum=1).safe
    assert not judged(two, {1}, StopPolicy(block_on=frozenset({BlockOn.ONE_COPY})), minimum=1).safe
    found = judged(two, {1}, StopPolicy(block_on=frozenset(BlockOn)), minimum=1)
    assert [one.partition for one in found.blocking] == [0, 1]


def test_a_graver_harm_at_the_end_of_a_reassignment_is_the_one_that_is_listed() -> None:
    more = {"adding_replicas": [[], [3]], "removing_replicas": [[1, 2], []]}
    found = judged([[1, 2, 3], [1, 2, 3]], {3}, minimum=1, isr=[[1, 2, 3], [1, 2]], more=more)
    assert reasons(found.single_replica) == [(0, "its only replica is on broker 3, once its reassignment has ended")]
    assert lists_with_entries(found) == {"single_replica"}


def test_a_harm_now_and_at_the_end_of_a_reassignment_is_listed_once() -> None:
    more = {"adding_replicas": [[3]], "removing_replicas": [[1]]}
    found = judged([[1, 2, 3]], {2}, isr=[[1, 2]], more=more)
    assert reasons(found.refuses_writes) == [(0, "broker 1 left in sync, min.insync.replicas requires 2")]
    assert reasons(judged([[1, 2, 3]], {3}, isr=[[1, 2]], more=more).refuses_writes) == [
        (0, "broker 2 left in sync, min.insync.replicas requires 2, once its reassignment has ended")
    ]


def test_accepted_topics_are_listed_apart_where_they_would_block() -> None:
    accepted = re.compile("ord.*")
    found = judged([[1, 2], [1], [1, 3, 4]], {1, 3}, StopPolicy(accepted=accepted), minimum=1)
    assert lists_with_entries(found) == {"one_copy", "single_replica"}
    assert found.safe
    found = judged([[1, 2], [1], [1, 3]], {1, 3}, StopPolicy(1, frozenset(BlockOn), accepted), minimum=1)
    assert reasons(found.accepted) == [
        (0, "broker 2 left in sync"),
        (1, "its only replica is on broker 1"),
        (2, "no replica left in sync: in sync now 1,3"),
    ]
    assert lists_with_entries(found) == {"accepted"}
    assert found.safe
    assert not judged([[1, 2]], {1}, StopPolicy(accepted=re.compile("ord"))).safe, "the whole name counts"


def test_what_has_no_margin_is_listed_once_if_it_keeps_its_minimum() -> None:
    margin = StopPolicy(margin=1)
    found = judged([[1, 2, 3], [1, 2], [2, 3, 4], [1, 2, 3, 4]], {1}, margin)
    assert reasons(found.without_margin) == [(0, "replication factor 3 and minimum 2 leave no margin")]
    assert lists_with_entries(found) == {"without_margin", "refuses_writes"}
    more = {"adding_replicas": [[3]], "removing_replicas": [[4]]}
    found = judged([[1, 2, 3, 4]], {1}, margin, more=more)
    assert reasons(found.without_margin) == [(0, "replication factor 4 and minimum 2 leave no margin")]
    assert judged([[1, 2, 3]], {1}, StopPolicy(1, accepted=re.compile("orders"))).without_margin == ()


def test_what_is_harmed_already_is_listed_unless_it_gets_worse() -> None:
    found = judged(
        [[1, 2, 3], [1, 2, 3], [1, 4, 2], [1, 2, 3]],
        {3},
        config={"min.insync.racks": "2"},
        isr=[[1], [3], [1, 4], []],
        leader=[1, -1, 1, -1],
    )
    assert reasons(found.already) == [
        (0, "broker 1 in sync now, min.insync.replicas requires 2"),
        (2, "brokers 1,4 in sync now, min.insync.racks requires 2"),
        (3, "it has no leader now; in sync: no broker"),
    ]
    assert reasons(found.loses_leader) == [(1, "no replica left in sync: in sync now 3")]


def test_a_broker_that_is_fenced_is_not_named_as_in_sync() -> None:
    """Until the controllers have taken it out of an ISR it is in there, and acknowledges nothing."""
    found = judged([[1, 2, 3], [1, 2]], {4}, isr=[[1, 2], [1]], leader=[2, 1], fenced={1})
    assert reasons(found.already) == [
        (0, "broker 2 in sync now, min.insync.replicas requires 2"),
        (1, "it has no leader now; in sync: no broker"),
    ]


def test_a_topic_whose_minimum_is_not_known_is_named() -> None:
    found = judge_stop(of_one_topic(RACKS, [[1, 2, 3]]), {1}, RackPolicy())
    assert found.partial == ("min.insync.replicas of orders: not in the snapshot; take it with rackspan snapshot",)
    assert not found.safe
    assert judge_stop(of_one_topic(RACKS, [[1, 2, 3]]), {4}, RackPolicy()).partial == ()
    accepting = StopPolicy(accepted=re.compile("orders"))
    assert judge_stop(of_one_topic(RACKS, [[1, 2, 3]]), {1}, RackPolicy(), accepting).partial == ()
    note = "min.insync.replicas of 1 topic: no right to read it"
    unread = of_one_topic(RACKS, [[1, 2, 3]], partial=(note, "sizes of broker 1: unknown"))
    assert judge_stop(unread, {1}, RackPolicy()).partial == (note,)


@pytest.mark.parametrize(("topics", "more"), [(10, ""), (12, " and 2 more")])
def test_ten_topics_without_a_known_minimum_are_named_and_the_others_counted(topics: int, more: str) -> None:
    names = [f"t{at:02}" for at in range(topics)]
    snapshot = ClusterSnapshot(
        brokers=of_one_topic(RACKS, []).brokers,
        topics=tuple(Topic(TopicName(name)) for name in names),
        partitions=columns(
            topic=range(topics),
            partition=[0] * topics,
            leader=[1] * topics,
            replicas=[[1, 2]] * topics,
            isr=[[1, 2]] * topics,
        ),
    )
    (note,) = judge_stop(snapshot, {1}, RackPolicy()).partial
    assert note == (
        "min.insync.replicas of t00, t01, t02, t03, t04, t05, t06, t07, t08, t09"
        f"{more}: not in the snapshot; take it with rackspan snapshot"
    )


def test_the_controllers_that_are_left_are_counted() -> None:
    alive = tuple(Controller(BrokerId(voter), alive=True) for voter in (1, 2, 3))
    controllers = judged([], {3, 1, 4}, controllers=alive).controllers
    assert controllers is not None
    assert (controllers.voters, controllers.left, controllers.stopped) == (3, 1, (1, 3))
    assert (controllers.majority, controllers.holds) == (2, False)
    dead = (*alive[:2], Controller(BrokerId(3), alive=False))
    assert not judged([], {1}, controllers=dead).safe
    assert judged([], {3}, controllers=dead).safe
    assert judged([], {1}, controllers=(Controller(BrokerId(1), voter=False, alive=True),)).controllers is None


def test_required_controllers_that_are_not_known_are_named() -> None:
    snapshot = of_one_topic(RACKS, [])
    found = judge_stop(snapshot, {1}, RackPolicy(require_controllers=True))
    assert found.partial == ("controllers: none is in the snapshot, and they are required",)


def test_the_first_broker_that_is_not_listed_is_named_with_those_that_are() -> None:
    with pytest.raises(UsageError, match=r"^broker 8: not in this cluster; it has 1, 2, 3, 4$"):
        judge_stop(of_one_topic(RACKS, []), [9, 8, 1], RackPolicy())


def test_a_margin_below_zero_is_refused() -> None:
    with pytest.raises(UsageError, match=r"^margin is -1, expected 0 or more replicas above the minimum$"):
        StopPolicy(margin=-1)
