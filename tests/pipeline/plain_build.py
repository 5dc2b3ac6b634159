"""A Build without Spark: the expected rows as Parquet. It lets everything around Spark be tested in milliseconds."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from rackspan.audit import RackPolicy
from rackspan.pipeline.incremental import Work
from rackspan.pipeline.schemas import Table
from rackspan.sources import snapshot_file
from tests.pipeline import expected


def build(work: Mapping[str, list[Work]], policy: RackPolicy, staging: Path) -> None:
    for name, days in work.items():
        for unit, one in enumerate(days):
            rows = expected.ordered(_rows(one, policy), one.table.grain)
            folder = staging / name / f"unit={unit}"
            if rows:
                folder.mkdir(parents=True)
                # Two files where there are two rows, as Spark may leave several.
                for number, part in enumerate((rows[::2], rows[1::2])):
                    pq.write_table(_typed(part, one.table), folder / f"part-{number}.parquet")


def _typed(rows: Sequence[Mapping[str, Any]], table: Table) -> pa.Table:
    timestamps = [name for name in table.schema.names if name.endswith("taken_at")]
    typed = [{**row, **{name: datetime.fromisoformat(row[name]) for name in timestamps}} for row in rows]
    return pa.Table.from_pylist(typed, table.schema)


def _rows(one: Work, policy: RackPolicy) -> list[dict[str, Any]]:
    read = (one.previous, *one.snapshots) if one.previous else one.snapshots
    snapshots = [snapshot_file.read(stored.folder).snapshot for stored in read]
    return expected.table(one.table.name, snapshots, policy)
