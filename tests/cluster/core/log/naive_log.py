"""A log as a plain list of records, where every read walks the list. Shares no code with the log under test."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Record:
    offset: int
    epoch: int
    producer: int
    producer_epoch: int
    sequence: int
    base: int
    """Offset of the first record of its batch."""
    transactional: bool = False
    marker: str = ""


@dataclass
class NaiveLog:
    """`deleted` is what stood below the start: producers are remembered beyond it, records are not."""

    start: int = 0
    end: int = 0
    records: list[Record] = field(default_factory=list)
    deleted: list[Record] = field(default_factory=list)
    epoch_of_the_empty: int | None = None
    """The last epoch of a log from which everything was deleted; Kafka keeps it until something is appended."""

    def append(self, records: list[Record]) -> None:
        self.epoch_of_the_empty = None
        self.records.extend(records)
        self.end = records[-1].offset + 1

    def truncate(self, offset: int) -> None:
        if offset >= self.end:
            self.epoch_of_the_empty = None if offset == self.end else self.epoch_of_the_empty
            return
        if offset < self.start:
            self.restart(offset)
            return
        cut = {record.base for record in self.records if record.offset >= offset}
        self.records = [record for record in self.records if record.base not in cut]
        self.end = max(self.start, min([offset, *cut]))
        self.epoch_of_the_empty = None

    def delete(self, offset: int) -> None:
        if offset > self.end:
            self.restart(offset)
        elif offset > self.start:
            kept = {record.base for record in self.records if record.offset >= offset}
            self.deleted += [record for record in self.records if record.base not in kept]
            self.records = [record for record in self.records if record.base in kept]
            self.start = offset
            if not self.records:
                self.epoch_of_the_empty = self.deleted[-1].epoch

    def restart(self, offset: int) -> None:
        self.records, self.deleted = [], []
        self.epoch_of_the_empty = None
        self.start = self.end = offset

    def epochs(self) -> list[tuple[int, int]]:
        firsts: dict[int, int] = {}
        for record in self.records:
            firsts.setdefault(record.epoch, max(record.offset, self.start))
        return list(firsts.items()) if self.epoch_of_the_empty is None else [(self.epoch_of_the_empty, self.start)]

    def batches_of(self, producer: int) -> list[list[Record]]:
        """The last five numbered batches of a producer, in its latest epoch."""
        mine = [record for record in self.deleted + self.records if record.producer == producer]
        if not mine:
            return []
        latest = mine[-1].producer_epoch
        bases = dict.fromkeys(record.base for record in mine if record.producer_epoch == latest and not record.marker)
        return [[record for record in mine if record.base == base] for base in bases][-5:]

    def producer_epoch(self, producer: int) -> int | None:
        mine = [record.producer_epoch for record in self.deleted + self.records if record.producer == producer]
        return mine[-1] if mine else None

    def transactions(self, producer: int) -> list[tuple[int, int | None, str]]:
        """(first offset, marker's offset or None, marker) of each of its transactions."""
        found: list[tuple[int, int | None, str]] = []
        start: int | None = None
        for record in (one for one in self.deleted + self.records if one.producer == producer):
            if record.marker and start is not None:
                found.append((start, record.offset, record.marker))
                start = None
            elif record.transactional and not record.marker and start is None:
                start = record.base
        return [*found, (start, None, "")] if start is not None else found
