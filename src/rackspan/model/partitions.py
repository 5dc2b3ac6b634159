"""Partitions as columns: a snapshot of 1,000,000 partitions is eight arrays, never a million objects.

Rows are views made on demand. Lists of broker ids are matrices padded on the right with NO_BROKER.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import chain
from typing import Final, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from rackspan.model.ids import NO_BROKER

Int32s: TypeAlias = npt.NDArray[np.int32]
Int64s: TypeAlias = npt.NDArray[np.int64]
Bools: TypeAlias = npt.NDArray[np.bool_]
SelectedRows: TypeAlias = Int64s | Bools
"""Indices, or a mask."""

Integer = TypeVar("Integer", np.int32, np.int64)

UNKNOWN_SIZE = -1
"""In `size_bytes`: the size of the partition is not known."""

BROKER_LISTS: Final = ("replicas", "isr", "adding_replicas", "removing_replicas", "offline_replicas")
"""The columns of PartitionColumns that are lists of broker ids."""

ROWS_AT_ONCE: Final = 10_000
"""Rows that an iteration makes into Python numbers together."""

EXCHANGED_COLUMNS_MAX: Final = 6
"""The widest rows that are sorted by exchanges; NumPy sorts wider ones sooner."""


@dataclass(frozen=True, slots=True)
class Partition:
    """One row of PartitionColumns, for messages and documents. `topic` is the code of the topic within its snapshot."""

    topic: int
    partition: int
    leader: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    adding_replicas: tuple[int, ...]
    removing_replicas: tuple[int, ...]
    size_bytes: int | None
    offline_replicas: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class PartitionColumns:
    """P partitions.

    Shapes: `topic`, `partition`, `leader`, `size_bytes` are (P,); `replicas` is (P, largest replication factor), `isr`,
    `adding_replicas`, `removing_replicas` and `offline_replicas` are (P, as wide as needed), padded with NO_BROKER. `topic` is an index
    into the snapshot's topics. `leader` is NO_BROKER if there is none, UNKNOWN_LEADER if it was not reported. The first replica is the preferred
    leader. `offline_replicas` are in a log directory that has failed while their broker is up. `size_bytes` is the largest
    replica's log, or UNKNOWN_SIZE.
    """

    topic: Int32s
    partition: Int32s
    leader: Int32s
    replicas: Int32s
    isr: Int32s
    adding_replicas: Int32s
    removing_replicas: Int32s
    offline_replicas: Int32s
    size_bytes: Int64s

    def __post_init__(self) -> None:
        for field in fields(self):
            getattr(self, field.name).setflags(write=False)

    def __len__(self) -> int:
        return len(self.topic)

    def row(self, index: int) -> Partition:
        size = int(self.size_bytes[index])
        return Partition(
            topic=int(self.topic[index]),
            partition=int(self.partition[index]),
            leader=int(self.leader[index]),
            replicas=unpadded(self.replicas[index]),
            isr=unpadded(self.isr[index]),
            adding_replicas=unpadded(self.adding_replicas[index]),
            removing_replicas=unpadded(self.removing_replicas[index]),
            offline_replicas=unpadded(self.offline_replicas[index]),
            size_bytes=None if size == UNKNOWN_SIZE else size,
        )

    def __iter__(self) -> Iterator[Partition]:
        # Lists of Python numbers are made of many rows at once, which takes a quarter of the time.
        for first in range(0, len(self), ROWS_AT_ONCE):
            rows = (getattr(self, field.name)[first : first + ROWS_AT_ONCE].tolist() for field in fields(self))
            for topic, partition, leader, *lists, size in zip(*rows, strict=True):
                replicas, isr, adding, removing, offline = map(_present, lists)
                known = None if size == UNKNOWN_SIZE else size
                yield Partition(topic, partition, leader, replicas, isr, adding, removing, known, offline)

    def take(self, rows: SelectedRows) -> "PartitionColumns":
        """The rows selected by a mask or by indices, in that order."""
        return PartitionColumns(**{field.name: getattr(self, field.name)[rows] for field in fields(self)})

    def same_as(self, other: "PartitionColumns") -> bool:
        """Equal row for row, whatever the padding's width."""
        return len(self) == len(other) and all(
            _same(getattr(self, field.name), getattr(other, field.name)) for field in fields(self)
        )


def columns(
    *,
    topic: Sequence[int],
    partition: Sequence[int],
    leader: Sequence[int],
    replicas: Sequence[Sequence[int]],
    isr: Sequence[Sequence[int]],
    adding_replicas: Sequence[Sequence[int]] | None = None,
    removing_replicas: Sequence[Sequence[int]] | None = None,
    offline_replicas: Sequence[Sequence[int]] | None = None,
    size_bytes: Sequence[int] | None = None,
) -> PartitionColumns:
    """Columns from plain lists, one entry a partition."""
    none: Sequence[Sequence[int]] = [()] * len(topic)
    unknown = [UNKNOWN_SIZE] * len(topic)
    return PartitionColumns(
        topic=np.array(topic, dtype=np.int32),
        partition=np.array(partition, dtype=np.int32),
        leader=np.array(leader, dtype=np.int32),
        replicas=padded_lists(replicas),
        isr=padded_lists(isr),
        adding_replicas=padded_lists(none if adding_replicas is None else adding_replicas),
        removing_replicas=padded_lists(none if removing_replicas is None else removing_replicas),
        offline_replicas=padded_lists(none if offline_replicas is None else offline_replicas),
        size_bytes=np.array(unknown if size_bytes is None else size_bytes, dtype=np.int64),
    )


