"""The table `stream_groups` beside the audit of each last reading, plain loops over tasks, and every assignment of small groups."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import permutations
from random import Random
from typing import Any
from uuid import UUID

import numpy as np
import pytest

from rackspan.clients import ReplicaSelectors
from rackspan.errors import InvalidGroup
from rackspan.model import ClusterSnapshot, RackId
from rackspan.model.group import GroupDescription, GroupKind, MemberDescription, StreamsMember, SubtopologyTopics
from rackspan.model.ids import TopicPartition
from rackspan.pipeline.hours.stream_groups import StreamGroups
from rackspan.pipeline.hours.work import hour_of
from rackspan.streams import Strategy, audit_group, capture_group, streams_group
from rackspan.streams.live.group_audit import ActiveTasks, audit_with_tasks
from rackspan.streams.problem import TaskId
from rackspan.traffic import ClusterLogs, ClusterReading
from tests.depth import at_depth
from tests.pipeline.examples import NOON
from tests.pipeline.hours.test_rows import rows_of
from tests.pipeline.readings import history
from tests.streams.groups import cluster, described, member

STRATEGIES = ("none", "min_traffic", "balance_subtopology")
RACKS = ("r1", "r2", "r3")


def replica_racks(snapshot: ClusterSnapshot) -> dict[TopicPartition, set[str | None]]:
    rack = {int(broker.id): broker.rack for broker in snapshot.brokers}
    rows = snapshot.partitions
    return {
        TopicPartition(str(snapshot.topics[topic].name), partition): {
            rack[broker] for broker in replicas if broker >= 0
        }
        for topic, partition, replicas in zip(
            rows.topic.tolist(), rows.partition.tolist(), rows.replicas.tolist(), strict=True
        )
    }


def tasks_of(group: GroupDescription) -> Iterator[tuple[str | None, str, int]]:
    """The rack of its process, the sub-topology and the number of each active task."""
    for one in group.members:
        assert one.streams is not None
        for name, partitions in one.streams.active.items():
            for partition in partitions:
                yield one.rack, name, partition


def across(group: GroupDescription, snapshot: ClusterSnapshot) -> tuple[int, int, int]:
    """Tasks, partitions and cost of what crosses racks as the group runs, by loops."""
    places = replica_racks(snapshot)
    tasks = partitions = cost = 0
    for rack, name, number in tasks_of(group):
        crossing = sum(rack not in places[TopicPartition(topic, number)] for topic in group.topology[name].sources)
        tasks += crossing > 0
        partitions += crossing
        cost += crossing * (10 if group.topology[name].changelogs else 1)
    return tasks, partitions, cost


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(at_depth(test=8, soak=300)))
def test_rows_are_the_audit_of_the_last_reading_of_each_hour(seed: int) -> None:
    readings = history(Random(seed), 8)
    last = {hour_of(reading.read_at): reading for reading in readings}
    rows = {(row["hour"], row["strategy"]): row for row in rows_of(readings, "stream_groups")}
    assert rows.keys() == {(hour, strategy) for hour in last for strategy in STRATEGIES}
    for (hour, strategy), row in rows.items():
        reading = last[hour]
        group = reading.groups[0]
        assert (row["group_id"], row["kind"], row["read_at"]) == ("app", "streams", reading.read_at)
        if group.state != "Stable":
            assert not row["known"]
            assert "rebalancing" in row["reason"]
            assert [row[name] for name in row if name.endswith(("_now", "_best")) and "bytes" not in name] == [None] * 8
            continue
        running = streams_group(group)
        audit = audit_group(running, capture_group(running, reading.snapshot, {}))
        best = audit["strategies"][strategy]
        assert row["clients"] == len(group.members)
        assert row["tasks"] == 6
        assert row["partitions_across_best"] == best["cross_rack"]["active"]
        assert row["standby_across_now"] == audit["now"]["cross_rack"]["standby"]
        assert row["standby_across_best"] == best["cross_rack"]["standby"]
        assert row["tasks_across_best"] == best["cross_rack_tasks"]
        assert row["tasks_moved"] == best["moved"]["active"]
        lacking = [one for one in group.members if one.rack is None]
        assert row["known"] == (not lacking)
        now = row["tasks_across_now"], row["partitions_across_now"], row["cost_now"]
        if lacking:
            assert (*now, row["cost_best"]) == (None, None, None, None)
            assert "has no client.rack" in row["reason"]
        else:
            assert now == across(group, reading.snapshot)
            assert row["reason"] == best["reason"]


@pytest.mark.slow
def test_histories_have_groups_of_all_sorts() -> None:
    found = Counter[str]()
    for seed in range(12):
        readings = history(Random(seed), 8)
        for row in rows_of(readings, "stream_groups"):
            found[row["strategy"], row["known"]] += 1  # type: ignore[index]
            found["less"] += row["known"] and row["cost_best"] < row["cost_now"]
    assert len(found) == 7
    assert min(found.values()) > 0


def application(
    rng: Random, processes: int, tasks: int, *, changelogs: Sequence[str]
) -> tuple[GroupDescription, ClusterSnapshot]:
    """One sub-topology that reads two topics, whose tasks are dealt to processes in equal numbers, and the cluster."""
    sources = ("clicks", "orders")
    topics = {
        name: [rng.sample(range(1, 4), rng.choice([1, 1, 2])) for _ in range(tasks)] for name in (*sources, *changelogs)
    }
    dealt = rng.sample(range(tasks), tasks)
    members = tuple(
        MemberDescription(
            f"m{at}",
            f"c{at}",
            rack=RackId(rng.choice(RACKS)),
            streams=StreamsMember(str(UUID(int=at + 1)), {}, {"0": tuple(sorted(dealt[at::processes]))}, {}, {}),
        )
        for at in range(processes)
    )
    topology = {"0": SubtopologyTopics(sources, tuple(changelogs))}
    group = GroupDescription("app", "Stable", "streams", "", members, None, GroupKind.STREAMS, topology)
    return group, cluster(topics)


def of_group(
    group: GroupDescription, snapshot: ClusterSnapshot, made: StreamGroups | None = None
) -> Mapping[str, dict[str, Any]]:
    (drawn,) = history(Random(1), 1)
    reading = replace(drawn.of_snapshot(snapshot), groups=(group,))
    return {row["strategy"]: row for row in (made or StreamGroups()).rows(reading)}


@pytest.mark.parametrize("seed", range(at_depth(check=20, test=30, soak=1000)))
def test_min_traffic_costs_the_least_of_every_assignment_of_as_many_tasks_to_each(seed: int) -> None:
    rng = Random(seed)
    processes = rng.choice([2, 3])
    tasks = processes * (2 if processes == 3 else rng.choice([2, 3]))
    state = rng.random() < 0.5
    group, snapshot = application(rng, processes, tasks, changelogs=["app-store-changelog"] if state else [])
    rows = of_group(group, snapshot)
    places = replica_racks(snapshot)
    racks = [one.rack for one in group.members for _ in range(tasks // processes)]
    least = min(
        sum(
            rack not in places[TopicPartition(topic, number)]
            for rack, number in zip(racks, order, strict=True)
            for topic in ("clicks", "orders")
        )
        for order in set(permutations(range(tasks)))
    )
    best = rows["min_traffic"]
    assert best["partitions_across_best"] == least
    assert best["cost_best"] == least * (10 if state else 1)
    assert best["known"]
    now = best["tasks_across_now"], best["partitions_across_now"], best["cost_now"]
    assert now == across(group, snapshot)
    assert all(row["cost_best"] >= best["cost_best"] for row in rows.values())
    assert (best["reason"], rows["none"]["reason"]) == (None, "rack.aware.assignment.strategy is none")


def in_one_hour(
    group: GroupDescription,
    snapshots: Sequence[ClusterSnapshot],
    sizes: Sequence[int],
    selectors: Mapping[int, ReplicaSelectors],
) -> Mapping[str, dict[str, Any]]:
    """The rows of an hour in which each partition, by row, receives so many bytes before each of these snapshots but the first."""

    def read(number: int, snapshot: ClusterSnapshot) -> ClusterReading:
        time = NOON + timedelta(minutes=20 * number)
        shape = snapshot.partitions.replicas.shape
        size = np.broadcast_to(np.array(sizes, np.int64)[:, None] * number, shape).copy()
        logs = ClusterLogs(replace(snapshot, taken_at=time), time, np.full(shape[0], 10 * number), size)
        return ClusterReading(logs, (group,), selectors, period_seconds=3600)

    readings = [read(number, snapshot) for number, snapshot in enumerate(snapshots)]
    return {row["strategy"]: row for row in rows_of(readings, "stream_groups", [NOON])}


@pytest.mark.parametrize("seed", range(at_depth(check=5, test=20, soak=1000)))
def test_bytes_cross_racks_by_the_replica_that_serves_each_partition(seed: int) -> None:
    """Plain loops: an in-sync replica in the reader's rack where the leader's broker selects by rack (KIP-392), else the leader."""
    rng = Random(seed)
    group, snapshot = application(rng, 3, 6, changelogs=rng.choice([["app-store-changelog"], []]))
    isr = snapshot.partitions.isr.copy()
    for row in isr:
        row[1 : rng.choice([1, len(row), len(row)])] = -1
    snapshot = replace(snapshot, partitions=replace(snapshot.partitions, isr=isr))
    selectors = {
        int(broker.id): rng.choice([ReplicaSelectors.LEADER, ReplicaSelectors.RACK_AWARE])
        for broker in snapshot.brokers
    }
    # Logs whose records are all about as large count as they are.
    sizes = [rng.randrange(600_000, 1_000_000) for _ in isr]
    rack_of_broker = {int(broker.id): broker.rack for broker in snapshot.brokers}
    rack_of = {one.streams.process_id: one.rack for one in group.members if one.streams is not None}

    def across(process_of: ActiveTasks) -> int:
        total = 0
        for row, size in zip(snapshot.partitions, sizes, strict=True):
            if str(snapshot.topics[row.topic].name) not in group.topology["0"].sources:
                continue
            rack = rack_of[process_of[TaskId(f"0_{row.partition}")]]
            near = rack in {rack_of_broker[broker] for broker in row.isr}
            served = (
                rack if near and selectors[row.leader] is ReplicaSelectors.RACK_AWARE else rack_of_broker[row.leader]
            )
            total += size * (served != rack)
        return total

    rows = in_one_hour(group, [snapshot] * 2, sizes, selectors)
    running = streams_group(group)
    _, tasks = audit_with_tasks(running, capture_group(running, snapshot, {}))
    now = {task: process.process_id for process in running.processes for task in process.active}
    read = sum(
        size
        for row, size in zip(snapshot.partitions, sizes, strict=True)
        if str(snapshot.topics[row.topic].name) in group.topology["0"].sources
    )
    assert rows.keys() == set(STRATEGIES)
    for strategy, row in rows.items():
        assert (row["bytes"], row["bytes_across_now"]) == (read, across(now))
        assert row["bytes_across_best"] == across(tasks[Strategy(strategy)])


@pytest.mark.parametrize(("selector", "across"), [(ReplicaSelectors.LEADER, 300), (ReplicaSelectors.RACK_AWARE, 0)])
def test_a_follower_in_the_rack_costs_nothing_and_bytes_cross_if_leaders_serve(
    selector: ReplicaSelectors, across: int
) -> None:
    """KIP-925 counts partitions without a replica in the rack. The one partition has its leader in r2, and a follower in r1."""
    group = reader_in_r1()
    rows = in_one_hour(group, [cluster({"orders": [[2, 1]]})] * 2, [300], dict.fromkeys((1, 2, 3), selector))
    for row in rows.values():
        assert (row["partitions_across_now"], row["cost_now"], row["cost_best"]) == (0, 0, 0)
        assert (row["bytes"], row["bytes_across_now"], row["bytes_across_best"]) == (300, across, across)


def reader_in_r1() -> GroupDescription:
    """A process with one task, which reads the only partition of `orders`."""
    streams = StreamsMember(str(UUID(int=1)), {}, {"0": (0,)}, {}, {})
    member = MemberDescription("m", "c", rack=RackId("r1"), streams=streams)
    topology = {"0": SubtopologyTopics(("orders",), ())}
    return GroupDescription("app", "Stable", "streams", "", (member,), None, GroupKind.STREAMS, topology)


def test_bytes_go_by_the_leader_of_their_time() -> None:
    """The leader is in r2 while 300 bytes are read, and then in r1, where another 300 are: racks of replicas stay as they are."""
    led_by_2 = cluster({"orders": [[2, 1]]})
    rows = led_by_2.partitions
    led_by_1 = replace(led_by_2, partitions=replace(rows, leader=np.full_like(rows.leader, 1)))
    leaders = dict.fromkeys((1, 2, 3), ReplicaSelectors.LEADER)
    found = in_one_hour(reader_in_r1(), [led_by_2, led_by_2, led_by_1], [300], leaders)
    for row in found.values():
        assert (row["bytes"], row["bytes_across_now"], row["bytes_across_best"]) == (600, 300, 300)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(at_depth(test=5, soak=200)))
def test_bytes_of_the_tasks_as_they_run_are_those_of_consumer_groups(seed: int) -> None:
    readings = history(Random(seed), 8)
    groups = {
        row["hour"]: row
        for row in rows_of(readings, "consumer_groups")
        if row["group_id"] == "app" and row["strategy"] == "now"
    }
    found = Counter[bool]()
    for row in rows_of(readings, "stream_groups"):
        now = groups[row["hour"]]
        assert (row["bytes"], row["bytes_across_now"]) == (now["bytes"], now["bytes_across"])
        found[row["bytes_across_best"] is not None] += 1
    assert found


def test_bytes_are_not_known_of_a_strategy_for_a_group_that_rebalances() -> None:
    group, snapshot = application(Random(1), 2, 4, changelogs=())
    rebalances = replace(group, state="Reconciling")
    rows = in_one_hour(rebalances, [snapshot] * 2, [100] * 8, dict.fromkeys((1, 2, 3), ReplicaSelectors.LEADER))
    assert {(row["bytes"], row["bytes_across_now"] is None, row["bytes_across_best"]) for row in rows.values()} == {
        (800, False, None)
    }


def test_tasks_count_once_however_many_of_their_partitions_cross() -> None:
    """Two tasks, each of two partitions: one reads both across racks, and so cost 20; the other none."""
    streams = StreamsMember(str(UUID(int=1)), {}, {"0": (0, 1)}, {}, {})
    group = GroupDescription(
        "app",
        "Stable",
        "streams",
        "",
        (MemberDescription("m", "c", rack=RackId("r1"), streams=streams),),
        None,
        GroupKind.STREAMS,
        {"0": SubtopologyTopics(("clicks", "orders"), ("log",))},
    )
    rows = of_group(group, cluster({"clicks": [[1], [2]], "orders": [[1], [3]], "log": [[1], [1]]}))
    for row in rows.values():
        assert (row["tasks"], row["tasks_across_now"], row["partitions_across_now"], row["cost_now"]) == (2, 1, 2, 20)
        assert (row["tasks_across_best"], row["partitions_across_best"], row["cost_best"]) == (1, 2, 20)
        assert row["tasks_moved"] == 0


def test_a_group_of_the_classic_protocol_has_rows_that_say_where_to_look() -> None:
    group = described(member("a", active={"0_0": ["orders:0"]}))
    rows = of_group(group, cluster({"orders": [[1]]}))
    assert rows.keys() == set(STRATEGIES)
    for row in rows.values():
        assert (row["kind"], row["known"], row["cost_now"], row["tasks"]) == ("classic", False, None, None)
        assert "rackspan streams audit --group shop" in row["reason"]


def test_groups_of_other_kinds_and_without_members_have_no_rows() -> None:
    (drawn,) = history(Random(1), 1)
    empty = replace(drawn.groups[0], group_id="gone", members=(), state="Empty")
    assert not list(StreamGroups().rows(replace(drawn, groups=(*drawn.groups[1:], empty))))


def test_tasks_of_a_sub_topology_that_is_not_described_are_a_reason() -> None:
    group, snapshot = application(Random(1), 2, 4, changelogs=())
    undescribed = replace(group, topology={})
    for row in of_group(undescribed, snapshot).values():
        assert not row["known"]
        assert "describes no sub-topology 0" in row["reason"]
    with pytest.raises(InvalidGroup, match=r"group app: its coordinator describes no sub-topology 0"):
        streams_group(undescribed)


@pytest.mark.slow
def test_an_audit_is_made_again_when_a_rack_or_a_task_changes() -> None:
    made, rng = StreamGroups(), Random(5)
    costs = set()
    for _ in range(20):
        group, snapshot = application(rng, 2, 4, changelogs=())
        for _ in range(2):
            rows = of_group(group, snapshot, made)
            assert rows == of_group(group, snapshot)
        assert rows["none"]["cost_now"] == across(group, snapshot)[2]
        costs.add(rows["none"]["cost_now"])
    assert len(costs) > 2
