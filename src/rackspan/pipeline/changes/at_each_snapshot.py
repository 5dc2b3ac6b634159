"""Rows at each snapshot, of tables in which only changes are stored: what readers get unless they want the changes.

Constraints: the rows of a snapshot are exactly those that judging it whole gave; a snapshot of which a row may be in a damaged file
is left out, and so is all that builds on it. Bound: the stored rows of one cluster and day in memory, and the rows of one snapshot.
Tests: tests/pipeline/changes/test_at_each_snapshot.py.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from itertools import groupby

import pyarrow as pa

from rackspan.errors import UsageError
from rackspan.pipeline.changes.difference import Contents
from rackspan.pipeline.delta.table import DataFile
from rackspan.pipeline.schemas import GONE, Table


@dataclass(frozen=True, slots=True)
class VisibleSnapshot:
    """A snapshot that readers see. Its rows differ from those of `base_id`; all of them are stored where that is None."""

    snapshot_id: str
    cluster_id: str
    taken_at: datetime
    day: date
    base_id: str | None
    known_until: datetime


def without_damaged(visible: Sequence[VisibleSnapshot], damaged: Collection[DataFile]) -> list[VisibleSnapshot]:
    """The snapshots of which no row is in a damaged file, and that build on none of which one may be."""
    hidden: set[str] = set()
    for snapshot in sorted(visible, key=lambda snapshot: snapshot.snapshot_id):
        inside = (file for file in damaged if file.day == snapshot.day and file.may_hold(*[snapshot.snapshot_id] * 2))
        if snapshot.base_id in hidden or next(inside, None) is not None:
            hidden.add(snapshot.snapshot_id)
    return [snapshot for snapshot in visible if snapshot.snapshot_id not in hidden]


def snapshot_rows(
    table: Table,
    columns: Sequence[str],
    stored: pa.Table,
    visible: Sequence[VisibleSnapshot],
    only: Collection[str] | None = None,
) -> Iterator[pa.Table]:
    """The rows at each of some snapshots, in the order of `visible`, with these columns of `table.at_each_snapshot`.

    `stored` has the rows of these snapshots, in `stored_columns`; with `only`, the rows at the snapshots with these ids.
    Errors: InvalidWarehouse where a snapshot builds on one that is not there.
    """
    schema = pa.schema([table.at_each_snapshot.schema.field(name) for name in columns])
    contents = Contents(table.grain[2:], stored, {snapshot.snapshot_id: snapshot.base_id for snapshot in visible})
    for snapshot in visible:
        if only is not None and snapshot.snapshot_id not in only:
            continue
        rows = contents.of(snapshot.snapshot_id)
        if len(rows):
            yield pa.table([_column(rows, field, snapshot) for field in schema], schema=schema)


def stored_columns(table: Table, columns: Sequence[str]) -> pa.Schema:
    """What has to be read of a table for `snapshot_rows`: its own columns among these, and the key of a row."""
    own = [name for name in table.schema.names if name not in ("cluster_id", "taken_at", "valid_from", "day")]
    wanted = {*columns, *table.grain, "snapshot_id", GONE}
    return pa.schema([table.schema.field(name) for name in own if name in wanted])


def refuse_without_zone(at: datetime) -> None:
    """Errors: UsageError for a time that is another one on each machine."""
    if at.tzinfo is None:
        raise UsageError(f"at {at}: has no time zone, and tables are in UTC; give it one, as in at.replace(tzinfo=UTC)")


def by_cluster(visible: Sequence[VisibleSnapshot]) -> Mapping[str, list[VisibleSnapshot]]:
    """The snapshots of each cluster, in order of time."""
    ordered = sorted(visible, key=lambda snapshot: (snapshot.cluster_id, snapshot.taken_at))
    return {cluster: list(of_cluster) for cluster, of_cluster in groupby(ordered, key=lambda one: one.cluster_id)}


def _column(rows: pa.Table, field: pa.Field, snapshot: VisibleSnapshot) -> pa.Array:
    if field.name in ("cluster_id", "taken_at", "day", "snapshot_id"):
        return pa.repeat(pa.scalar(getattr(snapshot, field.name), field.type), len(rows))
    return rows.column(field.name).cast(field.type)
