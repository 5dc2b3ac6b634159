"""Holds what commands print with -o json to the JSON Schemas of the package, in every test that runs a command."""

import json
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from rich.console import RenderableType
from typer._click.globals import get_current_context

from rackspan.cli import output
from rackspan.cli.options import Output
from rackspan.cli.schemas import json_schema


@cache
def validator(words: str) -> Draft202012Validator:
    return Draft202012Validator(json_schema(words))


def violations(words: str, document: Any) -> list[str]:
    """What breaks the schema, a line each."""
    as_printed = json.loads(json.dumps(document))
    return [f"{error.json_path}: {error.message}" for error in validator(words).iter_errors(as_printed)]


@pytest.fixture
def documents_validated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every document is validated, in whichever format it is printed."""
    write = output.write

    def validated(document: Any, output_format: Output, human: RenderableType, rows: output.Rows) -> None:
        context = get_current_context(silent=True)
        program, _, words = (context.command_path if context is not None else "").partition(" ")
        # A table for -o csv has no document; a group that is called without `rackspan` has no name.
        if program == "rackspan" and not (words == "pipeline table" and document == []):
            assert violations(words, output.with_settings(document)) == [], f"rackspan {words} -o json"
        write(document, output_format, human, rows)

    def validated_rows(rows: Iterable[Mapping[str, object]]) -> None:
        listed = list(rows)
        assert violations("pipeline table", listed) == []
        write_json_array(listed)

    def validated_line(document: Mapping[str, Any], output_format: Output, human: str, *, first: bool) -> None:
        words = get_current_context().command_path.partition(" ")[2]
        assert violations(words, document) == [], f"rackspan {words} -o json"
        write_line(document, output_format, human, first=first)

    write_json_array, write_line = output.write_json_array, output.write_line
    monkeypatch.setattr(output, "write", validated)
    monkeypatch.setattr(output, "write_json_array", validated_rows)
    monkeypatch.setattr(output, "write_line", validated_line)
