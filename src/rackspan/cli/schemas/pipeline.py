"""The documents of rackspan pipeline check and pipeline table. The rows of a table follow from its columns."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime
from types import GenericAlias
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec

if TYPE_CHECKING:
    import pyarrow as pa

    from rackspan.pipeline.schemas import Table

OF_THE_PIPELINE: Final = ("pipeline check", "pipeline table")
"""Declared by the pipeline, which is imported only for them."""


def pipeline_documents(words: str) -> Sequence[Any]:
    from rackspan.pipeline.check import CheckDocument
    from rackspan.pipeline.schemas import DERIVED, HISTORY, LANDING, NAMES

    if words == "pipeline check":
        return [CheckDocument]
    tables = (*DERIVED.values(), *LANDING.values(), *HISTORY.values(), *NAMES.values())
    # With --changes those of changes are printed as they are stored.
    stored = (replace(table, name=f"{table.name}_changes") for table in tables if table.as_changes)
    return [GenericAlias(list, _row(table)) for table in (*(table.at_each_snapshot for table in tables), *stored)]


def _row(table: "Table") -> type[msgspec.Struct]:
    """A row as it is printed: a class made of the table's columns."""
    fields = [
        (
            column.name,
            Annotated[
                _type(column.type, f"{table.name}_{column.name}", nullable=column.nullable),
                msgspec.Meta(description=column.meaning),
            ],
        )
        for column in table.columns
    ]
    return msgspec.defstruct(table.name, fields, namespace={"__doc__": table.meaning})


def _type(kind: "pa.DataType", name: str, *, nullable: bool = True) -> Any:
    """The Python type of a column. `name` is that of its objects."""
    import pyarrow as pa

    found: Any
    if pa.types.is_list(kind):
        found = GenericAlias(list, _type(kind.value_type, name))
    elif pa.types.is_map(kind):
        found = GenericAlias(dict, (str, _type(kind.item_type, name, nullable=False)))
    elif pa.types.is_struct(kind):
        found = msgspec.defstruct(name, [(field.name, _type(field.type, f"{name}_{field.name}")) for field in kind])
    else:
        found = next((python for matches, python in _PYTHON_TYPES.items() if getattr(pa.types, matches)(kind)), str)
    return found | None if nullable else found


_PYTHON_TYPES: Final = {
    "is_timestamp": datetime,
    "is_date": date,
    "is_boolean": bool,
    "is_integer": int,
    "is_floating": float,
}
"""By the predicate of pyarrow."""
