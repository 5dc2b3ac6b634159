"""The one function that changes a partition, over every small case: each result against what the KIPs require."""

from collections.abc import Iterator
from itertools import combinations, product

import pytest

from rackspan.acks import Thresholds, rack_bits
from rackspan.cluster.core.controller import Conditions, Election, PartitionChange, changed
from rackspan.cluster.core.metadata import NO_LEADER, PartitionState
from rackspan.cluster.core.settings import Elr
from rackspan.model.broker import Broker
from rackspan.model.ids import BrokerId, RackId

Brokers = tuple[BrokerId, ...]

REPLICAS: Brokers = tuple(BrokerId(one) for one in (1, 2, 3))
RACKS = {1: "a", 2: "a", 3: "b"}
BITS = rack_bits([Broker(BrokerId(broker), RackId(rack)) for broker, rack in RACKS.items()])


def subsets(items: Brokers) -> Iterator[Brokers]:
    for size in range(len(items) + 1):
        yield from combinations(items, size)


def ids(*brokers: int) -> Brokers:
    return tuple(BrokerId(one) for one in brokers)


def states() -> Iterator[PartitionState]:
    """Every ISR, disjoint ELR and leader that can be."""
    for isr in subsets(REPLICAS):
        for elr in subsets(tuple(one for one in REPLICAS if one not in isr)):
            for leader in (*isr, NO_LEADER):
                yield PartitionState(REPLICAS, isr, leader, 5, 9, elr)


def met(isr: Brokers, requested: Thresholds, elr: Elr) -> bool:
    racks = len({RACKS[one] for one in isr})
    return len(isr) >= requested.min_insync_replicas and (elr is Elr.KAFKA or racks >= requested.min_insync_racks)


def cases(elr: Elr) -> Iterator[tuple[PartitionState, PartitionChange, Conditions, Brokers]]:
    thresholds = [Thresholds(*pair) for pair in ((1, 1), (2, 1), (1, 2), (2, 2))]
    elections = list(Election)
    for before, isr, alive, requested, election in product(
        states(), subsets(REPLICAS), subsets(REPLICAS), thresholds, elections
    ):
        if elr is Elr.OFF and (before.elr or not before.isr):
            continue
        # A change never adds a dead member, and never one to a partition without a leader.
        if not set(isr) <= set(alive) | set(before.isr) or (
            not set(isr) <= set(before.isr) and before.leader not in isr
        ):
            continue
        conditions = Conditions(alive.__contains__, BITS, requested, elr)
        yield before, PartitionChange(isr=isr, election=election), conditions, alive


@pytest.mark.slow
@pytest.mark.parametrize("elr", list(Elr))
def test_every_change_of_three_replicas_keeps_what_must_be_kept(elr: Elr) -> None:
    count = 0
    for before, change, conditions, alive in cases(elr):
        after = changed(before, change, conditions)
        try:
            check(before, change, conditions, alive, after)
        except AssertionError as error:
            raise AssertionError(f"{before} {change} alive {alive} {conditions.required}: {after}") from error
        count += 1
    assert count > 1_000


def check(
    before: PartitionState, change: PartitionChange, conditions: Conditions, alive: Brokers, after: PartitionState
) -> None:
    assert set(after.isr) | set(after.elr) <= set(after.replicas)
    assert not set(after.isr) & set(after.elr)
    assert after.leader == NO_LEADER or (after.leader in after.isr and after.leader in alive)
    check_epochs(before, after)
    check_leader(before, change, conditions, alive, after)
    check_elr(before, change, conditions, after)


def check_epochs(before: PartitionState, after: PartitionState) -> None:
    same = after is before
    assert after.partition_epoch == before.partition_epoch + (not same)
    assert after.leader_epoch == before.leader_epoch + (after.leader != before.leader)


def check_leader(
    before: PartitionState,
    change: PartitionChange,
    conditions: Conditions,
    alive: Brokers,
    after: PartitionState,
) -> None:
    requested = change.isr or ()
    isr = before.isr if not requested and conditions.elr is Elr.OFF else requested
    electable = set()
    if conditions.elr is not Elr.OFF and not (isr and met(isr, conditions.required, conditions.elr)):
        electable = {*before.isr, *before.elr}
    in_sync = [one for one in REPLICAS if one in isr and one in alive]
    clean = in_sync or [one for one in REPLICAS if one in electable and one in alive]
    if clean:
        assert after.leader in clean
        assert change.election is not Election.PREFERRED or REPLICAS[0] not in clean or after.leader == REPLICAS[0]
        stays = change.election is not Election.PREFERRED or REPLICAS[0] not in clean
        assert not stays or before.leader not in clean or after.leader == before.leader
    elif change.election is Election.UNCLEAN and alive:
        assert after.leader == alive[0]
    else:
        assert after.leader == NO_LEADER


def check_elr(before: PartitionState, change: PartitionChange, conditions: Conditions, after: PartitionState) -> None:
    if conditions.elr is Elr.OFF:
        assert after.elr == ()
        assert after.isr
    elif after.isr and met(after.isr, conditions.required, conditions.elr):
        assert after.elr == ()
    elif change.election is Election.UNCLEAN and after.leader not in (
        *before.isr,
        *before.elr,
        before.leader,
        NO_LEADER,
    ):
        # A leader from outside: what the others have beyond its log is void, so none of them is eligible.
        assert after.elr == ()
    else:
        assert {*after.elr} == {*before.isr, *before.elr} - {*after.isr}