def unpadded(row: Int32s) -> tuple[int, ...]:
    """The entries of a row."""
    return _present(row.tolist())


def unpadded_rows(matrix: Int32s) -> list[tuple[int, ...]]:
    """Every row without its padding, in a tenth of the time of `unpadded` for each."""
    return [_present(row) for row in matrix.tolist()]


def lengths(matrix: Int32s) -> Int64s:
    """How many entries of each row are not padding. Shape (P,)."""
    return count_in_row(matrix != NO_BROKER)


def any_in_row(mask: Bools) -> Bools:
    """Which rows have a True. Column by column, since NumPy's reduction over three columns takes ten times as long."""
    rows = np.zeros(len(mask), dtype=np.bool_)
    for column in mask.T:
        rows |= column
    return rows


def any_outside(some: Int32s, others: Int32s) -> Bools:
    """Rows where a broker of `some` is not in the same row of `others`, whatever their widths. Shape (P,)."""
    outside = np.zeros(len(some), dtype=np.bool_)
    for column in some.T:
        outside |= (column != NO_BROKER) & ~any_in_row(others == column[:, None])
    return outside


def listed_in(some: Int32s, others: Int32s) -> Bools:
    """Which brokers of `some` are in the same row of `others`, whatever its width. Shape as `some`."""
    listed = np.zeros(some.shape, dtype=np.bool_)
    for column in others.T:
        listed |= (some == column[:, None]) & (column != NO_BROKER)[:, None]
    return listed


def count_in_row(mask: Bools) -> Int64s:
    """How many of each row are True, column by column for the same reason."""
    counted = np.zeros(len(mask), dtype=np.int64)
    for column in mask.T:
        counted += column
    return counted


def sorted_in_row(matrix: npt.NDArray[Integer]) -> npt.NDArray[Integer]:
    """Each row ascending."""
    if not 1 < matrix.shape[1] <= EXCHANGED_COLUMNS_MAX:
        return np.sort(matrix, axis=1)
    return np.stack(sorted_columns(matrix.T.copy()), axis=1)


def sorted_columns(columns: npt.NDArray[Integer]) -> list[npt.NDArray[Integer]]:
    """The columns of a matrix (width, P) with each of its P rows ascending.

    Narrow rows are sorted by exchanges of whole columns, in a third to a tenth of the time of NumPy's sort.
    """
    if len(columns) > EXCHANGED_COLUMNS_MAX:
        return list(np.sort(columns, axis=0))
    ordered = list(columns)
    for end in range(len(ordered) - 1, 0, -1):
        for left in range(end):
            lower = np.minimum(ordered[left], ordered[left + 1])
            ordered[left], ordered[left + 1] = lower, np.maximum(ordered[left], ordered[left + 1])
    return ordered


def padded(values: Int32s, offsets: Int64s) -> Int32s:
    """Row i of the result is `values[offsets[i]:offsets[i + 1]]`, padded with NO_BROKER: Arrow's list layout as a matrix."""
    sizes = np.diff(offsets)
    width = int(sizes.max(initial=0))
    if bool((sizes == width).all()):
        # The usual case, one replication factor for all, is a reshape.
        return values[offsets[0] : offsets[-1]].reshape(len(sizes), width)
    matrix = np.full((len(sizes), width), NO_BROKER, dtype=np.int32)
    matrix[np.arange(width) < sizes[:, None]] = values[offsets[0] : offsets[-1]]
    return matrix


def flattened(matrix: npt.NDArray[Integer]) -> tuple[npt.NDArray[Integer], Int64s]:
    """The inverse of `padded`: values and offsets."""
    present = matrix != NO_BROKER
    return matrix[present], np.concatenate(([0], np.cumsum(present.sum(axis=1)))).astype(np.int64)


def padded_lists(rows: Sequence[Sequence[int]]) -> Int32s:
    offsets = np.concatenate(([0], np.cumsum([len(row) for row in rows]))).astype(np.int64)
    return padded(np.fromiter(chain.from_iterable(rows), dtype=np.int32, count=int(offsets[-1])), offsets)


def _present(brokers: list[int]) -> tuple[int, ...]:
    if NO_BROKER in brokers:
        brokers = [broker for broker in brokers if broker != NO_BROKER]
    return tuple(brokers)


def _same(mine: npt.NDArray[Integer], theirs: npt.NDArray[Integer]) -> bool:
    if mine.ndim == 1:
        return bool(np.array_equal(mine, theirs))
    (my_values, my_offsets), (their_values, their_offsets) = flattened(mine), flattened(theirs)
    return bool(np.array_equal(my_values, their_values) and np.array_equal(my_offsets, their_offsets))
