"""Rewrites the JSON Schemas that follow from something else: python -m tools.table_schema.

That of `pipeline table -o json` follows from the schemas of the tables, that of `reassign undo` from that of `reassign apply`,
whose documents are the same.
"""

import json
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from rackspan.pipeline.schemas import HISTORY, LANDING, TABLES, Table

SCHEMAS: Final = Path(__file__).parents[1] / "src" / "rackspan" / "cli" / "schemas"


def generated() -> dict[str, str]:
    """The text of each generated file, by its name."""
    return {"pipeline-table.v1.json": table_document(), "reassign-undo.v1.json": undo_document()}


def undo_document() -> str:
    """The schema of `reassign apply` under the names of `reassign undo`."""
    apply = json.loads((SCHEMAS / "reassign-apply.v1.json").read_text(encoding="utf-8"))
    own = {
        "$id": "urn:rackspan:schema:reassign-undo:v1",
        "title": "rackspan reassign undo -o json",
        "description": "A run of a plan backwards: its dry run, or with --apply its result.",
    }
    return json.dumps({**apply, **own}, indent=1, ensure_ascii=False) + "\n"


def table_document() -> str:
    """The text of the file: an array of rows, each of one table."""
    tables = {**TABLES, **LANDING, **HISTORY}
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:rackspan:schema:pipeline-table:v1",
        "title": "rackspan pipeline table -o json",
        "description": "The rows of one table, in the order of its grain. $defs has a schema for the rows of each table.",
        "anyOf": [{"type": "array", "items": {"$ref": f"#/$defs/{name}"}} for name in tables],
        "$defs": {name: _row(table) for name, table in tables.items()},
    }
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


def _row(table: Table) -> dict[str, Any]:
    properties = {
        column.name: {"description": column.meaning, **_or_null(_of(column.type), nullable=column.nullable)}
        for column in table.columns
    }
    return {
        "description": table.meaning,
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _or_null(schema: dict[str, Any], *, nullable: bool) -> dict[str, Any]:
    return {**schema, "type": [schema["type"], "null"]} if nullable else schema


def _of(kind: pa.DataType) -> dict[str, Any]:
    if pa.types.is_list(kind):
        return {"type": "array", "items": _or_null(_of(kind.value_type), nullable=True)}
    if pa.types.is_map(kind):
        return {"type": "object", "additionalProperties": _of(kind.item_type)}
    if pa.types.is_struct(kind):
        fields = {field.name: _or_null(_of(field.type), nullable=True) for field in kind}
        return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}
    if pa.types.is_timestamp(kind):
        return {"type": "string", "format": "date-time"}
    if pa.types.is_date(kind):
        return {"type": "string", "format": "date"}
    if pa.types.is_boolean(kind):
        return {"type": "boolean"}
    return {"type": "integer" if pa.types.is_integer(kind) else "number" if pa.types.is_floating(kind) else "string"}


if __name__ == "__main__":
    for name, text in generated().items():
        (SCHEMAS / name).write_text(text, encoding="utf-8")
