"""`leader.racks`, in audits and plans: against every choice of preferred leaders of small clusters."""

from collections import Counter
from dataclasses import replace
from itertools import product
from random import Random

import numpy as np
import pytest

from rackspan import api
from rackspan.audit import RackPolicy, audit
from rackspan.errors import UsageError
from rackspan.model import Broker, BrokerId, ClusterSnapshot, RackId, Topic, TopicName, columns
from rackspan.reassign import ReassignmentRequest, plan, snapshot_after
from tests.snapshots import of_one_topic

LEADERS = ReassignmentRequest(leaders=True)


def random_cluster(rng: Random) -> tuple[ClusterSnapshot, RackPolicy]:
    """Two to seven brokers in up to four racks, some fenced, excluded or without a rack; partitions being reassigned or offline."""
    brokers = range(rng.randint(2, 7))
    racks = [RackId(name) for name in "abcd"[: rng.randint(1, 4)]]
    registered = tuple(
        Broker(BrokerId(b), rng.choice(racks) if rng.random() < 0.9 else None, fenced=rng.random() < 0.1)
        for b in brokers
    )
    listed = [*brokers, 9] if rng.random() < 0.1 else list(brokers)
    topic = sorted(rng.randrange(3) for _ in range(rng.randint(1, 9)))
    replicas = [rng.sample(listed, rng.randint(1, min(3, len(listed)))) for _ in topic]
    adding = [[held[-1]] if len(held) > 1 and rng.random() < 0.05 else [] for held in replicas]
    leader = [-1 if rng.random() < 0.05 else rng.choice(held) for held in replicas]
    snapshot = ClusterSnapshot(
        brokers=registered,
        topics=tuple(Topic(TopicName(name)) for name in ("clicks", "orders", "payments")),
        partitions=columns(
            topic=topic,
            partition=[topic[:row].count(code) for row, code in enumerate(topic)],
            leader=leader,
            replicas=replicas,
            isr=replicas,
            adding_replicas=adding,
        ),
    )
    required = {name: tuple(rng.sample(racks, rng.randint(1, len(racks)))) for name in ("orders", "payments")}
    if rng.random() < 0.2:
        required["orders"] = (RackId("elsewhere"), *required["orders"])
    excluded = frozenset({rng.choice(brokers)} if rng.random() < 0.1 else ())
    return snapshot, RackPolicy(topic_leader_racks=required, excluded_brokers=excluded)


def best(snapshot: ClusterSnapshot, policy: RackPolicy) -> tuple[list[int], int]:
    """The ranks of the required racks that each partition can have, and then the least sum of squared leaderships, by trying everything."""
    racks = {int(broker.id): broker.rack for broker in snapshot.brokers}
    able = {int(broker.id) for broker in snapshot.brokers if not broker.fenced} - policy.excluded_brokers
    choices: list[list[int]] = []
    ranks: list[int] = []
    for row in snapshot.partitions:
        required = policy.topic_leader_racks.get(snapshot.topics[row.topic].name)
        free = required and not row.adding_replicas and row.leader != -1 and set(row.replicas) <= racks.keys()
        may = (
            [broker for broker in row.replicas if broker in able or broker == row.replicas[0]]
            if free
            else row.replicas[:1]
        )
        rank = {broker: rank_of(racks.get(broker), required or ()) for broker in may}
        choices.append([broker for broker in may if rank[broker] == min(rank.values())])
        ranks.append(min(rank.values()))
    return ranks, min(squares(led) for led in product(*choices))


def rank_of(rack: str | None, required: tuple[str, ...]) -> int:
    return required.index(rack) if rack in required else len(required)


def squares(led: tuple[int, ...]) -> int:
    return sum(count**2 for broker, count in Counter(led).items() if broker != 9)


