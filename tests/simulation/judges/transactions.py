"""What clients of transactions rely on, judged by responses that leave brokers, by what readers are given, and by the logs.

TX1 atomicity: of a transaction all records are visible in all partitions and its offsets are committed in the group, or
    nothing of it. Nothing of one whose commit was never requested, or whose abort was acknowledged.
TX2 a commit that was acknowledged stands: all of it is visible in the end. What a reader was given stays where it was.
TX3 the records of one incarnation are visible in the order in which it wrote them, none twice.
TX4 no transaction of an incarnation commits if its commit was first requested after a newer incarnation was let in.
TX5 after everything healed no transaction is open, readers reach the end of every log, and every transactional id
    commits again.
TX6 a fetch that waits is woken by what it waits for: when its time is over there is nothing that it could have had before.

Visible is what the log of the leader in office says: batches by their producer, up to the producer's next marker. It is
read here anew. What read_committed readers were given is compared with it, so the last stable offset and the index of
aborted transactions, which the code under test keeps, are judged and not used.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from rackspan.cluster.core.batch import Marker, RecordBatch
from rackspan.cluster.core.broker import ClientFetch, FetchRead, Isolation
from rackspan.model.ids import TopicPartition
from tests.simulation.judges.evidence import Evidence, Violation


@dataclass(eq=False, slots=True)
class Incarnation:
    """One process under a transactional id. `epoch`: with which it was let in, -1 before.

    `fenced_at`: the event at which another was let in with a greater one.
    """

    transactional_id: str
    number: int
    epoch: int = -1
    fenced_at: int | None = None

    def __str__(self) -> str:
        return f"{self.transactional_id}#{self.number}"


class Outcome(Enum):
    """How a transaction ended, as far as its client has learnt."""

    UNKNOWN = "unknown"
    COMMITTED = "committed"
    ABORTED = "aborted"


@dataclass(eq=False, slots=True)
class Written:
    """One transaction as its client has it. `commit_at`: the event at which a request to commit first reached a broker."""

    number: int
    incarnation: Incarnation
    records: dict[TopicPartition, list[int]] = field(default_factory=dict)
    offsets: bool = False
    commit_requested: bool = False
    commit_at: int | None = None
    outcome: Outcome = Outcome.UNKNOWN

    def __str__(self) -> str:
        return f"transaction {self.number} of {self.incarnation}"


class _Record(NamedTuple):
    offset: int
    number: int
    visible: bool


@dataclass(slots=True)
class _Log:
    """A log as its batches and markers alone say. `open`: producers whose last transaction there has no marker yet.

    `visible` and `undecided` are records; one that is neither was aborted.
    """

    records: list[_Record]
    open: set[int]
    visible: set[int]
    undecided: set[int]

    @classmethod
    def of(cls, batches: Sequence[RecordBatch]) -> "_Log":
        markers = _next_markers(batches)
        records = [
            _Record(batch.base_offset + index, batch.max_timestamp + index, marker is Marker.COMMIT)
            for batch, marker in zip(batches, markers, strict=True)
            if not batch.control
            for index in range(batch.record_count)
        ]
        undecided = [
            batch
            for batch, marker in zip(batches, markers, strict=True)
            if batch.transactional and not batch.control and marker is None
        ]
        return cls(
            records,
            {batch.producer_id for batch in undecided},
            {record.number for record in records if record.visible},
            {batch.max_timestamp + index for batch in undecided for index in range(batch.record_count)},
        )


def _next_markers(batches: Sequence[RecordBatch]) -> list[Marker | None]:
    """Of each batch, the marker that its producer's transaction ends with."""
    found: list[Marker | None] = []
    following: dict[int, Marker] = {}
    for batch in reversed(batches):
        if batch.marker is not None:
            following[batch.producer_id] = batch.marker
        found.append(following.get(batch.producer_id) if batch.transactional else Marker.COMMIT)
    return found[::-1]


