"""`make bench-consumers`: a rebalance beside the assignors that kafka-python and aiokafka bring along.

Processor time of one `assign` call, from members as a client hands them over to what it sends back, without any broker: for a new
group, and after one member left, with what the others own. Ten topics, replication factor 2 over three racks, members in the
racks in turn. One argument: the processor time, in seconds, that an assignor may take
for all runs of one size (default 60).
"""

import contextlib
import multiprocessing
import resource
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from multiprocessing.connection import Connection
from types import SimpleNamespace
from typing import Any, Final

from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor as AiokafkaSticky
from aiokafka.coordinator.protocol import ConsumerProtocolMemberMetadata
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafka.protocol.consumer.metadata import ConsumerProtocolSubscription

from benchmarks._measure import machine
from rackspan.assignor import aiokafka, kafka_python

SIZES: Final = ((1_000, 20), (10_000, 200), (100_000, 1_000))
LIMIT_SECONDS: Final = 60
RUNS: Final = 5
TOPICS: Final = [f"topic-{one}" for one in range(10)]
RACKS: Final = ("r1", "r2", "r3")
PLACES: Final = list(combinations(range(len(RACKS)), 2))

Given = Mapping[str, set[tuple[str, int]]]


class Cluster:
    """What both clients' metadata show an assignor; broker 0 is in r1, 1 in r2, 2 in r3."""

    def __init__(self, partitions: int) -> None:
        self._partitions = {topic: dict(enumerate(map(_partition, range(partitions // 10)))) for topic in TOPICS}

    def topics(self) -> set[str]:
        return set(TOPICS)

    def partitions_for_topic(self, topic: str) -> set[int]:
        return set(self._partitions[topic])

    def brokers(self) -> list[SimpleNamespace]:
        return [SimpleNamespace(node_id=one, nodeId=one, rack=rack) for one, rack in enumerate(RACKS)]


def _partition(number: int) -> SimpleNamespace:
    its = PLACES[number % len(PLACES)]
    return SimpleNamespace(
        partition_index=number, leader_id=its[0], replica_nodes=its, partition=number, leader=its[0], replicas=its
    )


class KafkaPython:
    """How kafka-python calls an assignor."""

    def __init__(self, make: Callable[[str], Any]) -> None:
        self._make = make

    def consumer(self, rack: str) -> Any:
        return self._make(rack)

    def joined(self, consumers: Mapping[str, Any]) -> Any:
        metadata = {
            name: ConsumerProtocolSubscription.decode(one.metadata(TOPICS).encode()) for name, one in consumers.items()
        }
        return [SimpleNamespace(member_id=name, group_instance_id=None, metadata=one) for name, one in metadata.items()]

    def deliver(self, consumer: Any, assignment: Any) -> None:
        consumer.on_assignment(assignment, 1)


class Aiokafka(KafkaPython):
    """How aiokafka does."""

    def joined(self, consumers: Mapping[str, Any]) -> Any:
        return {
            name: ConsumerProtocolMemberMetadata.decode(one.metadata(TOPICS).encode())
            for name, one in consumers.items()
        }

    def deliver(self, consumer: Any, assignment: Any) -> None:
        consumer.on_assignment(assignment)


def _own_class(_rack: str) -> Any:
    """aiokafka's sticky assignor keeps what a consumer owns in the class, so each consumer needs one of its own."""
    return type("Sticky", (AiokafkaSticky,), {})


ASSIGNORS: Final[Mapping[str, KafkaPython]] = {
    "rackspan (kafka-python)": KafkaPython(kafka_python.KafkaPythonAssignor),
    "rackspan (aiokafka)": Aiokafka(aiokafka.AiokafkaAssignor),
    "kafka-python range": KafkaPython(lambda _: RangePartitionAssignor()),
    "kafka-python sticky": KafkaPython(lambda _: StickyPartitionAssignor()),
    "kafka-python cooperative": KafkaPython(lambda _: CooperativeStickyAssignor()),
    "aiokafka sticky": Aiokafka(_own_class),
}


@dataclass(frozen=True, slots=True)
class Rebalance:
    """One `assign` call: processor seconds, partitions read across racks, greatest load less least, partitions moved."""

    seconds: float
    cross_rack: int
    spread: int
    moved: int


def main(limit_seconds: int = LIMIT_SECONDS) -> None:
    print(f"machine: {machine()}; processor time, median of up to {RUNS} runs (least to most)")
    for partitions, members in SIZES:
        print(f"\n{partitions:,} partitions x {members:,} consumers")
        _row("assignor", "new group", "a member left", "cross-rack", "spread", "moved")
        for name in ASSIGNORS:
            runs = _within(limit_seconds, name, partitions, members)
            _row(name, *_cells(runs, limit_seconds))


def measured(name: str, partitions: int, members: int) -> tuple[Rebalance, Rebalance]:
    """A new group, and the same after one member left."""
    client, cluster = ASSIGNORS[name], Cluster(partitions)
    racks = {f"consumer-{one:04}": RACKS[one % len(RACKS)] for one in range(members)}
    consumers = {member: client.consumer(rack) for member, rack in racks.items()}
    first, given = _assigned(client, cluster, consumers, racks, {})
    del consumers["consumer-0000"]
    return first, _assigned(client, cluster, consumers, racks, given)[0]


def _assigned(
    client: KafkaPython, cluster: Cluster, consumers: Mapping[str, Any], racks: Mapping[str, str], before: Given
) -> tuple[Rebalance, Given]:
    joined, leader = client.joined(consumers), next(iter(consumers.values()))
    started = time.process_time()
    assignments = leader.assign(cluster, joined)
    seconds = time.process_time() - started
    for member, assignment in assignments.items():
        client.deliver(consumers[member], assignment)
    given = {member: set(map(tuple, assignment.partitions())) for member, assignment in assignments.items()}
    far = sum(_is_far(one, racks[member]) for member, its in given.items() for _, one in its)
    moved = sum(len(before[member] - its) for member, its in given.items() if member in before)
    loads = [len(its) for its in given.values()]
    return Rebalance(seconds, far, max(loads) - min(loads), moved), given


def _is_far(partition: int, rack: str) -> bool:
    return RACKS.index(rack) not in PLACES[partition % len(PLACES)]


def _within(limit_seconds: int, name: str, partitions: int, members: int) -> list[tuple[Rebalance, Rebalance]]:
    """Runs in a process of their own, as many as it finishes before it has used up its processor time."""
    ours, theirs = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.Process(target=_send_runs, args=(theirs, limit_seconds, name, partitions, members))
    process.start()
    theirs.close()
    runs: list[tuple[Rebalance, Rebalance]] = []
    with contextlib.suppress(EOFError):
        while len(runs) < RUNS:
            runs.append(ours.recv())
    process.join()
    return runs


def _send_runs(pipe: Connection, limit_seconds: int, name: str, partitions: int, members: int) -> None:
    # A limit by the clock would say more of what else the machine does. The system ends who exceeds this one.
    used = int(time.process_time())
    resource.setrlimit(resource.RLIMIT_CPU, (used + limit_seconds, used + limit_seconds + 1))
    for _ in range(RUNS):
        pipe.send(measured(name, partitions, members))


def _cells(runs: Sequence[tuple[Rebalance, Rebalance]], limit_seconds: int) -> tuple[str, ...]:
    if not runs:
        return (f"not finished in {limit_seconds} s",)
    first, second = runs[0]
    times = ([one.seconds for one in phase] for phase in zip(*runs, strict=True))
    return (*map(_spread, times), f"{first.cross_rack:,}", str(first.spread), f"{second.moved:,}")


def _spread(seconds: Sequence[float]) -> str:
    return f"{statistics.median(seconds):.3f} s ({min(seconds):.3f} to {max(seconds):.3f})"


def _row(*cells: str) -> None:
    print("  ".join(f"{cell:<28}" for cell in cells).rstrip())


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
