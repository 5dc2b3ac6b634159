"""Rows of hours beside the pure functions of each two readings, and plain loops over minutes."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pytest

from rackspan.advice import ranked, risks
from rackspan.audit import RackPolicy, audit
from rackspan.clients import ReplicaSelectors, find_causes, measured_reads
from rackspan.model import Broker, BrokerId, ClusterSnapshot, RackId, Topic, TopicName, columns
from rackspan.model.group import GroupDescription, GroupKind, MemberDescription, StreamsMember, SubtopologyTopics
from rackspan.model.ids import TopicPartition
from rackspan.pipeline.hours.rows import OVER_A_GAP, hour_rows, parts
from rackspan.pipeline.hours.work import HOUR, hour_of
from rackspan.traffic import ClusterLogs, ClusterReading, Interval, reads_of
from rackspan.traffic.measured import read_bytes
from rackspan.traffic.price_file import price_file
from rackspan.traffic.restores import RESTORED_WHOLE
from tests.depth import at_depth
from tests.pipeline.examples import NOON
from tests.pipeline.hours.prices import PRICES
from tests.pipeline.readings import history, moved

SEEDS = range(at_depth(check=1, test=5, soak=300))


def all_hours(readings: list[ClusterReading]) -> list[datetime]:
    found, hour = [], hour_of(readings[0].read_at)
    while hour <= readings[-1].read_at:
        found.append(hour)
        hour += HOUR
    return found


def rows_of(readings: list[ClusterReading], table: str, hours: list[datetime] | None = None) -> list[dict[str, Any]]:
    made = hour_rows(readings, all_hours(readings) if hours is None else hours, PRICES)
    return [row for name, row in made if name == table]


@pytest.mark.parametrize("seed", range(at_depth(check=10, test=50)))
def test_parts_add_up_and_each_is_its_share_of_the_time(seed: int) -> None:
    rng = Random(seed)
    size = rng.randrange(10**12)
    start = datetime(2026, 11, 20, tzinfo=UTC) + timedelta(
        seconds=rng.randrange(86_400), microseconds=rng.randrange(10**6)
    )
    end = start + timedelta(seconds=rng.randrange(1, 40_000), microseconds=rng.randrange(10**6))
    found = list(parts(size, start, end))
    assert sum(part or 0 for _, part in found) == size
    for hour, part in found:
        inside = min(end, hour + HOUR) - max(start, hour)
        assert part is not None
        assert (
            abs(
                Fraction(size)
                * Fraction(inside / timedelta(microseconds=1))
                / Fraction((end - start) / timedelta(microseconds=1))
                - part
            )
            < 1
        )
    assert [part for _, part in parts(None, start, end)] == [None] * len(found)
    assert [hour for hour, _ in found] == sorted(
        {hour_of(start + timedelta(seconds=at)) for at in range(int((end - start).total_seconds()) + 1)}
        - ({end} if hour_of(end) == end else set())
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_hours_together_have_the_flows_of_each_two_readings(seed: int) -> None:
    readings = history(Random(seed), 12)
    wanted: Counter[tuple[object, ...]] = Counter()
    unknown: set[tuple[object, ...]] = set()
    for number in range(1, len(readings)):
        before, after = readings[number - 1], readings[number]
        gap = after.read_at - before.read_at > timedelta(seconds=3 * 600)
        for flow in Interval(before, after).flows:
            link = flow.link
            basis, assumption = str(link.basis), link.assumption
            if gap:
                basis, assumption = "estimated", f"{assumption}; {OVER_A_GAP}"
            key = (str(link.path), link.topic, link.group, link.source_rack, link.destination_rack, basis, assumption)
            if flow.size_bytes is None:
                unknown.add(key)
            else:
                wanted[key] += flow.size_bytes
    found: Counter[tuple[object, ...]] = Counter()
    incomplete: set[tuple[object, ...]] = set()
    keys = Counter[tuple[object, ...]]()
    for row in rows_of(readings, "traffic"):
        key = tuple(
            row[name]
            for name in ("path", "topic", "group_id", "source_rack", "destination_rack", "basis", "assumption")
        )
        keys[row["hour"], *key] += 1
        found[key] += row["bytes"] or 0
        assert row["complete"] or row["bytes"] != 0
        if not row["complete"]:
            incomplete.add(key)
    assert {key: size for key, size in found.items() if size} == {key: size for key, size in wanted.items() if size}
    assert incomplete == unknown
    assert set(keys.values()) == {1}


def test_tasks_that_move_restore_the_whole_changelog_within_their_hours() -> None:
    """Two hours of readings: the log `orders` of 700 bytes a partition moves to a process in another rack, at once or over the hour's end."""
    first = history(Random(1), 1)[0]
    sized = replace(first.logs, replica_bytes=np.full_like(first.logs.replica_bytes, 700))

    def read(minutes: int, *held: tuple[str, str, tuple[int, ...]]) -> ClusterReading:
        members = tuple(
            MemberDescription(name, name, rack=RackId(rack), streams=StreamsMember(name, {}, {"0": tasks}, {}, {}))
            for name, rack, tasks in held
        )
        topology = {"0": SubtopologyTopics(("pay",), ("orders",))}
        group = GroupDescription("app", "Stable", "", "", members, None, GroupKind.STREAMS, topology)
        at = NOON + timedelta(minutes=minutes)
        logs = replace(sized, read_at=at, snapshot=replace(first.snapshot, taken_at=at), committed={})
        return replace(first, logs=logs, groups=(group,), selectors=dict.fromkeys(range(1, 5), ReplicaSelectors.LEADER))

    readings = [
        read(0, ("a", "r1", (0, 1)), ("b", "r2", ())),
        read(20, ("a", "r1", (0,)), ("b", "r2", (1,))),
        read(50, ("a", "r1", (0,)), ("b", "r2", (1,))),
        read(70, ("a", "r1", ()), ("b", "r2", (0, 1))),
    ]
    rows = [row for row in rows_of(readings, "traffic") if row["path"] == "restore"]
    by_hour = Counter[datetime]()
    for row in rows:
        by_hour[row["hour"]] += row["bytes"]
        assert (row["topic"], row["group_id"], row["destination_rack"]) == ("orders", "app", "r2")
        assert (row["basis"], row["assumption"], row["complete"]) == ("estimated", RESTORED_WHOLE, True)
    assert by_hour == {NOON: 700 + 350, NOON + HOUR: 350}
    billed = [row for row in rows_of(readings, "bill") if row["path"] == "restore"]
    crossing = sum(row["bytes"] for row in rows if row["source_rack"] != "r2")
    assert sum(row["bytes"] for row in billed) == crossing
    assert sum(row["money"] for row in billed) == pytest.approx(crossing * 0.02 / 10**9)


