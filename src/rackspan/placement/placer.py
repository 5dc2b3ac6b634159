"""The contract between whoever creates partitions and whoever chooses their brokers (KIP-660, Public Interfaces 1 and 2).

A placer of your own needs `configure`, `place` and `close`; examples/custom_placer.py is one. `checked` stands around
every placer: what it answers is looked at before a broker hears of it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from typing import NoReturn, Protocol

import numpy as np

from rackspan.errors import ReplicaPlacementException, cause
from rackspan.model.ids import BrokerId
from rackspan.model.partitions import Bools, Int32s
from rackspan.model.racks import DENSE_IDS_MAX
from rackspan.placement.usable_brokers import UsableBroker


@dataclass(frozen=True, slots=True)
class PartitionAssignment:
    """The brokers holding one partition, preferred leader first."""

    replicas: tuple[BrokerId, ...]


@dataclass(frozen=True, slots=True, eq=False)
class TopicAssignment:
    """Where the partitions of one topic go: one array, rows made into values on demand.

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
                    f"partition {partition} of the answer has {len(row)} replicas and partition 0 has {width}; a placer gives all the same number"
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
        """Take the broker's configs, all of them. What a placer knows beyond `place`'s arguments comes this way only."""

    def place(
        self, start_partition: int, num_partitions: int, num_replicas: int, brokers: Sequence[UsableBroker]
    ) -> TopicAssignment:
        """Place partitions `start_partition` up to `start_partition + num_partitions - 1` of one topic.

        Errors: ReplicaPlacementException where no placement can be made.
        """

    def close(self) -> None:
        """Let go of whatever `configure` opened."""


@dataclass(frozen=True, slots=True)
class CheckedPlacer:
    """A placer whose bad answers, and whatever else it raises, are ReplicaPlacementExceptions. `name` is what the operator wrote in `replica.placer.class.name`."""

    name: str
    placer: ReplicaPlacer

    def configure(self, configs: Mapping[str, str]) -> None:
        self.placer.configure(configs)

    def place(
        self, start_partition: int, num_partitions: int, num_replicas: int, brokers: Sequence[UsableBroker]
    ) -> TopicAssignment:
        try:
            answer = self.placer.place(start_partition, num_partitions, num_replicas, brokers)
        except ReplicaPlacementException:
            raise
        except Exception as error:
            _refuse(self.name, f"failed with {cause(error)}", error)
        return checked(answer, start_partition, num_partitions, num_replicas, brokers, self.name)

    def close(self) -> None:
        self.placer.close()


def checked(
    answer: object,
    start_partition: int,
    num_partitions: int,
    num_replicas: int,
    brokers: Sequence[UsableBroker],
    placer: str = "the placer",
) -> TopicAssignment:
    """`answer` itself, if it answers what was asked.

    Errors: ReplicaPlacementException for a wrong type, a wrong count of partitions or replicas, a broker twice in a
    partition and a broker that was not offered, naming a partition it happens in.
    Cost: one lookup a replica and one comparison of every two replicas of a partition.
    """
    replicas = _matrix(answer, placer)
    if len(replicas) != num_partitions:
        _refuse(placer, f"answered {len(replicas)} partitions where {num_partitions} were asked for")
    if replicas.shape[1] != num_replicas and num_partitions > 0:
        _refuse(placer, f"answered {replicas.shape[1]} replicas a partition where {num_replicas} were asked for")
    _refuse_unknown(replicas, start_partition, brokers, placer)
    _refuse_twice(replicas, start_partition, placer)
    return answer if isinstance(answer, TopicAssignment) else TopicAssignment(replicas)


def _matrix(answer: object, placer: str) -> Int32s:
    if not isinstance(answer, TopicAssignment):
        _refuse(placer, f"answered {type(answer).__name__}, not a TopicAssignment")
    replicas: object = answer.replicas
    if not isinstance(replicas, np.ndarray) or replicas.dtype != np.int32 or replicas.ndim != 2:
        _refuse(placer, f"answered {_kind(replicas)}, not a matrix of 32-bit broker ids")
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
    """Where a replica is one of the ascending `ids`."""
    highest = ids[-1]
    if highest <= DENSE_IDS_MAX and replicas.min() >= 0 and replicas.max() <= highest:
        table = np.zeros(highest + 1, dtype=np.bool_)
        table[ids] = True
        return np.asarray(table[replicas])
    return np.asarray(ids[np.minimum(np.searchsorted(ids, replicas), len(ids) - 1)] == replicas)


def _refuse_twice(replicas: Int32s, start: int, placer: str) -> None:
    columns = [np.ascontiguousarray(column) for column in replicas.T]
    for one, other in combinations(columns, 2):
        twice = one == other
        if twice.any():
            row = int(twice.argmax())
            _refuse(placer, f"put partition {start + row} on broker {one[row]} twice")


def _refuse(placer: str, what: str, error: Exception | None = None) -> NoReturn:
    raise ReplicaPlacementException(f"{placer} {what}; correct the placer, or choose another") from error
