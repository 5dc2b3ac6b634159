"""Clusters as Hypothesis draws them: small, and wrong in every way a real one can be."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

from hypothesis import strategies as st

from rackspan.audit import RackPolicy
from rackspan.audit.policy import Survive
from rackspan.model import (
    Broker,
    BrokerId,
    ClusterSnapshot,
    Controller,
    PartitionColumns,
    RackId,
    Topic,
    TopicName,
    UnrackedPolicy,
    columns,
)
from rackspan.model.ids import NO_BROKER, UNKNOWN_LEADER
from rackspan.model.partitions import Partition
from rackspan.placement import UsableBroker

RACKS = ("r1", "r2", "r3", "eu-west=1 [a]")
TOPICS = ("__consumer_offsets", "orders", "payments.v2", "a_b-c", "x")

broker_ids = st.sampled_from([0, 1, 2, 3, 4, 5, 7, 1001, 2_000_000])
racks = st.sampled_from([None, *RACKS])
sizes = st.one_of(st.just(-1), st.integers(0, 2**40), st.just(2**63 - 1))
times = st.integers(1_600_000_000, 1_900_000_000).map(lambda seconds: datetime.fromtimestamp(seconds + 0.25, UTC))


@st.composite
def brokers(draw: st.DrawFn) -> tuple[Broker, ...]:
    """One to eight brokers; racks uneven, sometimes missing, sometimes on none."""
    ids = draw(st.lists(broker_ids, min_size=1, max_size=8, unique=True))
    rackless = draw(st.booleans()) and draw(st.booleans())
    return tuple(
        Broker(
            id=BrokerId(broker),
            rack=None if rackless or (rack := draw(racks)) is None else RackId(rack),
            fenced=draw(st.integers(0, 4)) == 0,
            host=draw(st.sampled_from([None, "127.0.0.1", "kafka.example"])),
            port=draw(st.sampled_from([None, 9092])),
            failed_log_dirs=draw(st.sampled_from([(), (), (), ("/data/b",), ("/data/b", "/data/c")])),
        )
        for broker in ids
    )


@st.composite
def controllers(draw: st.DrawFn) -> tuple[Controller, ...]:
    ids = draw(st.lists(st.sampled_from([1, 2, 3, 101, 102]), max_size=5, unique=True))
    return tuple(
        Controller(BrokerId(one), None if (rack := draw(racks)) is None else RackId(rack), draw(st.integers(0, 3)) > 0)
        for one in ids
    )


@st.composite
def configs(draw: st.DrawFn) -> dict[str, str]:
    config = {}
    if draw(st.booleans()):
        config["min.insync.replicas"] = str(draw(st.integers(1, 4)))
    if draw(st.integers(0, 3)) == 0:
        config["min.insync.racks"] = str(draw(st.integers(1, 4)))
    if draw(st.integers(0, 5)) == 0:
        config["cleanup.policy"] = "compact,delete"
    if draw(st.integers(0, 3)) == 0:
        config["unclean.leader.election.enable"] = draw(st.sampled_from(["true", "false"]))
    if draw(st.integers(0, 3)) == 0:
        config[draw(st.sampled_from(["leader", "follower"])) + ".replication.throttled.replicas"] = "*"
    return config


@st.composite
def partitions(draw: st.DrawFn, topic: int, partition: int) -> Partition:
    """Replicas on listed and on dead brokers; ISR a part of them, sometimes none; sometimes in the middle of a move, or on a disk that failed."""
    replicas = draw(st.lists(broker_ids, min_size=1, max_size=5, unique=True))
    isr = [replica for replica in replicas if draw(st.integers(0, 3)) > 0]
    moving = draw(st.integers(0, 5)) == 0
    failed = [broker for broker in replicas if broker not in isr and draw(st.integers(0, 5)) == 0]
    leader = draw(st.sampled_from([NO_BROKER, UNKNOWN_LEADER, *isr, *isr, *isr])) if isr else NO_BROKER
    if len(isr) == 1 and leader == NO_BROKER and draw(st.booleans()):
        # The last replica in sync stays in the ISR whatever becomes of its disk.
        failed += isr
    return Partition(
        topic=topic,
        partition=partition,
        leader=leader,
        replicas=tuple(replicas),
        isr=tuple(draw(st.permutations(isr))),
        adding_replicas=tuple(sorted(replicas[:1])) if moving else (),
        removing_replicas=tuple(sorted(replicas[1:2])) if moving else (),
        size_bytes=None if (size := draw(sizes)) < 0 else size,
        offline_replicas=tuple(failed),
    )


@st.composite
def snapshots(draw: st.DrawFn, cluster_id: str | None = None, taken_at: datetime | None = None) -> ClusterSnapshot:
    """A cluster of up to eight brokers and five topics, healthy or not, of the given cluster and time or of any."""
    names = draw(st.lists(st.sampled_from(TOPICS), max_size=len(TOPICS), unique=True))
    rows = [
        draw(partitions(topic, partition))
        for topic in range(len(names))
        for partition in draw(st.lists(st.integers(0, 4), max_size=4, unique=True))
    ]
    return ClusterSnapshot(
        cluster_id=cluster_id or draw(st.sampled_from(["5L6g3nShT-eMCtK--X86sw", "-starts_with a dash/slash"])),
        taken_at=taken_at or draw(times),
        controllers=draw(controllers()),
        partial=draw(st.sampled_from([(), ("sizes of broker 3",), ("reassignments under way: unknown",)])),
        brokers=draw(brokers()),
        topics=tuple(
            Topic(
                TopicName(name),
                draw(st.sampled_from([None, "AAAAAAAAAAAAAAAAAAAAAQ", "AAAAAAAAAAAAAAAAAAAAAg"])),
                name.startswith("__"),
                draw(configs()),
            )
            for name in names
        ),
        partitions=from_rows(rows),
    )


@st.composite
def successors(draw: st.DrawFn, before: ClusterSnapshot) -> ClusterSnapshot:
    """The same cluster a little later: of brokers, configs and each partition some as they were and some others."""
    topics = [replace(one, config=draw(configs())) if draw(st.booleans()) else one for one in before.topics]
    rows = [draw(partitions(row.topic, row.partition)) if draw(st.booleans()) else row for row in before.partitions]
    return replace(
        before,
        brokers=draw(brokers()) if draw(st.booleans()) else before.brokers,
        topics=tuple(topics),
        partitions=from_rows(rows),
    )


@st.composite
def with_known_controllers(draw: st.DrawFn) -> ClusterSnapshot:
    """A cluster whose controllers are known to be alive, to be dead, or neither.

    In some, the racks of a few brokers have the name of another with a blank or in capitals.
    """
    snapshot = draw(snapshots())
    if draw(st.integers(0, 3)) == 0:
        spelling: st.SearchStrategy[Callable[[str], str]] = st.sampled_from(
            [str, str.upper, " {}".format, "{}\u00e9".format, "{}e\u0301".format]
        )
        snapshot = replace(
            snapshot,
            brokers=tuple(replace(one, rack=one.rack and RackId(draw(spelling)(one.rack))) for one in snapshot.brokers),
        )
    alive = st.sampled_from([None, None, True, False])
    return replace(snapshot, controllers=tuple(replace(one, alive=draw(alive)) for one in snapshot.controllers))


def policies() -> st.SearchStrategy[RackPolicy]:
    return st.builds(
        RackPolicy,
        unracked=st.sampled_from([UnrackedPolicy.SHARED, UnrackedPolicy.OWN, UnrackedPolicy.IGNORE]),
        min_insync_racks=st.integers(1, 3),
        topic_min_insync_racks=st.dictionaries(st.sampled_from(TOPICS), st.integers(1, 4), max_size=2),
        controller_racks=st.dictionaries(st.sampled_from([101, 102]), st.sampled_from([RackId(r) for r in RACKS])),
        survive=st.sampled_from(list(Survive)),
        topic_survive=st.dictionaries(st.sampled_from(TOPICS), st.sampled_from(list(Survive)), max_size=2),
    )


def from_rows(rows: list[Partition]) -> PartitionColumns:
    return columns(
        topic=[row.topic for row in rows],
        partition=[row.partition for row in rows],
        leader=[row.leader for row in rows],
        replicas=[row.replicas for row in rows],
        isr=[row.isr for row in rows],
        adding_replicas=[row.adding_replicas for row in rows],
        removing_replicas=[row.removing_replicas for row in rows],
        offline_replicas=[row.offline_replicas for row in rows],
        size_bytes=[-1 if row.size_bytes is None else row.size_bytes for row in rows],
    )


@st.composite
def usable_brokers(draw: st.DrawFn, *, racked: bool = False, fenced: bool = False) -> tuple[UsableBroker, ...]:
    """One to twelve brokers as placers see them, in any order: all on racks, or perhaps all on none."""
    ids = draw(st.lists(st.integers(0, 2000), min_size=1, max_size=12, unique=True))
    names = st.sampled_from([RackId(rack) for rack in RACKS])
    on_racks = racked or draw(st.booleans())
    return tuple(
        UsableBroker(BrokerId(broker), draw(names) if on_racks else None, fenced and draw(st.booleans()))
        for broker in ids
    )
