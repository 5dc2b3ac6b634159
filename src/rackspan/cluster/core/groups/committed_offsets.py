"""The offsets of one group: committed, being appended, and pending in transactions that have not ended.

Invariant: `committed` is what replaying the log from its start would give. An offset of a transaction has the position of
its own record, not of the marker: a plain commit made in between wins (Kafka's olderThan, which compaction relies on).
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from rackspan.cluster.core.groups.records import OffsetCommitValue
from rackspan.model.ids import TopicPartition


class LoggedOffset(NamedTuple):
    """A committed offset and the log offset of its record."""

    value: OffsetCommitValue
    record_offset: int


@dataclass(slots=True)
class Offsets:
    """`in_transactions` by producer id; `in_flight` counts appends that are not acknowledged yet."""

    committed: dict[TopicPartition, LoggedOffset] = field(default_factory=dict)
    in_transactions: dict[int, dict[TopicPartition, LoggedOffset]] = field(default_factory=dict)
    in_flight: Counter[TopicPartition] = field(default_factory=Counter)

    def store(self, partition: TopicPartition, value: OffsetCommitValue, record_offset: int) -> None:
        known = self.committed.get(partition)
        if known is None or known.record_offset < record_offset:
            self.committed[partition] = LoggedOffset(value, record_offset)

    def store_in_transaction(
        self, producer_id: int, partition: TopicPartition, value: OffsetCommitValue, record_offset: int
    ) -> None:
        self.in_transactions.setdefault(producer_id, {})[partition] = LoggedOffset(value, record_offset)

    def end_transaction(self, producer_id: int, committed: bool) -> None:
        for partition, logged in self.in_transactions.pop(producer_id, {}).items():
            if committed:
                self.store(partition, *logged)

    def delete(self, partitions: Iterable[TopicPartition]) -> None:
        for partition in partitions:
            self.committed.pop(partition, None)
            for pending in self.in_transactions.values():
                pending.pop(partition, None)

    def unstable(self, partition: TopicPartition) -> bool:
        """Whether a newer offset is being appended or pending in a transaction (KIP-447)."""
        return self.in_flight[partition] > 0 or any(partition in each for each in self.in_transactions.values())

    def append_began(self, partitions: Iterable[TopicPartition]) -> None:
        # A list, because a Counter takes the values of a mapping for counts.
        self.in_flight.update(list(partitions))

    def append_ended(self, partitions: Iterable[TopicPartition]) -> None:
        self.in_flight.subtract(list(partitions))
        self.in_flight = +self.in_flight

    def values(self) -> Mapping[TopicPartition, OffsetCommitValue]:
        return {partition: logged.value for partition, logged in self.committed.items()}

    @property
    def empty(self) -> bool:
        return not (self.committed or self.in_transactions or self.in_flight)
