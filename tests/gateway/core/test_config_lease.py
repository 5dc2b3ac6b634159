"""The lease on the config topic in a simulated cluster: no seed acknowledges by an old value, and each planted mistake is found."""

from itertools import combinations
from typing import Any
from uuid import UUID

import pytest

from rackspan.gateway.core.config_lease import (
    LEASE_SECONDS,
    SETTLE_SECONDS,
    ConfigLease,
    EndReading,
    LeaseRules,
    replicas_to_hold,
    replicas_to_read,
)
from tests.depth import at_depth
from tests.gateway.core.config_lease_world import LeaseWorld

SEEDS = at_depth(test=12, soak=1000)


class NoRule(LeaseRules):
    """A gateway acknowledges by what it has read some time."""

    def is_current(self, began_at: float, now: float, seconds: float) -> bool:
        return True


class OneReplica(LeaseRules):
    """One log end renews a lease: that of a leader that was deposed and cut off, too."""

    def reads_needed(self, replicas: int) -> int:
        return 1


class FromTheResponse(LeaseRules):
    def begins_at(self, reading: EndReading, received_at: float) -> float:
        return received_at


class AddedReplicas(LeaseRules):
    """Their logs are empty at first."""

    def counts(self, reading: EndReading, replicas: frozenset[int]) -> bool:
        return reading.replicas == replicas


def first_violation(seeds: range, **world: Any) -> str | None:
    for seed in seeds:
        if violations := LeaseWorld(seed, **world).run():
            return f"seed {seed}: {violations[0]}"
    return None


@pytest.mark.slow
def test_nothing_is_acknowledged_by_an_older_value_than_one_that_was_acknowledged_to_who_set_it() -> None:
    worlds = [LeaseWorld(seed) for seed in range(SEEDS)]
    assert [violation for world in worlds for violation in world.run()] == []
    gateways = [gateway for world in worlds for gateway in world.gateways]
    assert sum(world.raises for world in worlds) > 5 * SEEDS
    assert all(sum(gateway.acknowledged for gateway in gateways if gateway.name == name) > 300 * SEEDS for name in "ab")
    assert sum(gateway.refused for gateway in gateways) > 100 * SEEDS


def test_without_faults_nothing_is_refused_once_the_topic_is_read_and_a_raise_takes_little_more_than_the_lease() -> (
    None
):
    world = LeaseWorld(1, faults=False)
    assert world.run() == []
    assert world.raises > 5
    assert world.slowest_raise < SETTLE_SECONDS + 0.5
    first_reads = (
        2 * 0.75 / 0.02
    )  # Two gateways, the seconds until both have read two ends, and the shortest time between records.
    assert sum(gateway.refused for gateway in world.gateways) < first_reads


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seeds", "planted"),
    [
        (range(2), {"rules": NoRule()}),
        (range(6, 7), {"rules": OneReplica()}),
        (range(6, 7), {"rules": FromTheResponse()}),
        (range(183, 184), {"rules": AddedReplicas()}),
        (range(12, 13), {"by_date": True}),
        (range(1, 2), {"second_lease_seconds": 3 * LEASE_SECONDS}),
        (range(2), {"settle_seconds": 0.0}),
    ],
    ids=["no rule", "one replica", "from the response", "added replicas", "wall clock", "two lengths", "no wait"],
)
def test_a_planted_mistake_is_found(seeds: range, planted: dict[str, Any]) -> None:
    assert first_violation(seeds, **planted)


@pytest.mark.parametrize("replicas", range(1, 10))
def test_any_replicas_that_are_read_have_one_that_holds_the_record(replicas: int) -> None:
    read, hold = replicas_to_read(replicas), replicas_to_hold(replicas)
    everyone = range(replicas)
    assert all(set(a) & set(b) for a in combinations(everyone, read) for b in combinations(everyone, hold))
    assert replicas < 3 or read == 2, "one broker of three may be lost"
    assert replicas != 3 or hold == 2, "one broker of three may be lost"


def reading(replica: int, sent_at: float, end: int, replicas: tuple[int, ...] = (1, 2, 3), **of: Any) -> EndReading:
    epoch, in_sync = of.get("epoch", 7), of.get("in_sync", True)
    return EndReading(replica, sent_at, end, of.get("topic_id"), epoch, frozenset(replicas), in_sync)


def lease_at(offset: int) -> ConfigLease:
    lease = ConfigLease()
    lease.replayed(None, offset)
    return lease


