"""What the tables of rackspan.pipeline.schemas declare, of which some are in other modules of the package:

rackspan.pipeline.schemas.columns, rackspan.pipeline.schemas.hours and rackspan.pipeline.schemas.readings.
"""

from pathlib import Path

import pytest

from rackspan.errors import UsageError
from rackspan.pipeline import schemas
from tools.tables import document

DOCUMENT = Path(__file__).parent.parent.parent / "docs" / "tables.md"


def test_the_document_is_what_the_schemas_say() -> None:
    assert DOCUMENT.read_text(encoding="utf-8") == document(), (
        "write it again: .venv/bin/python tools/tables.py > docs/tables.md"
    )


@pytest.mark.parametrize("table", schemas.TABLES.values(), ids=lambda table: table.name)
def test_every_table_is_keyed_by_cluster_and_time_and_ends_with_its_version(table: schemas.Table) -> None:
    names = table.schema.names
    assert names[:2] == list(table.grain[:2]) == ["cluster_id", "valid_from" if table.as_changes else "taken_at"]
    assert names[-1] == "schema_version"
    assert set(table.grain) <= set(names)
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("table", schemas.HOURLY.values(), ids=lambda table: table.name)
def test_every_table_of_hours_is_keyed_by_cluster_and_hour(table: schemas.Table) -> None:
    names = table.schema.names
    assert names[:4] == ["cluster_id", "hour", "day", "hour_id"]
    assert list(table.grain[:2]) == ["cluster_id", "hour"]
    assert names[-1] == "schema_version"
    assert set(table.grain) <= set(names)
    assert len(set(names)) == len(names)


def test_spark_is_given_the_same_types() -> None:
    ddl = schemas.ddl(schemas.PARTITION_DURABILITY.columns)
    assert "`valid_from` TIMESTAMP" in ddl
    assert "`replica_racks` ARRAY<STRING>" in ddl
    assert "`size_bytes` BIGINT" in ddl


def test_an_unknown_table_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match=r"table 'durability'.*partition_durability, findings"):
        schemas.table_named("durability")
