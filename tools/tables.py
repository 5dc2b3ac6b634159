"""Prints docs/tables.md, generated from the schemas of the pipeline's tables: python tools/tables.py > docs/tables.md."""

import sys
from collections.abc import Iterator

from rackspan.audit.drift import CHANGES
from rackspan.pipeline.schemas import TABLES, Table, spark_type


def document() -> str:
    """The text of docs/tables.md."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "# Tables"
    yield ""
    yield "Drawn from `src/rackspan/pipeline/schemas.py`; a test holds the two equal."
    yield ""
    yield (
        "A table lies at `DIR/tables/NAME` as Parquet, a folder for each cluster and UTC day. `DIR/tables/manifest.json` "
        "names the files in force: read those and no others, or let `rackspan pipeline table NAME --warehouse DIR` do it. "
        "Times are in UTC. Rows are sorted by the grain, in which nulls come first."
    )
    for table in TABLES.values():
        yield from _described(table)
    yield "\n| change | what happened |"
    yield "|---|---|"
    yield from (f"| `{name}` | {meaning} |" for name, meaning in CHANGES.items())


def _described(table: Table) -> Iterator[str]:
    yield f"\n## {table.name}\n"
    yield f"{table.meaning} Version {table.version}.\n"
    yield f"Grain: {', '.join(f'`{name}`' for name in table.grain)}.\n"
    yield "| column | type | null | meaning |"
    yield "|---|---|---|---|"
    for column in table.columns:
        yield f"| `{column.name}` | {spark_type(column.type).lower()} | {'yes' if column.nullable else 'no'} | {column.meaning} |"


if __name__ == "__main__":
    sys.stdout.write(document())