def test_a_topic_that_was_created_again_has_no_known_bytes_in_between() -> None:
    readings = history(Random(1), 2)
    first, second = readings[0], moved(readings[0], 60)
    again = tuple(replace(topic, topic_id="another") for topic in second.snapshot.topics)
    second = replace(second, logs=replace(second.logs, snapshot=replace(second.snapshot, topics=again)), groups=())
    rows = rows_of([first, second], "traffic")
    assert rows
    assert {
        (row["bytes"], row["complete"]) for row in rows if row["path"] != "reassign" and row["basis"] != "measured"
    } == {(None, False)}


def test_what_passes_over_a_gap_is_an_estimate_that_says_so() -> None:
    first = history(Random(1), 1)[0]
    near, far = (grown(moved(first, 3 * 600 + more)) for more in (0, 1))
    near_rows, far_rows = (rows_of([first, second], "traffic") for second in (near, far))
    assert not any(OVER_A_GAP in row["assumption"] for row in near_rows)
    assert all(OVER_A_GAP in row["assumption"] and row["basis"] == "estimated" for row in far_rows)
    assert near_rows


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_an_hour_needs_no_more_than_its_readings_and_one_on_either_side(seed: int) -> None:
    """So an hour that is made alone has the rows that it has among all."""
    readings = history(Random(seed), 12)
    every = list(hour_rows(readings, all_hours(readings), PRICES))
    for hour in all_hours(readings):
        inside = [at for at, one in enumerate(readings) if hour <= one.read_at < hour + HOUR]
        after = next((at for at, one in enumerate(readings) if one.read_at >= hour + HOUR), len(readings) - 1)
        first = inside[0] if inside else after
        alone = readings[max(0, first - 1) : after + 1]
        assert list(hour_rows(alone, [hour], PRICES)) == [(name, row) for name, row in every if row["hour"] == hour]


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_the_bill_is_that_of_the_flows_of_the_hour(seed: int) -> None:
    readings = history(Random(seed), 6)
    traffic = rows_of(readings, "traffic")
    for hour in all_hours(readings):
        billed = [row for row in rows_of(readings, "bill") if row["hour"] == hour]
        total = sum(Fraction(row["money"]).limit_denominator(10**15) for row in billed if row["money"] is not None)
        crossing = [row for row in traffic if row["hour"] == hour and row["source_rack"] != row["destination_rack"]]
        priced = [
            row
            for row in crossing
            if row["path"] not in ("replicate", "reassign") and row["source_rack"] and row["destination_rack"]
        ]
        wanted = sum((Fraction(row["bytes"] or 0) * 2 / 100 / 10**9 for row in priced), Fraction(0))
        assert abs(total - wanted) < Fraction(1, 10**12)
        assert all(row["money"] is None and row["reason"] for row in billed if row["path"] in ("replicate", "reassign"))
        assert {row["currency"] for row in billed} <= {"USD"}


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_lag_is_what_is_left_to_read_by_plain_loops(seed: int) -> None:
    readings = history(Random(seed), 8)
    found = {
        (row["hour"], row["topic"], row["partition"]): (row["lag"], row["expired"], row["lag_max"])
        for row in rows_of(readings, "group_lag")
    }
    wanted = {}
    for hour in all_hours(readings):
        inside = [one for one in readings if hour <= one.read_at < hour + HOUR]
        for last in inside[-1:]:
            for (topic, partition), committed in last.logs.committed.get("shop", {}).items():
                lags = []
                for one in inside:
                    at = one.logs.committed.get("shop", {}).get((topic, partition))  # type: ignore[call-overload]
                    lags.append(None if at is None else plain_lag(one, topic, partition, at))
                known = [lag for lag in lags if lag is not None]
                start = ends(last, topic, partition)[0]
                wanted[hour, topic, partition] = (
                    lags[-1],
                    max(0, start - committed),
                    max(known) if known else None,
                )
    assert found == wanted