def compare(seed: int) -> None:
    snapshot, policy = random_cluster(Random(seed))
    required = [row for row in snapshot.partitions if snapshot.topics[row.topic].name in policy.topic_leader_racks]
    after = snapshot_after(snapshot, plan(snapshot, policy, LEADERS))
    racks = {int(broker.id): broker.rack for broker in snapshot.brokers}
    ranks = []
    for before, row in zip(snapshot.partitions, after.partitions, strict=True):
        name = snapshot.topics[row.topic].name
        assert sorted(row.replicas) == sorted(before.replicas)
        assert row.replicas == before.replicas or before in required
        ranks.append(rank_of(racks.get(row.replicas[0]), policy.topic_leader_racks.get(name, ())))
    led = tuple(row.replicas[0] for row in after.partitions)
    assert (ranks, squares(led)) == best(snapshot, policy), f"seed {seed}"
    warned = {finding.topic for finding in audit(snapshot, policy).findings if finding.constraint == "leader-racks"}
    assert warned == {
        snapshot.topics[row.topic].name
        for row, rank in zip(snapshot.partitions, ranks, strict=True)
        if row in required
        and rank < rank_of(racks.get(row.replicas[0]), policy.topic_leader_racks[snapshot.topics[row.topic].name])
    }, f"seed {seed}"
    assert not any(finding.constraint == "leader-racks" for finding in audit(after, policy).findings)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 200, 20))
def test_no_other_leaders_are_in_better_racks_or_more_level(first: int) -> None:
    for seed in range(first, first + 20):
        compare(seed)


@pytest.mark.soak
@pytest.mark.parametrize("first", range(1_000, 3_000, 100))
def test_no_other_leaders_are_in_better_racks_or_more_level_in_2000_clusters(first: int) -> None:
    for seed in range(first, first + 100):
        compare(seed)


def three_racks(replicas: list[list[int]]) -> ClusterSnapshot:
    """Brokers 1 to 6, to the racks a, b and c in turn."""
    racks = {broker: "abc"[(broker - 1) % 3] for broker in range(1, 7)}
    return of_one_topic(racks, replicas, config={"min.insync.replicas": "2"})


IN_RACK_A = RackPolicy(topic_leader_racks={"orders": (RackId("a"),)})


def test_leaders_in_the_required_rack_are_not_uneven_and_an_ordinary_plan_leaves_them() -> None:
    snapshot = three_racks([[1, 2, 3], [4, 5, 6]] * 20)
    assert {finding.constraint for finding in audit(snapshot, RackPolicy()).findings} == {
        "leader-balance",
        "rack-leader-balance",
    }
    assert audit(snapshot, IN_RACK_A).findings == []
    assert len(plan(snapshot, RackPolicy())) > 0
    assert len(plan(snapshot, IN_RACK_A)) == 0


def test_only_the_chosen_topics_change_and_the_others_count_where_they_are() -> None:
    """The partitions of payments could be led by broker 1 of rack a, and stay with broker 2."""
    snapshot = three_racks([[1, 4, 2], [1, 4, 3], [2, 1, 3], [2, 1, 3]])
    both = replace(
        snapshot,
        topics=(*snapshot.topics, Topic(TopicName("payments"))),
        partitions=replace(snapshot.partitions, topic=np.array([0, 0, 1, 1], dtype=np.int32)),
    )
    required = {"orders": (RackId("a"),), "payments": (RackId("a"),)}
    planned = plan(both, RackPolicy(topic_leader_racks=required), replace(LEADERS, topics="orders"))
    after = snapshot_after(both, planned).partitions
    assert [row.replicas[0] for row in after if row.topic == 1] == [2, 2]
    assert sorted(row.replicas[0] for row in after if row.topic == 0) == [1, 4]


def test_the_plan_copies_nothing_and_can_be_undone() -> None:
    snapshot = three_racks([[2, 1, 3], [5, 4, 6], [2, 3, 4]] * 4)
    planned = api.plan_reassignment(snapshot, IN_RACK_A, LEADERS)
    assert (planned.moves, len(planned)) == (0, 12)
    assert sorted((partition.partition, partition.undo) for partition in planned.partitions()) == [
        (row.partition, row.replicas) for row in snapshot.partitions
    ]


@pytest.mark.parametrize("policy", [RackPolicy(), RackPolicy(topic_leader_racks={"clicks": (RackId("a"),)})])
def test_a_plan_for_leaders_without_a_topic_that_requires_racks_is_refused(policy: RackPolicy) -> None:
    with pytest.raises(UsageError, match=r"--leaders: no topic of the cluster has leader\.racks; add"):
        plan(three_racks([[1, 2]]), policy, LEADERS)


def test_a_plan_for_leaders_does_nothing_else() -> None:
    for other in ({"balance": True}, {"drain": frozenset({1})}, {"reorder_leaders": False}):
        with pytest.raises(UsageError, match="--leaders: copies nothing and plans nothing else"):
            ReassignmentRequest(leaders=True, **other)
    assert replace(LEADERS, topics="orders").leaders
