"""The state of a watch after each reading. The oracle counts racks partition by partition over the document."""

from dataclasses import replace

import pytest
from hypothesis import given

from rackspan.acks.watch import ClusterIsr, Watch, cluster_isr, watch_readings
from rackspan.audit import RackPolicy
from rackspan.errors import ClusterUnreachable, RackspanError, UsageError
from rackspan.model import Broker, BrokerId, ClusterSnapshot, RackId, UnrackedPolicy
from tests.audit.brute_force import document, min_racks, rack_of
from tests.snapshots import of_one_topic
from tests.strategies import policies, snapshots

GONE = ClusterUnreachable("nobody answers at broker:9092 within 30 s; is it the right address?")


def cluster(*isrs: list[int], leaders: list[int] | None = None, partial: tuple[str, ...] = ()) -> ClusterSnapshot:
    """Brokers 1 to 3 in racks r1 to r3, each partition replicated to all; broker 4 in r1 is fenced."""
    racks = {1: "r1", 2: "r2", 3: "r3", 4: "r1"}
    return of_one_topic(racks, [[1, 2, 3]] * len(isrs), isr=isrs, leader=leaders, fenced={4}, partial=partial)


TWO = RackPolicy(min_insync_racks=2)


def after(*readings: tuple[float, ClusterSnapshot | RackspanError]) -> list[Watch]:
    return list(watch_readings(readings, TWO))


def led(isr: ClusterIsr | None) -> list[tuple[int, int, int]]:
    assert isr is not None
    return [(one.broker, one.under, one.at) for one in isr.leaders]


@given(snapshots(), policies())
def test_partitions_are_counted_as_plain_loops_count_them(snapshot: ClusterSnapshot, policy: RackPolicy) -> None:
    isr = cluster_isr(snapshot, policy)
    described = document(snapshot)
    racks = rack_of(described, policy)
    wanted = {}
    for topic in described["topics"]:
        for one in topic["partitions"]:
            spanned = len({racks[broker] for broker in one["isr"] if broker in racks})
            wanted[topic["name"], one["partition"]] = (one["leader"], spanned, min_racks(topic, policy))
    assert {(one.topic, one.partition): (one.leader, one.isr_racks, one.required) for one in isr.partitions()} == wanted
    assert isr.under == sum(spanned < required for _, spanned, required in wanted.values())
    assert isr.at == sum(spanned == required for _, spanned, required in wanted.values())
    assert isr.leaderless == sum(leader == -1 for leader, _, _ in wanted.values())
    for broker in isr.leaders:
        mine = [(spanned, required) for leader, spanned, required in wanted.values() if leader == broker.broker]
        assert (broker.under, broker.at) == (sum(s < a for s, a in mine), sum(s == a for s, a in mine))


def test_a_broker_without_a_rack_is_refused_where_the_policy_says_so() -> None:
    snapshot = replace(cluster([1]), brokers=(Broker(BrokerId(1), None), Broker(BrokerId(2), RackId("r2"))))
    with pytest.raises(UsageError, match=r"brokers without a rack: 1; set broker.rack"):
        cluster_isr(snapshot, RackPolicy(unracked=UnrackedPolicy.ERROR))


def test_partitions_are_counted_with_their_leader_and_fenced_brokers_lead_nothing() -> None:
    (watch,) = after((0, cluster([1, 2, 3], [2], [1, 3], [2])))
    assert led(watch.latest) == [(1, 0, 1), (2, 2, 0), (3, 0, 0)]


def test_a_partition_without_a_leader_has_no_broker_and_is_counted_apart() -> None:
    (watch,) = after((0, cluster([1], [2, 3], leaders=[-1, 2])))
    assert watch.latest is not None
    assert (watch.latest.leaderless, watch.latest.under) == (1, 1)
    assert led(watch.latest) == [(1, 0, 0), (2, 0, 1), (3, 0, 0)]


def test_time_under_the_minimum_is_summed_between_readings_that_succeeded() -> None:
    bad, good = cluster([1], [2], [1, 2]), cluster([1, 2], [2, 3], [1, 2])
    watches = after((10, bad), (13, bad), (14, GONE), (20, bad), (22, good), (30, good))
    assert [one.under_seconds for one in watches] == [0, 6, 6, 6, 10, 10]


def test_a_reading_that_fails_leaves_nothing_that_looks_like_now() -> None:
    first, lost, back = after((0, cluster([1])), (1, GONE), (2, cluster([1, 2])))
    assert first.latest is not None
    assert (lost.latest, lost.latest_at, lost.error, lost.failures, lost.readings) == (None, None, GONE, 1, 1)
    assert (first.latest_at, back.latest_at) == (0, 2)
    assert (back.error, back.failures, back.readings) == (None, 1, 2)
    assert led(back.latest)[0] == (1, 0, 1)


def test_what_could_not_be_read_is_kept_with_the_reading() -> None:
    (watch,) = after((0, cluster([1, 2], partial=("configs: unknown",))))
    assert watch.latest is not None
    assert watch.latest.partial == ("configs: unknown",)


def test_a_first_reading_that_fails_is_raised() -> None:
    with pytest.raises(ClusterUnreachable):
        after((0, GONE))


def test_a_later_one_that_the_policy_refuses_is_a_failure_like_any_other() -> None:
    rackless = replace(cluster([1]), brokers=(Broker(BrokerId(1), None),))
    policy = RackPolicy(unracked=UnrackedPolicy.ERROR)
    watches = list(watch_readings([(0, cluster([1])), (1, rackless)], policy))
    assert isinstance(watches[-1].error, UsageError)


def test_a_watch_that_has_read_nothing_yet_reports_no_isr() -> None:
    assert (Watch().latest, Watch().latest_at, Watch().error, Watch().under_seconds) == (None, None, None, 0.0)
