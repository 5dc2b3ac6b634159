"""Brokers that can never stop and partitions that force further batches: who is named, how many there are, what helps."""

from dataclasses import replace

import pytest

from rackspan.audit import RackPolicy
from rackspan.audit.policy import Survive
from rackspan.model import BrokerId, ClusterSnapshot, Controller, Topic, TopicName, UnrackedPolicy, columns
from rackspan.restart import BlockOn, RestartRequest, StopPolicy, SufferingPartition, gain, plan_restart
from rackspan.restart.blocked import BlockedBroker
from rackspan.restart.gain import ForcingPartitions, ReassignmentGain
from tests.snapshots import of_one_topic

RACKS = {1: "a", 2: "b", 3: "c", 4: "a", 5: "b", 6: "c"}
SPREAD = [[first, second, third] for first in (1, 4) for second in (2, 5) for third in (3, 6)]
MIN_TWO = {"min.insync.replicas": "2"}


def test_a_blocked_broker_has_its_partitions_and_the_remedies_of_the_audit() -> None:
    first, second, third = plan_restart(of_one_topic(RACKS, [[1, 2], [1, 4], [2, 5, 3]], config=MIN_TWO)).blocked
    assert first == BlockedBroker(
        1,
        (
            SufferingPartition("orders", 0, "broker 2 left in sync, min.insync.replicas requires 2"),
            SufferingPartition("orders", 1, "broker 4 left in sync, min.insync.replicas requires 2"),
        ),
        2,
        "rackspan reassign plan --topic orders --replication-factor 3, or lower min.insync.replicas to 1; "
        "rackspan reassign plan --topic orders --replication-factor 3; or let them suffer with --accept 'orders'",
    )
    assert [(one.broker, one.partition_count) for one in (second, third)] == [(2, 1), (4, 1)]


def test_the_remedies_do_not_depend_on_what_the_policy_lets_a_topic_survive() -> None:
    snapshot = of_one_topic(RACKS, [[1, 2]], config=MIN_TWO)
    policy = RackPolicy(survive=Survive.NONE, topic_survive={"orders": Survive.BROKER})
    assert plan_restart(snapshot, policy).blocked == plan_restart(snapshot).blocked


def test_a_topic_whose_placement_is_left_alone_is_placed_anew_first() -> None:
    """No plan adds a replica to it before."""
    policy = RackPolicy(topic_survive={"orders": Survive.NONE})
    (remedy, *_) = {one.remedy for one in plan_restart(of_one_topic(RACKS, [[1, 2]], config=MIN_TWO), policy).blocked}
    assert remedy.startswith('take survive = "none" for the topic out of rackspan.toml; then rackspan reassign plan')


def test_a_broker_that_one_that_stays_down_blocks_waits_for_it() -> None:
    """Both voters are alive and needed, so that no batch starts the fenced broker of one of them."""
    voters = tuple(Controller(BrokerId(voter), voter=True, alive=True) for voter in (1, 9))
    snapshot = of_one_topic(RACKS, [[1, 4]], isr=[[4]], leader=[4], fenced={1}, config={"min.insync.replicas": "1"})
    of_voter, other = plan_restart(replace(snapshot, controllers=voters)).blocked
    assert (of_voter.broker, of_voter.partition_count) == (1, 0)
    suffering = SufferingPartition("orders", 0, "no replica left in sync: in sync now 4")
    assert other == BlockedBroker(4, (suffering,), 1, "bring back broker 1")


def test_twenty_partitions_of_a_blocked_broker_are_named_and_all_are_counted() -> None:
    blocked = plan_restart(of_one_topic(RACKS, [[1, 2]] * 25, config=MIN_TWO)).blocked[0]
    assert ([one.partition for one in blocked.partitions], blocked.partition_count) == (list(range(20)), 25)


