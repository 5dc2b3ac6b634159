"""Six brokers in three racks, one topic of six partitions led evenly, 1 GiB/s in each, watched for a second."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from random import Random
from typing import Any

import numpy as np
import pytest

from rackspan.advice import Advice, MeasuredTraffic, savings
from rackspan.advice.measured import Terms
from rackspan.advice.of_groups import ReadingGroup, _restored
from rackspan.advice.of_topics import passing_topics
from rackspan.audit import RackPolicy
from rackspan.clients import ReplicaSelectors, find_causes, group_reads
from rackspan.model.group import GroupKind
from rackspan.streams.live import CapturedGroup
from rackspan.streams.problem import TaskId
from rackspan.traffic.bill import MONTH_SECONDS
from rackspan.traffic.flows import READ_ANYWHERE
from rackspan.traffic.price_file import price_file
from tests.clients.worlds import World, streams_group
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


def found(
    places: World, *, groups: int = 1, least: int = 0, priced: Any = None, through_gateway: Sequence[str] = ()
) -> list[Advice]:
    snapshot = places.snapshot()
    volumes = volumes_of(snapshot, np.full(6, GIB, np.int64))
    reads = [group_reads(places.group(), snapshot, places.selectors)] * groups
    causes = list(find_causes(reads[0], snapshot))
    traffic = MeasuredTraffic(
        snapshot, volumes, reads, {}, 1.0, places.selectors, through_gateway=frozenset(through_gateway)
    )
    return list(savings(traffic, causes, RackPolicy(), priced, least))


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
    assert advice.cost == "a restart of each of 6 brokers, once for all groups"
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


@pytest.mark.slow
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


def test_members_behind_gateways_and_those_that_report_no_rack_get_theirs_from_a_gateway() -> None:
    """Each reads two partitions, two thirds of which come from another rack."""
    mixed = world(
        3, {"a": None, "b": None, "c": None}, {"a": [0, 1], "b": [2, 3], "c": [4, 5]}, ReplicaSelectors.RACK_AWARE
    )
    mixed.older = {"c"}
    by_kind = {each.kind: each for each in found(mixed, through_gateway=["client-b"])}
    assert by_kind["read-in-rack"].bytes_a_month == pytest.approx(a_month(4 / 3), rel=1e-6)
    assert by_kind["read-in-rack"].cost == "a restart of 1 member"
    assert by_kind["gateway-rack"].bytes_a_month == pytest.approx(a_month(8 / 3), rel=1e-6)
    assert by_kind["gateway-rack"].cost == "a gateway in each rack before 1 member, with its bootstrap.servers"
    (only,) = list(found(mixed, through_gateway=["client-a", "client-b", "client-c"]))
    assert (only.kind, only.cost) == ("gateway-rack", "SIGHUP to the gateways, no restart")


def test_a_saving_that_is_free_by_the_price_file_is_none() -> None:
    nowhere = world(3, {"m": None}, {"m": range(6)}, ReplicaSelectors.RACK_AWARE)
    assert found(nowhere, priced=prices(consume=0, follower_fetch=0)) == []


def test_advice_says_what_its_bytes_rest_on() -> None:
    nowhere = world(3, {"m": None}, {"m": range(6)}, ReplicaSelectors.RACK_AWARE)
    (advice,) = found(nowhere)
    assert advice.assumption == READ_ANYWHERE


def streams_world(rng: Random) -> World:
    """Four partitions of one replica, and two processes in racks of their own, each with two of the tasks."""
    return World(
        {1: "r1", 2: "r2"},
        {("t", partition): ((broker := rng.choice([1, 2])), [broker], [broker]) for partition in range(4)},
        dict.fromkeys((1, 2), ReplicaSelectors.RACK_AWARE),
        kind=GroupKind.STREAMS,
        declared={"a": "r1", "b": "r2"},
        reads={"a": [("t", 0), ("t", 1)], "b": [("t", 2), ("t", 3)]},
    )


@pytest.mark.slow
def test_a_strategy_of_kafka_streams_saves_what_the_best_of_all_assignments_reads_less() -> None:
    rng = Random(925)
    counts = set()
    for _ in range(20):
        places = streams_world(rng)
        described = streams_group(places)
        snapshot = places.snapshot()
        reads = group_reads(described, snapshot, places.selectors)
        volumes = volumes_of(snapshot, np.full(4, GIB, np.int64))
        traffic = MeasuredTraffic(snapshot, volumes, [reads], {}, 1.0, places.selectors)
        advice = list(savings(traffic, find_causes(reads, snapshot), RackPolicy(), None, 1))
        homes = [places.racks[places.placed["t", partition][0]] for partition in range(4)]
        now = sum(home != rack for home, rack in zip(homes, ("r1", "r1", "r2", "r2"), strict=True))
        best = min(
            sum(home != (("r1", "r2")[at not in firsts]) for at, home in enumerate(homes))
            for firsts in combinations(range(4), 2)
        )
        of_strategy = [each for each in advice if each.kind == "strategy"]
        assert [each.bytes_a_month for each in of_strategy] == ([a_month(now - best)] if now > best else [])
        counts.add(now - best)
        for each in of_strategy:
            assert "rack.aware.assignment.strategy=min_traffic" in each.command
            assert each.cost == "a restart of 2 processes; state of no task is restored once"
    assert counts >= {0, 2}


def test_state_of_a_task_whose_changelog_is_not_known_has_no_known_size() -> None:
    snapshot = World({1: "r1"}, {("log", 0): (1, [1], [1])}, {}).snapshot()
    tasks = [
        {"id": "0_0", "stateful": False, "changelog": []},
        {"id": "1_0", "stateful": True, "changelog": []},
        {"id": "2_0", "stateful": True, "changelog": ["log:0"]},
    ]
    document: Any = {"tasks": tasks}
    captured = CapturedGroup(document, ())
    sized = replace(snapshot, partitions=replace(snapshot.partitions, size_bytes=np.array([4096])))
    assert _restored(sized, captured, {TaskId("0_0")}) == "no task"
    assert _restored(sized, captured, {TaskId("0_0"), TaskId("2_0")}) == "4.0 KiB"
    assert _restored(sized, captured, {TaskId("1_0"), TaskId("2_0")}) == "unknown size"


@pytest.mark.parametrize("seed", range(20))
def test_only_topics_of_which_enough_crosses_racks_are_looked_at(seed: int) -> None:
    """Random topics, read by two members: enough is what the flows of the topic alone add up to in a month."""
    rng = Random(seed)
    placed = {}
    for topic in "tuvw":
        for partition in range(rng.randint(1, 3)):
            held = rng.sample(BROKERS, rng.choice([1, 2, 3]))
            placed[topic, partition] = held[0], held, held
    dealt = {member: [row for row in placed if rng.random() < 0.5] for member in ("a", "b")}
    selector = rng.choice([ReplicaSelectors.LEADER, ReplicaSelectors.RACK_AWARE])
    declared: dict[str, str | None] = {"a": "r1", "b": rng.choice(["r2", None])}
    racks: dict[int, str | None] = {broker: f"r{broker % 3 + 1}" for broker in BROKERS}
    places = World(racks, placed, dict.fromkeys(BROKERS, selector), declared=declared, reads=dealt)
    snapshot = places.snapshot()
    volumes = volumes_of(snapshot, np.array([rng.randrange(1000) for _ in placed], np.int64))
    reads = group_reads(places.group(), snapshot, places.selectors)
    traffic = MeasuredTraffic(snapshot, volumes, [reads], {}, MONTH_SECONDS, places.selectors)
    groups = [ReadingGroup(reads, places.selectors)]

    def looked_at(least: int) -> list[str]:
        return [each.name for each in passing_topics(traffic, RackPolicy(), groups, Terms(MONTH_SECONDS, None, least))]

    across = {
        each.name: sum(flow.size_bytes or 0 for flow in each.flows() if flow.link.crosses)
        for each in passing_topics(traffic, RackPolicy(), groups, Terms(MONTH_SECONDS, None, 0))
    }
    assert all(across.values())
    for least in (*across.values(), *(size + 1 for size in across.values())):
        assert looked_at(least) == [name for name, size in across.items() if size >= least]


@pytest.mark.slow
def test_findings_of_a_group_are_no_reason_to_change_another() -> None:
    nowhere = world(3, {"m": None}, {"m": range(6)}, ReplicaSelectors.RACK_AWARE)
    snapshot = nowhere.snapshot()
    one = group_reads(nowhere.group(), snapshot, nowhere.selectors)
    other = replace(one, group=replace(one.group, group_id="other"))
    volumes = volumes_of(snapshot, np.full(6, GIB, np.int64))
    traffic = MeasuredTraffic(snapshot, volumes, [one, other], {}, 1.0, nowhere.selectors)
    (advice,) = savings(traffic, list(find_causes(other, snapshot)))
    assert (advice.group, advice.bytes_a_month) == ("other", a_month(4))
    assert len(list(savings(traffic, [*find_causes(one, snapshot), *find_causes(other, snapshot)]))) == 2
    # Without a number of bytes ten GiB a month are enough.
    rare = replace(traffic, seconds=MONTH_SECONDS * 4 / 10)
    assert [each.bytes_a_month for each in savings(rare, list(find_causes(one, snapshot)))] == [10 * GIB]
    rarer = replace(traffic, seconds=MONTH_SECONDS * 4 / 9.99)
    assert not list(savings(rarer, list(find_causes(one, snapshot))))
