"""The interface of a replica placer, and the values it takes and returns (KIP-660, Public Interfaces 1 and 2).

A placer of your own needs `configure`, `place` and `close`; examples/custom_placer.py is one. `CheckedPlacer` wraps every
placer: it checks each assignment before a broker uses it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from typing import NoReturn, Protocol

import numpy as np

from rackspan.errors import ReplicaPlacementException, cause
from rackspan.model import Bools, BrokerId, Int32s
from rackspan.model.racks import DENSE_IDS_MAX
from rackspan.placement.usable_brokers import UsableBroker
from rackspan.text import count_noun


@dataclass(frozen=True, slots=True)
class PartitionAssignment:
    """The brokers holding one partition, preferred leader first."""

    replicas: tuple[BrokerId, ...]


@dataclass(frozen=True, slots=True, eq=False)
class TopicAssignment:
    """The brokers of each partition of one topic, as one array. Rows become values when they are read.

    `replicas` has shape (partitions, replication factor) and holds broker ids, preferred leader first.
    """

    replicas: Int32s

    def __post_init__(self) -> None:
        if isinstance(self.replicas, np.ndarray):
            self.replicas.setflags(write=False)

    @classmethod
    def of(cls, rows: Iterable[Sequence[int]]) -> "TopicAssignment":
        """From plain lists, one a partition. Errors: ReplicaPlacementException if they differ in length."""
        listed = list(rows)
        width = len(listed[0]) if listed else 0
        for partition, row in enumerate(listed):
            if len(row) != width:
                raise ReplicaPlacementException(
                    f"partition {partition} of the result has {count_noun(len(row), 'replica')} and partition 0 has {width}; a placer gives all the same number"
                )
        flat = np.fromiter(chain.from_iterable(listed), dtype=np.int32, count=len(listed) * width)
        return cls(flat.reshape(len(listed), width))

    def __len__(self) -> int:
        return len(self.replicas)

    def __getitem__(self, partition: int) -> PartitionAssignment:
        return PartitionAssignment(tuple(self.replicas[partition].tolist()))

    def __iter__(self) -> Iterator[PartitionAssignment]:
        return (self[partition] for partition in range(len(self)))


class ReplicaPlacer(Protocol):
    """Chooses the brokers of new partitions."""

    def configure(self, configs: Mapping[str, str]) -> None:
        """Receive all configs of the broker. They are the only input of a placer beside the arguments of `place`."""

    def place(
        self, start_partition: int, num_partitions: int, num_replicas: int, brokers: Sequence[UsableBroker]
    ) -> TopicAssignment:
        """Place partitions `start_partition` up to `start_partition + num_partitions - 1` of one topic.

        Errors: ReplicaPlacementException where no placement can be made.
        """

    def close(self) -> None:
        """Release what `configure` opened."""


@dataclass(frozen=True, slots=True)
class CheckedPlacer:
    """A placer whose assignments are checked and whose errors are all ReplicaPlacementExceptions.

    `name` is the value of `replica.placer.class.name`, which error messages repeat.
    """

    name: str
    placer: ReplicaPlacer

    def configure(self, configs: Mapping[str, str]) -> None:
        self.placer.configure(configs)

    def place(
        self, start_partition: int, num_partitions: int, num_replicas: int, brokers: Sequence[UsableBroker]
    ) -> TopicAssignment:
        try:
            assignment = self.placer.place(start_partition, num_partitions, num_replicas, brokers)
        except ReplicaPlacementException:
            raise
        except Exception as error:
            _refuse(self.name, f"failed with {cause(error)}", error)
        return checked(assignment, start_partition, num_partitions, num_replicas, brokers, self.name)

    def close(self) -> None:
        self.placer.close()


def checked(
    assignment: object,
    start_partition: int,
    num_partitions: int,
    num_replicas: int,
    brokers: Sequence[UsableBroker],
    placer: str = "the placer",
) -> TopicAssignment:
    """`assignment` itself, if it is a valid placement of so many partitions and replicas on these brokers.

    Errors: ReplicaPlacementException for a wrong type, a wrong count of partitions or replicas, a broker twice in a
    partition, or a broker that is not in `brokers`; it names a partition where this occurs.
    Cost: one lookup a replica and one comparison of every two replicas of a partition.
    """
    replicas = _matrix(assignment, placer)
    if len(replicas) != num_partitions:
        _refuse(placer, f"returned {count_noun(len(replicas), 'partition')}, expected {num_partitions}")
    if replicas.shape[1] != num_replicas and num_partitions > 0:
        _refuse(placer, f"returned {count_noun(replicas.shape[1], 'replica')} a partition, expected {num_replicas}")
    _refuse_unknown(replicas, start_partition, brokers, placer)
    _refuse_twice(replicas, start_partition, placer)
    return assignment if isinstance(assignment, TopicAssignment) else TopicAssignment(replicas)


def _matrix(assignment: object, placer: str) -> Int32s:
    if not isinstance(assignment, TopicAssignment):
        _refuse(placer, f"returned {type(assignment).__name__}, not a TopicAssignment")
    replicas: object = assignment.replicas
    if not isinstance(replicas, np.ndarray) or replicas.dtype != np.int32 or replicas.ndim != 2:
        _refuse(placer, f"returned {_kind(replicas)}, not a matrix of 32-bit broker ids")
    return replicas


def _kind(value: object) -> str:
    return f"{value.ndim} dimensions of {value.dtype}" if isinstance(value, np.ndarray) else type(value).__name__


def _refuse_unknown(replicas: Int32s, start: int, brokers: Sequence[UsableBroker], placer: str) -> None:
    if replicas.size == 0:
        return
    if not brokers:
        _refuse(placer, f"put partition {start} on broker {replicas[0, 0]}, and there is no broker")
    known = _known(replicas, np.array(sorted(broker.id for broker in brokers), dtype=np.int32))
    if not known.all():
        row, column = np.argwhere(~known)[0].tolist()
        _refuse(placer, f"put partition {start + row} on broker {replicas[row, column]}, which was not offered")


def _known(replicas: Int32s, ids: Int32s) -> Bools:
    """Which replicas are among the ascending `ids`."""
    highest = ids[-1]
    if highest <= DENSE_IDS_MAX and replicas.min() >= 0 and replicas.max() <= highest:
        table = np.zeros(highest + 1, dtype=np.bool_)
        table[ids] = True
        return np.asarray(table[replicas])
    return np.asarray(ids[np.minimum(np.searchsorted(ids, replicas), len(ids) - 1)] == replicas)


def _refuse_twice(replicas: Int32s, start: int, placer: str) -> None:
    columns = [np.ascontiguousarray(column) for column in replicas.T]
    for column, other in combinations(columns, 2):
        twice = column == other
        if twice.any():
            row = int(twice.argmax())
            _refuse(placer, f"put partition {start + row} on broker {column[row]} twice")


def _refuse(placer: str, what: str, error: Exception | None = None) -> NoReturn:
    raise ReplicaPlacementException(f"{placer} {what}; correct the placer, or choose another") from error
