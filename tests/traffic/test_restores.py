"""Restored changelogs beside plain loops over members, tasks and replicas."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random

import numpy as np
import pytest

from rackspan import api
from rackspan.clients import ReplicaSelectors
from rackspan.model import ClusterSnapshot, RackId
from rackspan.model.client_networks import ClientNetworks
from rackspan.model.group import GroupDescription, GroupKind, MemberDescription, StreamsMember, SubtopologyTopics
from rackspan.model.partitions import UNKNOWN_SIZE
from rackspan.traffic import (
    Basis,
    ClusterLogs,
    ClusterReading,
    Interval,
    TrafficFlow,
    TrafficPath,
    bill,
    restore_flows,
)
from rackspan.traffic.price_file import price_file
from rackspan.traffic.restores import RESTORED_WHOLE
from tests.streams.groups import cluster

T0 = datetime(2026, 11, 24, tzinfo=UTC)
PARTITIONS = 3
TOPOLOGY = {
    "0": SubtopologyTopics(("orders",), ("app-a-changelog", "app-b-changelog")),
    "1": SubtopologyTopics(("orders",), ()),
    "2": SubtopologyTopics(("clicks",), ("app-c-changelog",)),
}
LOGS = ("app-a-changelog", "app-b-changelog", "app-c-changelog")
RACKS = ("r1", "r2", "r3", None)
Roles = Mapping[str, tuple[int, ...]]


def thread(
    name: str, process: str, rack: str | None, active: Roles, standby: Roles | None = None, warmup: Roles | None = None
) -> MemberDescription:
    streams = StreamsMember(process, {}, active, standby or {}, warmup or {})
    return MemberDescription(name, name, host="10.0.0.7", rack=RackId(rack) if rack else None, streams=streams)


def app(*members: MemberDescription) -> GroupDescription:
    return GroupDescription("app", "Stable", "streams", "", members, None, GroupKind.STREAMS, TOPOLOGY)


def random_app(rng: Random) -> GroupDescription:
    """Threads of three processes; tasks have copies anywhere, or nowhere."""
    members = []
    for at in range(rng.randint(1, 5)):
        roles: list[dict[str, tuple[int, ...]]] = [{}, {}, {}]
        for name in TOPOLOGY:
            for role in roles:
                held = tuple(partition for partition in range(PARTITIONS) if rng.random() < 0.2)
                if held:
                    role[name] = held
        members.append(thread(f"m{at}", f"p{rng.randint(1, 3)}", rng.choice([*RACKS, "R1"]), *roles))
    return app(*members)


def logs_of(snapshot: ClusterSnapshot, sizes: Sequence[int], at: datetime = T0) -> ClusterLogs:
    """Every replica of a partition has the same size, but leaders, which come first, have that in `sizes`."""
    replica_bytes = np.full(snapshot.partitions.replicas.shape, 5, np.int64)
    replica_bytes[:, 0] = sizes
    return ClusterLogs(snapshot, at, np.zeros(len(snapshot.partitions), np.int64), replica_bytes)


Known = Counter[tuple[str, str | None, str | None]]


def plain(
    before: Sequence[GroupDescription],
    after: Sequence[GroupDescription],
    placed: Mapping[str, Sequence[Sequence[int]]],
    sizes: Mapping[tuple[str, int], int],
    rule: ReplicaSelectors,
    gone: set[str],
) -> tuple[Known, set[tuple[str, str | None, str | None]]]:
    known, unknown = Known(), set()
    rack_of = dict(enumerate(RACKS, 1))

    def copies(groups: Sequence[GroupDescription]) -> list[tuple[str, str, int, str | None]]:
        return [
            (member.streams.process_id, name, partition, member.rack)
            for group in groups
            for member in group.members
            if member.streams
            for role in (member.streams.active, member.streams.standby, member.streams.warmup)
            for name, partitions in role.items()
            for partition in partitions
        ]

    done = set()
    for process, name, partition, rack in copies(after):
        if (process, name, partition) in done:
            continue
        done.add((process, name, partition))
        holders = [one[0] for one in copies(before) if one[1:3] == (name, partition)]
        if process in holders:
            continue
        for topic in TOPOLOGY[name].changelogs:
            if topic in gone:
                continue
            on = placed[topic][partition]
            source = rack_of[on[0]]
            if rule is ReplicaSelectors.RACK_AWARE and rack in [rack_of[broker] for broker in on if rack]:
                source = rack
            if rule is ReplicaSelectors.OTHER and rack not in (None, source):
                source = None
            ends = source, "r1" if rack == "R1" else rack
            size = sizes[topic, partition]
            if holders and size != UNKNOWN_SIZE:
                known[topic, *ends] += size
            else:
                unknown.add((topic, *ends))
    return known, unknown


@pytest.mark.slow
def test_500_random_moves_restore_what_plain_loops_say() -> None:
    rng = Random(1071)
    shapes = Counter[str]()
    for _ in range(500):
        placed = {
            name: [rng.sample(range(1, 5), rng.randint(1, 3)) for _ in range(PARTITIONS)]
            for name in (*LOGS, "orders", "clicks")
        }
        snapshot = cluster(placed, RACKS)
        rows = [(name, partition) for name in sorted(placed) for partition in range(PARTITIONS)]
        sizes = {row: rng.choice([UNKNOWN_SIZE, *range(1, 10**6, 10**5)]) for row in rows}
        before = [random_app(rng)] if rng.random() < 0.9 else []
        after = [random_app(rng)]
        rule = rng.choice([*ReplicaSelectors][:3])
        # A topic that was created again is another one.
        gone = {rng.choice(LOGS)} if rng.random() < 0.2 else set()
        earlier = replace(
            snapshot,
            topics=tuple(
                replace(topic, topic_id="another") if topic.name in gone else topic for topic in snapshot.topics
            ),
        )
        flows = restore_flows(
            logs_of(earlier, [1] * len(rows)),
            logs_of(snapshot, [sizes[row] for row in rows]),
            before,
            after,
            dict.fromkeys(range(1, 5), rule),
        )
        found, nothing = Known(), set()
        for flow in flows:
            link = flow.link
            assert (link.path, link.group, link.basis) == (TrafficPath.RESTORE, "app", Basis.ESTIMATED)
            assert link.assumption.startswith(RESTORED_WHOLE)
            if flow.size_bytes is None:
                nothing.add((link.topic, link.source_rack, link.destination_rack))
            else:
                found[link.topic, link.source_rack, link.destination_rack] += flow.size_bytes
        assert (found, nothing) == plain(before, after, placed, sizes, rule, gone)
        shapes["known"] += bool(found)
        shapes["unknown"] += bool(nothing)
        shapes["gone"] += bool(gone)
    assert min(shapes.values()) > 50


PLACED = {**{name: [[1, 2], [1, 2], [1, 2]] for name in LOGS}, "orders": [[1], [1], [1]], "clicks": [[1], [1], [1]]}
LEADERS = dict.fromkeys((1, 2, 3), ReplicaSelectors.LEADER)


def restored(
    before: Sequence[GroupDescription], after: Sequence[GroupDescription], networks: ClientNetworks | None = None
) -> tuple[TrafficFlow, ...]:
    logs = logs_of(cluster(PLACED), [100] * 15)
    return restore_flows(logs, logs, before, after, LEADERS, networks)


HELD = app(thread("a", "p1", "r1", {"0": (0, 1), "1": (0,)}), thread("b", "p2", "r2", {}, {"0": (0,)}))


def test_a_task_that_moves_to_its_standby_restores_nothing_and_one_without_restores_every_changelog() -> None:
    moved = app(thread("a", "p1", "r1", {}), thread("b", "p2", "r2", {"0": (0, 1), "1": (0,)}))
    assert [
        (flow.link.topic, flow.link.source_rack, flow.link.destination_rack, flow.size_bytes)
        for flow in restored([HELD], [moved])
    ] == [("app-a-changelog", "r1", "r2", 100), ("app-b-changelog", "r1", "r2", 100)]


def test_a_task_that_moves_between_threads_of_one_process_restores_nothing() -> None:
    moved = app(thread("c", "p1", "r1", {"0": (0, 1), "1": (0,)}), thread("b", "p2", "r2", {}, {"0": (0,)}))
    assert not restored([HELD], [moved])


def test_new_standbys_and_warmups_restore_too() -> None:
    more = app(
        *HELD.members[:1],
        thread("b", "p2", "r2", {}, {"0": (0, 1)}),
        thread("c", "p3", "r3", {}, None, {"0": (1,)}),
    )
    assert {(flow.link.topic, flow.link.destination_rack, flow.size_bytes) for flow in restored([HELD], [more])} == {
        (topic, rack, 100) for topic in LOGS[:2] for rack in ("r2", "r3")
    }


def test_a_member_without_a_rack_restores_to_no_known_rack_unless_a_network_has_it() -> None:
    moved = app(thread("a", "p1", None, {"0": (0, 1)}), thread("b", "p2", None, {"0": (0, 1)}))
    assert {(flow.link.destination_rack, flow.link.crosses) for flow in restored([HELD], [moved])} == {(None, None)}
    networks = ClientNetworks({"10.0.0.0/24": "r3"})
    assert {flow.link.destination_rack for flow in restored([HELD], [moved], networks)} == {"r3"}


def test_a_misspelt_rack_means_the_likely_one_and_the_row_says_so() -> None:
    moved = app(thread("a", "p1", "r1", {}), thread("b", "p3", "R2", {"0": (0,)}))
    assert {(flow.link.destination_rack, flow.link.assumption) for flow in restored([HELD], [moved])} == {
        ("r2", f"{RESTORED_WHOLE}; a client.rack that no broker has means the rack most like it")
    }


def test_an_application_of_no_earlier_reading_restores_bytes_that_are_not_known() -> None:
    flows = restored([], [HELD])
    assert {flow.size_bytes for flow in flows} == {None}
    assert {flow.link.topic for flow in flows} == set(LOGS[:2])


def test_groups_of_other_kinds_restore_nothing() -> None:
    assert not restored([], [replace(HELD, kind=GroupKind.CLASSIC)])


MOVED = app(thread("a", "p1", "r1", {}), thread("b", "p2", "r2", {"0": (0, 1)}))
CONSUME_LIKE = price_file(
    """{"currency": "USD", "prices": [{"paths": ["consume", "restore"], "sides": ["source", "destination"], "amount": 0.01,
        "unit": "GB", "source": "x", "read_on": null}]}"""
)


def test_an_interval_has_the_restores_and_the_bill_their_price() -> None:
    snapshot = cluster(PLACED)
    first, second = logs_of(snapshot, [10**9] * 15), logs_of(snapshot, [10**9] * 15, T0 + timedelta(seconds=60))
    passed = Interval(
        ClusterReading(first, (HELD,), LEADERS),
        ClusterReading(second, (MOVED,), LEADERS),
    )
    of_interval = [flow for flow in passed.flows if flow.link.path is TrafficPath.RESTORE]
    assert sum(flow.size_bytes or 0 for flow in of_interval) == 2 * 10**9
    assert sum(row.money for row in bill(of_interval, CONSUME_LIKE).rows if row.money) * 100 == 4
    located = api.traffic(passed, snapshot, ClientNetworks({"10.0.0.7": "r3"})).flows
    assert {flow.link.destination_rack for flow in located if flow.link.path is TrafficPath.RESTORE} == {"r3"}


def test_each_changelog_is_restored_at_the_size_of_its_leader_or_one_that_is_not_known() -> None:
    """Of three changelogs of moved tasks one has no known size, and one no leader."""
    snapshot = cluster({**PLACED, "app-a-changelog": [[2, 1]] * 3, "app-b-changelog": [[1]] * 3})
    leader = snapshot.partitions.leader.copy()
    leader[4] = -1
    snapshot = replace(snapshot, partitions=replace(snapshot.partitions, leader=leader))
    logs = logs_of(snapshot, [10, 11, 12, 20, 21, UNKNOWN_SIZE, 30, 31, 32, *[0] * 6])
    before = app(thread("a", "p1", "r1", {"0": (0, 1, 2)}))
    moved = app(thread("a", "p1", "r1", {}), thread("b", "p2", "r2", {"0": (0, 1, 2)}))
    flows = restore_flows(logs, logs, [before], [moved], LEADERS)
    assert [
        (flow.link.topic, flow.link.source_rack, flow.link.destination_rack, flow.size_bytes) for flow in flows
    ] == [
        ("app-a-changelog", "r2", "r2", 33),
        # Where one without a leader is read from is not known.
        ("app-b-changelog", None, "r2", None),
        ("app-b-changelog", "r1", "r2", 20),
        ("app-b-changelog", "r1", "r2", None),
    ]
    assert {flow.link.assumption for flow in flows} == {
        "each process read the whole changelogs of a task of which it had no copy"
    }


def test_threads_of_no_stated_process_are_processes_of_their_own() -> None:
    before = app(thread("a", "", "r1", {"0": (0,)}))
    moved = app(thread("a", "", "r1", {}), thread("b", "", "r2", {"0": (0,)}))
    assert {flow.link.destination_rack for flow in restored([before], [moved])} == {"r2"}
    assert not restored([before], [before])


def test_a_member_that_describes_no_tasks_restores_nothing() -> None:
    without = MemberDescription("c", "c", rack=RackId("r3"))
    assert not restored([HELD], [replace(HELD, members=(*HELD.members, without))])
    assert not restored([replace(HELD, members=(*HELD.members, without))], [HELD])


def test_a_task_of_two_members_of_a_new_process_is_restored_once_and_by_each_new_process() -> None:
    both = {"0": (0,)}
    moved = app(
        *(thread("a", "p1", "r1", {}), thread("b", "p3", "r3", both), thread("c", "p3", "r3", {}, both)),
        thread("d", "p4", "r2", {}, both),
    )
    of_a = [flow for flow in restored([HELD], [moved]) if flow.link.topic == LOGS[0]]
    assert [(flow.link.destination_rack, flow.size_bytes) for flow in of_a] == [("r2", 100), ("r3", 100)]


def test_every_group_of_streams_is_looked_at_beside_its_own_earlier_tasks() -> None:
    moved = app(thread("a", "p1", "r1", {}), thread("b", "p3", "r2", {"0": (0,)}))
    other = replace(HELD, group_id="other")
    flows = restored([HELD, other], [replace(HELD, kind=GroupKind.CLASSIC), other, moved])
    assert {flow.link.group for flow in flows} == {"app"}
    assert {flow.link.group for flow in restored([other], [other, moved])} == {"app"}
