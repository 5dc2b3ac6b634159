"""The cancel of reassignments, judged by plain loops, and by what `restart safe` says of a stop of the brokers that are added."""

from random import Random
from typing import Any

import pytest

from rackspan import api
from rackspan.audit import RackPolicy, harmful_cancels, snapshot_batch
from rackspan.audit.constraints.cancel import judge_cancel
from rackspan.model import ClusterSnapshot, TopicPartition
from tests.snapshots import of_one_topic

RACKS = {1: "a", 2: "b", 3: "c", 4: "a", 5: "b", 6: "c"}
NAME = TopicPartition("orders", 0)


def moving(
    isr: list[int], fenced: set[int], config: dict[str, str], originals: list[int], added: list[int]
) -> ClusterSnapshot:
    """One partition on its way from `originals` to `added`."""
    return of_one_topic(
        RACKS,
        [[*added, *originals]],
        isr=[isr],
        leader=[next((one for one in isr if one not in fenced), -1)],
        fenced=fenced,
        config=config,
        more={"adding_replicas": [added], "removing_replicas": [originals]},
    )


def harm(isr: set[int], fenced: set[int], config: dict[str, str], originals: list[int], added: list[int]) -> str:
    """What Kafka's PartitionReassignmentRevert leaves, and what a leader refuses with it, by plain loops."""
    up = isr - fenced
    left = up - set(added)
    if not isr - set(added):
        return "unclean"
    if left == up:
        return ""
    if not left:
        return "leaderless"
    if len(left) < min(int(config.get("min.insync.replicas", 1)), len(originals)):
        return "refuses_isr"
    racks, before = len({RACKS[one] for one in left}), len({RACKS[one] for one in up})
    if racks < int(config.get("min.insync.racks", 1)) and racks < before:
        return "refuses_racks"
    return "" if "min.insync.replicas" in config else "unknown"


def drawn(rng: Random) -> tuple[Any, ...]:
    originals = rng.sample([1, 2, 3], rng.randint(1, 3))
    added = rng.sample([4, 5, 6], rng.randint(1, 3))
    isr = {one for one in (*originals, *added) if rng.random() < 0.5}
    fenced = {one for one in RACKS if rng.random() < 0.2}
    config = {
        key: str(rng.randint(1, most))
        for key, most in (("min.insync.replicas", 4), ("min.insync.racks", 3))
        if rng.random() < 0.7
    }
    return isr, fenced, config, originals, added


def test_each_harm_of_a_cancel_is_found_and_no_other() -> None:
    rng, met = Random(54), set()
    for _ in range(1_500):
        isr, fenced, config, originals, added = drawn(rng)
        expected = harm(isr, fenced, config, originals, added)
        batch = snapshot_batch(moving(sorted(isr), fenced, config, originals, added), RackPolicy())
        judged = judge_cancel(batch)
        found = [
            name
            for name in ("unclean", "leaderless", "refuses_isr", "refuses_racks", "unknown")
            if getattr(judged, name)[0]
        ]
        assert found == [expected] * bool(expected), (isr, fenced, config, originals, added)
        words = harmful_cancels(batch, [NAME])
        assert set(words) == ({NAME} if expected else set())
        assert not words or (words[NAME].never == (expected in ("unclean", "leaderless")) and words[NAME].reason)
        met.add(expected)
    assert met == {"", "unclean", "leaderless", "refuses_isr", "refuses_racks", "unknown"}


def test_a_cancel_is_judged_as_a_stop_of_the_brokers_that_are_added() -> None:
    """Where the minimum is one that the original replicas can meet, and no target is judged besides."""
    rng, both = Random(55), set()
    for _ in range(500):
        isr, fenced, config, originals, added = drawn(rng)
        config["min.insync.replicas"] = str(rng.randint(1, len(originals)))
        snapshot = moving(sorted(isr), fenced, config, originals, added)
        harmed = bool(api.harmful_cancels(snapshot, [NAME]))
        resting = of_one_topic(
            RACKS,
            [[*added, *originals]],
            isr=[sorted(isr)],
            leader=[snapshot.partitions.leader[0]],
            fenced=fenced,
            config=config,
        )
        stop = api.judge_stop(resting, frozenset(added))
        # A stop of what is not in sync does no harm; a cancel without anyone in sync is refused by Kafka all the same.
        if isr - set(added) or isr & set(added) - fenced:
            assert harmed == bool(stop.blocking), (isr, fenced, config, originals, added)
            both.add(harmed)
    assert both == {True, False}


@pytest.mark.parametrize(
    ("unclean", "reason"),
    [
        ("false", "no replica left in sync: Kafka refuses the cancel, which would need an unclean leader election"),
        ("true", "no replica left in sync: Kafka elects one that is not, and acknowledged records are lost"),
    ],
)
def test_a_cancel_that_needs_an_unclean_election_is_never_allowed(unclean: str, reason: str) -> None:
    config = {"min.insync.replicas": "2", "unclean.leader.election.enable": unclean}
    snapshot = moving([4, 5], {1, 2, 3}, config, [1, 2, 3], [4, 5, 6])
    (found,) = api.harmful_cancels(snapshot, [NAME]).values()
    assert (found.reason, found.never) == (reason, True)


def test_racks_that_are_left_are_counted() -> None:
    config = {"min.insync.replicas": "1", "min.insync.racks": "2"}
    snapshot = moving([1, 4, 5], {2, 3}, config, [1, 2, 3], [4, 5, 6])
    (found,) = api.harmful_cancels(snapshot, [NAME]).values()
    assert (found.reason, found.never) == ("1 rack left in sync, min.insync.racks requires 2", False)


@pytest.mark.parametrize(
    ("isr", "leader", "failed", "reason", "never"),
    [
        # Broker 1 has lost its log directory and is in the ISR that was read: of 1 and 2 one is left.
        ([1, 2, 6], 2, [1], "broker 2 left in sync, min.insync.replicas requires 2", False),
        ([1, 6], 6, [1], "no replica left in sync but on broker 1, which is in a failed log directory: it would have no leader", True),
        # Broker 9 leads by a listener that was not read.
        ([9, 6], -2, [], "broker 9 left in sync, min.insync.replicas requires 2", False),
    ],
)  # fmt: skip
def test_what_is_left_in_sync_is_what_can_lead(
    isr: list[int], leader: int, failed: list[int], reason: str, never: bool
) -> None:
    snapshot = of_one_topic(
        RACKS,
        [[6, 1, 2, 9]],
        isr=[isr],
        leader=[leader],
        config={"min.insync.replicas": "2"},
        more={"adding_replicas": [[6]], "offline_replicas": [failed]},
    )
    (found,) = api.harmful_cancels(snapshot, [NAME]).values()
    assert (found.reason, found.never) == (reason, never)
