"""The `partitions` of a problem document as columns, and the columns of tasks, which refer to them."""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from rackspan.model.ids import RackId
from rackspan.streams.formats.documents import refuse
from rackspan.streams.formats.tasks import TaskRow
from rackspan.streams.problem import Int64s, PartitionLists, PartitionRacks, TaskColumns, topic_of

MAX_WEIGHT: Final = 2**40
"""A TiB in bytes: sums over a million tasks then stay within 64 bits."""


def read_partitions(
    listed: Mapping[str, list[str | None] | None],
    weights: Mapping[str, int] | None,
    rows: Sequence[TaskRow],
    racks: tuple[RackId, ...],
) -> tuple[PartitionRacks, TaskColumns]:
    """The columns of partitions, sorted by name, and of tasks, in the order of `rows`."""
    needed = {name for row in rows for name in (*row.source, *row.changelog)}
    names = tuple(sorted(needed | listed.keys()))
    position = {name: index for index, name in enumerate(names)}
    partitions = _columns(names, listed, racks, _weights(names, needed, weights))
    return partitions, _task_columns(rows, position)


def _columns(
    names: tuple[str, ...], listed: Mapping[str, list[str | None] | None], racks: tuple[RackId, ...], weight: Int64s
) -> PartitionRacks:
    code_of: Mapping[str | None, int] = {rack: code for code, rack in enumerate(racks)}
    replicas = np.zeros(len(names), dtype=np.int32)
    rackless = np.zeros(len(names), dtype=np.bool_)
    in_rack = np.zeros((len(names), len(racks)), dtype=np.bool_)
    for index, name in enumerate(names):
        replica_racks = listed.get(name) or []
        if not replica_racks:
            topic_of(name)  # Refuses a name that is no partition's.
        replicas[index] = len(replica_racks)
        rackless[index] = None in replica_racks
        in_rack[index, [code_of[rack] for rack in replica_racks if rack in code_of]] = True
    return PartitionRacks(
        names=names,
        listed=np.array([name in listed for name in names], dtype=np.bool_),
        replicas=replicas,
        rackless=rackless,
        in_rack=in_rack,
        weight=weight,
    )


def _weights(names: tuple[str, ...], needed: set[str], weights: Mapping[str, int] | None) -> Int64s:
    if weights is None:
        return np.ones(len(names), dtype=np.int64)
    for name in sorted(weights.keys() - set(names)):
        refuse("partition_weights", f"partition {name} is not among the partitions; add it or leave it out")
    return np.array([_weight(name, weights, name in needed) for name in names], dtype=np.int64)


def _weight(name: str, weights: Mapping[str, int], needed: bool) -> int:
    if name not in weights:
        if needed:
            refuse(f"partition {name}", "has no weight; give every partition of a task one in partition_weights")
        return 0
    weight = weights[name]
    if not 0 <= weight <= MAX_WEIGHT:
        refuse(f"partition {name}", f"weight is {weight}, outside 0 to {MAX_WEIGHT}; give weights in a larger unit")
    return weight


def _task_columns(rows: Sequence[TaskRow], position: Mapping[str, int]) -> TaskColumns:
    families = sorted({row.order[:2] for row in rows})
    code_of = {family: code for code, family in enumerate(families)}
    return TaskColumns(
        ids=tuple(row.id for row in rows),
        subtopology=np.array([code_of[row.order[:2]] for row in rows], dtype=np.int32),
        stateful=np.array([row.stateful for row in rows], dtype=np.bool_),
        source=_lists([row.source for row in rows], position),
        changelog=_lists([row.changelog for row in rows], position),
    )


def _lists(lists: Sequence[list[str]], position: Mapping[str, int]) -> PartitionLists:
    offset = np.zeros(len(lists) + 1, dtype=np.int64)
    np.cumsum([len(names) for names in lists], out=offset[1:])
    partition = np.array([position[name] for names in lists for name in names], dtype=np.int32)
    return PartitionLists(offset, partition)