@dataclass(slots=True)
class TransactionRules:
    """Judges one run."""

    evidence: Evidence
    transactions: list[Written] = field(default_factory=list)
    count: int = 0
    _of_record: dict[int, Written] = field(default_factory=dict)
    _ends: dict[tuple[int, int], Written] = field(default_factory=dict)
    """The transaction that a producer id and epoch is about to commit."""
    _newest: dict[str, list[Incarnation]] = field(default_factory=dict)
    _given: dict[tuple[int, Isolation, TopicPartition], list[tuple[int, int]]] = field(default_factory=dict)
    """By reader and partition, (offset, record) in the order in which its application was given them."""
    _shown: set[int] = field(default_factory=set)
    """Transactions whose offsets the coordinator in office has given to a client."""
    _committed_at: dict[str, int] = field(default_factory=dict)
    """By transactional id, the event of the last acknowledged commit."""

    # Clients.

    def incarnation(self, transactional_id: str) -> Incarnation:
        """A new process begins under this id."""
        known = self._newest.setdefault(transactional_id, [])
        known.append(Incarnation(transactional_id, len(known)))
        return known[-1]

    def is_newest(self, incarnation: Incarnation) -> bool:
        return self._newest[incarnation.transactional_id][-1] is incarnation

    def let_in(self, incarnation: Incarnation, epoch: int, *, recovering: bool) -> None:
        """InitProducerId succeeded: the response leaves the coordinator. `recovering`: it named the epoch it had."""
        others = [each for each in self._newest[incarnation.transactional_id] if each is not incarnation]
        if recovering and incarnation.fenced_at is not None and epoch > max(each.epoch for each in others):
            self._break("TX4", f"{incarnation} is let in again with epoch {epoch}, and a newer incarnation had been")
        incarnation.epoch, incarnation.fenced_at = epoch, None
        for other in others:
            if other.epoch > epoch:
                incarnation.fenced_at = self.evidence.event
            elif other.epoch >= 0 and other.fenced_at is None:
                other.fenced_at = self.evidence.event

    def begins(self, incarnation: Incarnation) -> Written:
        written = Written(len(self.transactions), incarnation)
        self.transactions.append(written)
        return written

    def writes(self, written: Written, partition: TopicPartition, records: Iterable[int]) -> None:
        numbers = list(records)
        written.records.setdefault(partition, []).extend(numbers)
        self._of_record.update(dict.fromkeys(numbers, written))

    def sends_offsets(self, written: Written) -> None:
        written.offsets = True

    def ends(self, written: Written, producer: tuple[int, int], *, commit: bool) -> None:
        """The client is about to request the end, having had every write acknowledged where it commits."""
        if commit:
            written.commit_requested = True
            self._ends[producer] = written

    def commit_arrives(self, producer: tuple[int, int]) -> None:
        """A request to commit reaches a broker."""
        written = self._ends.get(producer)
        if written is not None and written.commit_at is None:
            written.commit_at = self.evidence.event

    def acknowledged(self, written: Written, *, commit: bool) -> None:
        """The client has the response."""
        written.outcome = Outcome.COMMITTED if commit else Outcome.ABORTED
        if commit:
            self.count += 1
            self._committed_at[written.incarnation.transactional_id] = self.evidence.event
            self._not_fenced(written)

    def _not_fenced(self, written: Written) -> None:
        fenced_at = written.incarnation.fenced_at
        if fenced_at is not None and written.commit_at is not None and written.commit_at > fenced_at:
            self._break("TX4", f"{written} commits, and a newer incarnation was let in before that was requested")

    # Readers.

    def reads(self, reader: int, isolation: Isolation, partition: TopicPartition, batch: RecordBatch) -> None:
        """A reader's application is given a batch."""
        given = self._given.setdefault((reader, isolation, partition), [])
        for index in range(batch.record_count):
            record = batch.max_timestamp + index
            given.append((batch.base_offset + index, record))
            written = self._of_record[record]
            if isolation is Isolation.READ_COMMITTED and not written.commit_requested:
                self._break("TX1", f"{partition} shows record {record} of {written}, whose commit nobody has requested")

    def wait_ended(self, fetch: ClientFetch, read: FetchRead) -> None:
        """The time of a fetch that waits is over, and this is what its broker has for it."""
        if read.size_bytes >= fetch.min_bytes:
            where = fetch.partitions[0]
            self._break("TX6", f"a fetch of {where.partition} from {where.offset} on waited though there was something")

    def shows_offsets(self, numbers: Iterable[int]) -> None:
        """The group coordinator in office gives a client these transactions' offsets."""
        for number in numbers:
            written = self.transactions[number]
            if not written.commit_requested:
                self._break("TX1", f"the group shows the offset of {written}, whose commit nobody has requested")
            self._shown.add(number)

    # The end.

    def settled(
        self,
        logs: Mapping[TopicPartition, Sequence[RecordBatch]],
        offsets: set[int] | None,
        undecided_offsets: set[int],
    ) -> None:
        """`logs` of the leaders in office, of partitions that have one.

        `offsets` are the transactions whose offsets the group has, None where nobody coordinates it; `undecided_offsets`
        those it holds back. A partition that cannot be written to may lack its markers in the end.
        """
        read = {partition: _Log.of(batches) for partition, batches in logs.items()}
        for written in self.transactions:
            self._all_or_nothing(written, read, offsets, undecided_offsets)
        for partition, log in read.items():
            self._in_order(partition, log)
        for (reader, isolation, partition), given in self._given.items():
            if partition in read:
                self._given_as_it_is(f"reader {reader} of {partition}", given, _readable(read[partition], isolation))
        if offsets is not None and not self._shown <= offsets:
            gone = self.transactions[min(self._shown - offsets)]
            self._break("TX2", f"the group does not have the offset of {gone} any more, which it has shown")

    def _all_or_nothing(
        self,
        written: Written,
        logs: Mapping[TopicPartition, _Log],
        offsets: set[int] | None,
        undecided_offsets: set[int],
    ) -> None:
        parts = {
            f"record {record} in {partition}": record in logs[partition].visible
            for partition, records in written.records.items()
            if partition in logs
            for record in records
            if record not in logs[partition].undecided
        }
        if written.offsets and offsets is not None and written.number not in undecided_offsets:
            parts["its offset"] = written.number in offsets
        shown = [part for part, visible in parts.items() if visible]
        hidden = [part for part, visible in parts.items() if not visible]
        if shown and (not written.commit_requested or written.outcome is Outcome.ABORTED):
            self._break("TX1", f"{written} was not to commit, and {shown[0]} is visible")
        if hidden and written.outcome is Outcome.COMMITTED:
            self._break("TX2", f"{written} was committed, and {hidden[0]} is not visible")
        if shown and hidden:
            self._break("TX1", f"of {written}, {shown[0]} is visible and {hidden[0]} is not")
        if shown:
            self._not_fenced(written)

    def _in_order(self, partition: TopicPartition, log: _Log) -> None:
        last: dict[Incarnation, int] = {}
        for record in log.records:
            if not record.visible:
                continue
            incarnation = self._of_record[record.number].incarnation
            before = last.get(incarnation, -1)
            if record.number <= before:
                self._break("TX3", f"{partition} shows record {record.number} of {incarnation} after record {before}")
            last[incarnation] = record.number

    def _given_as_it_is(self, reader: str, given: list[tuple[int, int]], readable: list[tuple[int, int]]) -> None:
        """A reader from the first record on was given the first of those that are readable now, and no others."""
        for index, each in enumerate(given):
            known = readable[index] if index < len(readable) else None
            if each != known:
                self._break("TX2", f"{reader} was given (offset, record) {each}, where there is {known}")

    def finished(
        self, healed_at: int, partitions: Mapping[TopicPartition, Sequence[RecordBatch]], undecided_offsets: set[int]
    ) -> None:
        """TX5, where every partition can be written to in the end; `partitions` with the logs of their leaders."""
        if undecided_offsets:
            self._break(
                "TX5", f"the group holds back the offset of {self.transactions[min(undecided_offsets)]} for ever"
            )
        for partition, batches in partitions.items():
            log = _Log.of(batches)
            if log.open:
                self._break("TX5", f"the transactions of producers {sorted(log.open)} never end in {partition}")
            for (reader, isolation, of), given in self._given.items():
                left = len(_readable(log, isolation)) - len(given)
                if of == partition and left:
                    self._break("TX5", f"reader {reader} never reads the last {left} records of {partition}")
        for transactional_id in self._newest:
            if self._committed_at.get(transactional_id, -1) < healed_at:
                self._break("TX5", f"{transactional_id} does not commit after everything healed")

    def _break(self, rule: str, text: str) -> None:
        raise Violation(rule, self.evidence.event, text)


def _readable(log: _Log, isolation: Isolation) -> list[tuple[int, int]]:
    """(offset, record) of what a reader may be given, in order."""
    every = isolation is Isolation.READ_UNCOMMITTED
    return [(record.offset, record.number) for record in log.records if every or record.visible]