def test_a_lease_begins_when_the_second_newest_read_was_sent_and_lasts_so_long() -> None:
    lease = lease_at(5)
    lease.observe(reading(1, 10.0, 5), 10.1)
    assert not lease.is_current(10.1)
    lease.observe(reading(2, 11.0, 5), 11.1)
    assert (lease.began_at, lease.left_seconds(11.0)) == (10.0, LEASE_SECONDS - 1)
    lease.observe(reading(3, 12.0, 5), 12.1)
    assert lease.began_at == 11.0
    assert lease.is_current(11.0 + LEASE_SECONDS - 0.01)
    assert not lease.is_current(11.0 + LEASE_SECONDS)
    assert lease.left_seconds(11.0 + LEASE_SECONDS) == 0.0


def test_a_log_with_more_than_is_replayed_counts_once_that_is_replayed() -> None:
    lease = lease_at(5)
    lease.observe(reading(1, 10.0, 6), 10.1)
    lease.observe(reading(2, 10.0, 6), 10.1)
    assert (lease.unread_replicas(), lease.is_current(10.1)) == ([1, 2], False)
    # Records follow without end: the oldest reading is the first that is replayed.
    lease.observe(reading(1, 11.0, 8), 11.1)
    lease.replayed(None, 6)
    assert (lease.unread_replicas(), lease.began_at) == ([], 10.0)


def test_records_that_are_truncated_need_not_be_replayed() -> None:
    lease = lease_at(5)
    lease.observe(reading(1, 10.0, 9), 10.1)
    lease.observe(reading(1, 11.0, 5), 11.1)
    lease.observe(reading(2, 11.0, 5), 11.1)
    assert (lease.unread_replicas(), lease.began_at) == ([], 11.0)


def test_a_replica_whose_broker_has_an_earlier_set_of_replicas_does_not_count() -> None:
    lease = lease_at(5)
    lease.follow_replicas(None, 8, frozenset({3, 4, 5}))
    for replica in (1, 2, 3):
        lease.observe(reading(replica, 10.0, 5), 10.1)
    assert not lease.is_current(10.1)
    for replica in (3, 4):
        lease.observe(reading(replica, 11.0, 5, (3, 4, 5), epoch=8), 11.1)
    assert lease.began_at == 11.0


def test_a_replica_that_is_being_added_does_not_count_before_it_is_in_sync() -> None:
    lease = lease_at(5)
    for replica in (1, 4):
        lease.observe(reading(replica, 10.0, 0, (1, 2, 3, 4), in_sync=replica != 4), 10.1)
    assert not lease.is_current(10.1)
    lease.observe(reading(4, 11.0, 5, (1, 2, 3, 4)), 11.1)
    assert lease.began_at == 10.0


def test_replicas_are_only_added_within_a_leader_epoch() -> None:
    lease = lease_at(5)
    lease.follow_replicas(None, 7, frozenset({1, 2, 3}))
    lease.follow_replicas(None, 7, frozenset({1, 2, 3, 4}))
    lease.follow_replicas(None, 7, frozenset({1, 2, 3}))
    assert lease.replicas == {1, 2, 3, 4}
    lease.follow_replicas(None, 8, frozenset({2, 3, 4}))
    lease.follow_replicas(None, 7, frozenset({1, 2, 3, 4}))
    assert lease.replicas == {2, 3, 4}


def test_a_topic_that_was_made_anew_is_another_log() -> None:
    old, new = UUID(int=1), UUID(int=2)
    lease = ConfigLease()
    lease.replayed(old, 50)
    for replica in (1, 2):
        lease.observe(reading(replica, 10.0, 3, topic_id=new), 10.1)
    assert not lease.is_current(10.1)
    lease.replayed(new, 2)
    for replica in (1, 2):
        lease.observe(reading(replica, 11.0, 3, topic_id=new), 11.1)
    assert not lease.is_current(11.1)
    lease.replayed(new, 3)
    assert lease.began_at == 11.0


def test_before_the_topic_is_read_to_its_end_there_is_no_lease() -> None:
    lease = ConfigLease()
    for replica in (1, 2, 3):
        lease.observe(reading(replica, 10.0, 0), 10.1)
    assert not lease.is_current(10.1)


def test_a_time_before_a_lease_is_no_time_of_it() -> None:
    lease = lease_at(0)
    for replica in (1, 2):
        lease.observe(reading(replica, 10.0, 0), 10.1)
    assert not lease.is_current(9.0)