def test_every_kind_of_harm_names_the_partitions_that_block() -> None:
    stop = StopPolicy(1, frozenset(BlockOn))
    replicas = [[1], [1, 2], [1, 2, 3]]
    snapshot = of_one_topic(RACKS, replicas, config={"min.insync.replicas": "1"})
    assert [(one.partition, one.reason) for one in plan_restart(snapshot, stop=stop).blocked[0].partitions] == [
        (1, "broker 2 left in sync"),
        (0, "its only replica is on broker 1"),
    ]
    lost = of_one_topic(RACKS, [[1, 90]], config={"min.insync.replicas": "1"})
    assert [one.reason for one in plan_restart(lost).blocked[0].partitions] == [
        "no replica left in sync: in sync now 1"
    ]
    short = of_one_topic(RACKS, [[1, 2, 90, 91]], config={"min.insync.replicas": "1"})
    assert [one.reason for one in plan_restart(short, stop=StopPolicy(1)).blocked[0].partitions] == [
        "broker 2 left in sync, the minimum is 1 and the margin 1"
    ]


def test_topics_are_accepted_by_their_names_letter_for_letter() -> None:
    snapshot = of_one_topic(RACKS, [[1, 2]], config=MIN_TWO, topic="a.b")
    assert plan_restart(snapshot).blocked[0].remedy.endswith(r"; or let them suffer with --accept 'a\.b'")


def test_at_most_three_remedies_are_named() -> None:
    names = [f"t{at}" for at in range(5)]
    snapshot = ClusterSnapshot(
        brokers=of_one_topic(RACKS, []).brokers,
        topics=tuple(Topic(TopicName(name), config=MIN_TWO) for name in names),
        partitions=columns(topic=range(5), partition=[0] * 5, leader=[1] * 5, replicas=[[1, 4]] * 5, isr=[[1, 4]] * 5),
    )
    *audited, accept = plan_restart(snapshot).blocked[0].remedy.split("; ")
    assert len(audited) == 3
    assert accept == "or let them suffer with --accept 't0|t1|t2|t3|t4'"


def test_the_controllers_come_before_the_partitions() -> None:
    controllers = (Controller(BrokerId(1), alive=True), Controller(BrokerId(9), alive=True))
    (first, _) = plan_restart(of_one_topic(RACKS, [[1, 2]], config=MIN_TWO, controllers=controllers)).blocked
    assert first.remedy == (
        "add controllers: without controller 1, 1 of 2 controllers are left, no majority; "
        "rackspan reassign plan --topic orders --replication-factor 3, or lower min.insync.replicas to 1; "
        "or let them suffer with --accept 'orders'"
    )


def test_partitions_that_force_a_batch_are_named_to_the_twentieth() -> None:
    plan = plan_restart(of_one_topic(RACKS, [*SPREAD, *[[1, 4, 2]] * 25], config=MIN_TWO))
    assert plan.forcing == ForcingPartitions(
        tuple(f"orders-{at}" for at in range(8, 28)),
        25,
        ("orders",),
        3,
        ReassignmentGain("rackspan reassign plan --topic orders", 25, 3),
    )


def of_topics(names: list[str]) -> ClusterSnapshot:
    """Of each topic one partition that forbids to stop rack a at once, beside those of a topic that is spread."""
    topics = [*names, "zz"]
    rows = [(code, 0, [1, 4, 2]) for code in range(len(names))]
    rows += [(len(names), at, row) for at, row in enumerate(SPREAD)]
    return ClusterSnapshot(
        brokers=of_one_topic(RACKS, []).brokers,
        topics=tuple(Topic(TopicName(name), config=MIN_TWO) for name in topics),
        partitions=columns(
            topic=[code for code, _, _ in rows],
            partition=[at for _, at, _ in rows],
            leader=[row[0] for _, _, row in rows],
            replicas=[row for _, _, row in rows],
            isr=[row for _, _, row in rows],
        ),
    )


