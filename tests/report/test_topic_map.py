from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType

import pytest
from hypothesis import given

from rackspan.audit import RackPolicy, outage
from rackspan.audit.batch import snapshot_batch
from rackspan.model import ClusterSnapshot, RackId
from rackspan.model.racks import rack_map
from rackspan.report.data import StateCounts, TopicMap
from rackspan.report.topic_map import harmed_partitions, rack_members, topic_map
from tests.report import story
from tests.report.story import TopicPlan, spread
from tests.strategies import policies, snapshots


def mapped(
    snapshot: ClusterSnapshot,
    policy: RackPolicy = story.POLICY,
    states: Mapping[str, StateCounts] = MappingProxyType({}),
) -> TopicMap:
    _, losses = outage(snapshot, policy)
    return topic_map(snapshot, snapshot_batch(snapshot, policy), losses, states, 60)


@given(snapshots(), policies())
def test_every_replica_isr_member_and_leader_is_counted_once_and_in_its_rack(
    snapshot: ClusterSnapshot, policy: RackPolicy
) -> None:
    racks = rack_map(snapshot.brokers, policy.unracked)
    rack_of = {
        int(broker): racks.racks[code]
        for broker, code in zip(racks.broker_ids.tolist(), racks.rack_codes.tolist(), strict=True)
        if code >= 0
    }
    drawn = mapped(snapshot, policy)
    assert len(drawn.rows) == len(snapshot.topics) == drawn.topics
    for row in drawn.rows:
        mine = [one for one in snapshot.partitions if snapshot.topics[one.topic].name == row.topic]
        replicas = Counter(rack_of.get(broker) for one in mine for broker in one.replicas)
        in_sync = Counter(rack_of.get(broker) for one in mine for broker in one.isr)
        leaders = Counter(rack_of.get(one.leader) for one in mine)
        assert [cell.replicas for cell in row.cells] == [replicas[rack] for rack in drawn.racks]
        assert [cell.in_sync for cell in row.cells] == [in_sync[rack] for rack in drawn.racks]
        assert [cell.leaders for cell in row.cells] == [leaders[rack] for rack in drawn.racks]
        assert row.elsewhere == replicas[None]
        assert row.partitions == len(mine)


@given(snapshots())
def test_harmed_partitions_are_those_that_cannot_lead_or_acknowledge_any_more(snapshot: ClusterSnapshot) -> None:
    _, losses = outage(snapshot, story.POLICY)
    harmed = harmed_partitions(snapshot_batch(snapshot, story.POLICY), losses)
    assert harmed == {loss.racks[0]: story.harmed_by_hand(snapshot, loss.racks[0]) for loss in losses}


@pytest.mark.slow
@given(snapshots())
def test_a_cell_holds_the_harm_that_outage_reports_for_that_rack(snapshot: ClusterSnapshot) -> None:
    _, losses = outage(snapshot, story.POLICY)
    harms = {(loss.racks[0], harm.topic): harm for loss in losses for harm in loss.topics}
    drawn = mapped(snapshot)
    for row in drawn.rows:
        assert [cell.harm for cell in row.cells] == [harms.get((rack, row.topic)) for rack in drawn.racks]


def test_what_is_worst_now_comes_first_then_what_a_loss_would_harm_most() -> None:
    plans = [
        TopicPlan("a-fine", spread(6, 3)),
        TopicPlan("b-two-in-one-rack", [[1, 4, 2]] * 3),
        TopicPlan("c-single", [[1], [2]], min_insync_replicas=1),
        TopicPlan("d-at-risk", spread(6, 3)),
        TopicPlan("e-offline", spread(6, 3)),
    ]
    states = {"d-at-risk": StateCounts(one_rack=5, ok=1), "e-offline": StateCounts(offline=1, ok=5)}
    drawn = mapped(story.snapshot(plans, brokers=story.SIX_BROKERS), states=states)
    assert [row.topic for row in drawn.rows] == ["e-offline", "d-at-risk", "c-single", "b-two-in-one-rack", "a-fine"]


def test_a_thousand_topics_leave_the_worst_on_the_map() -> None:
    plans = [TopicPlan(f"topic-{code:04}", [[1, 2, 3]]) for code in range(999)]
    plans.append(TopicPlan("zzz", [[1, 4]], min_insync_replicas=1))
    drawn = mapped(story.snapshot(plans, brokers=story.SIX_BROKERS))
    assert (len(drawn.rows), drawn.topics) == (60, 1000)
    assert [row.topic for row in drawn.rows[:2]] == ["zzz", "topic-0000"]


def test_rack_members_name_brokers_fenced_ones_and_controllers() -> None:
    voters = {1: None, 102: "r2", 103: "r9"}
    snapshot = story.snapshot([], brokers=story.SIX_BROKERS, gone=[4], voters=voters)
    members = {one.rack: one for one in rack_members(snapshot_batch(snapshot, RackPolicy()).members)}
    assert list(members) == ["r1", "r2", "r3", "r9"]
    one, two, nine = (members[RackId(rack)] for rack in ("r1", "r2", "r9"))
    assert (one.brokers, one.fenced, one.controllers) == ((1, 4), (4,), (1,))
    assert (two.brokers, two.fenced, two.controllers) == ((2, 5), (), (102,))
    assert (nine.brokers, nine.fenced, nine.controllers) == ((), (), (103,))
