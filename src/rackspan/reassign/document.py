"""The content of a reassignment file of kafka-reassign-partitions, not yet checked."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

EMPTY: Final = "plan-empty"
"""A file without partitions: Kafka's tool refuses it, and there is nothing to do. `reassign plan` writes it where nothing is to move."""


ANY_LOG_DIR: Final = "any"
"""Kafka's word for a replica whose log directory is the broker's to choose."""


@dataclass(frozen=True, slots=True)
class ListedPartition:
    """One entry: the target replicas of a partition, preferred leader first. `log_dirs` as given, None where absent."""

    topic: str
    partition: int
    replicas: tuple[int, ...]
    log_dirs: tuple[str, ...] | None = None

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"

    @property
    def named_log_dirs(self) -> list[str]:
        """The log directories that are not the broker's to choose."""
        return [log_dir for log_dir in self.log_dirs or () if log_dir != ANY_LOG_DIR]


@dataclass(frozen=True, slots=True)
class Fault:
    """An error in a document, whatever the cluster. `constraint` names the finding that it becomes."""

    constraint: str
    topic: str | None
    partition: int | None
    reason: str


@dataclass(frozen=True, slots=True)
class ReassignmentDocument:
    """Entries in file order. `malformed`: what could not be read as an entry.

    `read_as`: in words, what of the file it is, where the file is no plain reassignment file.
    """

    partitions: tuple[ListedPartition, ...]
    malformed: tuple[Fault, ...] = ()
    read_as: str | None = None


def faults(document: ReassignmentDocument) -> Iterator[Fault]:
    """Everything wrong with the document itself, in the order and the words of Kafka's own tool where it has words.

    Source: ReassignPartitionsCommand.parseExecuteAssignmentArgs of Apache Kafka 4.
    """
    yield from document.malformed
    if not document.partitions and not document.malformed:
        yield Fault("plan-empty", None, None, "Partition reassignment list cannot be empty")
    times = Counter((entry.topic, entry.partition) for entry in document.partitions)
    for (topic, partition), count in times.items():
        if count > 1:
            why = f"Partition reassignment contains duplicate topic partitions: {topic}-{partition}"
            yield Fault("plan-duplicate-partition", topic, partition, why)
    for entry in document.partitions:
        replicas = entry.replicas
        if not replicas or min(replicas) < 0 or len({*replicas}) < len(replicas) or entry.log_dirs is not None:
            yield from _faults_of(entry)


def _faults_of(entry: ListedPartition) -> Iterator[Fault]:
    if not entry.replicas:
        yield Fault("plan-no-replicas", entry.topic, entry.partition, f"{entry.name} would have no replicas")
    negative = sorted({broker for broker in entry.replicas if broker < 0})
    if negative:
        why = f"{entry.name} names broker {negative[0]}, but an id is not negative"
        yield Fault("plan-unknown-broker", entry.topic, entry.partition, why)
    if len(set(entry.replicas)) < len(entry.replicas):
        twice = ", ".join(str(broker) for broker, count in Counter(entry.replicas).items() if count > 1)
        why = f"Partition replica lists may not contain duplicate entries: {entry.name} contains multiple entries for {twice}"
        yield Fault("plan-duplicate-replica", entry.topic, entry.partition, why)
    if entry.log_dirs is not None and len(entry.log_dirs) != len(entry.replicas):
        why = (
            f"Size of replicas list {list(entry.replicas)} is different from size of log dirs list "
            f"[{', '.join(entry.log_dirs)}] for partition {entry.name}"
        )
        yield Fault("plan-log-dirs", entry.topic, entry.partition, why)
