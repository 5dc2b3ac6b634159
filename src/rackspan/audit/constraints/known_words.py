"""Findings about partitions as columns: their words are made once for all partitions of which they are the same.

Constraints: the words are those that `PartitionConstraint.finding` makes of each row. Goal: few words are made; making them takes
longer than everything else. Method: a key of whole numbers has all that the words of a row follow from: the constraint, the row's
own columns, what is required of it, and what its topic has besides; with the topic's name if words read it. Bound: two look-ups
in dictionaries for each finding. Source: our own. Test: tests/audit/constraints/test_known_words.py.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from rackspan.audit.batch import ClusterMembers, PartitionBatch, Requirements
from rackspan.audit.constraints.constraint import PartitionConstraint
from rackspan.audit.findings import Finding, PlanCommand, Severity, plan_of
from rackspan.audit.policy import RackPolicy
from rackspan.model import Broker, Controller, Int32s, Int64s

WORDS_KEPT_MAX: Final = 100_000
"""Some 60 MB."""

Registrations: TypeAlias = tuple[tuple[Broker, ...], tuple[Controller, ...]]


class Words(NamedTuple):
    """What a finding says of a partition."""

    severity: Severity
    reason: str
    remedy: str
    plan: PlanCommand | None


@dataclass(frozen=True, slots=True)
class FindingColumns:
    """Findings about partitions of one batch. `rows` are rows of the batch; one entry a finding in each."""

    batch: PartitionBatch
    constraints: Sequence[str]
    rows: Int64s
    words: Sequence[Words]

    def __iter__(self) -> Iterator[Finding]:
        topics = self.batch.topics
        columns = self.batch.rows.topic[self.rows].tolist(), self.batch.rows.partition[self.rows].tolist()
        for constraint, topic, partition, words in zip(self.constraints, *columns, self.words, strict=True):
            yield Finding(constraint, words.severity, words.reason, words.remedy, topics[topic], partition, words.plan)


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
        made = Words(constraint.severity(batch, row), constraint.reason(batch, row), str(remedy), plan_of(remedy))
        made = self._distinct.setdefault(made, made)
        if row in batch.named:
            self._words[key], self._naming[key, topic] = None, made
        else:
            self._words[key] = made
        return made

    def _keys(self, batch: PartitionBatch, constraint: PartitionConstraint, rows: Int64s) -> list[bytes]:
        """Equal for two rows only if the words of both follow from the same."""
        lists = [
            getattr(batch.rows, name)[rows] for name in ("replicas", "isr", "adding_replicas", "removing_replicas")
        ]
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
        members, number = self._number(batch.members), np.zeros(len(batch.topics), dtype=np.int64)
        for code in np.unique(topic).tolist():
            case = (members, constraint.name, widths, constraint.of_topic(batch, code))
            number[code] = self._cases.setdefault(case, len(self._cases))
        return np.asarray(number[topic])

    def _number(self, members: ClusterMembers) -> int:
        """The number of a cluster's brokers, controllers and policy, which can be compared, and not hashed."""
        policies = self._members.setdefault((members.brokers, members.controllers), [])
        for policy, number in policies:
            if policy == members.policy:
                return number
        number = sum(map(len, self._members.values()))
        policies.append((members.policy, number))
        return number
