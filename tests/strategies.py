"""Hypothesis strategies that several rooms share. Each one makes values that the model accepts.

`snapshots()` is rich on purpose: whatever a judge has a rule for occurs in it, often enough to be met.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from hypothesis import strategies as st

from rackspan.audit import RackPolicy
from rackspan.model import (
    UNKNOWN_SIZE,
    Broker,
    BrokerId,
    ClusterSnapshot,
    Controller,
    RackId,
    Topic,
    TopicName,
    columns,
)
from rackspan.model.racks import UnrackedPolicy

RACKS: Final = ("a", "b", "c", "rack d", "zone/é=1")
FIRST_MOMENT: Final = datetime(2026, 11, 20, 23, 59, tzinfo=UTC)
THRESHOLDS: Final = ("1", "2", "3")


def racks() -> st.SearchStrategy[RackId | None]:
    """Few names, so that racks fill unevenly; None for a broker without one."""
    return st.sampled_from([None, *map(RackId, RACKS[:3]), *map(RackId, RACKS)])


@st.composite
def brokers(draw: st.DrawFn) -> tuple[Broker, ...]:
    ids = draw(st.lists(st.integers(0, 12) | st.just(1_500_000), min_size=1, max_size=8, unique=True))
    racked = draw(st.sampled_from(["all", "some", "none"]))
    names = {"all": racks().filter(bool), "some": racks(), "none": st.none()}[racked]
    return tuple(
        Broker(BrokerId(one), rack=draw(names), fenced=draw(st.integers(0, 5)) == 0, host=f"host-{one}", port=9092)
        for one in ids
    )


@st.composite
def controllers(draw: st.DrawFn, of: Sequence[Broker]) -> tuple[Controller, ...]:
    """None told of, some of the brokers' own processes, or separate ones with and without racks; observers among them."""
    ids = draw(st.lists(st.sampled_from([*(one.id for one in of), 101, 102, 103, 104, 105]), max_size=5, unique=True))
    return tuple(Controller(BrokerId(one), rack=draw(racks()), voter=draw(st.integers(0, 4)) > 0) for one in ids)


@st.composite
def configs(draw: st.DrawFn) -> dict[str, str]:
    chosen = {"retention.ms": "604800000"}
    for key in ("min.insync.replicas", "min.insync.racks"):
        value = draw(st.sampled_from([None, *THRESHOLDS]))
        if value is not None:
            chosen[key] = value
    return chosen


@st.composite
def partition(draw: st.DrawFn, known: Sequence[int], width: int) -> dict[str, Any]:
    """One partition: dead brokers among its replicas, an ISR that shrank, no leader, a reassignment under way."""
    candidates = [*known, 77, 78]
    replicas = draw(st.permutations(candidates))[: min(width, len(candidates))]
    isr = [one for one in replicas if draw(st.integers(0, 4)) > 0]
    leader = draw(st.sampled_from([*isr[:1], *isr, -1]))
    reassigning = draw(st.integers(0, 4)) == 0
    adding = replicas[-1:] if reassigning else []
    removing = [one for one in replicas[:-1] if reassigning and draw(st.booleans())]
    size = draw(st.sampled_from([UNKNOWN_SIZE, 0, 1_024, 2**40]))
    return {
        "leader": leader,
        "replicas": replicas,
        "isr": isr,
        "adding_replicas": adding,
        "removing_replicas": removing,
        "size_bytes": size,
    }


@st.composite
def snapshots(draw: st.DrawFn, cluster_id: str | None = "cluster", taken_at: datetime | None = None) -> ClusterSnapshot:
    """A cluster of up to 8 brokers and 6 topics, in any state a real one can be in."""
    registered = draw(brokers())
    known = [int(one.id) for one in registered]
    names = draw(
        st.lists(st.sampled_from(["__consumer_offsets", "orders", "a.b", "x_y", "Z-1"]), max_size=5, unique=True)
    )
    rows: dict[str, list[Any]] = {}
    for code, _name in enumerate(names):
        width = draw(st.sampled_from([1, 2, 3, 3, 3, 4, 6]))
        for number in range(draw(st.integers(0, 8))):
            row = {"topic": code, "partition": number, **draw(partition(known, width))}
            for key, value in row.items():
                rows.setdefault(key, []).append(value)
    topics = [
        Topic(TopicName(name), topic_id=None, internal=name.startswith("__"), config=draw(configs())) for name in names
    ]
    return ClusterSnapshot(
        cluster_id=cluster_id,
        taken_at=taken_at or FIRST_MOMENT + timedelta(seconds=draw(st.integers(0, 200_000))),
        brokers=registered,
        controllers=draw(controllers(registered)),
        topics=tuple(topics),
        partitions=columns(**rows) if rows else columns(topic=[], partition=[], leader=[], replicas=[], isr=[]),
        partial=draw(st.sampled_from([(), ("log dirs: not authorized",)])),
    )


def policies() -> st.SearchStrategy[RackPolicy]:
    """Every way to count racks, but the one that refuses a cluster."""
    return st.builds(
        RackPolicy,
        unracked=st.sampled_from([one for one in UnrackedPolicy if one is not UnrackedPolicy.ERROR]),
        min_insync_racks=st.integers(1, 3),
        topic_min_insync_racks=st.sampled_from([{}, {"orders": 2}, {"orders": 1, "a.b": 3}]),
        controller_racks=st.sampled_from([{}, {101: RackId("a"), 102: RackId("b")}]),
    )