@pytest.mark.parametrize(
    ("names", "command"),
    [
        (["a.b", "c", "d"], r"rackspan reassign plan --topic 'a\.b|c|d'"),
        (["a", "b", "c", "d"], "rackspan reassign plan"),
    ],
)
def test_up_to_three_topics_are_named_in_the_command(names: list[str], command: str) -> None:
    forcing = plan_restart(of_topics(names)).forcing
    assert forcing is not None
    assert (forcing.topics, forcing.partitions) == (tuple(names), tuple(f"{name}-0" for name in names))
    assert forcing.gain == ReassignmentGain(command, len(names), 3)


def test_in_a_cluster_that_is_too_large_no_reassignment_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    for most, tried in ((9, True), (8, False)):
        monkeypatch.setattr(gain, "PARTITIONS_MOST", most)
        forcing = plan_restart(of_topics(["a"])).forcing
        assert forcing is not None
        assert (forcing.gain is not None) is tried


def test_brokers_that_count_in_no_rack_are_forced_by_nothing() -> None:
    snapshot = of_one_topic(dict.fromkeys(RACKS), [[1, 2, 3]], config=MIN_TWO)
    plan = plan_restart(snapshot, RackPolicy(unracked=UnrackedPolicy.IGNORE))
    assert (len(plan.batches), plan.forcing) == (3, None)
    assert [batch.reason for batch in plan.batches] == ["no rack", "no rack", "no rack"]


def test_batches_that_a_limit_forces_are_forced_by_no_partition() -> None:
    plan = plan_restart(of_one_topic(RACKS, SPREAD, config=MIN_TWO), request=RestartRequest(max_batch=1))
    assert (len(plan.batches), plan.forcing) == (6, None)


def test_no_partition_forces_as_many_batches_as_there_are_racks() -> None:
    """Brokers 1 and 4 of one rack may not stop together, and three batches are enough all the same."""
    plan = plan_restart(of_one_topic(RACKS, [[1, 4, 2]], config=MIN_TWO))
    assert (len(plan.batches), plan.forcing) == (3, None)


@pytest.mark.parametrize(
    ("replicas", "leader"), [pytest.param([1, 90], 1, id="as follower"), pytest.param([90, 1], -2, id="as leader")]
)
def test_a_broker_that_is_up_and_not_listed_is_not_brought_back(replicas: list[int], leader: int) -> None:
    """It is in sync beside others, or leads: it has no listener of the name that is required."""
    hidden = of_one_topic(RACKS, [replicas], leader=[leader], config={"min.insync.replicas": "1"})
    (blocked,) = plan_restart(hidden).blocked
    assert (blocked.broker, blocked.remedy) == (
        1,
        "give the address of a listener that every broker has; or let them suffer with --accept 'orders'",
    )


def test_only_what_survives_a_stop_is_a_remedy() -> None:
    """The audit also says how to end the reassignment at once."""
    more = {"adding_replicas": [[3]]}
    snapshot = of_one_topic(RACKS, [[1, 2, 3]], isr=[[1, 2]], config={"min.insync.replicas": "3"}, more=more)
    assert plan_restart(snapshot).blocked[0].remedy == (
        "wait for the reassignment to end; then rackspan reassign plan --topic orders --replication-factor 4, "
        "or lower min.insync.replicas to 2; or let them suffer with --accept 'orders'"
    )
    down = of_one_topic(RACKS, [[1, 90]], isr=[[1]], config={"min.insync.replicas": "1"})
    assert plan_restart(down).blocked[0].remedy == (
        "bring back broker 90, or rackspan reassign plan --drain 90; or let them suffer with --accept 'orders'"
    )
    alone = of_one_topic(RACKS, [[1]], config={"min.insync.replicas": "1"})
    assert plan_restart(alone, stop=StopPolicy(block_on=frozenset({BlockOn.RF1}))).blocked[0].remedy == (
        "rackspan reassign plan --topic orders --replication-factor 2; or let them suffer with --accept 'orders'"
    )
    two_racks = of_one_topic(RACKS, [[1, 4, 2]], config={"min.insync.replicas": "1", "min.insync.racks": "3"})
    (blocked,) = plan_restart(two_racks).blocked
    assert (blocked.broker, [one.reason for one in blocked.partitions]) == (
        2,
        ["1 rack left in sync, min.insync.racks requires 3"],
    )
    assert blocked.remedy == (
        "rackspan reassign plan --topic orders --replication-factor 6, or lower min.insync.racks; "
        "or let them suffer with --accept 'orders'"
    )


