"""Registrations of brokers that are left over: what is printed about a fenced broker that holds nothing, followed to its end."""

import re
import shlex
from dataclasses import replace
from typing import Any

import pytest

from rackspan import api
from rackspan.audit import RackPolicy
from rackspan.model import BrokerId, ClusterSnapshot, Controller, RackId
from tests.audit import repairs
from tests.snapshots import of_one_topic

RACKS = {0: "a", 1: "b", 2: "c", 3: "a", 4: "b", 5: "c"}
LEFT_OVER = {0, 1, 2}
"""Processes that were brokers too, and are only controllers now. Their registrations are fenced."""


def cluster(replicas: list[list[int]], **parts: Any) -> ClusterSnapshot:
    controllers = tuple(Controller(BrokerId(one), RackId(RACKS[one]), alive=True) for one in sorted(LEFT_OVER))
    isr = [[one for one in row if one not in LEFT_OVER] for row in replicas]
    config = {"min.insync.replicas": "2"}
    return of_one_topic(
        RACKS, replicas, isr=isr, fenced=LEFT_OVER, topic="t", config=config, controllers=controllers, **parts
    )


SPREAD = [[3, 4, 5], [4, 5, 3], [5, 3, 4]]


def remedies(snapshot: ClusterSnapshot, constraint: str, topics: str | None = None) -> list[str]:
    found = api.audit(snapshot, RackPolicy(), None if topics is None else re.compile(topics)).findings
    return [one.remedy for one in found if one.constraint == constraint]


def unregister(broker: int) -> str:
    return f"bring back broker {broker}; if it is no broker any more: kafka-cluster.sh unregister --bootstrap-server HOST:PORT --id {broker}"


def followed(snapshot: ClusterSnapshot, remedy: str) -> ClusterSnapshot:
    """The cluster without the broker that the command names, as Kafka's controller removes its registration."""
    tool, verb, *arguments = shlex.split(remedy.partition(": ")[2])
    assert (tool, verb) == ("kafka-cluster.sh", "unregister")
    broker = int(arguments[arguments.index("--id") + 1])
    assert not (snapshot.partitions.replicas == broker).any(), "Kafka would take it, and leave its replicas behind"
    return replace(snapshot, brokers=tuple(one for one in snapshot.brokers if one.id != broker))


def test_a_registration_that_is_left_over_is_removed_and_nothing_is_found_any_more() -> None:
    snapshot = cluster(SPREAD)
    assert remedies(snapshot, "fenced-broker") == [unregister(one) for one in sorted(LEFT_OVER)]
    while found := remedies(snapshot, "fenced-broker"):
        snapshot = followed(snapshot, found[0])
    assert [int(one.id) for one in snapshot.brokers] == [3, 4, 5]
    assert not api.audit(snapshot, RackPolicy()).findings


@pytest.mark.parametrize(
    "change",
    [
        {"replicas": [[3, 4, 5, 0]]},
        # On its way out, but there.
        {"replicas": [[3, 4, 5, 0]], "more": {"adding_replicas": [[5]], "removing_replicas": [[0]]}},
        {"replicas": SPREAD, "partial": ("topic other: hidden from this user",)},
    ],
    ids=["it holds one", "it is removed from one", "a topic is hidden"],
)
def test_one_that_holds_a_replica_or_may_hold_one_is_never_removed(change: dict[str, Any]) -> None:
    assert remedies(cluster(**change), "fenced-broker")[0] == "bring back broker 0"


def test_an_audit_of_some_topics_does_not_know_what_a_broker_holds() -> None:
    assert remedies(cluster(SPREAD), "fenced-broker", "t") == [f"bring back broker {one}" for one in sorted(LEFT_OVER)]


def test_a_diskless_topic_is_held_too() -> None:
    snapshot = cluster([[0]], leader=[-1])
    diskless = replace(snapshot, topics=(replace(snapshot.topics[0], config={"diskless.enable": "true"}),))
    assert remedies(diskless, "fenced-broker") == ["bring back broker 0", unregister(1), unregister(2)]


def test_replicas_that_no_other_broker_can_take_are_left_out_by_a_plan_that_works() -> None:
    snapshot = cluster([[3, 4, 5, 0, 1, 2]])
    (remedy,) = remedies(snapshot, "under-replicated")
    plan = "rackspan reassign plan --topic t --replication-factor 3"
    assert remedy == f"bring back brokers 0,1,2, or {plan}"
    _, params = repairs.parsed(shlex.split(plan)[1:])
    planned = api.plan_reassignment(snapshot, RackPolicy(), repairs.requested(params))
    after = api.snapshot_after(snapshot, planned)
    assert (planned.moves, not planned.infeasible, after.partitions.row(0).replicas) == (0, True, (3, 4, 5))
    assert remedies(after, "under-replicated") == []
    assert remedies(after, "fenced-broker") == [unregister(one) for one in sorted(LEFT_OVER)]


@pytest.mark.parametrize(
    ("replicas", "alive"),
    [
        ([3, 4, 0], True),  # Two are left, of which the loss of one would stop acks=all.
        ([3, 4, 2, 0], True),  # They would be in fewer racks.
        ([3, 4, 5, 0, 1, 2], False),  # Nothing says that they are only controllers.
        ([3, 4, 5, 0, 1, 2], None),
    ],
)
def test_a_lower_factor_is_not_proposed_where_it_costs_safety_or_nothing_says_that_they_are_gone(
    replicas: list[int], alive: bool | None
) -> None:
    snapshot = cluster([replicas])
    snapshot = replace(snapshot, controllers=tuple(replace(one, alive=alive) for one in snapshot.controllers))
    found = api.audit(snapshot, RackPolicy()).findings
    assert not [one for one in found if "--replication-factor" in one.remedy and one.constraint == "under-replicated"]


@pytest.mark.parametrize(
    ("held", "remedy"),
    [
        ([1], "run three or five controllers, spread evenly over at least three racks"),
        ([1, 1], "run three or five controllers, spread evenly over at least three racks"),
        ([2, 1, 1], "run three or five controllers, spread evenly over at least three racks"),
        ([3, 1, 1], "spread the controllers evenly over at least three racks"),
        ([3, 2, 1], "spread the controllers evenly over at least three racks"),
    ],
)
def test_controllers_are_to_be_spread_where_that_leaves_a_majority(held: list[int], remedy: str) -> None:
    """Voters in each rack. By hand: of 2+1+1 the loss of a rack leaves 2 of 4, of 2+2+1 three of 5, of 2+2+2 four of 6."""
    racks = [rack for rack, count in zip("abc", held, strict=False) for _ in range(count)]
    voters = tuple(Controller(BrokerId(90 + at), RackId(rack), alive=True) for at, rack in enumerate(racks))
    snapshot = of_one_topic({3: "a", 4: "b", 5: "c"}, SPREAD, controllers=voters)
    assert {one.partition(", or require")[0] for one in remedies(snapshot, "controller-quorum-spread")} == {remedy}
