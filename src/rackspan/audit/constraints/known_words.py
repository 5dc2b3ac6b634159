"""Findings about partitions as columns: their words are made once for all partitions of which they are the same.

Constraints: the words are those that `PartitionConstraint.finding` makes of each row. Goal: few words are made; making them takes
longer than everything else. Method: a key of whole numbers has all that the words of a row follow from: the constraint, the row's
own columns, what is required of it, and what its topic has besides; with the topic's name if words read it. Bound: two look-ups
in dictionaries for each finding. Source: our own. Test: tests/audit/constraints/test_known_words.py.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Final, NamedTuple, TypeAlias, overload

import numpy as np

from rackspan.audit.batch import ClusterMembers, PartitionBatch, Requirements
from rackspan.audit.constraints.constraint import SEVERITIES, PartitionConstraint
from rackspan.audit.findings import Finding, PlanCommand, Severity, in_order, plan_of, repair_rank
from rackspan.audit.policy import RackPolicy
from rackspan.model import Bools, Broker, Controller, Int32s, Int64s
from rackspan.model.partitions import BROKER_LISTS

WORDS_KEPT_MAX: Final = 100_000
"""Some 60 MB."""

Registrations: TypeAlias = tuple[tuple[Broker, ...], tuple[Controller, ...]]


class Words(NamedTuple):
    """What a finding says of a partition."""

    reason: str
    remedy: str
    plan: PlanCommand | None


@dataclass(frozen=True, eq=False)
class FindingColumns:
    """Findings about partitions of one batch, a constraint and a row of the batch in each. Their words are made when they are read.

    `constraint` (N,) is an index into `constraints`, `rows` (N,).
    """

    batch: PartitionBatch
    constraints: Sequence[PartitionConstraint]
    constraint: Int64s
    rows: Int64s
    known: "KnownWords"

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Finding]:
        names, topics = self.names, self.batch.topics
        columns = (
            *(self.constraint.tolist(), self.warns.tolist()),
            *(self.batch.rows.topic[self.rows].tolist(), self.batch.rows.partition[self.rows].tolist()),
        )
        for words, constraint, warns, topic, partition in zip(self.words, *columns, strict=True):
            reason, remedy, plan = words
            yield Finding(names[constraint], SEVERITIES[warns], reason, remedy, topics[topic], partition, plan)

    @property
    def names(self) -> list[str]:
        """The names of `constraints`."""
        return [constraint.name for constraint in self.constraints]

    @cached_property
    def warns(self) -> Bools:
        """Which findings are warnings. Shape (N,)."""
        warns = np.zeros(len(self), dtype=np.bool_)
        for constraint, places in self._by_constraint():
            warns[places] = constraint.warns(self.batch, self.rows[places])
        return warns

    @cached_property
    def words(self) -> list[Words]:
        """The words of each finding."""
        words: dict[int, Words] = {}
        for constraint, places in self._by_constraint():
            words.update(zip(places.tolist(), self.known.of(self.batch, constraint, self.rows[places]), strict=True))
        return [words[place] for place in range(len(self))]

    @property
    def counts(self) -> Counter[tuple[Severity, str]]:
        """How many findings there are of each severity and constraint."""
        kinds, counts = np.unique(self.constraint * len(SEVERITIES) + self.warns, return_counts=True)
        severities, names = [SEVERITIES[kind % len(SEVERITIES)] for kind in kinds], self.names
        constraints = [names[kind // len(SEVERITIES)] for kind in kinds]
        return Counter(dict(zip(zip(severities, constraints, strict=True), counts.tolist(), strict=True)))

    def of(self, names: Set[str]) -> "FindingColumns":
        """The findings of the constraints with these names."""
        return self.take(np.array([name in names for name in self.names])[self.constraint])

    def take(self, findings: Int64s | Bools) -> "FindingColumns":
        """The findings selected by a mask or by indices, in that order."""
        return replace(self, constraint=self.constraint[findings], rows=self.rows[findings])

    def _by_constraint(self) -> Iterator[tuple[PartitionConstraint, Int64s]]:
        """Each constraint that has findings, with their places."""
        for code in np.unique(self.constraint).tolist():
            yield self.constraints[code], np.flatnonzero(self.constraint == code)


class Findings(Sequence[Finding]):
    """Findings about the partitions of a snapshot, and about all else, in the order of `in_order`. Equal to a list of the same.

    `counts`: how many there are of each severity and constraint. Words about partitions are made when a finding is read, and
    not for that.
    """

    def __init__(self, columns: FindingColumns, others: Iterable[Finding]) -> None:
        others = in_order(others)
        self.counts = columns.counts + Counter((other.severity, other.constraint) for other in others)
        found = sorted({constraint for _, constraint in self.counts}, key=repair_rank)
        ranks = {constraint: rank for rank, constraint in enumerate(found)}
        # Topics of a snapshot are in the order of their names. What differs in its reason only is in order among the others.
        codes: dict[str | None, int] = {None: -1, **{name: code for code, name in enumerate(columns.batch.topics)}}
        of_others = [
            (
                *(-1 if other.partition is None else other.partition, codes[other.topic]),
                *(ranks[other.constraint], other.severity is Severity.WARNING),
            )
            for other in others
        ]
        rows = columns.batch.rows
        of_columns = (
            *(rows.partition[columns.rows], rows.topic[columns.rows]),
            *(np.array([ranks.get(name, -1) for name in columns.names])[columns.constraint], columns.warns),
        )
        keys = np.hstack([of_columns, np.array(of_others, dtype=np.int64).reshape(-1, len(of_columns)).T])
        self._columns, self._places = columns, np.lexsort(keys)
        made = [*(None for _ in range(len(columns))), *others]
        self._made: list[Finding | None] = [made[place] for place in self._places.tolist()]

    def __len__(self) -> int:
        return len(self._made)

    @overload
    def __getitem__(self, index: int) -> Finding: ...

    @overload
    def __getitem__(self, index: slice) -> list[Finding]: ...

    def __getitem__(self, index: int | slice) -> Finding | list[Finding]:
        chosen = range(len(self))[index]
        if isinstance(chosen, range):
            return self._read(chosen)
        return self._read(range(chosen, chosen + 1))[0]

    def __iter__(self) -> Iterator[Finding]:
        return iter(self[:])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Findings | list) and list(self) == list(other)

    def __repr__(self) -> str:
        return repr(list(self))

    def _read(self, positions: range) -> list[Finding]:
        unmade = [position for position in positions if self._made[position] is None]
        for position, finding in zip(unmade, self._columns.take(self._places[unmade]), strict=True):
            self._made[position] = finding
        return [finding for finding in map(self._made.__getitem__, positions) if finding is not None]


class KnownWords:
    """The words that were made so far, of whichever cluster and snapshot; forgotten where there are too many."""

    def __init__(self) -> None:
        self._words: dict[bytes, Words | None] = {}
        """None where words name the topic: then they are in `_naming`."""
        self._naming: dict[tuple[bytes, str], Words] = {}
        self._distinct: dict[Words, Words] = {}
        self._members: dict[Registrations, list[tuple[RackPolicy, int]]] = {}
        self._cases: dict[tuple[object, ...], int] = {}

    @property
    def kept(self) -> int:
        """How many words are kept."""
        return len(self._words) + len(self._naming)

    def of(self, batch: PartitionBatch, constraint: PartitionConstraint, rows: Int64s) -> list[Words]:
        """The words of one constraint for each of these rows, which break it."""
        if self.kept > WORDS_KEPT_MAX:
            for kept in (self._words, self._naming, self._distinct, self._members, self._cases):
                kept.clear()
        keys = self._keys(batch, constraint, rows)
        topics = list(map(batch.topics.__getitem__, batch.rows.topic[rows].tolist()))
        new = {key: row for key, row in zip(keys, rows.tolist(), strict=True) if key not in self._words}
        batch.keep(np.array(list(new.values()), dtype=np.int64))
        return [
            self._words.get(key) or self._naming.get((key, topic)) or self._made(batch, constraint, row, key, topic)
            for key, topic, row in zip(keys, topics, rows.tolist(), strict=True)
        ]

    def _made(self, batch: PartitionBatch, constraint: PartitionConstraint, row: int, key: bytes, topic: str) -> Words:
        batch.named.discard(row)
        remedy = constraint.remedy(batch, row)
        made = Words(constraint.reason(batch, row), str(remedy), plan_of(remedy))
        made = self._distinct.setdefault(made, made)
        if row in batch.named:
            self._words[key], self._naming[key, topic] = None, made
        else:
            self._words[key] = made
        return made

    def _keys(self, batch: PartitionBatch, constraint: PartitionConstraint, rows: Int64s) -> list[bytes]:
        """Equal for two rows only if the words of both follow from the same."""
        lists = [getattr(batch.rows, name)[rows] for name in BROKER_LISTS]
        topic = batch.rows.topic[rows]
        columns = [
            self._topics(batch, constraint, topic, tuple(matrix.shape[1] for matrix in lists)),
            batch.rows.leader[rows],
            batch.topic_replication_factor[topic],
            *(getattr(batch.required, column.name)[rows] for column in fields(Requirements)),
            *(column for matrix in lists for column in matrix.T),
        ]
        key = np.empty((len(rows), len(columns)), dtype=np.int64)
        for place, column in enumerate(columns):
            key[:, place] = column
        packed: list[bytes] = key.view(np.dtype((np.void, key.itemsize * key.shape[1])))[:, 0].tolist()
        return packed

    def _topics(
        self, batch: PartitionBatch, constraint: PartitionConstraint, topic: Int32s, widths: tuple[int, ...]
    ) -> Int64s:
        """A number for what all rows of a topic have in common, but for its name and what is in columns. Shape (rows,)."""
        members, (codes, place) = self._number(batch.members), np.unique(topic, return_inverse=True)
        cases = ((members, constraint.name, widths, constraint.of_topic(batch, code)) for code in codes.tolist())
        number = [self._cases.setdefault(case, len(self._cases)) for case in cases]
        return np.array(number, dtype=np.int64)[place]

    def _number(self, members: ClusterMembers) -> int:
        """The number of a cluster's brokers, controllers and policy, which can be compared, and not hashed."""
        policies = self._members.setdefault((members.brokers, members.controllers), [])
        for policy, number in policies:
            if policy == members.policy:
                return number
        number = sum(map(len, self._members.values()))
        policies.append((members.policy, number))
        return number