def ends(reading: ClusterReading, topic: str, partition: int) -> tuple[int, int]:
    row = {"orders": 0, "pay": 3}[topic] + partition
    start = reading.logs.start_offset
    assert start is not None
    return int(start[row]), int(reading.logs.end_offset[row])


def plain_lag(reading: ClusterReading, topic: str, partition: int, committed: int) -> int | None:
    start, end = ends(reading, topic, partition)
    if end == -1 or committed > end:
        return None
    left = 0
    for offset in range(committed, end):
        left += offset >= start
    return left


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_groups_and_findings_are_those_of_the_last_reading_of_an_hour(seed: int) -> None:
    readings = history(Random(seed), 8)
    groups = {(row["hour"], row["group_id"]): row for row in rows_of(readings, "groups")}
    findings = rows_of(readings, "client_findings")
    strategies = {(row["hour"], row["group_id"], row["strategy"]): row for row in rows_of(readings, "consumer_groups")}
    for hour in all_hours(readings):
        inside = [at for at, one in enumerate(readings) if hour <= one.read_at < hour + HOUR]
        if not inside:
            assert not any(row["hour"] == hour for row in findings)
            continue
        last = readings[inside[-1]]
        shop = groups[hour, "shop"]
        assert (shop["members"], shop["read_at"], shop["partitions"]) == (2, last.read_at, 6)
        assert shop["member_racks"] == sorted({str(one.rack) for one in last.groups[2].members if one.rack})
        assert groups[hour, "empty"]["lag"] is None
        counted = {} if inside[-1] == 0 else Interval(readings[inside[-1] - 1], last).counted
        reads = reads_of(last.snapshot, last.groups, last.selectors)
        wanted = [
            (each.group, each.cause, each.reason)
            for one in reads
            for each in find_causes(one, last.snapshot, measured_reads(one, last.groups, read_bytes(counted)))
        ]
        assert sorted(
            (row["group_id"], row["cause"], row["reason"]) for row in findings if row["hour"] == hour
        ) == sorted(wanted)
        now, best = strategies[hour, "shop", "now"], strategies[hour, "shop", "both"]
        assert now["partitions_across"] == next(one for one in reads if one.group.group_id == "shop").across
        if best["bytes_across"] is not None and now["bytes_across"] is not None:
            assert best["bytes_across"] <= now["bytes_across"]
            assert (best["bytes"] or 0) == (now["bytes"] or 0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_each_hour_has_the_advice_of_its_own_last_reading(seed: int) -> None:
    readings = history(Random(seed), 8)
    policy = RackPolicy(min_insync_racks=2)
    rows = [row for name, row in hour_rows(readings, all_hours(readings), PRICES, policy) if name == "advice"]
    last = {hour_of(reading.read_at): reading for reading in readings}
    assert len(last) > 1
    assert {row["hour"]: row["read_at"] for row in rows} == {hour: reading.read_at for hour, reading in last.items()}
    for hour, reading in last.items():
        of_hour = [row["kind"] for row in rows if row["hour"] == hour and row["concern"] != "money"]
        assert of_hour == [
            risk.kind for risk in ranked(risks(reading.snapshot, policy, audit(reading.snapshot, policy).findings))
        ]


def grown(reading: ClusterReading) -> ClusterReading:
    logs = reading.logs
    return replace(
        reading, logs=replace(logs, end_offset=logs.end_offset + 10, replica_bytes=logs.replica_bytes + 1000)
    )


def hand_made_hour(
    selector: ReplicaSelectors = ReplicaSelectors.LEADER, rack: str | None = None, in_sync: Sequence[int] = (1, 2, 3)
) -> list[ClusterReading]:
    """Two readings an hour apart: 300 MiB/s in, factor 3, three racks, and two groups of one member each, in `rack`.

    `in_sync` is the ISR of the partition that broker 2 leads.
    """
    rows = columns(
        topic=[0, 0, 0],
        partition=[0, 1, 2],
        leader=[1, 2, 3],
        replicas=[[1, 2, 3], [2, 3, 1], [3, 1, 2]],
        isr=[[1, 2, 3], [*in_sync], [1, 2, 3]],
    )
    brokers = tuple(Broker(BrokerId(one), RackId(f"r{one}")) for one in (1, 2, 3))
    read = tuple(TopicPartition("orders", partition) for partition in range(3))
    member = MemberDescription("m", "c", rack=RackId(rack) if rack else None, partitions=read)
    groups = tuple(GroupDescription(name, "Stable", "consumer", "range", (member,)) for name in "ab")

    def at(hours: int) -> ClusterReading:
        snapshot = ClusterSnapshot(brokers, (Topic(TopicName("orders")),), rows, "one", NOON + hours * HOUR)
        size = hours * 3600 * 100 * 2**20
        logs = ClusterLogs(snapshot, NOON + hours * HOUR, np.full(3, 1000 * hours), np.full((3, 3), size))
        return ClusterReading(logs, groups, dict.fromkeys((1, 2, 3), selector), period_seconds=3600)

    return [at(0), at(1)]


def test_a_month_of_the_hand_made_hour_costs_what_was_calculated_by_hand() -> None:
    """Clients anywhere; 30 days, 0.01 a GiB and side: 60,750."""
    aws = price_file(
        """{"currency": "USD", "prices": [{"paths": ["produce", "replicate", "consume"], "sides": ["source", "destination"],
            "amount": 0.01, "unit": "GiB", "source": "x", "read_on": null}]}"""
    )
    money = [row["money"] for name, row in hour_rows(hand_made_hour(), [NOON], aws) if name == "bill"]
    assert sum(money) * 30 * 24 == pytest.approx(60_750)


@pytest.mark.parametrize(
    ("selector", "rack", "in_sync", "across"),
    [
        (ReplicaSelectors.LEADER, "r1", (1, 2, 3), 2),
        (ReplicaSelectors.RACK_AWARE, "r1", (1, 2, 3), 0),
        # Broker 1, in r1, is out of sync of one partition, which is therefore read from its leader.
        (ReplicaSelectors.RACK_AWARE, "r1", (2, 3), 1),
        # Where a broker whose rule is not known sends readers is not known, unless the leader is in their rack.
        (ReplicaSelectors.OTHER, "r1", (1, 2, 3), None),
        (ReplicaSelectors.RACK_AWARE, None, (1, 2, 3), None),
    ],
)
def test_what_a_group_costs_now_is_counted_by_the_replica_that_serves_it(
    selector: ReplicaSelectors, rack: str | None, in_sync: tuple[int, ...], across: int | None
) -> None:
    """By KIP-392: each of three partitions received 100 MiB/s for an hour. The other strategy has all of it at home."""
    first, last = hand_made_hour(selector, rack, in_sync)
    # The last reading is of the hour itself, which is where rows of groups come from.
    last = replace(last, logs=replace(last.logs, read_at=NOON + HOUR - timedelta(microseconds=1)))
    rows = {row["strategy"]: row for row in rows_of([first, last], "consumer_groups", [NOON]) if row["group_id"] == "a"}
    now, size = rows["now"], 3600 * 100 * 2**20
    assert (now["partitions_across"], now["bytes"]) == (across, 3 * size)
    assert (now["members"], now["partitions"]) == (1, 3)
    if rack is not None:
        assert now["bytes_across"] == (None if across is None else across * size)
        assert rows["follower-fetch"]["partitions_across"] == (1 if in_sync == (2, 3) else 0)
