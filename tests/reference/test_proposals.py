"""docs/pipeline-and-kips.md: its tables, columns and values exist, and every derived table is on it."""

import re

from rackspan.audit.findings import REPAIR_ORDER
from rackspan.pipeline.schemas import DERIVED, LANDING
from tests.reference.pages import codes, rows, text

PAGE = "pipeline-and-kips.md"
TABLES = {**LANDING, **DERIVED}


def test_every_derived_table_traces_to_a_proposal() -> None:
    named = {name for *_, tables, _ in rows(text(PAGE)) for name in codes(tables)}
    assert named <= TABLES.keys()
    assert DERIVED.keys() <= named


def test_columns_and_values_are_those_of_the_tables() -> None:
    savings = {word for cells in rows(text("how-to/advise.md")) for word in codes(cells[0])}
    for *_, tables, columns in rows(text(PAGE)):
        meanings = {
            column.name: column.meaning for name in codes(tables) if name in TABLES for column in TABLES[name].columns
        }
        for part in columns.split(";"):
            key = None
            for word, equals in re.findall(r"`([^`]+)`(?: (=))?", part):
                if equals or word in meanings:
                    assert word in meanings, (tables, word)
                    key = word if equals else key
                else:
                    assert key is not None, (tables, word)
                    assert word in {*codes(meanings[key]), *savings, *REPAIR_ORDER}, (tables, key, word)
