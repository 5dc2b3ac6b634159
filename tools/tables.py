"""Prints docs/tables.md, generated from the schemas of the pipeline's tables: python tools/tables.py > docs/tables.md."""

import sys
from collections.abc import Iterator
from typing import Final

from rackspan.audit.drift import CHANGES
from rackspan.pipeline.schemas import HISTORY, HOURLY, LANDING, NAMES, OF_READINGS, TABLES, Table, spark_type

GROUPS: Final = (
    (
        "Derived tables",
        "Spark computes these and writes their files, and a run commits them; each row names the run that wrote it.",
        TABLES,
    ),
    (
        "Derived tables of hours",
        "Made in the same way, an hour of a cluster at a time: whenever a reading or a snapshot that concerns an hour is stored, however late, "
        "all rows of that hour are made again. `hour_id` is what they are replaced by.",
        HOURLY,
    ),
    ("Landing tables", "`pipeline collect` writes these with delta-rs; no Spark.", LANDING),
    (
        "Landing tables of readings",
        "`pipeline collect --traffic-every` writes these with the snapshot of the same time, before its row in `snapshots`.",
        OF_READINGS,
    ),
    (
        "Names of clusters",
        "`pipeline collect` writes this with delta-rs, and each row is read at once: it belongs to no run, and has no `day`.",
        NAMES,
    ),
    ("History", "The record of the runs, written with delta-rs when Spark is done.", HISTORY),
)


def document() -> str:
    """The text of docs/tables.md."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "# Tables"
    yield ""
    yield "Drawn from `src/rackspan/pipeline/schemas/`; a test holds the two equal."
    yield ""
    yield (
        "A table is a Delta Lake table at `URL/tables/NAME`, without any table feature, partitioned by the column `day`: every "
        "engine that reads Delta reads it by that path. The derived tables and `judged` change one after another during a run; the "
        "newest row of `runs` names the version of each that belongs together, and `rackspan pipeline table`, `report` and "
        "`rackspan.pipeline.notebook.read` read those. Times are in UTC. `pipeline table` sorts rows by the grain, in which nulls "
        "come first. [How to use the pipeline](how-to/pipeline.md) has examples for Spark, DuckDB and Polars."
    )
    yield ""
    yield (
        "**Tables of changes** have the column `gone`: only rows that differ from those at the snapshot before are stored. In a derived "
        "one a row is true from `valid_from` on until the next row of the same key, and the first snapshot of a cluster on each UTC day "
        "(in `judged` the one without `base_id`) has all rows again, so that a day can be read and dropped by itself. "
        "`pipeline table NAME` prints the rows at each snapshot, with `taken_at` and without `gone`; `--at TIME` those at one time, "
        "`--changes` what is stored. [How to use the pipeline](how-to/pipeline.md) has the same as SQL. A time belongs to the newest "
        "snapshot of its cluster at or before it; after that snapshot's `known_until`, in `snapshots` and `judged`, the state is unknown."
    )
    for title, meaning, tables in GROUPS:
        yield f"\n# {title}\n\n{meaning}"
        for table in tables.values():
            yield from _described(table)
    yield "\n# Changes\n\nThe words in the column `change` of `drift`.\n"
    yield "| change | what happened |"
    yield "|---|---|"
    yield from (f"| `{name}` | {meaning} |" for name, meaning in CHANGES.items())


def _described(table: Table) -> Iterator[str]:
    yield f"\n## {table.name}\n"
    version = f" Version {table.version}." if table.name in {**TABLES, **HOURLY} else ""
    yield f"{table.meaning}{version}\n"
    if table.as_changes:
        yield "A table of changes.\n"
    yield f"Grain: {', '.join(f'`{name}`' for name in table.grain)}.\n"
    yield "| column | type | null | meaning |"
    yield "|---|---|---|---|"
    for column in table.columns:
        yield f"| `{column.name}` | {spark_type(column.type).lower()} | {'yes' if column.nullable else 'no'} | {column.meaning} |"


if __name__ == "__main__":
    sys.stdout.write(document())