def test_a_broker_that_shut_down_uncleanly_is_neither_in_the_isr_nor_electable() -> None:
    before = PartitionState(REPLICAS, ids(1), ids(1)[0], 5, 9, ids(2))
    conditions = Conditions(lambda _broker: True, BITS, Thresholds(2, 1), Elr.KAFKA)
    after = changed(before, PartitionChange(isr=(), shut_down_uncleanly=ids(1)), conditions)
    assert (after.leader, after.isr, after.elr) == (2, ids(2), ())
    alone = PartitionState(REPLICAS, ids(1), ids(1)[0], 5, 9)
    after = changed(alone, PartitionChange(isr=(), shut_down_uncleanly=ids(1)), conditions)
    assert (after.leader, after.isr, after.elr) == (NO_LEADER, (), ())


@pytest.mark.parametrize(("isr", "leader"), [((1, 2, 3), 1), ((2, 3), 3), ((2,), 2), ((), NO_LEADER)])
def test_where_the_preferred_leader_is_not_in_sync_an_election_of_it_leaves_the_leader(
    isr: tuple[int, ...], leader: int
) -> None:
    """Broker 3 leads, and 2 comes before it. Source: PartitionChangeBuilder.electPreferredLeader."""
    before = PartitionState(REPLICAS, REPLICAS, ids(3)[0], 5, 9)
    conditions = Conditions(lambda broker: broker in isr, BITS, Thresholds(), Elr.RACKS)
    after = changed(before, PartitionChange(isr=ids(*isr), election=Election.PREFERRED), conditions)
    assert (after.leader, after.leader_epoch) == (leader, 5 + (leader != 3))


def test_an_elr_that_counts_racks_always_spans_the_required_racks_with_the_isr() -> None:
    """Whatever leaves one after another, starting from a whole ISR: G3's premise."""
    conditions = Conditions(lambda _broker: False, BITS, Thresholds(1, 2), Elr.RACKS)
    for order in product(REPLICAS, repeat=3):
        state = PartitionState(REPLICAS, REPLICAS, ids(1)[0])
        for gone in order:
            isr = tuple(one for one in state.isr if one != gone)
            state = changed(state, PartitionChange(isr=isr), conditions)
            assert {RACKS[one] for one in (*state.isr, *state.elr)} == {"a", "b"}


def test_a_reassignment_ends_when_all_of_its_target_is_in_sync() -> None:
    conditions = Conditions(lambda _broker: True, BITS, Thresholds(), Elr.RACKS)
    before = PartitionState(ids(3, 4, 1, 2), ids(1, 2), ids(1)[0], 5, 9, adding=ids(3, 4), removing=ids(1, 2))
    halfway = changed(before, PartitionChange(isr=ids(1, 2, 3)), conditions)
    assert (halfway.replicas, halfway.leader, halfway.reassigning) == (ids(3, 4, 1, 2), 1, True)
    done = changed(halfway, PartitionChange(isr=ids(1, 2, 3, 4)), conditions)
    assert (done.replicas, done.isr, done.leader, done.reassigning) == (ids(3, 4), ids(3, 4), 3, False)
    assert done.leader_epoch == before.leader_epoch + 1


def test_a_reassignment_goes_on_while_one_that_stays_is_only_electable() -> None:
    """Broker 4 led alone, is to go, and 3 has just caught up; 1 left the ISR while that missed its racks."""
    before = PartitionState(
        *(ids(1, 3, 4), ids(4), BrokerId(4), 5, 9), elr=ids(1), adding=ids(3), removing=ids(4), left_isr=()
    )
    conditions = Conditions(lambda _: True, BITS, Thresholds(1, 2), Elr.RACKS)
    halfway = changed(before, PartitionChange(isr=ids(4, 3)), conditions)
    assert (halfway.leader, halfway.isr, halfway.replicas) == (4, ids(4, 3), ids(1, 3, 4))
    after = changed(halfway, PartitionChange(isr=ids(4, 3, 1)), conditions)
    assert (after.leader, after.isr, after.elr, after.replicas) == (1, ids(3, 1), (), ids(1, 3))


def test_a_replica_taken_away_raises_the_leader_epoch_though_the_leader_stays() -> None:
    conditions = Conditions(lambda _broker: True, BITS, Thresholds(), Elr.RACKS)
    before = PartitionState(REPLICAS, REPLICAS, ids(1)[0], 5, 9)
    after = changed(before, PartitionChange(isr=ids(1, 2), replicas=ids(1, 2)), conditions)
    assert (after.leader, after.leader_epoch) == (1, 6)


def test_the_controller_keeps_when_each_replica_was_last_in_the_isr() -> None:
    conditions = Conditions(lambda _broker: True, BITS, Thresholds(), Elr.RACKS)
    state = PartitionState(REPLICAS, REPLICAS, ids(1)[0], 0, 4)
    state = changed(state, PartitionChange(isr=ids(1, 2)), conditions)
    state = changed(state, PartitionChange(isr=ids(1)), conditions)
    assert state.left_isr == ((2, 5), (3, 4))
    state = changed(state, PartitionChange(isr=ids(1, 3)), conditions)
    assert state.left_isr == ((2, 5),)
