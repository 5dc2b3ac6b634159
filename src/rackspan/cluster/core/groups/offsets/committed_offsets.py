"""The offsets of one group: committed, on their way into the log, and inside transactions that have not ended.

Invariant: `committed` is what reading the log from its start would give. An offset of a transaction counts from the place
of its own record, not of the marker: a plain commit made in between stands (Kafka's olderThan, which compaction relies on).
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from rackspan.cluster.core.groups.records import OffsetCommitValue
from rackspan.model.ids import TopicPartition


class LoggedOffset(NamedTuple):
    value: OffsetCommitValue
    record_offset: int


@dataclass(slots=True)
class Offsets:
    committed: dict[TopicPartition, LoggedOffset] = field(default_factory=dict)
    in_transactions: dict[int, dict[TopicPartition, LoggedOffset]] = field(default_factory=dict)
    on_their_way: Counter[TopicPartition] = field(default_factory=Counter)

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

    def forget(self, partitions: Iterable[TopicPartition]) -> None:
        for partition in partitions:
            self.committed.pop(partition, None)
            for pending in self.in_transactions.values():
                pending.pop(partition, None)

    def unstable(self, partition: TopicPartition) -> bool:
        """Whether what a fetch would answer may be overtaken by something already said (KIP-447)."""
        return self.on_their_way[partition] > 0 or any(partition in each for each in self.in_transactions.values())

    def sent(self, partitions: Iterable[TopicPartition]) -> None:
        # A list, for a Counter given a mapping takes its values for counts.
        self.on_their_way.update(list(partitions))

    def arrived(self, partitions: Iterable[TopicPartition]) -> None:
        self.on_their_way.subtract(list(partitions))
        self.on_their_way = +self.on_their_way

    def values(self) -> Mapping[TopicPartition, OffsetCommitValue]:
        return {partition: logged.value for partition, logged in self.committed.items()}

    @property
    def empty(self) -> bool:
        return not (self.committed or self.in_transactions or self.on_their_way)
