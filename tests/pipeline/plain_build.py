"""A Build without Spark: the expected rows as Parquet. It lets everything around Spark be tested in milliseconds."""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from rackspan.audit import RackPolicy
from rackspan.pipeline.incremental import Work
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
                    typed = [{**row, "taken_at": datetime.fromisoformat(row["taken_at"])} for row in part]
                    pq.write_table(pa.Table.from_pylist(typed, one.table.schema), folder / f"part-{number}.parquet")


def _rows(one: Work, policy: RackPolicy) -> list[dict[str, Any]]:
    snapshots = [snapshot_file.read(stored.folder).snapshot for stored in one.snapshots]
    return expected.table(one.table.name, snapshots, policy)
