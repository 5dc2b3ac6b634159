"""Six brokers in three racks, one topic of six partitions led evenly, 1 GiB/s in each, watched for a second."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from rackspan.advice import Advice, MeasuredTraffic, savings
from rackspan.audit import RackPolicy
from rackspan.clients import ReplicaSelectors, find_causes, group_reads
from rackspan.traffic import price_file
from rackspan.traffic.json_format import MONTH_SECONDS
from tests.clients.worlds import World
from tests.traffic.volumes import volumes_of

GIB = 2**30
BROKERS = range(1, 7)
PATHS = ["produce", "consume", "follower-fetch", "replicate", "reassign", "restore"]


def prices(**amounts: float) -> Any:
    entries = ",".join(
        f'{{"paths": ["{path.replace("_", "-")}"], "sides": ["source", "destination"], "amount": {amount}, "unit": "GiB", '
        '"source": "here", "read_on": null}'
        for path, amount in amounts.items()
    )
    return price_file(f'{{"currency": "USD", "prices": [{entries}]}}')


def world(
    factor: int, declared: dict[str, str | None], reads: dict[str, Sequence[int]], selector: ReplicaSelectors
) -> World:
    """Partition p is led by broker p + 1, in rack r1, r2 or r3 in turn; its other replicas are on the next brokers."""
    return World(
        {broker: f"r{(broker - 1) % 3 + 1}" for broker in BROKERS},
        {("t", p): (p + 1, (held := [(p + at) % 6 + 1 for at in range(factor)]), held) for p in range(6)},
        dict.fromkeys(BROKERS, selector),
        declared=declared,
        reads={member: [("t", p) for p in numbers] for member, numbers in reads.items()},
    )


def found(places: World, *, groups: int = 1, least: int = 0, priced: Any = None) -> list[Advice]:
    snapshot = places.snapshot()
    volumes = volumes_of(snapshot, np.full(6, GIB, np.int64))
    reads = [group_reads(places.group(), snapshot, places.selectors)] * groups
    causes = list(find_causes(reads[0], snapshot))
    return list(savings(MeasuredTraffic(snapshot, volumes, reads, {}, 1.0), causes, RackPolicy(), priced, least))


def a_month(gib_a_second: float) -> int:
    return round(gib_a_second * GIB * MONTH_SECONDS)


def test_members_without_a_rack_would_read_all_of_it_at_home() -> None:
    nowhere = world(3, {"m": None}, {"m": range(6)}, ReplicaSelectors.RACK_AWARE)
    (advice,) = found(nowhere, priced=prices(consume=0.01, follower_fetch=0.01))
    assert (advice.kind, advice.group, advice.topic) == ("read-in-rack", "shop", None)
    # Two thirds of six partitions come from another rack, wherever the member is.
    assert advice.bytes_a_month == pytest.approx(a_month(4), rel=1e-6)
    assert advice.money_a_month == pytest.approx(4 * MONTH_SECONDS * 0.02, rel=1e-6)
    assert advice.cost == "a restart of 1 member"


def test_brokers_that_select_no_replicas_by_rack_have_to_be_restarted_too() -> None:
    (advice,) = found(world(3, {"m": "r1"}, {"m": range(6)}, ReplicaSelectors.LEADER))
    assert advice.bytes_a_month == a_month(4)
    assert advice.money_a_month is None
    assert advice.cost == "a restart of each of 6 brokers"
    assert "replica.selector.class" in advice.command


def test_an_assignment_saves_what_settings_alone_do_not() -> None:
    # With one replica each, both members read the three partitions that the other has at home, and one is in neither's rack.
    crossed = world(1, {"a": "r1", "b": "r2"}, {"a": [1, 2, 4], "b": [0, 3, 5]}, ReplicaSelectors.RACK_AWARE)
    by_kind = {each.kind: each for each in found(crossed)}
    assert by_kind["assignor"].bytes_a_month == a_month(4)
    assert by_kind["assignor"].cost == "a restart of 2 members"


def test_no_byte_is_saved_twice() -> None:
    """All six partitions are read across racks from their leaders; three of them have a replica in their reader's rack."""
    crossed = world(2, {"a": "r1", "b": "r2"}, {"a": [1, 2, 4], "b": [0, 3, 5]}, ReplicaSelectors.LEADER)
    by_kind = {each.kind: each.bytes_a_month for each in found(crossed)}
    assert by_kind == {"read-in-rack": a_month(3), "assignor": a_month(3)}


def test_a_replica_in_each_rack_is_worth_its_copies_only_to_enough_groups() -> None:
    few = world(1, {"m": "r1"}, {"m": range(6)}, ReplicaSelectors.RACK_AWARE)
    # One group saves 4 of 6 GiB/s and the copies cost 12.
    assert [each.kind for each in found(few, least=1)] == []
    four = {each.kind: each for each in found(few, groups=4, least=1, priced=prices(consume=0.01, replicate=0.01))}
    advice = four["replica-in-rack"]
    assert advice.bytes_a_month == a_month(4 * 4 - 12)
    assert advice.money_a_month == pytest.approx(4 * MONTH_SECONDS * 0.02)
    assert advice.command == "rackspan reassign plan --topic 't' --replication-factor 3"
    assert advice.cost.startswith("12 replicas copied once")
    # Copies that are not charged leave all of it.
    free = {each.kind: each for each in found(few, groups=4, least=1, priced=prices(consume=0.01, replicate=0))}
    assert free["replica-in-rack"].money_a_month == pytest.approx(16 * MONTH_SECONDS * 0.02)
    unpriced = {each.kind: each for each in found(few, groups=4, least=1, priced=prices(consume=0.01))}
    assert unpriced["replica-in-rack"].money_a_month is None


def test_what_the_planner_refuses_is_not_recommended() -> None:
    few = world(1, {"m": "r1"}, {"m": range(6)}, ReplicaSelectors.RACK_AWARE)
    few.racks |= dict.fromkeys((2, 5), "r1")
    few.racks |= dict.fromkeys((3, 6), "r3")
    few.placed[("t", 0)] = (-1, [99], [99])
    assert "replica-in-rack" not in {each.kind for each in found(few, groups=9, least=1)}


def test_a_saving_below_the_threshold_is_left_out() -> None:
    nowhere = world(3, {"m": None}, {"m": range(6)}, ReplicaSelectors.RACK_AWARE)
    (advice,) = found(nowhere)
    assert advice.bytes_a_month is not None
    assert found(nowhere, least=advice.bytes_a_month)
    assert not found(nowhere, least=advice.bytes_a_month + 1)


def test_nothing_is_saved_where_all_is_read_at_home() -> None:
    home = world(3, {"m": "r1"}, {"m": range(6)}, ReplicaSelectors.RACK_AWARE)
    assert found(home) == []
