"""Reassignments of others, cancelled in a cluster in memory."""

from collections.abc import Mapping
from random import Random

import pytest

from rackspan.apply import Pace, cancel_in_flight, observe_foreign_throttles
from rackspan.errors import ClusterUnreachable, ReassignmentStopped
from rackspan.model.ids import TopicPartition
from rackspan.plan import ObservationRequest, RunState, plan_in_flight
from rackspan.plan.execution.throttle import LEADER_RATE, ConfigKey, Holder
from tests.plan.fake_cluster import FakeCluster

FIRST, SECOND, THIRD = (TopicPartition("orders", partition) for partition in range(3))
PACE = Pace(now=lambda: 0.0, sleep=lambda seconds: None)


class Stuck(FakeCluster):
    """A cluster of which no reassignment ends. `cancelled` has the partitions of each request to cancel."""

    def cancel_moves(self, partitions: tuple[TopicPartition, ...]) -> None:
        self.cancelled = [*getattr(self, "cancelled", []), partitions]
        super().cancel_moves(partitions)

    def _copy_some(self) -> None:
        pass


def moving() -> Stuck:
    cluster = Stuck({FIRST: (1, 2), SECOND: (2, 3), THIRD: (3, 1)}, Random(1), set(range(1, 6)))
    cluster.start_moves({FIRST: (4, 2), SECOND: (2, 5), THIRD: (5, 1)})
    return cluster


def test_what_is_under_way_is_cancelled_and_nothing_else() -> None:
    cluster = moving()
    plan = plan_in_flight(cluster.observe(ObservationRequest()), [FIRST, SECOND])
    assert cancel_in_flight(cluster, plan, PACE) == {FIRST: (2, 1), SECOND: (2, 3)}
    assert set(cluster.in_flight) == {THIRD}
    assert cluster.cancelled == [(FIRST, SECOND)], "once, and not again where nothing is left"


def test_one_that_ends_or_gets_another_target_meanwhile_is_left_alone() -> None:
    cluster = moving()
    plan = plan_in_flight(cluster.observe(ObservationRequest()), [FIRST, SECOND])
    cluster._finish(FIRST)
    cluster.cancel_moves((SECOND,))
    cluster.start_moves({SECOND: (2, 4)})
    cluster.observe(ObservationRequest())
    assert cancel_in_flight(cluster, plan, PACE)[FIRST] == (4, 2)
    assert cluster.in_flight[SECOND].target == (2, 4)


def test_a_response_that_is_lost_is_repeated_and_a_cancel_without_effect_ends() -> None:
    class Flaky(Stuck):
        lost = 0

        def cancel_moves(self, partitions: tuple[TopicPartition, ...]) -> None:
            self.lost += 1
            if self.lost == 1:
                raise ClusterUnreachable("no response")
            super().cancel_moves(partitions)

    flaky = Flaky({FIRST: (1, 2)}, Random(1), set(range(1, 6)))
    flaky.start_moves({FIRST: (4, 2)})
    plan = plan_in_flight(flaky.observe(ObservationRequest()), [FIRST])
    assert cancel_in_flight(flaky, plan, PACE) == {FIRST: (2, 1)}

    class Deaf(Stuck):
        def cancel_moves(self, partitions: tuple[TopicPartition, ...]) -> None:
            pass

    deaf = Deaf({FIRST: (1, 2)}, Random(1), set(range(1, 6)))
    deaf.start_moves({FIRST: (4, 2)})
    with pytest.raises(ReassignmentStopped, match="the cluster took the cancel and does not show it"):
        cancel_in_flight(deaf, plan, Pace(0.0, now=lambda: 0.0, sleep=lambda seconds: None))


def test_throttles_of_others_are_observed_on_the_brokers_that_are_up() -> None:
    cluster = moving()
    rates = {ConfigKey(Holder.BROKER, broker, LEADER_RATE): "7" for broker in "12"}
    cluster.configs = dict(rates)
    cluster.brokers.discard(2)
    plan = plan_in_flight(cluster.observe(ObservationRequest()), [FIRST])
    found: Mapping[ConfigKey, str] = observe_foreign_throttles(cluster, RunState(plan))
    assert found == {ConfigKey(Holder.BROKER, "1", LEADER_RATE): "7"}