def test_a_partition_of_one_replica_is_not_named_unless_it_blocks() -> None:
    blocked = plan_restart(of_one_topic(RACKS, [[1, 2], [1]], config=MIN_TWO)).blocked[0]
    assert (blocked.partition_count, [one.partition for one in blocked.partitions]) == (1, [0])
    every_replica = StopPolicy(block_on=frozenset({BlockOn.RF1}))
    blocked = plan_restart(of_one_topic(RACKS, [[1, 2], [1]], config=MIN_TWO), stop=every_replica).blocked[0]
    assert (blocked.partition_count, [one.partition for one in blocked.partitions]) == (2, [0, 1])
    plan = plan_restart(of_one_topic(RACKS, [*SPREAD, [1, 4, 2], [4]], config=MIN_TWO))
    assert plan.forcing is not None
    assert plan.forcing.partitions == ("orders-8",)


def test_what_a_partition_lacks_comes_back_before_its_last_replicas_may_stop() -> None:
    """Under its minimum with all others up: one broker is gone, another has lost a disk, and a third is not restarted."""
    unlisted = of_one_topic(RACKS, [[1, 2, 90]], isr=[[1]], config=MIN_TWO, more={"offline_replicas": [[2]]})
    accept = "; or let them suffer with --accept 'orders'"
    assert plan_restart(unlisted).blocked[0].remedy == (
        f"bring back broker 90 and repair the disk of broker 2 and restart it, or rackspan reassign plan --drain 2,90 --topic orders{accept}"
    )
    fenced = of_one_topic(RACKS, [[1, 2, 3]], isr=[[1]], fenced={2, 3}, config=MIN_TWO)
    (blocked,) = plan_restart(fenced, request=RestartRequest(frozenset({1}))).blocked
    assert blocked.remedy == f"bring back brokers 2,3{accept}"
    margin = of_one_topic(RACKS, [[1, 2, 3, 4]], isr=[[1, 2, 3]], config=MIN_TWO, more={"offline_replicas": [[4]]})
    assert plan_restart(margin, stop=StopPolicy(1)).blocked[0].remedy.startswith("repair the disk of broker 4")


def test_where_nothing_can_be_repaired_the_harm_can_only_be_accepted() -> None:
    snapshot = of_one_topic(RACKS, [[1, 2]], config={"min.insync.replicas": "1"})
    (remedy,) = {
        one.remedy for one in plan_restart(snapshot, stop=StopPolicy(block_on=frozenset({BlockOn.ONE_COPY}))).blocked
    }
    assert remedy == "let them suffer with --accept 'orders'"


def test_racks_are_required_of_so_few_that_one_broker_can_stop() -> None:
    """Three racks of one broker each: without one of them two are left."""
    three = of_one_topic({1: "a", 2: "b", 3: "c"}, [[1, 2, 3]], config=MIN_TWO | {"min.insync.racks": "5"})
    blocked = plan_restart(three).blocked[0]
    assert blocked.remedy.startswith(
        "add racks (min.insync.racks 5 needs 6 to lose one), or lower min.insync.racks to 2;"
    )
    lowered = of_one_topic({1: "a", 2: "b", 3: "c"}, [[1, 2, 3]], config=MIN_TWO | {"min.insync.racks": "2"})
    assert plan_restart(lowered).blocked == ()
